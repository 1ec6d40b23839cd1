//! XPORT, PRINT, GPRINT, COMMENT and TEXTALIGN: what is written.

use rrd::number;
use rrd::rpn::Symbol;

use super::data::cf;
use super::{Element, LanguageError, Note, NoteKind, Print, PrintSource, PrintStyle, Script, Xport};
use crate::argument::{Argument, lossy};

const ALIGNMENTS: [&[u8]; 4] = [b"left", b"right", b"justified", b"center"];

pub(super) fn xport(script: &mut Script, argument: &mut Argument) -> Result<Element, LanguageError> {
    let line = argument.line();
    let name = argument.named("vname");
    let legend = named_legend(argument);
    // A colour is taken, as the elements that draw take it, and has no effect.
    argument.named("color");
    let name = match name.or_else(|| argument.next_split().map(|(_, value)| value)) {
        Some(name) => name,
        None => return Err(LanguageError::NoPositional("VNAME")),
    };
    let name = name.split(|&byte| byte == b'#').next().unwrap_or_default();
    let series = match script.lookup(name) {
        Some(Symbol::Series(series)) => series,
        Some(Symbol::Scalar(_)) => return Err(LanguageError::CannotShiftVdef { name: lossy(name), line }),
        None if number::parse(name).is_ok() => return Err(LanguageError::UnknownVariableType(line)),
        None => return Err(LanguageError::NotVnameNorNumber(lossy(name))),
    };
    let legend = legend.or_else(|| argument.next()).unwrap_or_default();
    Ok(Element::Xport(Xport { series, legend }))
}

fn named_legend(argument: &mut Argument) -> Option<Vec<u8>> {
    argument.named("legend").or_else(|| argument.named("label"))
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
    let format = format.ok_or(LanguageError::NoPositional("CF/FORMAT"))?;
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
    let text = text.ok_or(LanguageError::NoPositional("CF/FORMAT"))?;
    Ok(Element::Note(Note { kind: NoteKind::Comment, text }))
}

pub(super) fn text_align(argument: &mut Argument) -> Result<Element, LanguageError> {
    let text = argument.named("align").or_else(|| argument.next()).ok_or(LanguageError::NoAlignment)?;
    if !ALIGNMENTS.contains(&text.as_slice()) {
        return Err(LanguageError::UnknownAlignment(lossy(&text)));
    }
    Ok(Element::Note(Note { kind: NoteKind::TextAlign, text }))
}
