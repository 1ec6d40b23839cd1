//! Parses XPORT, PRINT, GPRINT, COMMENT and TEXTALIGN.

use rrd::rpn::Symbol;

use super::data::cf;
use super::figure::{Common, common};
use super::graphic::PlotValue;
use super::{Element, LanguageError, Print, PrintSource, PrintStyle, Script, TEXT_BYTES_MAX, Xport};
use crate::argument::{Argument, lossy};

const ALIGNMENTS: [&[u8]; 4] = [b"left", b"right", b"justified", b"center"];

/// XPORT. `None` if an unreadable colour ends the graph here.
pub(super) fn xport(script: &mut Script, argument: &mut Argument) -> Result<Option<Element>, LanguageError> {
    let line = argument.line();
    // An XPORT may have colours; they have no effect.
    let Common { name, value, legend, spoiled, .. } = common(script, argument)?;
    script.ended = spoiled;
    let series = match value {
        PlotValue::Series(series) => series,
        _ if spoiled => return Ok(None),
        PlotValue::Scalar(_) => return Err(LanguageError::CannotShiftVdef { name: lossy(&name), line }),
        PlotValue::Number(_) => return Err(LanguageError::UnknownVariableType(line)),
    };
    let legend = if spoiled { Vec::new() } else { legend_or_next(argument, legend) };
    Ok(Some(Element::Xport(Xport { series, legend })))
}

pub(super) fn named_legend(argument: &mut Argument) -> Option<Vec<u8>> {
    argument.named("legend").or_else(|| argument.named("label"))
}

/// The named legend, else the next part; cut to what RRDtool keeps.
pub(super) fn legend_or_next(argument: &mut Argument, named: Option<Vec<u8>>) -> Vec<u8> {
    kept(named.or_else(|| argument.next()).unwrap_or_default())
}

/// Cuts a text to what RRDtool keeps.
fn kept(mut text: Vec<u8>) -> Vec<u8> {
    text.truncate(TEXT_BYTES_MAX);
    text
}

pub(super) fn print(
    script: &mut Script,
    argument: &mut Argument,
    inside: bool,
) -> Result<Element, LanguageError> {
    let style = style(argument);
    let name = argument.named("vname").or_else(|| argument.next());
    let name = name.ok_or(LanguageError::NoPositional("VNAME"))?;
    let source = match script.lookup(&name) {
        Some(Symbol::Scalar(scalar)) => PrintSource::Scalar(scalar),
        Some(Symbol::Series(series)) => {
            let text = argument.named("cf").or_else(|| argument.next_value());
            let text = text.ok_or(LanguageError::NoPositional("CDEF"))?;
            let cf = cf(&text).ok_or_else(|| LanguageError::BadPrintCf(lossy(&text)))?;
            PrintSource::Series { series, cf }
        }
        None => return Err(LanguageError::UndefinedVname(lossy(&name))),
    };
    let format = argument.named("format").or_else(|| argument.next());
    let format = kept(format.ok_or(LanguageError::NoPositional("CF/FORMAT"))?);
    Ok(Element::Print(Print { inside, source, format, style }))
}

/// The style that the flags say: all of them are taken, and the first in this order counts.
fn style(argument: &mut Argument) -> PrintStyle {
    let mut style = PrintStyle::Number;
    for (flag, meaning) in [
        ("strftime", PrintStyle::Time),
        ("valstrftime", PrintStyle::ValueAsTime),
        ("valstrfduration", PrintStyle::Duration),
    ] {
        if argument.flag(flag) && style == PrintStyle::Number {
            style = meaning;
        }
    }
    style
}

pub(super) fn comment(argument: &mut Argument) -> Result<Element, LanguageError> {
    let text = named_legend(argument).or_else(|| argument.next());
    let text = kept(text.ok_or(LanguageError::NoPositional("CF/FORMAT"))?);
    Ok(Element::Comment(text))
}

pub(super) fn text_align(argument: &mut Argument) -> Result<Element, LanguageError> {
    let text = argument.named("align").or_else(|| argument.next_value()).ok_or(LanguageError::NoAlignment)?;
    if !ALIGNMENTS.contains(&text.as_slice()) {
        return Err(LanguageError::UnknownAlignment(lossy(&text)));
    }
    Ok(Element::TextAlign(text))
}
