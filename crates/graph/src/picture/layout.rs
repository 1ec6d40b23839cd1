//! Where everything is on the image: the canvas, the texts around it, the legend.
//!
//! Knows no value and no time: what it needs are the options, the legend's entries and the fonts. All places are
//! pixels of the image before `zoom`, from its upper left corner. Compat: places are RRDtool's to the pixel
//! (`tests/layout_oracle.rs`), which counts in whole pixels and cuts after each step; so do the constants here,
//! found by drawing graphs with Debian's rrdtool.

mod frame;
mod words;

use super::legend::flow::{Flow, Rules, flow};
use super::legend::{Entry, Placed, PlacedMark, UnknownControl};
use super::options::{FontTag, LegendPosition, Options};
use super::scene::Point;
use super::text::{Setting, TextLayout, Typesetter};
use super::zoom::Zoomed;
use frame::Frame;

/// A colour box is so many times as wide and as high as the letter `o`.
const BOX: f64 = 1.2;
/// It stands so far above the lower edge of its text, in its own heights.
const BOX_RISE: f64 = 0.4;

/// A text in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedText {
    /// The text, set.
    pub layout: TextLayout,
    /// Where the upper left corner of its box is before it is turned.
    pub at: Point,
    /// Degrees clockwise that it is turned by around `at`.
    pub turned: f64,
}

/// Every place of an image, in pixels from its upper left corner, before `zoom`.
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
    /// `--title`, a text for each line.
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
    pub legend: Vec<Placed>,
}

/// Finds the place of everything on the image of `options`, with these `entries` in the legend.
///
/// # Errors
/// [`UnknownControl`]: an escape at the end of an entry that there is not.
pub fn arrange(
    options: &Options,
    entries: &[Entry],
    typesetter: &dyn Typesetter,
) -> Result<Layout, UnknownControl> {
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
    let rules = rules(options, typesetter, &frame);
    let flow = if !options.legend {
        Flow::default()
    } else if beside(options) {
        let flow = flow(entries, rules)?;
        frame.put_legend_beside(flow.width);
        flow
    } else {
        let flow = flow(entries, Rules { width: Some(frame.image_width()), ..rules })?;
        frame.put_legend_across(flow.height);
        flow
    };
    // Compat: with a zoom texts are painted a little wider or narrower than the legend's lines were made for.
    let zoomed = Zoomed { typesetter, zoom: options.zoom };
    let legend = place(flow, &frame, rules, zoomed);
    Ok(words::layout(options, &zoomed, &frame, legend))
}

/// How the texts of `tag` are set.
pub(super) fn setting(options: &Options, tag: FontTag) -> Setting<'_> {
    Setting { font: options.font(tag), tab_width: options.tab_width, markup: options.markup }
}

/// What the legend's lines go by.
fn rules<'a>(options: &'a Options, typesetter: &'a dyn Typesetter, frame: &Frame<'_>) -> Rules<'a> {
    let setting = setting(options, FontTag::Legend);
    let rules = Rules { typesetter, setting, direction: options.legend_direction, width: None };
    // Compat: a legend's tabs are wider than was asked for, but where RRDtool leaves no room for labels of values.
    let wider = if frame.labels_values() { rules.border() as f64 } else { 0.0 };
    let setting = Setting { tab_width: options.tab_width + wider, ..setting };
    Rules { setting, ..rules }
}

/// Whether the legend stands beside the canvas.
fn beside(options: &Options) -> bool {
    matches!(options.legend_position, LegendPosition::West | LegendPosition::East)
}

/// The legend's texts and boxes in their places on the image.
fn place(flow: Flow, frame: &Frame<'_>, rules: Rules<'_>, zoomed: Zoomed<'_>) -> Vec<Placed> {
    let (left, top) = frame.legend();
    let side = zoomed.set(b"o", rules.setting).width * BOX;
    let placed = flow.pieces.into_iter().map(|piece| {
        let x = left as f64 + piece.x;
        let bottom = (top + rules.border() + piece.y) as f64;
        let edge = bottom - side * BOX_RISE;
        let mark = piece.mark.map(|mark| PlacedMark {
            mark,
            from: Point { x, y: edge - side },
            to: Point { x: x + side, y: edge },
        });
        let layout = zoomed.again(piece.layout, &piece.text, rules.setting);
        let at = Point { x, y: bottom - layout.height };
        Placed { text: piece.text, layout, at, mark }
    });
    placed.collect()
}
