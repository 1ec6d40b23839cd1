//! Breaks entries into lines, and aligns the lines.
//!
//! Compat: all of it is as RRDtool does it, which is odd here and there; the oracle tests pin it.

use std::mem;

use super::{Align, Entry, Mark, UnknownControl};
use crate::argument::lossy;
use crate::picture::options::LegendDirection;
use crate::picture::text::{Setting, TextLayout, Typesetter};

/// From the edge of the legend to its texts, in font sizes; between two texts it is the same.
const BORDER: f64 = 2.0;
/// From one line to the next, in font sizes.
const LINE: f64 = 1.8;
/// How much less it is behind `\s`, in font sizes.
const TIGHT: f64 = 1.0;

/// What the flow goes by.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// The fonts of the host.
    pub typesetter: &'a dyn Typesetter,
    /// The legend's font and tabs.
    pub setting: Setting<'a>,
    /// In which order lines stand.
    pub direction: LegendDirection,
    /// Width of the legend in pixels; `None` = as wide as its longest line, and no line is broken.
    pub width: Option<i64>,
}

impl Rules<'_> {
    /// Pixels from the edge of the legend to its texts.
    pub fn border(&self) -> i64 {
        (self.setting.font.size * BORDER) as i64
    }
}

/// A text of the legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The text without escapes.
    pub text: Vec<u8>,
    /// The same, set.
    pub layout: TextLayout,
    /// Its colour box.
    pub mark: Option<Mark>,
    /// Whether it is a COMMENT.
    comment: bool,
    /// Its left edge in pixels from the legend's.
    pub x: f64,
    /// Its line's place in pixels: 0 is the first line.
    pub y: i64,
}

/// The legend, broken into lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// The texts, in the order of the arguments.
    pub pieces: Vec<Piece>,
    /// How high all lines are, in pixels.
    pub height: i64,
    /// Width in pixels.
    pub width: i64,
}

/// What an escape at the end of a text does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    /// Nothing: more may follow.
    None,
    /// `\g`: no space before what follows.
    Glue,
    /// `\l`, `\n`, `\r`, `\c`, `\j`: the line ends and is aligned so.
    End(Align),
    /// `\s`: the line ends, the next one is nearer.
    Tight,
    /// `\u`: the line ends, the next one stands where it does.
    Up,
}

/// Breaks `entries` into lines.
///
/// # Errors
/// [`UnknownControl`]: the first that there is.
pub fn flow(entries: &[Entry], rules: Rules<'_>) -> Result<Flow, UnknownControl> {
    let width = match rules.width {
        Some(width) => width,
        None => {
            let mut lines = Lines::new(rules, i64::MAX);
            lines.add_all(entries)?;
            lines.widest as i64 + 2 * rules.border()
        }
    };
    let mut lines = Lines::new(rules, width);
    lines.add_all(entries)?;
    let mut flow = Flow { pieces: lines.done, height: lines.y, width };
    turn(&mut flow.pieces, rules.direction);
    Ok(flow)
}

/// A line in the making, and those before it.
struct Lines<'a> {
    rules: Rules<'a>,
    /// Space for texts, in pixels.
    room: f64,
    align: Align,
    /// Whether the last entry has not ended its line. Compat: then the end of all does, also where that line is
    /// empty: if it is aligned in a way that is seen, there is an empty line below the legend.
    open: bool,
    done: Vec<Piece>,
    /// The line's texts, and the space behind each.
    line: Vec<(Piece, f64)>,
    y: i64,
    widest: f64,
}

impl<'a> Lines<'a> {
    fn new(rules: Rules<'a>, width: i64) -> Lines<'a> {
        let room = width as f64 - 2.0 * rules.border() as f64;
        let (done, line) = (Vec::new(), Vec::new());
        Lines { rules, room, align: Align::Justified, open: false, done, line, y: 0, widest: 0.0 }
    }

    fn add_all(&mut self, entries: &[Entry]) -> Result<(), UnknownControl> {
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

    fn add(&mut self, text: &[u8], mark: &Option<Mark>, comment: bool) -> Result<(), UnknownControl> {
        let (text, control) = split(text)?;
        if !text.is_empty() {
            let layout = self.rules.typesetter.set(&text, self.rules.setting);
            let space = if control == Control::Glue { 0.0 } else { self.rules.border() as f64 };
            let y = self.y;
            self.line.push((Piece { text, layout, mark: mark.clone(), comment, x: 0.0, y }, space));
        }
        self.open = matches!(control, Control::None | Control::Glue);
        if !self.open {
            self.end(control);
        } else if self.fill() > self.room {
            // It goes to the next line, where its text is read again: without the escape that it has had.
            let last = if self.line.len() > 1 { self.line.pop() } else { None };
            self.end(Control::End(self.align));
            if let Some((piece, _)) = last {
                return self.add(&piece.text, mark, comment);
            }
        }
        Ok(())
    }

    /// Pixels that the line takes. Compat: what is taken off at its end is the space behind its first text.
    fn fill(&self) -> f64 {
        let taken = self.line.first().map_or(0.0, |(_, space)| *space);
        self.line.iter().map(|(piece, space)| piece.layout.width + space).sum::<f64>() - taken
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
        let mut x = self.rules.border() as f64 + start;
        for (mut piece, space) in mem::take(&mut self.line) {
            piece.x = x;
            piece.y = self.y;
            x += piece.layout.width + space + glue;
            self.done.push(piece);
        }
        // Compat: what counts is where a further text would stand. So an empty line has a height where it is not
        // aligned to the left, and one of texts that do not find room may have none.
        if x > self.rules.border() as f64 || control == Control::Tight {
            self.down(LINE);
        }
        match control {
            Control::Tight => self.down(-TIGHT),
            Control::Up => self.down(-LINE),
            _ => {}
        }
    }

    /// Goes down by so many font sizes.
    fn down(&mut self, sizes: f64) {
        self.y = (self.y as f64 + sizes * self.rules.setting.font.size) as i64;
    }
}

/// Makes tabs of every `\t`, and takes the escape off a text's end.
fn split(text: &[u8]) -> Result<(Vec<u8>, Control), UnknownControl> {
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
        _ => return Err(UnknownControl { text: lossy(&text) }),
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

/// Puts lines into the order that was asked for.
fn turn(pieces: &mut [Piece], direction: LegendDirection) {
    let pieces = match direction {
        LegendDirection::TopDown => return,
        LegendDirection::BottomUp => pieces,
        LegendDirection::BottomUp2 => {
            let start = pieces.iter().take_while(|piece| piece.comment).count();
            let end = pieces[start..].iter().rev().take_while(|piece| piece.comment).count();
            let end = pieces.len() - end;
            &mut pieces[start..end]
        }
    };
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return };
    let sum = first.y + last.y;
    for piece in pieces {
        piece.y = sum - piece.y;
    }
}
