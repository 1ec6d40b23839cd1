//! The rectangles that the image is made of: how wide and high each part is.

use super::text_options;
use crate::picture::options::{FontTag, LegendPosition, Options, XGrid, YGrid};
use crate::picture::text::Typesetter;

/// Pixels at the left, right and upper edge, and beside the vertical axes.
pub(super) const SPACE: i64 = 15;
/// Pixels below a graph without a legend.
const SPACE_BELOW: f64 = 7.5;
/// Height of a line of the title in font sizes; one more such height is left empty.
const TITLE_LINE: f64 = 1.6;
/// Width of the title of a vertical axis, in font sizes.
const UNIT_LABEL: f64 = 2.0;
/// Height of the labels of the x axis, in font sizes.
const TIME_LABELS: f64 = 2.5;
/// Height of the legend beyond its lines, in font sizes.
const LEGEND_MARGIN: f64 = 1.2;
/// Height of the watermark, in font sizes.
const WATERMARK: f64 = 2.0;
/// Characters of a label of the y axis, by default.
const LABEL_LENGTH: i32 = 6;

/// The parts of an image. Widths and heights are whole pixels.
pub(super) struct Frame<'a> {
    options: &'a Options,
    title: i64,
    time_labels: i64,
    watermark: i64,
    value_labels: i64,
    /// Width and height that the legend takes.
    legend: (i64, i64),
}

impl<'a> Frame<'a> {
    /// The rectangles of `options`, without a legend.
    pub(super) fn new(options: &'a Options, typesetter: &dyn Typesetter) -> Frame<'a> {
        let lines = options.title.as_ref().map(|title| title_lines(title).len().max(1));
        let default = if options.y_grid == YGrid::None { 0 } else { LABEL_LENGTH };
        let digit = typesetter.set(b"0", text_options(options, FontTag::Axis)).width;
        let length = options.units_length.unwrap_or(default);
        Frame {
            options,
            title: match lines {
                Some(lines) => sizes(options, FontTag::Title, TITLE_LINE * (lines + 1) as f64),
                None => SPACE,
            },
            time_labels: match options.x_grid {
                XGrid::None => 0,
                _ => sizes(options, FontTag::Axis, TIME_LABELS),
            },
            watermark: match options.watermark {
                Some(_) => sizes(options, FontTag::Watermark, WATERMARK),
                None => 0,
            },
            value_labels: (digit * f64::from(length)) as i64,
            legend: (0, 0),
        }
    }

    /// Whether there is room for labels of the y axis, even of width 0.
    pub(super) fn labels_values(&self) -> bool {
        self.options.units_length.is_some() || self.options.y_grid != YGrid::None
    }

    /// Makes room for a legend of this width beside the canvas.
    pub(super) fn put_legend_beside(&mut self, width: i64) {
        self.legend = (width, 0);
    }

    /// Makes room for a legend above or below the canvas, whose lines have this height.
    pub(super) fn put_legend_across(&mut self, height: i64) {
        let margin = self.options.font(FontTag::Legend).size * LEGEND_MARGIN;
        self.legend = (0, (margin + height as f64) as i64);
    }

    /// Width of the image.
    pub(super) fn image_width(&self) -> i64 {
        let width = i64::from(self.options.width);
        if self.options.full_size { width } else { self.canvas_left() + width + self.right() }
    }

    /// Height of the image.
    pub(super) fn image_height(&self) -> i64 {
        let height = i64::from(self.options.height);
        let all = (self.canvas_top() + height) as f64 + self.below();
        if self.options.full_size { height } else { all as i64 }
    }

    /// Width of the canvas.
    pub(super) fn canvas_width(&self) -> i64 {
        let width = i64::from(self.options.width);
        if self.options.full_size { (width - self.canvas_left() - self.right()).max(1) } else { width }
    }

    /// Height of the canvas.
    pub(super) fn canvas_height(&self) -> i64 {
        let height = i64::from(self.options.height);
        let left = (height - self.canvas_top()) as f64 - self.below();
        if self.options.full_size { (left as i64).max(1) } else { height }
    }

    /// Left edge of the canvas.
    pub(super) fn canvas_left(&self) -> i64 {
        let label = match self.options.vertical_label {
            Some(_) => sizes(self.options, FontTag::Unit, UNIT_LABEL),
            None => 0,
        };
        self.content_left() + label + self.value_labels
    }

    /// Left edge of the y axis's title.
    pub(super) fn content_left(&self) -> i64 {
        match self.options.legend_position {
            LegendPosition::West => SPACE + self.legend.0,
            // Compat: here RRDtool leaves room for its signature, with or without a legend.
            LegendPosition::East => 2 * SPACE,
            _ => SPACE,
        }
    }

    /// Upper edge of the canvas.
    pub(super) fn canvas_top(&self) -> i64 {
        let legend = if self.options.legend_position == LegendPosition::North { self.legend.1 } else { 0 };
        self.title + legend
    }

    /// Upper left corner of the legend.
    pub(super) fn legend(&self) -> (i64, i64) {
        let below = self.canvas_top() + self.canvas_height() + self.time_labels;
        match self.options.legend_position {
            LegendPosition::South => (0, below),
            LegendPosition::East => (self.right_of_axis() + self.right_label(), self.title),
            LegendPosition::North | LegendPosition::West => (0, self.title),
        }
    }

    /// Left edge of the right axis's title.
    pub(super) fn right_of_axis(&self) -> i64 {
        self.canvas_left() + self.canvas_width() + self.right_axis()
    }

    /// Width of the right axis.
    fn right_axis(&self) -> i64 {
        if self.options.right_axis.is_some() { self.value_labels + SPACE } else { 0 }
    }

    /// The vertical middle of the axis titles: that of the canvas. Compat: with the legend above, lower by the height of
    /// the time labels.
    pub(super) fn label_middle(&self) -> i64 {
        let middle = self.canvas_top() + self.canvas_height() / 2;
        match self.options.legend_position {
            LegendPosition::North => middle + self.time_labels,
            _ => middle,
        }
    }

    /// Pixels from the canvas to the image's right edge.
    fn right(&self) -> i64 {
        let edge = match self.options.legend_position {
            LegendPosition::East => self.legend.0,
            _ => SPACE,
        };
        self.right_axis() + self.right_label() + edge
    }

    /// Width of the right axis's title.
    fn right_label(&self) -> i64 {
        match self.options.right_axis_label {
            Some(_) => sizes(self.options, FontTag::Unit, UNIT_LABEL),
            None => SPACE,
        }
    }

    /// Pixels from the canvas to the image's lower edge.
    fn below(&self) -> f64 {
        let legend = match self.options.legend_position {
            LegendPosition::South => self.legend.1,
            _ => 0,
        };
        let space = if self.options.legend { 0.0 } else { SPACE_BELOW };
        (self.time_labels + legend + self.watermark) as f64 + space
    }
}

/// `count` font sizes, cut to whole pixels.
fn sizes(options: &Options, tag: FontTag, count: f64) -> i64 {
    (options.font(tag).size * count) as i64
}

/// Splits a title into lines at line feeds, `\n`, `<br>` and `<br/>`; empty lines are dropped.
pub(super) fn title_lines(title: &[u8]) -> Vec<&[u8]> {
    const BREAKS: [&[u8]; 4] = [b"\n", b"\\n", b"<br>", b"<br/>"];
    let mut lines = Vec::new();
    let (mut start, mut position) = (0, 0);
    while position < title.len() {
        match BREAKS.iter().find(|found| title[position..].starts_with(found)) {
            Some(found) => {
                lines.push(&title[start..position]);
                position += found.len();
                start = position;
            }
            None => position += 1,
        }
    }
    lines.push(&title[start..]);
    lines.retain(|line| !line.is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::title_lines;

    #[test]
    fn a_title_has_no_empty_lines() {
        assert_eq!(title_lines(b"A<br/>B\\nC<br>"), [b"A", b"B", b"C"]);
        assert_eq!(title_lines(b"A\\n\\nB<BR/>"), [&b"A"[..], b"B<BR/>"]);
        assert_eq!(title_lines(b"A\nB"), [b"A", b"B"]);
        assert!(title_lines(b"\\n").is_empty());
    }
}
