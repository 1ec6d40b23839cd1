//! Parses DEF, CDEF and VDEF, which define variables.

use rrd::definition::Cf;
use rrd::rpn::{Expression, Symbol, Vdef};
use rrd::when::at::resolve_pair;

use super::{Cdef, Def, Element, LanguageError, Script, ScriptContext, VdefElement};
use crate::argument::{Argument, lossy};

/// The earliest start of a fetch: ten years after the epoch, as RRDtool counts them.
pub const START_MIN: i64 = 3600 * 24 * 365 * 10;

/// The function called `text`.
pub(super) fn cf(text: &[u8]) -> Option<Cf> {
    std::str::from_utf8(text).ok().and_then(Cf::from_name)
}

pub(super) fn def(
    script: &mut Script,
    argument: &mut Argument,
    context: ScriptContext<'_>,
) -> Result<Element, LanguageError> {
    let old_order = def_in_old_order(argument);
    let named = NamedParts::take(argument);
    let reduce =
        named.reduce.map(|text| self::cf(&text).ok_or_else(|| LanguageError::BadReduceCf(lossy(&text))));
    let reduce = reduce.transpose()?;
    let step = named.step.map(|text| step(&text)).transpose()?;
    let (start, end) = span(named.start, named.end, context)?;
    let DefParts { name, is_unnamed, file, ds, cf: cf_text } = match old_order {
        Some(parts) => parts,
        None => def_parts(argument, named.ds, named.cf)?,
    };
    let earlier = name.as_ref().map_or(0, |name| script.count(name));
    let cf = cf(&cf_text);
    // Compat: a DEF may reuse a name once, if it has one; and with a bad function the reuse is what is reported.
    if earlier > 1 || (earlier == 1 && (is_unnamed || cf.is_none())) {
        return Err(LanguageError::Reused(lossy(&name.unwrap_or_default())));
    }
    let cf = cf.ok_or_else(|| LanguageError::BadCf(lossy(&cf_text)))?;
    let daemon = named.daemon;
    let series = script.series;
    argument.finish()?;
    script.define(name.as_deref(), Symbol::Series(series));
    let name = name.unwrap_or_default();
    Ok(Element::Def(Def { series, name, file, ds, cf, reduce, start, end, step, daemon }))
}

/// The named parts of a DEF; they take precedence over positional ones.
struct NamedParts {
    ds: Option<Vec<u8>>,
    cf: Option<Vec<u8>>,
    reduce: Option<Vec<u8>>,
    step: Option<Vec<u8>>,
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    daemon: Option<Vec<u8>>,
}

impl NamedParts {
    fn take(argument: &mut Argument) -> NamedParts {
        NamedParts {
            ds: argument.named("ds"),
            cf: argument.named("cf"),
            reduce: argument.named("reduce"),
            step: argument.named("step"),
            start: argument.named("start"),
            end: argument.named("end"),
            daemon: argument.named("daemon"),
        }
    }
}

/// The parts that every DEF has.
struct DefParts {
    /// `None` where RRDtool drops it.
    name: Option<Vec<u8>>,
    /// The name is [`UNNAMED`], because there is none.
    is_unnamed: bool,
    file: Vec<u8>,
    ds: Vec<u8>,
    cf: Vec<u8>,
}

/// Compat: the name of an element without one.
const UNNAMED: &[u8] = b"pos1";

/// A DEF whose variable has the name of one of DEF's own options. Compat: RRDtool takes the file and drops the name.
fn def_in_old_order(argument: &mut Argument) -> Option<DefParts> {
    const NAMES: [&str; 8] = ["vname", "rrd", "step", "start", "end", "reduce", "daemon", "cf"];
    let left = argument.left();
    let (first, function) = (left.first()?, left.get(2)?);
    let name = first.split(|&byte| byte == b'=').next()?;
    let is_name = first.len() > name.len() && NAMES.iter().any(|known| known.as_bytes() == name);
    if !is_name || cf(function).is_none() || left[1].contains(&b'=') {
        return None;
    }
    let (_, file) = argument.next_split()?;
    Some(DefParts { name: None, is_unnamed: false, file, ds: argument.next()?, cf: argument.next()? })
}

fn def_parts(
    argument: &mut Argument,
    ds: Option<Vec<u8>>,
    cf: Option<Vec<u8>>,
) -> Result<DefParts, LanguageError> {
    let missing = |part, argument: &Argument| LanguageError::Missing { part, line: argument.line() };
    let (name, file) = name_and_value(argument, "rrd")?;
    let is_unnamed = name.is_none();
    let ds = match ds.or_else(|| argument.next_value()) {
        Some(ds) => ds,
        None => return Err(missing("DS", argument)),
    };
    let cf = match cf.or_else(|| argument.next_value()) {
        Some(cf) => cf,
        None => return Err(missing("CF", argument)),
    };
    let name = Some(name.unwrap_or_else(|| UNNAMED.to_vec()));
    Ok(DefParts { name, is_unnamed, file, ds, cf })
}

/// `name=value`, where the name may be missing; either may be a named part instead (`vname=..` and `key=..`).
fn name_and_value(argument: &mut Argument, key: &str) -> Result<(Option<Vec<u8>>, Vec<u8>), LanguageError> {
    let missing = |argument: &Argument| LanguageError::Missing { part: "vdef/rrd", line: argument.line() };
    let name = argument.named("vname");
    let value = argument.named(key);
    match (name, value) {
        (Some(name), Some(value)) => Ok((Some(name), value)),
        (Some(name), None) => {
            let (_, value) = argument.next_split().ok_or_else(|| missing(argument))?;
            Ok((Some(name), value))
        }
        (None, Some(value)) => Ok((Some(argument.next_key().ok_or_else(|| missing(argument))?), value)),
        (None, None) => argument.next_split().ok_or_else(|| missing(argument)),
    }
}

fn step(text: &[u8]) -> Result<u64, LanguageError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim_ascii_start().parse::<i64>().ok());
    match number {
        Some(number) if number > 0 => Ok(number as u64),
        _ => Err(LanguageError::BadStep(lossy(text))),
    }
}

fn span(
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    context: ScriptContext<'_>,
) -> Result<(i64, i64), LanguageError> {
    if start.is_none() && end.is_none() {
        return Ok((context.start, context.end));
    }
    let text = |own: Option<Vec<u8>>, graph: i64| own.map_or_else(|| graph.to_string(), |text| lossy(&text));
    let (start, end) = (text(start, context.start), text(end, context.end));
    let (start, end) =
        resolve_pair(&start, &end, context.now, context.calendar).map_err(LanguageError::BadTime)?;
    check_span(start, end)?;
    Ok((start, end))
}

/// Checks what RRDtool requires of every range: not before 1980, and not backwards.
///
/// # Errors
/// [`LanguageError::TooOld`], [`LanguageError::EndBeforeStart`].
pub fn check_span(start: i64, end: i64) -> Result<(), LanguageError> {
    if start < START_MIN {
        return Err(LanguageError::TooOld(start));
    }
    if end < start {
        return Err(LanguageError::EndBeforeStart { start, end });
    }
    Ok(())
}

pub(super) fn cdef(script: &mut Script, argument: &mut Argument) -> Result<Element, LanguageError> {
    let (name, text) = name_and_value(argument, "rpn")?;
    let name = name.unwrap_or_else(|| UNNAMED.to_vec());
    refuse_known(script, &name)?;
    let expression = Expression::parse(&lossy(&text), |name| script.lookup(name.as_bytes()))?;
    let series = script.series;
    argument.finish()?;
    script.define(Some(&name), Symbol::Series(series));
    Ok(Element::Cdef(Cdef { series, name, expression }))
}

pub(super) fn vdef(script: &mut Script, argument: &mut Argument) -> Result<Element, LanguageError> {
    let (name, text) = name_and_value(argument, "rpn")?;
    let name = name.unwrap_or_else(|| UNNAMED.to_vec());
    refuse_known(script, &name)?;
    let scalar = script.scalars;
    // Its own name is known, as that of a number.
    let lookup = |read: &str| match read.as_bytes() == name {
        true => Some(Symbol::Scalar(scalar)),
        false => script.lookup(read.as_bytes()),
    };
    let vdef = Vdef::parse(&lossy(&name), &lossy(&text), lookup)?;
    argument.finish()?;
    script.define(Some(&name), Symbol::Scalar(scalar));
    Ok(Element::Vdef(VdefElement { scalar, name, vdef }))
}

fn refuse_known(script: &Script, name: &[u8]) -> Result<(), LanguageError> {
    match script.lookup(name) {
        Some(_) => Err(LanguageError::Reused(lossy(name))),
        None => Ok(()),
    }
}
