//! Parses LINE, AREA, STACK, HRULE, VRULE, TICK and SHIFT.
//!
//! Parts are read in RRDtool's order, so of several errors the same one is reported.

use rrd::number;
use rrd::rpn::Symbol;

use super::graphic::{Dashes, Graphic, PlotValue, Rule, Shape, ShapeKind, Shift, Tick};
use super::text::{legend_or_next, named_legend};
use super::{Element, LanguageError, Script, colour};
use crate::argument::{Argument, lossy};
use crate::picture::scene::Colour;

/// Default width of a LINE in pixels.
const LINE_WIDTH: f64 = 1.0;
/// Lengths of `dashes` without a value.
const DASHES: [f64; 2] = [5.0, 5.0];
/// Default height of a gradient in pixels.
const GRADIENT_HEIGHT: f64 = 50.0;
/// The colour that stands for an unreadable one.
const TRANSPARENT: u32 = 0;

/// The parts that all elements with a colour have.
pub(super) struct Common {
    /// The text before the colour.
    pub(super) name: Vec<u8>,
    pub(super) value: PlotValue,
    colour: Option<Colour>,
    second_colour: Option<Colour>,
    /// Whether there is a colour that cannot be read.
    pub(super) spoiled: bool,
    /// The named legend.
    pub(super) legend: Option<Vec<u8>>,
}

/// The same, before they are parsed.
struct Texts {
    value: Vec<u8>,
    colour: Option<Vec<u8>>,
    second_colour: Option<Vec<u8>>,
    legend: Option<Vec<u8>>,
}

/// `[vname=]name[#color[#color2]]`, `color=`, `color2=` and `legend=`.
pub(super) fn common(script: &Script, argument: &mut Argument) -> Result<Common, LanguageError> {
    let texts = texts(argument)?;
    understood(script, texts)
}

fn texts(argument: &mut Argument) -> Result<Texts, LanguageError> {
    let name = argument.named("vname");
    let legend = named_legend(argument);
    let colour = argument.named("color");
    let second_colour = argument.named("color2");
    let value = name.or_else(|| argument.next_split().map(|(_, value)| value));
    let value = value.ok_or(LanguageError::NoPositional("VNAME"))?;
    Ok(Texts { value, colour, second_colour, legend })
}

fn understood(script: &Script, texts: Texts) -> Result<Common, LanguageError> {
    // Compat: with a third colour the second one is unreadable.
    let mut parts = texts.value.splitn(3, |&byte| byte == b'#');
    let name = parts.next().unwrap_or_default().to_vec();
    let value = plotted(script, &name)?;
    let mut spoiled = false;
    let mut read = |own: &Option<Vec<u8>>, beside: Option<&[u8]>| {
        let text = own.as_deref().or(beside).filter(|_| !spoiled)?;
        let read = colour(text);
        spoiled = read.is_none();
        read
    };
    let first = read(&texts.colour, parts.next());
    let second = read(&texts.second_colour, parts.next());
    Ok(Common { name, value, colour: first, second_colour: second, spoiled, legend: texts.legend })
}

fn plotted(script: &Script, name: &[u8]) -> Result<PlotValue, LanguageError> {
    match script.lookup(name) {
        Some(Symbol::Series(series)) => Ok(PlotValue::Series(series)),
        Some(Symbol::Scalar(scalar)) => Ok(PlotValue::Scalar(scalar)),
        None => match number::parse(name) {
            Ok(number) => Ok(PlotValue::Number(number)),
            Err(_) => Err(LanguageError::NotVnameNorNumber(lossy(name))),
        },
    }
}

pub(super) fn line(
    script: &mut Script,
    argument: &mut Argument,
    width: &[u8],
) -> Result<Element, LanguageError> {
    let width = match number::parse(width) {
        _ if width.is_empty() => LINE_WIDTH,
        Ok(number) if number < 0.0 => return Err(LanguageError::BadLineWidth(lossy(width))),
        Ok(number) => number,
        Err(_) => return Err(LanguageError::BadLineWidth(lossy(width))),
    };
    let (stack, skip_scale) = (argument.word("STACK"), argument.flag("skipscale"));
    let dashes = dashes(argument)?;
    let common = common(script, argument)?;
    let kind = ShapeKind::Line { width, dashes };
    Ok(shape(script, argument, common, kind, (stack, skip_scale)))
}

pub(super) fn area(script: &mut Script, argument: &mut Argument) -> Result<Element, LanguageError> {
    let (stack, skip_scale) = (argument.word("STACK"), argument.flag("skipscale"));
    let height = match argument.named("gradheight") {
        Some(text) if !text.is_empty() => {
            number::parse(&text).map_err(|_| LanguageError::BadGradientHeight(lossy(&text)))?
        }
        _ => GRADIENT_HEIGHT,
    };
    let common = common(script, argument)?;
    let gradient = common.second_colour.map(|second| (second, height));
    Ok(shape(script, argument, common, ShapeKind::Area { gradient }, (stack, skip_scale)))
}

/// A STACK is of the same kind as the LINE, AREA or STACK before it. Of a line it takes the width, not the dashes.
pub(super) fn stack(script: &mut Script, argument: &mut Argument) -> Result<Element, LanguageError> {
    let common = common(script, argument)?;
    if common.spoiled {
        return Err(LanguageError::StackStays);
    }
    let below = script.elements.iter().rev().find_map(|element| match element {
        Element::Graphic(Graphic::Shape(shape)) => Some(&shape.kind),
        _ => None,
    });
    let kind = match below {
        Some(&ShapeKind::Line { width, .. }) => ShapeKind::Line { width, dashes: Dashes::default() },
        Some(ShapeKind::Area { .. }) => {
            ShapeKind::Area { gradient: common.second_colour.map(|second| (second, GRADIENT_HEIGHT)) }
        }
        None => return Err(LanguageError::NothingToStackOn(argument.line())),
    };
    Ok(shape(script, argument, common, kind, (true, false)))
}

fn shape(
    script: &mut Script,
    argument: &mut Argument,
    common: Common,
    kind: ShapeKind,
    (stack, skip_scale): (bool, bool),
) -> Element {
    let legend = legend(script, argument, common.legend, common.spoiled);
    let Common { value, colour, .. } = common;
    Element::Graphic(Graphic::Shape(Shape { kind, value, colour, legend, stack, skip_scale }))
}

/// The legend. Compat: an unreadable colour silently ends the graph: the rest of this argument and all later ones are
/// ignored.
fn legend(script: &mut Script, argument: &mut Argument, named: Option<Vec<u8>>, spoiled: bool) -> Vec<u8> {
    script.ended |= spoiled;
    if spoiled { Vec::new() } else { legend_or_next(argument, named) }
}

pub(super) fn rule(
    script: &mut Script,
    argument: &mut Argument,
    vertical: bool,
) -> Result<Element, LanguageError> {
    let line = argument.line();
    let dashes = dashes(argument)?;
    let Common { name, value, colour, spoiled, legend: named, .. } = common(script, argument)?;
    if matches!(value, PlotValue::Series(_)) && !spoiled {
        return Err(LanguageError::WrongType { name: lossy(&name), line });
    }
    let legend = legend(script, argument, named, spoiled);
    let colour = colour.unwrap_or(Colour::new(TRANSPARENT));
    Ok(Element::Graphic(Graphic::Rule(Rule { vertical, value, colour, legend, dashes })))
}

pub(super) fn tick(script: &mut Script, argument: &mut Argument) -> Result<Element, LanguageError> {
    let fraction = argument.named("fraction");
    let texts = texts(argument)?;
    let fraction = fraction.or_else(|| argument.next_split().map(|(_, value)| value));
    let fraction = fraction.ok_or(LanguageError::NoPositional("FRACTION"))?;
    let Common { name, value, colour, spoiled, legend: named, .. } = understood(script, texts)?;
    let fraction = match number::parse(&fraction) {
        Ok(fraction) => fraction,
        Err(_) if spoiled => 0.0,
        // Compat: the message has the name, not the bad number.
        Err(_) => return Err(LanguageError::BadNumber(lossy(&name))),
    };
    let legend = legend(script, argument, named, spoiled);
    let colour = colour.unwrap_or(Colour::new(TRANSPARENT));
    Ok(Element::Graphic(Graphic::Tick(Tick { value, colour, fraction, legend })))
}

pub(super) fn shift(script: &Script, argument: &mut Argument) -> Result<Element, LanguageError> {
    let line = argument.line();
    let name = argument.named("vname").or_else(|| argument.next_split().map(|(_, value)| value));
    let name = name.ok_or_else(|| LanguageError::Missing { part: "vdef/rrd", line: line.clone() })?;
    let name = name.split(|&byte| byte == b'#').next().unwrap_or_default();
    let series = match script.lookup(name) {
        Some(Symbol::Series(series)) => series,
        Some(Symbol::Scalar(_)) => return Err(LanguageError::CannotShiftVdef { name: lossy(name), line }),
        None => return Err(LanguageError::NoVname(lossy(name))),
    };
    let offset = argument.named("shift").or_else(|| argument.next_split().map(|(_, value)| value));
    let offset = offset.ok_or(LanguageError::NoShift)?;
    let offset = match script.lookup(&offset) {
        Some(Symbol::Scalar(scalar)) => PlotValue::Scalar(scalar),
        Some(Symbol::Series(_)) => {
            return Err(LanguageError::OffsetIsSeries { name: lossy(&offset), line });
        }
        None => PlotValue::Number(seconds(&offset)? as f64),
    };
    Ok(Element::Graphic(Graphic::Shift(Shift { series, offset })))
}

/// A whole decimal number; one that is too large becomes the nearest that fits.
fn seconds(text: &[u8]) -> Result<i64, LanguageError> {
    let bad = || LanguageError::BadNumber(lossy(text));
    let trimmed = std::str::from_utf8(text).map_err(|_| bad())?.trim_ascii_start();
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let limit = if trimmed.starts_with('-') { i64::MIN } else { i64::MAX };
    Ok(trimmed.parse().unwrap_or(limit))
}

/// `dashes[=length,..]` and `dash-offset=`.
fn dashes(argument: &mut Argument) -> Result<Dashes, LanguageError> {
    let lengths = match argument.word_or_named("dashes") {
        None => Vec::new(),
        Some(None) => DASHES.to_vec(),
        Some(Some(text)) => lengths(&text)?,
    };
    let offset = match argument.named("dash-offset") {
        None => 0.0,
        Some(text) => number::parse(&text).map_err(|_| LanguageError::BadDashOffset(lossy(&text)))?,
    };
    Ok(Dashes { lengths, offset })
}

fn lengths(text: &[u8]) -> Result<Vec<f64>, LanguageError> {
    let mut lengths = Vec::new();
    let mut rest = text;
    loop {
        let (length, after) =
            number::parse_prefix(rest).ok_or_else(|| LanguageError::BadDash(lossy(rest)))?;
        lengths.push(length);
        match after {
            [] => return Ok(lengths),
            [b',', after @ ..] => rest = after,
            _ => return Err(LanguageError::DashComma(lossy(after))),
        }
    }
}
