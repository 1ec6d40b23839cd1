//! XPORT, PRINT, GPRINT, COMMENT and TEXTALIGN: what is written.

use rrd::rpn::Symbol;

use super::data::cf;
use super::drawn::Plotted;
use super::figure::{Common, common};
use super::{
    Element, LanguageError, Note, NoteKind, Print, PrintSource, PrintStyle, Script, TEXT_BYTES_MAX, Xport,
};
use crate::argument::{Argument, lossy};

const ALIGNMENTS: [&[u8]; 4] = [b"left", b"right", b"justified", b"center"];

/// `None`: it ends the graph, by a colour that cannot be read, and is no column.
pub(super) fn xport(script: &mut Script, argument: &mut Argument) -> Result<Option<Element>, LanguageError> {
    let line = argument.line();
    // Its colours are taken, as the elements that draw take them, and have no effect.
    let Common { name, value, legend, spoiled, .. } = common(script, argument)?;
    script.ended = spoiled;
    let series = match value {
        Plotted::Series(series) => series,
        _ if spoiled => return Ok(None),
        Plotted::Scalar(_) => return Err(LanguageError::CannotShiftVdef { name: lossy(&name), line }),
        Plotted::Number(_) => return Err(LanguageError::UnknownVariableType(line)),
    };
    let legend = if spoiled { Vec::new() } else { legend_or_next(argument, legend) };
    Ok(Some(Element::Xport(Xport { series, legend })))
}

pub(super) fn named_legend(argument: &mut Argument) -> Option<Vec<u8>> {
    argument.named("legend").or_else(|| argument.named("label"))
}

/// A legend by name, else the next piece; what RRDtool keeps of it.
pub(super) fn legend_or_next(argument: &mut Argument, named: Option<Vec<u8>>) -> Vec<u8> {
    kept(named.or_else(|| argument.next()).unwrap_or_default())
}

/// What RRDtool keeps of a text.
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
            let text = argument.named("cf").or_else(|| argument.next());
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

/// Of several the first in this order counts; all are taken.
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
    Ok(Element::Note(Note { kind: NoteKind::Comment, text }))
}

pub(super) fn text_align(argument: &mut Argument) -> Result<Element, LanguageError> {
    let text = argument.named("align").or_else(|| argument.next()).ok_or(LanguageError::NoAlignment)?;
    if !ALIGNMENTS.contains(&text.as_slice()) {
        return Err(LanguageError::UnknownAlignment(lossy(&text)));
    }
    Ok(Element::Note(Note { kind: NoteKind::TextAlign, text }))
}
