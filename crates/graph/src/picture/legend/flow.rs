//! Breaks the legend's entries into lines and aligns them.
//!
//! Compat: the rules are RRDtool's, some of them odd; the oracle tests pin them.

use std::mem;

use super::{Align, Entry, Mark, UnknownControlCode};
use crate::argument::lossy;
use crate::picture::options::LegendDirection;
use crate::picture::text::{TextLayout, TextOptions, Typesetter};

/// From the edge of the legend to its texts, and from text to text, in font sizes.
const BORDER: f64 = 2.0;
/// From one line to the next, in font sizes.
const LINE: f64 = 1.8;
/// How much less it is after `\s`, in font sizes.
const TIGHT: f64 = 1.0;

/// How entries are broken into lines.
#[derive(Clone, Copy)]
pub struct FlowOptions<'a> {
    /// The fonts of the host.
    pub typesetter: &'a dyn Typesetter,
    /// The legend's font and tabs.
    pub text: TextOptions<'a>,
    /// The order of the lines.
    pub direction: LegendDirection,
    /// Width of the legend in pixels; `None` = the width of its longest line, and no line is broken.
    pub width: Option<i64>,
}

impl FlowOptions<'_> {
    /// Pixels from the edge of the legend to its texts.
    pub fn border(&self) -> i64 {
        (self.text.font.size * BORDER) as i64
    }
}

/// A text of the legend.
#[derive(Clone, Debug, PartialEq)]
pub struct LegendText {
    /// The text without its control code.
    pub text: Vec<u8>,
    /// The same, set.
    pub layout: TextLayout,
    /// Its colour box.
    pub mark: Option<Mark>,
    /// Whether it is a COMMENT.
    comment: bool,
    /// Its left edge in pixels from the legend's.
    pub x: f64,
    /// Position of its line in pixels; 0 is the first line.
    pub y: i64,
}

/// The legend, broken into lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// The texts, in the order of the arguments.
    pub texts: Vec<LegendText>,
    /// Height of all lines in pixels.
    pub height: i64,
    /// Width in pixels.
    pub width: i64,
}

/// The control code at the end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    /// Nothing: more may follow.
    None,
    /// `\g`: no space before what follows.
    Glue,
    /// `\l`, `\n`, `\r`, `\c`, `\j`: the line ends and is aligned so.
    End(Align),
    /// `\s`: the line ends, with less space to the next one.
    Tight,
    /// `\u`: the line ends, and the next one is at the same height.
    Up,
}

/// Breaks `entries` into lines.
///
/// # Errors
/// The first [`UnknownControlCode`].
pub fn flow(entries: &[Entry], options: FlowOptions<'_>) -> Result<Flow, UnknownControlCode> {
    let width = match options.width {
        Some(width) => width,
        None => {
            let mut lines = Lines::new(options, i64::MAX);
            lines.add_all(entries)?;
            lines.widest as i64 + 2 * options.border()
        }
    };
    let mut lines = Lines::new(options, width);
    lines.add_all(entries)?;
    let mut flow = Flow { texts: lines.done, height: lines.y, width };
    turn(&mut flow.texts, options.direction);
    Ok(flow)
}

/// The current line, and those before it.
struct Lines<'a> {
    options: FlowOptions<'a>,
    /// Space for texts, in pixels.
    room: f64,
    align: Align,
    /// Whether the last entry has not ended its line. Compat: then the end of the legend does, even if that line is
    /// empty: unless it is aligned left, there is an empty line below the legend.
    open: bool,
    done: Vec<LegendText>,
    /// The texts of the current line, and the space after each.
    line: Vec<(LegendText, f64)>,
    y: i64,
    widest: f64,
}

impl<'a> Lines<'a> {
    fn new(options: FlowOptions<'a>, width: i64) -> Lines<'a> {
        let room = width as f64 - 2.0 * options.border() as f64;
        let (done, line) = (Vec::new(), Vec::new());
        Lines { options, room, align: Align::Justified, open: false, done, line, y: 0, widest: 0.0 }
    }

    fn add_all(&mut self, entries: &[Entry]) -> Result<(), UnknownControlCode> {
        for entry in entries {
            match entry {
                Entry::Align(align) => {
                    self.align = *align;
                    self.open = true;
                }
                Entry::Text { text, mark, comment } => self.add(text, mark, *comment)?,
            }
        }
        if self.open {
            self.end(Control::End(self.align));
        }
        Ok(())
    }

    fn add(&mut self, text: &[u8], mark: &Option<Mark>, comment: bool) -> Result<(), UnknownControlCode> {
        let (text, control) = split(text)?;
        if !text.is_empty() {
            let layout = self.options.typesetter.set(&text, self.options.text);
            let space = if control == Control::Glue { 0.0 } else { self.options.border() as f64 };
            let y = self.y;
            self.line.push((LegendText { text, layout, mark: mark.clone(), comment, x: 0.0, y }, space));
        }
        self.open = matches!(control, Control::None | Control::Glue);
        if !self.open {
            self.end(control);
        } else if self.fill() > self.room {
            // The text goes to the next line, without its control code.
            let last = if self.line.len() > 1 { self.line.pop() } else { None };
            self.end(Control::End(self.align));
            if let Some((item, _)) = last {
                return self.add(&item.text, mark, comment);
            }
        }
        Ok(())
    }

    /// Width of the line in pixels. Compat: it lacks the space after the first text, not after the last one.
    fn fill(&self) -> f64 {
        let taken = self.line.first().map_or(0.0, |(_, space)| *space);
        self.line.iter().map(|(item, space)| item.layout.width + space).sum::<f64>() - taken
    }

    fn end(&mut self, control: Control) {
        let align = match control {
            Control::End(align) => align,
            _ => Align::Left,
        };
        let fill = self.fill();
        self.widest = self.widest.max(fill);
        let gaps = self.line.len().saturating_sub(1);
        let (start, glue) = match align {
            Align::Left => (0.0, 0.0),
            Align::Right => (self.room - fill, 0.0),
            Align::Centre => ((self.room - fill) / 2.0, 0.0),
            Align::Justified if gaps == 0 => (0.0, 0.0),
            Align::Justified => (0.0, (self.room - fill) / gaps as f64),
        };
        let mut x = self.options.border() as f64 + start;
        for (mut item, space) in mem::take(&mut self.line) {
            item.x = x;
            item.y = self.y;
            x += item.layout.width + space + glue;
            self.done.push(item);
        }
        // Compat: what counts is where a further text would stand. So an empty line has a height where it is not
        // aligned to the left, and one of texts that do not find room may have none.
        if x > self.options.border() as f64 || control == Control::Tight {
            self.down(LINE);
        }
        match control {
            Control::Tight => self.down(-TIGHT),
            Control::Up => self.down(-LINE),
            _ => {}
        }
    }

    /// Moves down by `sizes` font sizes.
    fn down(&mut self, sizes: f64) {
        self.y = (self.y as f64 + sizes * self.options.text.font.size) as i64;
    }
}

/// Replaces `\t` by tabs and splits off the control code at the end.
fn split(text: &[u8]) -> Result<(Vec<u8>, Control), UnknownControlCode> {
    let mut text = with_tabs(text);
    let [.., b'\\', letter] = text[..] else { return Ok((text, Control::None)) };
    let control = match letter {
        b'l' | b'n' => Control::End(Align::Left),
        b'r' => Control::End(Align::Right),
        b'c' => Control::End(Align::Centre),
        b'j' => Control::End(Align::Justified),
        b'g' => Control::Glue,
        b's' => Control::Tight,
        b'u' => Control::Up,
        b'.' => Control::None,
        _ => return Err(UnknownControlCode { text: lossy(&text) }),
    };
    text.truncate(text.len() - 2);
    if control == Control::Glue {
        text.truncate(text.len() - text.iter().rev().take_while(|&&byte| byte == b' ').count());
    }
    Ok((text, control))
}

fn with_tabs(text: &[u8]) -> Vec<u8> {
    let mut with = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let tab = byte == b'\\' && after.first() == Some(&b't');
        with.push(if tab { b'\t' } else { byte });
        rest = if tab { &after[1..] } else { after };
    }
    with
}

/// Puts the lines into the requested order.
fn turn(texts: &mut [LegendText], direction: LegendDirection) {
    let texts = match direction {
        LegendDirection::TopDown => return,
        LegendDirection::BottomUp => texts,
        LegendDirection::BottomUp2 => {
            let start = texts.iter().take_while(|item| item.comment).count();
            let end = texts[start..].iter().rev().take_while(|item| item.comment).count();
            let end = texts.len() - end;
            &mut texts[start..end]
        }
    };
    let (Some(first), Some(last)) = (texts.first(), texts.last()) else { return };
    let sum = first.y + last.y;
    for item in texts {
        item.y = sum - item.y;
    }
}
