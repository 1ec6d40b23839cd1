//! What `graphv` tells about a picture: its keys in RRDtool's order, and `--imginfo`.
//!
//! The image itself (`image`) is the last key, and the caller's: it is painted after all of this is known.

use rrd::info::{InfoItem, Value};

use super::layout::Layout;

/// The keys of `graphv` in order.
pub type Report = Vec<InfoItem>;

/// What is told.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    /// What each PRINT printed, in order.
    pub printed: &'a [Vec<u8>],
    /// `--imginfo`, filled in.
    pub image_info: Option<&'a [u8]>,
    /// The places; `None` where no picture was drawn.
    pub layout: Option<&'a Layout>,
    /// Start and end: seconds since the epoch.
    pub span: (i64, i64),
    /// Lowest and highest value of the axis.
    pub limits: (f64, f64),
}

/// The keys of `graphv` in order.
pub fn report(told: Told<'_>) -> Report {
    let item = |key: String, value: Value| InfoItem { key, value };
    let count = |key: &str, count: i64| item(key.to_string(), Value::Count(count as u64));
    let mut items = Vec::new();
    for (number, text) in told.printed.iter().enumerate() {
        items.push(item(format!("print[{number}]"), Value::Text(text.clone())));
    }
    if let Some(text) = told.image_info {
        items.push(item("image_info".to_string(), Value::Text(text.to_vec())));
    }
    let Some(layout) = told.layout else { return items };
    items.extend([
        count("graph_left", layout.canvas_left),
        count("graph_top", layout.canvas_top),
        count("graph_width", layout.canvas_width),
        count("graph_height", layout.canvas_height),
        count("image_width", layout.image_width),
        count("image_height", layout.image_height),
        count("graph_start", told.span.0),
        count("graph_end", told.span.1),
        item("value_min".to_string(), Value::Number(told.limits.0)),
        item("value_max".to_string(), Value::Number(told.limits.1)),
    ]);
    for (number, placed) in layout.legend.iter().enumerate() {
        let (x, y) = (placed.at.x, placed.at.y);
        let corners = [x, y, x + placed.layout.width, y + placed.layout.height];
        let coords = corners.map(|place| format!("{place:.0}")).join(",");
        items.push(item(format!("legend[{number}]"), Value::Text(placed.text.clone())));
        items.push(item(format!("coords[{number}]"), Value::Text(coords.into_bytes())));
    }
    items
}
