//! A reading: the time and the texts of one `time:value:value...` argument of an update.
//!
//! [`parse_argument`] splits an argument and reads its time; the values stay texts. The clock and the AT time
//! syntax come from the caller. Allocates only for errors.

mod time;

use std::fmt;

use crate::definition::{Definition, DsKind};
use crate::time::Timestamp;
use crate::update::UpdateError;
use time::parse_time;

/// Furthest time from the epoch, in units of the RRD (285 million years of seconds): sums of times then stay
/// within `i64`. RRDtool accepts later times and is then stuck with them.
pub const TIME_MAX: i64 = 1 << 53;

/// Digits of a time that a double holds exactly.
const SECONDS_DIGITS_MAX: usize = 15;

/// The value of a source that the template does not name.
const NOT_GIVEN: &[u8] = b"U";

/// One update of one RRD, split at its colons and mapped through its template.
///
/// The values stay texts: the last text of each source is kept verbatim in the live head, and a COUNTER's
/// digits must not pass through a double.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// When, in the RRD's own units ([`crate::definition::Definition::units_per_second`]).
    pub time: Timestamp,
    /// One text per data source that clients feed (all but COMPUTE), in the order of the definition.
    pub values: &'a [&'a [u8]],
}

/// Resolves a time in AT syntax to seconds, or returns why that is impossible.
pub type AtTime<'a> = dyn Fn(&[u8]) -> Result<i64, String> + 'a;

/// Splits one argument of an update: `time:value...`, or `AT-time@value...` (the first `@` wins).
///
/// A time is `N`, seconds with an optional fraction, or a negative number relative to `now`, which is in
/// seconds. The fraction becomes RRDtool's double where the RRD counts seconds; where it counts thousandths, it is
/// exact to a millionth of a second. `values` is memory that the reading borrows.
///
/// # Errors
/// [`UpdateError`] with RRDtool's texts when the number of values is wrong or the time cannot be read, and
/// [`UpdateError::TimeTooFar`] beyond [`TIME_MAX`].
pub fn parse_argument<'w, 's>(
    argument: &'w [u8],
    now: Timestamp,
    definition: &Definition,
    template: Option<&Template>,
    at_time: &AtTime<'_>,
    values: &'s mut Vec<&'w [u8]>,
) -> Result<Reading<'s>, UpdateError> {
    let fed_count = definition.fed_count();
    values.clear();
    if template.is_none() {
        values.resize(fed_count, NOT_GIVEN);
        if let Some(usual) = parse_usual(argument, definition, values)
            && usual.end == argument.len()
        {
            return Ok(Reading { time: usual.time, values });
        }
        values.clear();
    }
    let Split { time, rest, at } = split(argument)?;
    match template {
        None => take_values(rest, fed_count, time, |_, text| values.push(text))?,
        Some(template) => {
            values.resize(fed_count, NOT_GIVEN);
            take_values(rest, template.fields.len(), time, |field, text| {
                if let Some(source) = template.fields[field] {
                    values[source] = text;
                }
            })?;
        }
    }
    let seconds = if at {
        let fail = |why| UpdateError::AtTime { text: lossy(time), why };
        Timestamp::whole(at_time(time).map_err(fail)?)
    } else {
        parse_time(time, now, definition.units_per_second != 1)?
    };
    let time_in_units = seconds.in_units(definition.units_per_second);
    if time_in_units.whole > TIME_MAX {
        return Err(UpdateError::TimeTooFar { text: lossy(time) });
    }
    Ok(Reading { time: time_in_units, values })
}

/// What [`parse_usual`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usual {
    /// When, in the RRD's own units.
    pub time: Timestamp,
    /// When, in whole seconds.
    pub seconds: i64,
    /// Where the values begin: after the time's colon.
    pub values_at: usize,
    /// Where the argument ends.
    pub end: usize,
}

/// Parses the form of nearly every argument in one pass: whole seconds of at most 15 digits, and one value for each
/// place in `values`, which has one for each source that clients feed. The argument ends with `text` or at a space.
/// `None` for everything else, of which [`parse_argument`] says what it is.
#[inline]
pub fn parse_usual<'w>(text: &'w [u8], definition: &Definition, values: &mut [&'w [u8]]) -> Option<Usual> {
    let (seconds, digits) = leading_digits(text);
    if digits == 0 || digits > SECONDS_DIGITS_MAX || text.get(digits) != Some(&b':') {
        return None;
    }
    let values_at = digits + 1;
    let mut at = values_at;
    let (last, others) = values.split_last_mut()?;
    for value in others {
        let start = at;
        at = value_end(text, start);
        if text.get(at) != Some(&b':') {
            return None;
        }
        *value = &text[start..at];
        at += 1;
    }
    let end = value_end(text, at);
    if text.get(end).is_some_and(|&byte| byte != b' ') {
        return None;
    }
    *last = &text[at..end];
    let time = Timestamp::whole(seconds).in_units(definition.units_per_second);
    (time.whole <= TIME_MAX).then_some(Usual { time, seconds, values_at, end })
}

/// Where the value from `at` on ends: at the last byte, a colon, a space, or an `@`, which makes the time another.
#[inline]
fn value_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    at + rest.iter().position(|byte| matches!(byte, b':' | b' ' | b'@')).unwrap_or(rest.len())
}

/// The number that the first digits are, and how many they are; it counts only up to [`SECONDS_DIGITS_MAX`].
#[inline]
fn leading_digits(text: &[u8]) -> (i64, usize) {
    let mut number = 0i64;
    for (index, byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (number, index);
        }
        number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
    }
    (number, text.len())
}

/// Splits the values of an argument, as a log keeps them, into one text per source that clients feed.
///
/// # Errors
/// [`UpdateError::TooFewValues`] and [`UpdateError::ExtraData`].
pub fn split_values<'w>(
    rest: &'w [u8],
    definition: &Definition,
    values: &mut Vec<&'w [u8]>,
) -> Result<(), UpdateError> {
    values.clear();
    take_values(rest, definition.fed_count(), b"", |_, text| values.push(text))
}

struct Split<'a> {
    time: &'a [u8],
    rest: &'a [u8],
    at: bool,
}

fn split(argument: &[u8]) -> Result<Split<'_>, UpdateError> {
    let mut colon = None;
    for (index, &byte) in argument.iter().enumerate() {
        if byte == b'@' {
            return Ok(Split { time: &argument[..index], rest: &argument[index + 1..], at: true });
        }
        if byte == b':' && colon.is_none() {
            colon = Some(index);
        }
    }
    let index = colon.ok_or_else(|| UpdateError::NoTimestamp { argument: lossy(argument) })?;
    Ok(Split { time: &argument[..index], rest: &argument[index + 1..], at: false })
}

fn take_values<'w>(
    rest: &'w [u8],
    expected: usize,
    time: &[u8],
    mut take: impl FnMut(usize, &'w [u8]),
) -> Result<(), UpdateError> {
    let mut start = 0;
    for field in 0..expected {
        let Some(tail) = rest.get(start..) else {
            return Err(UpdateError::TooFewValues { expected, got: field, time: lossy(time) });
        };
        let length = tail.iter().position(|&byte| byte == b':').unwrap_or(tail.len());
        take(field, &tail[..length]);
        start += length + 1;
    }
    match rest.get(start..) {
        None => Ok(()),
        Some(extra) => Err(UpdateError::ExtraData { rest: lossy(extra) }),
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Maps each value of an argument to its source (`--template`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// For each value, the index among the sources that clients feed; `None` for a COMPUTE source, whose value
    /// is ignored.
    fields: Vec<Option<usize>>,
}

/// Why a template was refused. `Display` is RRDtool's text (which does not start with a file name).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// There is no such data source.
    UnknownDs(String),
    /// More names than the RRD has sources.
    TooLong,
}

impl Template {
    /// The template `ds:ds:...` for an RRD of this definition. A name may occur twice; its last value counts.
    ///
    /// # Errors
    /// [`TemplateError`].
    pub fn parse(text: &[u8], definition: &Definition) -> Result<Template, TemplateError> {
        let mut fields = Vec::with_capacity(definition.ds.len());
        for name in text.split(|&byte| byte == b':') {
            if fields.len() == definition.ds.len() {
                return Err(TemplateError::TooLong);
            }
            let found = definition.ds.iter().position(|ds| ds.name.as_bytes() == name);
            let index = found.ok_or_else(|| TemplateError::UnknownDs(lossy(name)))?;
            let fed = |kind: &DsKind| matches!(kind, DsKind::Fed { .. });
            let before = definition.ds[..index].iter().filter(|ds| fed(&ds.kind)).count();
            fields.push(fed(&definition.ds[index].kind).then_some(before));
        }
        Ok(Template { fields })
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::UnknownDs(name) => write!(f, "unknown DS name '{name}'"),
            TemplateError::TooLong => f.write_str("tmplt contains more DS definitions than RRD"),
        }
    }
}

impl std::error::Error for TemplateError {}

#[cfg(test)]
mod tests;
