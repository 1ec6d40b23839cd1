//! The words of `graph` and `graphv`: options typed, elements left as they are.
//!
//! Owns the table of all options, in which order they are checked and what RRDtool says about each. What an
//! option's own argument may be is in [`values`]. Reads no environment: the font that RRD_DEFAULT_FONT names is
//! an argument.

mod error;
mod table;
mod values;

pub use error::OptionsError;

use words::integer::{int, long_decimal};
use words::options::Options as Walk;
use words::times::{Clock, Range};

use self::table::{OPTIONS, Tag};
use super::{AxisFormatter, AxisText, FontRender, LegendDirection, LegendPosition, Options, Theme};
use crate::language::check_span;
use crate::picture::axis::value_label::LabelError;
use crate::print::number::NumberFormat;

/// Smaller pictures than this are refused, in pixels either way.
const SIDE_MIN: i64 = 10;
/// Wider ones than this no computer has the memory for, in pixels; RRDtool's limit is where its memory ends.
const SIDE_MAX: i64 = 10_000_000;

/// What the words of a graph ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked<'w> {
    /// The file to write; `-` is standard output.
    pub file: &'w [u8],
    /// How it shall look.
    pub options: Options,
    /// Seconds since the epoch.
    pub start: i64,
    /// Seconds since the epoch; not before `start`.
    pub end: i64,
    /// The wanted step in seconds; 0 = none.
    pub step: u64,
    /// The daemon to ask; may be empty.
    pub daemon: Option<&'w [u8]>,
    /// The elements.
    pub elements: Vec<&'w [u8]>,
}

/// Reads the words behind the verb. `font` is the default font (RRD_DEFAULT_FONT), where not the usual one.
///
/// # Errors
/// [`OptionsError`]: the first that there is, in RRDtool's order.
pub fn parse<'w>(
    words: &'w [&'w [u8]],
    clock: &dyn Clock,
    font: Option<&[u8]>,
) -> Result<Asked<'w>, OptionsError> {
    let mut given = Given::new(theme(words).options(font));
    let mut walk = Walk::new(OPTIONS, words);
    while let Some(option) = walk.next() {
        let (tag, word) = option.map_err(OptionsError::Option)?;
        given.take(tag, word, clock)?;
    }
    let (start, end) = given.finish(clock)?;
    let mut rest = walk.rest().into_iter();
    let file = rest.next().ok_or(OptionsError::MissingFile)?;
    let Given { options, step, daemon, .. } = given;
    Ok(Asked { file, options, start, end, step, daemon, elements: rest.collect() })
}

/// The last theme among the words: it is what options before it change, too. An error ends the search, and is
/// told when the options are read.
fn theme(words: &[&[u8]]) -> Theme {
    let mut walk = Walk::new(OPTIONS, words);
    let mut theme = Theme::Classic;
    while let Some(Ok((tag, word))) = walk.next() {
        if let (Tag::Theme, Some(named)) = (tag, named(word)) {
            theme = named;
        }
    }
    theme
}

fn named(word: &[u8]) -> Option<Theme> {
    match word {
        b"classic" => Some(Theme::Classic),
        b"light" => Some(Theme::Light),
        b"dark" => Some(Theme::Dark),
        _ => None,
    }
}

/// What has been read so far.
struct Given<'w> {
    options: Options,
    range: Range,
    step: u64,
    daemon: Option<&'w [u8]>,
    units: bool,
}

impl<'w> Given<'w> {
    fn new(options: Options) -> Self {
        Given { options, range: Range::default(), step: 0, daemon: None, units: false }
    }

    fn take(&mut self, tag: Tag, word: &'w [u8], clock: &dyn Clock) -> Result<(), OptionsError> {
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

    /// What is checked once all options are known.
    fn finish(&self, clock: &dyn Clock) -> Result<(i64, i64), OptionsError> {
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

/// The options whose argument has to be read.
fn option(options: &mut Options, tag: Tag, word: &[u8]) -> Result<(), OptionsError> {
    match tag {
        Tag::Width => options.width = side(long_decimal(word), "width")?,
        Tag::Height => options.height = side(i64::from(int(word)), "height")?,
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
            options.legend_position = match word {
                b"north" => LegendPosition::North,
                b"west" => LegendPosition::West,
                b"south" => LegendPosition::South,
                b"east" => LegendPosition::East,
                _ => return Err(OptionsError::unknown("legend-position", word)),
            }
        }
        Tag::LegendDirection => {
            options.legend_direction = match word {
                b"topdown" => LegendDirection::TopDown,
                b"bottomup" => LegendDirection::BottomUp,
                b"bottomup2" => LegendDirection::BottomUp2,
                // Compat: RRDtool's text names the other option.
                _ => return Err(OptionsError::unknown("legend-position", word)),
            }
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
        Tag::FontRender => {
            options.font_render = match word {
                b"normal" => FontRender::Normal,
                b"light" => FontRender::Light,
                b"mono" => FontRender::Mono,
                _ => return Err(OptionsError::unknown("font-render-mode", word)),
            }
        }
        Tag::GraphRender => {
            options.smooth_lines = match word {
                b"normal" => true,
                b"mono" => false,
                _ => return Err(OptionsError::unknown("graph-render-mode", word)),
            }
        }
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
        Tag::Theme => options.theme = named(word).ok_or_else(|| OptionsError::unknown("theme", word))?,
        Tag::Start | Tag::End | Tag::Step | Tag::Daemon | Tag::Units => {}
        Tag::Flag(_) | Tag::Text(_) | Tag::Ignored => {}
    }
    Ok(())
}

/// A side of the picture in pixels.
fn side(pixels: i64, name: &'static str) -> Result<u32, OptionsError> {
    match u32::try_from(pixels) {
        _ if pixels < SIDE_MIN => Err(OptionsError::TooSmall(name)),
        Ok(side) if pixels <= SIDE_MAX => Ok(side),
        _ => Err(OptionsError::TooLarge),
    }
}

/// A limit; one that is no number is none.
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
        // Compat: an empty one is none.
        _ if format.is_empty() => Ok(()),
        _ => Err(OptionsError::AxisFormat(LabelError::Number(crate::argument::lossy(format)))),
    }
}

#[cfg(test)]
mod tests;
