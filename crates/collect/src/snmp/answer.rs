//! What handlers get: samples, outcomes of targets, reports of passes, and what went wrong.

use std::fmt;
use std::net::SocketAddr;

use ::snmp::message::error_status;
use ::snmp::oid::{Oid, Suffix};
use ::snmp::usm::UsmRefusal;
use ::snmp::value::{OwnedValue, Value};
use rrd::time::Timestamp;

use super::engine::DeviceId;

/// A value of a target's column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Polled {
    /// The device did not answer, or has no such object.
    Missing,
    /// The device has a value that is no number.
    NoNumber,
    /// A counter of 32 bits.
    Counter32(u32),
    /// A counter of 64 bits, or another number that is not negative.
    Unsigned(u64),
    /// A whole number.
    Signed(i64),
    /// A number, also one that the device sent as text.
    Float(f64),
    /// Hundredths of a second.
    Ticks(u32),
}

impl Polled {
    /// The number in a value of a message.
    pub fn of(value: &Value<'_>) -> Self {
        match *value {
            Value::Integer(number) | Value::Signed64(number) => Polled::Signed(number),
            Value::Counter32(number) => Polled::Counter32(number),
            Value::Gauge32(number) => Polled::Unsigned(number.into()),
            Value::TimeTicks(number) => Polled::Ticks(number),
            Value::Counter64(number) => Polled::Unsigned(number),
            Value::Float(number) => Polled::Float(number),
            Value::Bytes(text) => number_in(text),
            Value::Oid(_) | Value::IpAddress(_) | Value::Opaque(_) => Polled::NoNumber,
            Value::Null | Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView => {
                Polled::Missing
            }
        }
    }
}

/// Agents of net-snmp send many numbers as text.
fn number_in(text: &[u8]) -> Polled {
    let text = text.trim_ascii();
    let is_number = text.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte));
    let Some(text) = std::str::from_utf8(text).ok().filter(|_| is_number) else { return Polled::NoNumber };
    // A float would round a counter of 64 bits.
    let whole = text.parse().map(Polled::Unsigned).or_else(|_| text.parse().map(Polled::Signed));
    whole.ok().or_else(|| text.parse().ok().map(Polled::Float)).unwrap_or(Polled::NoNumber)
}

/// Whether the value of a reference column is the one expected: the same bytes, or the same number in digits.
pub(crate) fn is_expected(value: &Value<'_>, expected: &[u8]) -> bool {
    let number = match *value {
        Value::Bytes(bytes) => return bytes == expected,
        Value::Integer(number) | Value::Signed64(number) => number,
        Value::Counter32(number) | Value::Gauge32(number) | Value::TimeTicks(number) => i64::from(number),
        _ => return false,
    };
    std::str::from_utf8(expected).ok().and_then(|text| text.parse().ok()) == Some(number)
}

/// What became of a target in a pass.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The device.
    pub device: DeviceId,
    /// The target, as its plan calls it.
    pub key: u32,
    /// When the answer arrived; without an answer, when it was due.
    pub time: Timestamp,
    /// The values of the columns that are not references.
    pub values: &'a [Polled],
    /// False when the pass ended without an answer for the target.
    pub is_answered: bool,
    /// True when the device has restarted since the pass before, or had only just started then: counters do not go on.
    pub is_reset: bool,
    /// True when the row is now another one, or gone: the values are missing.
    pub is_moved: bool,
}

/// What a pass over a device took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassReport {
    /// When it was due.
    pub due: Timestamp,
    /// From the first request to the last answer.
    pub micros: u64,
    /// Requests sent, repeated ones included.
    pub requests: u32,
    /// Requests without an answer in time.
    pub timeouts: u32,
    /// Answers that said tooBig.
    pub too_big: u32,
    /// The smoothed round trip.
    pub rtt_micros: u32,
    /// Targets whose values came.
    pub answered: u32,
    /// Targets without values.
    pub missing: u32,
    /// Targets that are no longer where they were.
    pub moved: u32,
    /// Whether the pass began late, or was not over when the next was due.
    pub is_late: bool,
    /// Whether the device answered at all.
    pub is_alive: bool,
    /// `sysUpTime`, if it came.
    pub uptime: Option<u32>,
    /// Whether the device has restarted.
    pub is_reset: bool,
}

/// A row that a walk found.
#[derive(Clone, Debug, PartialEq)]
pub struct WalkedRow {
    /// The encoded index.
    pub index: Box<[u8]>,
    /// The value of each column of the walk, if the row has it.
    pub values: Vec<Option<OwnedValue>>,
}

impl WalkedRow {
    /// The index as text.
    pub fn index_text(&self) -> String {
        Suffix::new(&self.index).map(|index| index.to_string()).unwrap_or_default()
    }

    /// What a column holds, as a part of a name.
    pub fn text(&self, column: usize) -> Option<String> {
        self.values[column].as_ref().map(text_of)
    }
}

/// A value as a part of a name.
pub(super) fn text_of(value: &OwnedValue) -> String {
    match value.value() {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Gauge32(number) | Value::Counter32(number) => number.to_string(),
        Value::Oid(oid) => oid.to_string(),
        _ => String::new(),
    }
}

/// What is wrong with a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It does not answer.
    Silent,
    /// It does not accept the user.
    Unauthorized(UsmRefusal),
    /// Answers come from another address.
    WrongAddress(SocketAddr),
    /// An answer is no message, or not one to the request.
    BadAnswer,
    /// A walk goes round in circles, or back.
    NotIncreasing(Oid),
    /// A walk does not end.
    Endless(Oid),
    /// The device has no such object.
    NoSuchObject(Oid),
    /// The device reports an error for an object.
    Refused(Oid, i32),
}

impl Trouble {
    /// The object it is about, if it is about one.
    pub fn object(&self) -> Option<&Oid> {
        match self {
            Trouble::NotIncreasing(oid)
            | Trouble::Endless(oid)
            | Trouble::NoSuchObject(oid)
            | Trouble::Refused(oid, _) => Some(oid),
            Trouble::Silent | Trouble::Unauthorized(_) | Trouble::WrongAddress(_) | Trouble::BadAnswer => {
                None
            }
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Silent => f.write_str("does not answer: check its address, community and access list"),
            Trouble::Unauthorized(refusal) => refusal.fmt(f),
            Trouble::WrongAddress(from) => {
                write!(f, "answers from another address, {from}: set any_source = true if that is the device")
            }
            Trouble::BadAnswer => f.write_str("sends answers that do not fit the requests; they are ignored"),
            Trouble::NotIncreasing(_) => {
                f.write_str("answers a walk with an object that does not come later")
            }
            Trouble::Endless(_) => f.write_str("has a table that does not end"),
            Trouble::NoSuchObject(_) => f.write_str("the device has no such object"),
            Trouble::Refused(_, status) => write!(f, "the device says {}", error_status::name(*status)),
        }
    }
}
