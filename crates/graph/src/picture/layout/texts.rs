//! Places the texts around the canvas.

use super::frame::{Frame, title_lines};
use super::{Layout, PlacedText, text_options};
use crate::picture::legend::PlacedEntry;
use crate::picture::options::{FontTag, LegendPosition, Options};
use crate::picture::scene::Point;
use crate::picture::text::{TextLayout, Typesetter};

/// The name of the tool, along the right edge.
const SIGNATURE: &[u8] = b"ROUNDEL";
/// From the right edge, or from the left one where the legend is on the right, to the signature's upper edge.
const SIGNATURE_RIGHT: i64 = 4;
const SIGNATURE_LEFT: i64 = 15;
/// From the upper edge to the signature, in pixels.
const SIGNATURE_TOP: i64 = 5;
/// From the upper edge to the title's first line and from line to line, in font sizes.
const TITLE_TOP: f64 = 1.3;
const TITLE_LINE: f64 = 1.6;
/// From the watermark to the lower edge, in pixels.
const WATERMARK_BELOW: i64 = 6;
/// From the left edge to the middle of the y axis's title, and from the right axis to the middle of its title.
const LABEL_MIDDLE: i64 = 10;

/// The layout of `frame` with its texts.
pub(super) fn layout(
    options: &Options,
    typesetter: &dyn Typesetter,
    frame: &Frame<'_>,
    legend: Vec<PlacedEntry>,
) -> Layout {
    let set = |text: &[u8], tag: FontTag| typesetter.set(text, text_options(options, tag));
    let (width, height) = (frame.image_width(), frame.image_height());
    let middle = width / 2;
    let upright = frame.label_middle();
    let title_size = options.font(FontTag::Title).size;
    let lines = title_lines(options.title.as_deref().unwrap_or_default());
    let title = lines.into_iter().enumerate().map(|(number, line)| {
        let layout = set(line, FontTag::Title);
        let y = title_size * (TITLE_TOP + TITLE_LINE * number as f64);
        let at = Point { x: (middle - half(layout.width)) as f64, y };
        PlacedText { layout, at, turned: 0.0 }
    });
    let label = |text: &[u8], x: i64| rising(set(text, FontTag::Unit), x, upright);
    let left = frame.content_left() - super::frame::SPACE + LABEL_MIDDLE;
    let right = frame.right_of_axis() + LABEL_MIDDLE;
    let watermark = options.watermark.as_ref().map(|text| {
        let layout = set(text, FontTag::Watermark);
        let y = (height - WATERMARK_BELOW) as f64 - layout.height;
        let at = Point { x: (middle - half(layout.width)) as f64, y };
        PlacedText { layout, at, turned: 0.0 }
    });
    let edge = match options.legend_position {
        LegendPosition::East => SIGNATURE_LEFT,
        _ => width - SIGNATURE_RIGHT,
    };
    Layout {
        image_width: width,
        image_height: height,
        canvas_left: frame.canvas_left(),
        canvas_top: frame.canvas_top(),
        canvas_width: frame.canvas_width(),
        canvas_height: frame.canvas_height(),
        title: title.collect(),
        vertical_label: options.vertical_label.as_ref().map(|text| label(text, left)),
        right_axis_label: options.right_axis_label.as_ref().map(|text| label(text, right)),
        watermark,
        signature: options.rrdtool_tag.then(|| PlacedText {
            layout: set(SIGNATURE, FontTag::Watermark),
            at: Point { x: edge as f64, y: SIGNATURE_TOP as f64 },
            turned: 90.0,
        }),
        legend,
    }
}

/// A text that is read upwards, centred at a point.
fn rising(layout: TextLayout, x: i64, y: i64) -> PlacedText {
    let at = Point { x: (x - half(layout.height)) as f64, y: (y + half(layout.width)) as f64 };
    PlacedText { layout, at, turned: -90.0 }
}

/// Half a width, cut to whole pixels. Compat: RRDtool centres like this.
fn half(width: f64) -> i64 {
    width as i64 / 2
}
