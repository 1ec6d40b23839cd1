//! InfluxDB's line protocol: `measurement,tag=value field=1.5,other=2i 1700000000000000000`.
//!
//! Each field that is a number is a sample. Fields that are texts or truth values are refused one by one, and the rest of their
//! line counts. What is escaped differs: in a measurement the comma and the blank, in keys and tags also the equals sign, in a
//! text the quotation mark and the backslash; any other backslash is one. Only a text may hold the end of a line.

mod line;

use std::borrow::Cow;

use self::line::{FieldValue, Line};
use crate::fault::Fault;
use crate::number::Number;
use crate::refusal::Refusal;

/// Bytes of a line at most, texts included.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Tags of a line at most.
pub const TAGS_MAX: usize = 64;

/// The unit of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// The protocol's own.
    #[default]
    Nanoseconds,
    /// `us`, `u`.
    Microseconds,
    /// `ms`.
    Milliseconds,
    /// `s`.
    Seconds,
    /// `m`, of version 1.
    Minutes,
    /// `h`, of version 1.
    Hours,
}

impl Precision {
    /// The precision that a client asks for by name, in either version's words.
    pub fn of_name(name: &str) -> Option<Precision> {
        Some(match name {
            "" | "n" | "ns" => Precision::Nanoseconds,
            "u" | "us" | "\u{b5}" | "\u{b5}s" => Precision::Microseconds,
            "ms" => Precision::Milliseconds,
            "s" => Precision::Seconds,
            "m" => Precision::Minutes,
            "h" => Precision::Hours,
            _ => return None,
        })
    }

    fn nanoseconds(self) -> i64 {
        match self {
            Precision::Nanoseconds => 1,
            Precision::Microseconds => 1_000,
            Precision::Milliseconds => 1_000_000,
            Precision::Seconds => 1_000_000_000,
            Precision::Minutes => 60_000_000_000,
            Precision::Hours => 3_600_000_000_000,
        }
    }
}

/// A field that is a number, with what its line says.
#[derive(Clone, Copy, Debug)]
pub struct InfluxField<'a> {
    /// The measurement.
    pub measurement: &'a str,
    /// The tags, in the order of the line, without empty ones.
    pub tags: &'a [(Cow<'a, str>, Cow<'a, str>)],
    /// The name of the field.
    pub field: &'a str,
    /// Its value, which is finite.
    pub value: Number,
    /// When, in nanoseconds since the epoch; `None` is now.
    pub time: Option<i64>,
}

/// Takes the fields of lines.
pub trait InfluxSink {
    /// A number.
    fn field(&mut self, field: &InfluxField<'_>);
    /// A line or a field that does not count. Of a line, none of its fields was given before.
    fn refused(&mut self, refusal: Refusal<'_>);
}

/// Reads the lines of a body or datagram.
pub fn read_lines(text: &[u8], precision: Precision, sink: &mut dyn InfluxSink) {
    let mut rest = text;
    let mut line_number = 1;
    let mut line = Line::default();
    let mut patience = line::LOOKED_IN_VAIN_MAX;
    while !rest.is_empty() {
        let length = line::length(rest, &mut patience);
        let this = &rest[..length];
        rest = rest.get(length + 1..).unwrap_or_default();
        let shown = this.trim_ascii();
        if !shown.is_empty() && shown[0] != b'#' {
            match read_line(this, precision, &mut line) {
                Ok(()) => give(&line, line_number, sink),
                Err(fault) => sink.refused(Refusal { line: line_number, text: shown, fault }),
            }
            line.clear();
        }
        line_number += 1 + memchr::memchr_iter(b'\n', this).count();
    }
}

fn read_line<'a>(text: &'a [u8], precision: Precision, line: &mut Line<'a>) -> Result<(), Fault> {
    if text.len() > LINE_BYTES_MAX {
        return Err(Fault::TooLong);
    }
    let text = std::str::from_utf8(text).map_err(|_| Fault::NotUtf8)?;
    line.parse(text.trim_ascii())?;
    if let Some(time) = line.time_text {
        let time = time.parse::<i64>().map_err(|_| Fault::BadTime)?;
        let time = time.checked_mul(precision.nanoseconds()).filter(|time| *time >= 0);
        line.time = Some(time.ok_or(Fault::BadTime)?);
    }
    Ok(())
}

fn give(line: &Line<'_>, number: usize, sink: &mut dyn InfluxSink) {
    for (key, value) in &line.fields {
        let fault = match value {
            FieldValue::Number(value) if value.is_finite() => {
                sink.field(&InfluxField {
                    measurement: &line.measurement,
                    tags: &line.tags,
                    field: key,
                    value: *value,
                    time: line.time,
                });
                continue;
            }
            FieldValue::Number(_) => Fault::NotFinite,
            FieldValue::Text => Fault::IsText,
            FieldValue::Boolean => Fault::IsBoolean,
        };
        sink.refused(Refusal { line: number, text: key.as_bytes(), fault });
    }
}

#[cfg(test)]
mod tests;
