//! What `graphv` prints about a picture: keys and values in RRDtool's order.
//!
//! The caller adds `image_info` ([`image_info`](super::image_info)), as only it knows the file, and the image itself.

use rrd::info::{InfoItem, Value};

use super::layout::Layout;

/// Keys and values of `graphv`, in order.
pub type Report = Vec<InfoItem>;

/// What a report is made of.
#[derive(Clone, Copy)]
pub struct ReportInput<'a> {
    /// The texts of PRINT, in order.
    pub printed: &'a [Vec<u8>],
    /// The layout; `None` where there is nothing to draw.
    pub layout: Option<&'a Layout>,
    /// Start and end: seconds since the epoch.
    pub span: (i64, i64),
    /// Lowest and highest value of the axis; `None` where the picture was not drawn again (`--lazy`).
    pub limits: Option<(f64, f64)>,
}

/// Makes the report.
pub fn report(input: ReportInput<'_>) -> Report {
    let mut items = Vec::new();
    for (number, line) in input.printed.iter().enumerate() {
        items.push(text(format!("print[{number}]"), line));
    }
    if let Some(layout) = input.layout {
        items.extend([
            count("graph_left", layout.canvas_left),
            count("graph_top", layout.canvas_top),
            count("graph_width", layout.canvas_width),
            count("graph_height", layout.canvas_height),
            count("image_width", layout.image_width),
            count("image_height", layout.image_height),
            count("graph_start", input.span.0),
            count("graph_end", input.span.1),
        ]);
        if let Some((low, high)) = input.limits {
            items.push(InfoItem { key: "value_min".to_string(), value: Value::Number(low) });
            items.push(InfoItem { key: "value_max".to_string(), value: Value::Number(high) });
            push_legend(&mut items, layout);
        }
    }
    items
}

/// Every text of the legend, and its box: left, upper, right and lower edge, in whole pixels.
fn push_legend(items: &mut Report, layout: &Layout) {
    for (number, placed) in layout.legend.iter().enumerate() {
        let (x, y) = (placed.at.x, placed.at.y);
        let edges = [x, y, x + placed.layout.width, y + placed.layout.height];
        let coords = edges.map(|edge| format!("{edge:.0}")).join(",");
        items.push(text(format!("legend[{number}]"), &placed.text));
        items.push(text(format!("coords[{number}]"), coords.as_bytes()));
    }
}

/// Compat: a negative number becomes a count beyond 2^63.
fn count(key: &str, count: i64) -> InfoItem {
    InfoItem { key: key.to_string(), value: Value::Count(count as u64) }
}

fn text(key: String, text: &[u8]) -> InfoItem {
    InfoItem { key, value: Value::Text(text.to_vec()) }
}
