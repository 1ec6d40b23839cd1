//! Lays out the image: where the canvas, the texts around it and the legend are.
//!
//! Needs the options, the legend's entries and the fonts, but no value and no time. All positions are in pixels before
//! zoom, from the upper left corner of the image. Compat: they are RRDtool's to the pixel (`tests/layout_oracle.rs`).
//! RRDtool truncates to whole pixels after each step, and so does this; the constants were found by drawing graphs with
//! Debian's rrdtool.

mod frame;
mod texts;

use super::legend::flow::{Flow, FlowOptions, flow};
use super::legend::{Entry, PlacedEntry, PlacedMark, UnknownControlCode};
use super::options::{FontTag, LegendPosition, Options};
use super::scene::Point;
use super::text::{TextLayout, TextOptions, Typesetter};
use super::zoom::Zoomed;
use frame::Frame;

/// Width and height of a colour box, in widths of the letter `o`.
const BOX: f64 = 1.2;
/// From the lower edge of a text up to its colour box, in heights of the box.
const BOX_RISE: f64 = 0.4;

/// A text and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedText {
    /// The text, set.
    pub layout: TextLayout,
    /// The upper left corner of its box, before it is turned.
    pub at: Point,
    /// By how many degrees it is turned clockwise around `at`.
    pub turned: f64,
}

/// The layout of an image, in pixels before zoom from its upper left corner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Width of the image.
    pub image_width: i64,
    /// Height of the image.
    pub image_height: i64,
    /// Left edge of the canvas.
    pub canvas_left: i64,
    /// Upper edge of the canvas.
    pub canvas_top: i64,
    /// Width of the canvas; at least 1.
    pub canvas_width: i64,
    /// Height of the canvas; at least 1.
    pub canvas_height: i64,
    /// `--title`, one text per line.
    pub title: Vec<PlacedText>,
    /// `--vertical-label`
    pub vertical_label: Option<PlacedText>,
    /// `--right-axis-label`
    pub right_axis_label: Option<PlacedText>,
    /// `--watermark`
    pub watermark: Option<PlacedText>,
    /// The name of the tool, along an edge, unless `--disable-rrdtool-tag` is given. It takes no space.
    pub signature: Option<PlacedText>,
    /// The legend.
    pub legend: Vec<PlacedEntry>,
}

/// Lays out the image of `options`, with `entries` in the legend.
///
/// # Errors
/// [`UnknownControlCode`] at the end of an entry.
pub fn arrange(
    options: &Options,
    entries: &[Entry],
    typesetter: &dyn Typesetter,
) -> Result<Layout, UnknownControlCode> {
    let (width, height) = (i64::from(options.width), i64::from(options.height));
    if options.only_graph {
        return Ok(Layout {
            image_width: width,
            image_height: height,
            canvas_width: width,
            canvas_height: height,
            ..Layout::default()
        });
    }
    let mut frame = Frame::new(options, typesetter);
    let flow_options = flow_options(options, typesetter, &frame);
    let flow = if !options.legend {
        Flow::default()
    } else if beside(options) {
        let flow = flow(entries, flow_options)?;
        frame.put_legend_beside(flow.width);
        flow
    } else {
        let flow = flow(entries, FlowOptions { width: Some(frame.image_width()), ..flow_options })?;
        frame.put_legend_across(flow.height);
        flow
    };
    // Compat: the legend is broken into lines without zoom, though zoomed texts are a little wider or narrower.
    let zoomed = Zoomed { typesetter, zoom: options.zoom };
    let legend = place(flow, &frame, flow_options, zoomed);
    Ok(texts::layout(options, &zoomed, &frame, legend))
}

/// Font, tabs and markup of the texts of `tag`.
pub(super) fn text_options(options: &Options, tag: FontTag) -> TextOptions<'_> {
    TextOptions { font: options.font(tag), tab_width: options.tab_width, markup: options.markup }
}

/// How the legend is broken into lines.
fn flow_options<'a>(
    options: &'a Options,
    typesetter: &'a dyn Typesetter,
    frame: &Frame<'_>,
) -> FlowOptions<'a> {
    let text_options = text_options(options, FontTag::Legend);
    let flow_options =
        FlowOptions { typesetter, text: text_options, direction: options.legend_direction, width: None };
    // Compat: the legend's tabs are wider than `--tabwidth` wherever there is room for labels of the y axis.
    let wider = if frame.labels_values() { flow_options.border() as f64 } else { 0.0 };
    let text_options = TextOptions { tab_width: options.tab_width + wider, ..text_options };
    FlowOptions { text: text_options, ..flow_options }
}

/// Whether the legend stands beside the canvas.
fn beside(options: &Options) -> bool {
    matches!(options.legend_position, LegendPosition::West | LegendPosition::East)
}

/// The legend's texts and boxes at their positions on the image.
fn place(
    flow: Flow,
    frame: &Frame<'_>,
    flow_options: FlowOptions<'_>,
    zoomed: Zoomed<'_>,
) -> Vec<PlacedEntry> {
    let (left, top) = frame.legend();
    let side = zoomed.set(b"o", flow_options.text).width * BOX;
    let placed = flow.texts.into_iter().map(|item| {
        let x = left as f64 + item.x;
        let bottom = (top + flow_options.border() + item.y) as f64;
        let edge = bottom - side * BOX_RISE;
        let mark = item.mark.map(|mark| PlacedMark {
            mark,
            from: Point { x, y: edge - side },
            to: Point { x: x + side, y: edge },
        });
        let layout = zoomed.again(item.layout, &item.text, flow_options.text);
        let at = Point { x, y: bottom - layout.height };
        PlacedEntry { text: item.text, layout, at, mark }
    });
    placed.collect()
}
