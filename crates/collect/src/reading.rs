//! What every collector produces: readings, each of an RRD of its [`Inventory`](crate::inventory::Inventory).
//!
//! A reading keeps its values typed until it leaves the process, so that integers travel as integers; the store gets the
//! text that RRDtool would get ([`Readings::push_text`]), because a live head keeps the text of its last reading.

use std::io::Write as _;
use std::ops::Range;

use rrd::format::push_general;
use rrd::time::Timestamp;

use crate::inventory::RrdId;

/// Digits of a float, as in collectd's and Ganglia's `%.15g`.
const FLOAT_DIGITS: usize = 15;

/// A value as it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Asked for and not known: a gap, as `U`.
    Unknown,
    /// A counter, or another whole number.
    Unsigned(u64),
    /// A whole number that may be negative.
    Signed(i64),
    /// A number, written with 15 significant digits; one that is not finite is unknown.
    Float(f64),
    /// A number as its sender wrote it.
    Text(&'a [u8]),
}

impl Value<'_> {
    /// `count`, or unknown.
    pub fn of_count(count: Option<u64>) -> Self {
        count.map_or(Value::Unknown, Value::Unsigned)
    }
}

/// A [`Value`] whose text is in [`Readings::texts`].
#[derive(Clone, Debug)]
enum Stored {
    Unknown,
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(Range<u32>),
}

/// One reading among [`Readings`].
#[derive(Clone, Debug)]
pub struct Reading {
    /// The RRD it is for.
    pub rrd: RrdId,
    /// When it was measured.
    pub time: Timestamp,
    values: Range<u32>,
}

/// Readings in the order in which they were made, in one arena: nothing is allocated per reading once it is warm.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    readings: Vec<Reading>,
    values: Vec<Stored>,
    texts: Vec<u8>,
}

impl Readings {
    /// Appends a reading, with one value per data source of `rrd` in the order of its definition.
    pub fn push<'a>(&mut self, rrd: RrdId, time: Timestamp, values: impl IntoIterator<Item = Value<'a>>) {
        let from = self.values.len() as u32;
        for value in values {
            let stored = match value {
                Value::Unknown => Stored::Unknown,
                Value::Unsigned(number) => Stored::Unsigned(number),
                Value::Signed(number) => Stored::Signed(number),
                Value::Float(number) => Stored::Float(number),
                Value::Text(text) => {
                    let start = self.texts.len() as u32;
                    self.texts.extend_from_slice(text);
                    Stored::Text(start..self.texts.len() as u32)
                }
            };
            self.values.push(stored);
        }
        self.readings.push(Reading { rrd, time, values: from..self.values.len() as u32 });
    }

    /// All readings, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Reading> + DoubleEndedIterator {
        self.readings.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.readings.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.readings.is_empty()
    }

    /// Removes all but the first `length`.
    pub fn truncate(&mut self, length: usize) {
        self.readings.truncate(length);
        let values = self.readings.last().map_or(0, |reading| reading.values.end as usize);
        self.values.truncate(values);
    }

    /// Removes all, and keeps the memory.
    pub fn clear(&mut self) {
        self.readings.clear();
        self.values.clear();
        self.texts.clear();
    }

    /// The values of one of these readings.
    pub fn values(&self, reading: &Reading) -> impl ExactSizeIterator<Item = Value<'_>> {
        let range = reading.values.start as usize..reading.values.end as usize;
        self.values[range].iter().map(|stored| match stored {
            Stored::Unknown => Value::Unknown,
            Stored::Unsigned(number) => Value::Unsigned(*number),
            Stored::Signed(number) => Value::Signed(*number),
            Stored::Float(number) => Value::Float(*number),
            Stored::Text(range) => Value::Text(&self.texts[range.start as usize..range.end as usize]),
        })
    }

    /// Appends a reading as the argument of `rrdupdate(1)`: `time:value:value...`.
    pub fn push_text(&self, reading: &Reading, out: &mut Vec<u8>) {
        push_time(out, reading.time);
        for value in self.values(reading) {
            out.push(b':');
            push_value(out, value);
        }
    }
}

fn push_time(out: &mut Vec<u8>, time: Timestamp) {
    let micros = time.micros;
    let written = match micros {
        0 => write!(out, "{}", time.whole),
        _ => write!(out, "{}.{micros:06}", time.whole),
    };
    written.expect("writing to memory cannot fail");
}

fn push_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Unsigned(number) => write!(out, "{number}").expect("writing to memory cannot fail"),
        Value::Signed(number) => write!(out, "{number}").expect("writing to memory cannot fail"),
        Value::Float(number) if number.is_finite() => push_general(out, number, FLOAT_DIGITS),
        Value::Text(text) if !text.is_empty() => out.extend_from_slice(text),
        Value::Unknown | Value::Float(_) | Value::Text(_) => out.push(b'U'),
    }
}

#[cfg(test)]
impl Readings {
    /// Each reading as `name time:values`.
    pub(crate) fn lines(&self, inventory: &crate::inventory::Inventory) -> Vec<String> {
        let text = |reading: &Reading| {
            let mut line = inventory.name(reading.rrd).to_vec();
            line.push(b' ');
            self.push_text(reading, &mut line);
            String::from_utf8(line).unwrap()
        };
        self.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{Inventory, RrdSpec};
    use std::sync::Arc;

    #[test]
    fn a_reading_is_written_as_rrdtool_s_argument() {
        let mut inventory = Inventory::new(1);
        let spec = Arc::new(RrdSpec { step: 10, starts_before: 1, args: Vec::new() });
        let rrd = inventory.find_or_add(b"a.rrd", || spec).unwrap();
        let mut readings = Readings::default();
        let values = [
            Value::Unsigned(u64::MAX),
            Value::Signed(-3),
            Value::Float(0.1),
            Value::Float(f64::NAN),
            Value::Text(b"7.50"),
            Value::Text(b""),
            Value::Unknown,
        ];
        readings.push(rrd, Timestamp::new(1_700_000_010, 4_000), values);
        readings.push(rrd, Timestamp::whole(-1), []);
        let want = ["a.rrd 1700000010.004000:18446744073709551615:-3:0.1:U:7.50:U:U", "a.rrd -1"];
        assert_eq!(readings.lines(&inventory), want);
    }
}
