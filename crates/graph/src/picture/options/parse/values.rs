//! Parses the arguments of options: grids, colours, fonts, numbers.

use rrd::number::{self, NumberError};

use super::OptionsError;
use crate::argument::lossy;
use crate::picture::options::{
    ColourTag, Colours, FontTag, Fonts, ImageFormat, Interval, TimeUnit, XGrid, YGrid,
};
use crate::picture::scene::Colour;

/// Most bytes of a keyword.
const KEYWORD_BYTES_MAX: usize = 10;
/// Most bytes of a number inside an argument.
const NUMBER_BYTES_MAX: usize = 40;
/// Largest size of a font in points; no image could hold a letter of it.
const FONT_POINTS_MAX: f64 = 1e6;
/// Most bytes of a colour.
const COLOUR_BYTES_MAX: usize = 8;

/// Parses the argument of option `letter` as a number.
pub(super) fn number(letter: char, word: &[u8]) -> Result<f64, OptionsError> {
    number::parse(word).map_err(|error| match error {
        NumberError::Nothing => OptionsError::NoNumber { letter, text: lossy(word) },
        NumberError::Trailing { value, rest } => {
            OptionsError::NumberTrailing { letter, text: lossy(word), value, rest: lossy(rest) }
        }
    })
}

/// `GTM:GST:MTM:MST:LTM:LST:LPR:LFM`, or `none`.
///
/// Without a format, or with a count that is not positive, the grid is refused: RRDtool crashes or never ends.
pub(super) fn x_grid(word: &[u8]) -> Result<XGrid, OptionsError> {
    if word == b"none" {
        return Ok(XGrid::None);
    }
    let invalid = || OptionsError::text("invalid x-grid format");
    let mut rest = word;
    let mut pairs = [(&b""[..], 0); 3];
    for pair in &mut pairs {
        let keyword = keyword(&mut rest).ok_or_else(invalid)?;
        colon(&mut rest).ok_or_else(invalid)?;
        *pair = (keyword, whole(&mut rest).ok_or_else(invalid)?);
        colon(&mut rest).ok_or_else(invalid)?;
    }
    let precision = whole(&mut rest).ok_or_else(invalid)?;
    let mut every = [Interval { unit: TimeUnit::Second, count: 1 }; 3];
    for (every, (keyword, count)) in every.iter_mut().zip(pairs) {
        every.unit = unit(keyword)?;
        every.count = i32::try_from(count).unwrap_or(i32::MAX);
    }
    colon(&mut rest).ok_or_else(invalid)?;
    if every.iter().any(|every| every.count < 1) {
        return Err(invalid());
    }
    let [grid, major, label] = every;
    Ok(XGrid::Custom { grid, major, label, precision, format: rest.to_vec() })
}

fn unit(keyword: &[u8]) -> Result<TimeUnit, OptionsError> {
    Ok(match keyword {
        b"SECOND" => TimeUnit::Second,
        b"MINUTE" => TimeUnit::Minute,
        b"HOUR" => TimeUnit::Hour,
        b"DAY" => TimeUnit::Day,
        b"WEEK" => TimeUnit::Week,
        b"MONTH" => TimeUnit::Month,
        b"YEAR" => TimeUnit::Year,
        _ => return Err(OptionsError::bad("unknown keyword ", keyword)),
    })
}

/// `step:factor`, or `none`.
pub(super) fn y_grid(word: &[u8]) -> Result<YGrid, OptionsError> {
    if word == b"none" {
        return Ok(YGrid::None);
    }
    let invalid = || OptionsError::text("invalid y-grid format");
    let mut rest = word;
    let step = digits(&mut rest).ok_or_else(invalid)?;
    colon(&mut rest).ok_or_else(invalid)?;
    let label_factor = whole(&mut rest).ok_or_else(invalid)? as i32;
    let step = number('y', step)?;
    if step <= 0.0 {
        return Err(OptionsError::text("grid step must be > 0"));
    }
    if label_factor < 1 {
        return Err(OptionsError::text("label factor must be > 0"));
    }
    Ok(YGrid::Custom { step, label_factor })
}

/// `on:off` in pixels.
pub(super) fn grid_dash(word: &[u8]) -> Result<(f64, f64), OptionsError> {
    let pair = pair(word).ok_or_else(|| OptionsError::text("invalid grid-dash format"))?;
    match pair.map(number::parse) {
        [Ok(on), Ok(off)] => Ok((on, off)),
        _ => Err(OptionsError::text("expected grid-dash format float:float")),
    }
}

/// `scale:shift`.
pub(super) fn right_axis(word: &[u8]) -> Result<(f64, f64), OptionsError> {
    match pair(word).map(|pair| pair.map(number::parse)) {
        Some([Ok(0.0), Ok(_)]) => Err(OptionsError::text("the second_axis_scale  must not be 0")),
        Some([Ok(scale), Ok(shift)]) => Ok((scale, shift)),
        _ => Err(OptionsError::text("invalid right-axis format expected scale:shift")),
    }
}

/// Splits `number:number`; text after it is ignored.
fn pair(word: &[u8]) -> Option<[&[u8]; 2]> {
    let mut rest = word;
    let first = digits(&mut rest)?;
    colon(&mut rest)?;
    Some([first, digits(&mut rest)?])
}

/// `TAG#rgb`, `TAG#rgba`, `TAG#rrggbb` or `TAG#rrggbbaa`.
///
/// Compat: RRDtool uses `scanf`, so blanks, a sign or `0x` may precede the number and count as digits.
pub(super) fn colour(word: &[u8], colours: &mut Colours) -> Result<(), OptionsError> {
    let invalid = || OptionsError::text("invalid color def format");
    let mut rest = word;
    let tag = keyword(&mut rest).ok_or_else(invalid)?;
    rest = rest.strip_prefix(b"#").ok_or_else(invalid)?;
    let before = rest.len();
    let value = hexadecimal(&mut rest).ok_or_else(invalid)?;
    let digit = |at: u32| (value >> (4 * at) & 0xf) as u32 * 0x11;
    let rgba = match before - rest.len() {
        3 => u32::from_be_bytes([digit(2) as u8, digit(1) as u8, digit(0) as u8, 0xff]),
        4 => u32::from_be_bytes([digit(3) as u8, digit(2) as u8, digit(1) as u8, digit(0) as u8]),
        6 => (value as u32) << 8 | 0xff,
        8 => value as u32,
        _ => return Err(OptionsError::text("the color format is #RRGGBB[AA]")),
    };
    const TAGS: [(&[u8], ColourTag); 10] = [
        (b"BACK", ColourTag::Back),
        (b"CANVAS", ColourTag::Canvas),
        (b"SHADEA", ColourTag::ShadeA),
        (b"SHADEB", ColourTag::ShadeB),
        (b"GRID", ColourTag::Grid),
        (b"MGRID", ColourTag::MajorGrid),
        (b"FONT", ColourTag::Font),
        (b"AXIS", ColourTag::Axis),
        (b"FRAME", ColourTag::Frame),
        (b"ARROW", ColourTag::Arrow),
    ];
    match TAGS.iter().find(|(name, _)| *name == tag) {
        Some(&(_, tag)) => colours[tag as usize] = Colour::new(rgba),
        None => return Err(OptionsError::Bad(format!("invalid color name '{}'", lossy(tag)))),
    }
    Ok(())
}

/// `TAG:size[:font]`; `DEFAULT` sets all tags, and a size that is not positive changes nothing.
pub(super) fn font(word: &[u8], fonts: &mut Fonts) -> Result<(), OptionsError> {
    let invalid = || OptionsError::text("invalid text property format");
    let mut rest = word;
    let tag = keyword(&mut rest).ok_or_else(invalid)?;
    colon(&mut rest).ok_or_else(invalid)?;
    let size = digits(&mut rest).ok_or_else(invalid)?;
    let size = number::parse(size).map_err(|_| invalid())?;
    const TAGS: [(&[u8], FontTag); 6] = [
        (b"DEFAULT", FontTag::Default),
        (b"TITLE", FontTag::Title),
        (b"AXIS", FontTag::Axis),
        (b"UNIT", FontTag::Unit),
        (b"LEGEND", FontTag::Legend),
        (b"WATERMARK", FontTag::Watermark),
    ];
    let tag = TAGS
        .iter()
        .find(|(name, _)| *name == tag)
        .map(|(_, tag)| *tag)
        .ok_or_else(|| OptionsError::Bad(format!("invalid fonttag '{}'", lossy(tag))))?;
    // Compat: a font of one letter is ignored.
    let family = match rest {
        [] | [_] | [_, _] => None,
        [b':', family @ ..] => Some(family),
        _ => {
            return Err(OptionsError::Bad(format!("expected : after font size in '{}'", lossy(word))));
        }
    };
    let chosen = match tag {
        FontTag::Default => &mut fonts[..],
        tag => std::slice::from_mut(&mut fonts[tag as usize]),
    };
    for font in chosen {
        if size > 0.0 {
            font.size = size.min(FONT_POINTS_MAX);
        }
        if let Some(family) = family {
            font.description = family.to_vec();
        }
    }
    Ok(())
}

pub(super) fn format(word: &[u8]) -> Result<ImageFormat, OptionsError> {
    Ok(match word {
        b"PNG" => ImageFormat::Png,
        b"SVG" => ImageFormat::Svg,
        b"EPS" => ImageFormat::Eps,
        b"PDF" => ImageFormat::Pdf,
        b"XML" => ImageFormat::Xml,
        b"XMLENUM" => ImageFormat::XmlEnum,
        b"JSON" => ImageFormat::Json,
        b"JSONTIME" => ImageFormat::JsonTime,
        b"CSV" => ImageFormat::Csv,
        b"TSV" => ImageFormat::Tsv,
        b"SSV" => ImageFormat::Ssv,
        _ => return Err(OptionsError::unsupported("format", word)),
    })
}

/// Takes up to `most` bytes that `wanted` accepts; `None` if there is none.
fn span<'w>(rest: &mut &'w [u8], most: usize, wanted: impl Fn(u8) -> bool) -> Option<&'w [u8]> {
    let count = rest.iter().take(most).take_while(|byte| wanted(**byte)).count();
    let (taken, after) = rest.split_at(count);
    *rest = after;
    (count > 0).then_some(taken)
}

fn keyword<'w>(rest: &mut &'w [u8]) -> Option<&'w [u8]> {
    span(rest, KEYWORD_BYTES_MAX, |byte| byte.is_ascii_uppercase())
}

fn digits<'w>(rest: &mut &'w [u8]) -> Option<&'w [u8]> {
    span(rest, NUMBER_BYTES_MAX, |byte| byte.is_ascii_digit() || b".e+-".contains(&byte))
}

fn colon(rest: &mut &[u8]) -> Option<()> {
    *rest = rest.strip_prefix(b":")?;
    Some(())
}

fn blanks(rest: &mut &[u8]) {
    span(rest, usize::MAX, |byte| matches!(byte, b' ' | b'\t'..=b'\r'));
}

/// A whole decimal number as `scanf` reads it: blanks and a sign may precede it.
fn whole(rest: &mut &[u8]) -> Option<i64> {
    blanks(rest);
    let sign = if rest.starts_with(b"-") { -1 } else { 1 };
    if sign < 0 || rest.starts_with(b"+") {
        *rest = &rest[1..];
    }
    let digits = span(rest, usize::MAX, |byte| byte.is_ascii_digit())?;
    let add = |size: i64, byte: &u8| size.saturating_mul(10).saturating_add(sign * i64::from(byte - b'0'));
    Some(digits.iter().fold(0, add))
}

/// A number as C's `%8lx` reads it.
fn hexadecimal(rest: &mut &[u8]) -> Option<u64> {
    blanks(rest);
    let mut left = COLOUR_BYTES_MAX;
    let negative = rest.starts_with(b"-");
    if negative || rest.starts_with(b"+") {
        *rest = &rest[1..];
        left -= 1;
    }
    if rest.len() > 2 && (rest.starts_with(b"0x") || rest.starts_with(b"0X")) && rest[2].is_ascii_hexdigit() {
        *rest = &rest[2..];
        left -= 2;
    }
    let digits = span(rest, left, |byte| byte.is_ascii_hexdigit())?;
    let add =
        |size: u64, byte: &u8| size << 4 | u64::from(char::from(*byte).to_digit(16).unwrap_or_default());
    let size = digits.iter().fold(0, add);
    Some(if negative { size.wrapping_neg() } else { size })
}
