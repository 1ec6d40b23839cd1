//! Parses the arguments of `graph` and `graphv`: options into types; elements stay as they are.
//!
//! Owns the [`table`] of all options, the order in which they are checked, and RRDtool's messages. [`values`] parses the
//! options' own arguments. Reads no environment: the font of RRD_DEFAULT_FONT is an argument.

mod error;
mod table;
mod values;

pub use error::OptionsError;

use args::integer::{int, long_decimal};
use args::options::Options as Walk;
use args::times::{Clock, Range};

use self::table::{OPTIONS, Tag};
use super::{AxisFormatter, AxisText, FontRender, LegendDirection, LegendPosition, Options, Theme};
use crate::language::check_span;
use crate::picture::axis::value_label::LabelError;
use crate::print::number::NumberFormat;

/// Least width and height in pixels.
const SIDE_MIN: i64 = 10;

/// The parsed arguments of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphArgs<'w> {
    /// The file to write; `-` is standard output.
    pub file: &'w [u8],
    /// How it looks.
    pub options: Options,
    /// Start in seconds since the epoch.
    pub start: i64,
    /// End in seconds since the epoch; not before `start`.
    pub end: i64,
    /// The requested step in seconds; 0 = none.
    pub step: u64,
    /// The daemon to ask; may be empty.
    pub daemon: Option<&'w [u8]>,
    /// The elements.
    pub elements: Vec<&'w [u8]>,
}

/// Parses the arguments after the verb. `font` is the default font (RRD_DEFAULT_FONT); `None` = the usual one.
///
/// # Errors
/// The first [`OptionsError`] in RRDtool's order.
pub fn parse<'w>(
    words: &'w [&'w [u8]],
    clock: Clock<'_>,
    font: Option<&[u8]>,
) -> Result<GraphArgs<'w>, OptionsError> {
    let mut parser = Parser::new(theme(words).options(font));
    let mut walk = Walk::new(OPTIONS, words);
    while let Some(option) = walk.next() {
        let (tag, word) = option.map_err(OptionsError::Option)?;
        parser.take(tag, word, clock)?;
    }
    let (start, end) = parser.finish(clock)?;
    let mut rest = walk.rest().into_iter();
    let file = rest.next().ok_or(OptionsError::MissingFile)?;
    let Parser { options, step, daemon, .. } = parser;
    Ok(GraphArgs { file, options, start, end, step, daemon, elements: rest.collect() })
}

/// The last theme among the arguments, whose defaults apply before any option. An error ends the search and is reported
/// when the options are parsed.
fn theme(words: &[&[u8]]) -> Theme {
    let mut walk = Walk::new(OPTIONS, words);
    let mut theme = Theme::Classic;
    while let Some(Ok((tag, word))) = walk.next() {
        if let (Tag::Theme, Ok(last)) = (tag, keyword(word, &THEMES, "theme")) {
            theme = last;
        }
    }
    theme
}

const LEGEND_POSITIONS: [(&str, LegendPosition); 4] = [
    ("north", LegendPosition::North),
    ("west", LegendPosition::West),
    ("south", LegendPosition::South),
    ("east", LegendPosition::East),
];
const LEGEND_DIRECTIONS: [(&str, LegendDirection); 3] = [
    ("topdown", LegendDirection::TopDown),
    ("bottomup", LegendDirection::BottomUp),
    ("bottomup2", LegendDirection::BottomUp2),
];
const FONT_RENDER_MODES: [(&str, FontRender); 3] =
    [("normal", FontRender::Normal), ("light", FontRender::Light), ("mono", FontRender::Mono)];
const SMOOTH_LINES: [(&str, bool); 2] = [("normal", true), ("mono", false)];
const THEMES: [(&str, Theme); 3] =
    [("classic", Theme::Classic), ("light", Theme::Light), ("dark", Theme::Dark)];

/// The choice that `word` names; `what` is for the message.
fn keyword<T: Copy>(word: &[u8], choices: &[(&str, T)], what: &str) -> Result<T, OptionsError> {
    let choice = choices.iter().find(|(name, _)| name.as_bytes() == word);
    choice.map(|(_, choice)| *choice).ok_or_else(|| OptionsError::unknown(what, word))
}

/// The options parsed so far.
struct Parser<'w> {
    options: Options,
    range: Range,
    step: u64,
    daemon: Option<&'w [u8]>,
    units: bool,
}

impl<'w> Parser<'w> {
    fn new(options: Options) -> Self {
        Parser { options, range: Range::default(), step: 0, daemon: None, units: false }
    }

    fn take(&mut self, tag: Tag, word: &'w [u8], clock: Clock<'_>) -> Result<(), OptionsError> {
        match tag {
            Tag::Start => self.range.start(word, clock).map_err(OptionsError::Range)?,
            Tag::End => self.range.end(word, clock).map_err(OptionsError::Range)?,
            Tag::Step => self.step = long_decimal(word).max(0) as u64,
            Tag::Daemon if self.daemon.is_some() => return Err(OptionsError::DaemonTwice),
            Tag::Daemon => self.daemon = Some(word),
            Tag::Units if self.units => return Err(OptionsError::UnitsTwice),
            Tag::Units if word != b"si" => {
                return Err(OptionsError::bad("invalid argument for --units: ", word));
            }
            Tag::Units => (self.units, self.options.units_si) = (true, true),
            Tag::Flag(set) => set(&mut self.options),
            Tag::Text(field) => *field(&mut self.options) = (!word.is_empty()).then(|| word.to_vec()),
            Tag::Ignored => {}
            _ => option(&mut self.options, tag, word)?,
        }
        Ok(())
    }

    /// Checks what depends on several options, and resolves the time range.
    fn finish(&self, clock: Clock<'_>) -> Result<(i64, i64), OptionsError> {
        for text in [&self.options.left_axis, &self.options.right_axis_text] {
            check_axis(text)?;
        }
        if self.options.logarithmic && self.options.lower_limit.is_some_and(|limit| limit <= 0.0) {
            return Err(OptionsError::LogarithmOfNothing);
        }
        let (start, end) = self.range.resolve(clock).map_err(OptionsError::Range)?;
        check_span(start, end).map_err(OptionsError::Span)?;
        Ok((start, end))
    }
}

/// An option whose argument has to be parsed.
fn option(options: &mut Options, tag: Tag, word: &[u8]) -> Result<(), OptionsError> {
    match tag {
        Tag::Width => options.width = u32::try_from(side(word, "width")?).unwrap_or(u32::MAX),
        // Compat: the lower half of the number. One that is negative makes no picture, like one that is too large.
        Tag::Height => options.height = u32::try_from(side(word, "height")? as i32).unwrap_or(u32::MAX),
        Tag::UpperLimit => options.upper_limit = limit('u', word)?,
        Tag::LowerLimit => options.lower_limit = limit('l', word)?,
        Tag::UnitsExponent => options.units_exponent = Some(int(word)),
        Tag::UnitsLength => options.units_length = Some(int(word)),
        Tag::XGrid => options.x_grid = values::x_grid(word)?,
        Tag::YGrid => options.y_grid = values::y_grid(word)?,
        Tag::WeekFormat => options.week_format = word.to_vec(),
        Tag::LeftFormat => options.left_axis.format = Some(word.to_vec()),
        Tag::RightFormat => options.right_axis_text.format = Some(word.to_vec()),
        Tag::LeftFormatter => options.left_axis.formatter = formatter(word, "left")?,
        Tag::RightFormatter => options.right_axis_text.formatter = formatter(word, "right")?,
        Tag::RightAxis => options.right_axis = Some(values::right_axis(word)?),
        Tag::LegendPosition => {
            options.legend_position = keyword(word, &LEGEND_POSITIONS, "legend-position")?;
        }
        // Compat: RRDtool's text names the other option.
        Tag::LegendDirection => {
            options.legend_direction = keyword(word, &LEGEND_DIRECTIONS, "legend-position")?;
        }
        Tag::Colour => values::colour(word, &mut options.colours)?,
        Tag::GridDash => options.grid_dash = values::grid_dash(word)?,
        Tag::Border => options.border = int(word),
        Tag::ImageInfo => options.image_info = Some(word.to_vec()),
        Tag::Zoom => {
            options.zoom = values::number('m', word)?;
            if options.zoom <= 0.0 {
                return Err(OptionsError::Zoom);
            }
        }
        Tag::Font => values::font(word, &mut options.fonts)?,
        Tag::FontRender => options.font_render = keyword(word, &FONT_RENDER_MODES, "font-render-mode")?,
        Tag::GraphRender => options.smooth_lines = keyword(word, &SMOOTH_LINES, "graph-render-mode")?,
        Tag::GraphType => return Err(OptionsError::unsupported("type", word)),
        Tag::Format => options.format = values::format(word)?,
        Tag::TabWidth => options.tab_width = values::number('T', word)?,
        Tag::Base => {
            options.base = match long_decimal(word) {
                1000 => 1000,
                1024 => 1024,
                _ => return Err(OptionsError::Base),
            }
        }
        Tag::Theme => options.theme = keyword(word, &THEMES, "theme")?,
        Tag::Start | Tag::End | Tag::Step | Tag::Daemon | Tag::Units => {}
        Tag::Flag(_) | Tag::Text(_) | Tag::Ignored => {}
    }
    Ok(())
}

/// A side of the picture in pixels.
fn side(word: &[u8], name: &'static str) -> Result<i64, OptionsError> {
    match long_decimal(word) {
        pixels @ SIDE_MIN.. => Ok(pixels),
        _ => Err(OptionsError::TooSmall(name)),
    }
}

/// A limit; NaN counts as none.
fn limit(letter: char, word: &[u8]) -> Result<Option<f64>, OptionsError> {
    let limit = values::number(letter, word)?;
    Ok((!limit.is_nan()).then_some(limit))
}

fn formatter(word: &[u8], side: &'static str) -> Result<AxisFormatter, OptionsError> {
    match word {
        b"numeric" => Ok(AxisFormatter::Numeric),
        b"timestamp" => Ok(AxisFormatter::Timestamp),
        b"duration" => Ok(AxisFormatter::Duration),
        _ => Err(OptionsError::UnknownFormatter(side)),
    }
}

fn check_axis(text: &AxisText) -> Result<(), OptionsError> {
    let AxisText { formatter: AxisFormatter::Numeric, format: Some(format) } = text else { return Ok(()) };
    match NumberFormat::parse(format) {
        Some(format) if !format.has_symbol() => Ok(()),
        // Compat: an empty format counts as none.
        _ if format.is_empty() => Ok(()),
        _ => Err(OptionsError::AxisFormat(LabelError::Number(crate::argument::lossy(format)))),
    }
}

#[cfg(test)]
mod tests;
