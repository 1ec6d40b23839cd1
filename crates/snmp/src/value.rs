//! The values of variables.

use crate::ber::{Malformed, Reader, Writer, tag};
use crate::oid::{Oid, OidRef};

/// The value of a variable as a message holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing, as in requests.
    Null,
    /// `INTEGER`, 32 bits by its definition; longer ones are sent by some agents.
    Integer(i64),
    /// `OCTET STRING`.
    Bytes(&'a [u8]),
    /// `OBJECT IDENTIFIER`.
    Oid(OidRef<'a>),
    /// `IpAddress`.
    IpAddress([u8; 4]),
    /// `Counter32`.
    Counter32(u32),
    /// `Gauge32`, `Unsigned32`.
    Gauge32(u32),
    /// `TimeTicks`: hundredths of a second.
    TimeTicks(u32),
    /// `Opaque` that is none of the numbers below.
    Opaque(&'a [u8]),
    /// `Counter64`, also inside `Opaque`.
    Counter64(u64),
    /// A 64-bit integer that net-snmp sends inside `Opaque`.
    Signed64(i64),
    /// A float or double that net-snmp sends inside `Opaque`.
    Float(f64),
    /// The agent has no such object.
    NoSuchObject,
    /// The agent has the object, but not this instance of it.
    NoSuchInstance,
    /// A walk has reached the end.
    EndOfMibView,
}

impl<'a> Value<'a> {
    /// Reads one value.
    ///
    /// # Errors
    /// When the bytes are no value of SNMP.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (tag, body) = reader.element()?;
        let narrow = |body| Ok(unsigned(body)? as u32);
        Ok(match tag {
            tag::INTEGER => Value::Integer(signed(body)?),
            tag::OCTET_STRING => Value::Bytes(body),
            tag::NULL => Value::Null,
            tag::OID => Value::Oid(OidRef::new(body).ok_or(Malformed)?),
            tag::IP_ADDRESS => Value::IpAddress(body.try_into().map_err(|_| Malformed)?),
            tag::COUNTER32 => Value::Counter32(narrow(body)?),
            tag::GAUGE32 | tag::UINTEGER32 => Value::Gauge32(narrow(body)?),
            tag::TIME_TICKS => Value::TimeTicks(narrow(body)?),
            tag::OPAQUE => opaque(body),
            tag::COUNTER64 => Value::Counter64(unsigned(body)?),
            tag::NO_SUCH_OBJECT => Value::NoSuchObject,
            tag::NO_SUCH_INSTANCE => Value::NoSuchInstance,
            tag::END_OF_MIB_VIEW => Value::EndOfMibView,
            _ => return Err(Malformed),
        })
    }

    /// Writes it, before what was written.
    pub fn write(&self, writer: &mut Writer) {
        match *self {
            Value::Null => writer.element(tag::NULL, &[]),
            Value::Integer(number) => writer.element(tag::INTEGER, shortest(&number.to_be_bytes(), true)),
            Value::Bytes(bytes) => writer.element(tag::OCTET_STRING, bytes),
            Value::Oid(oid) => writer.element(tag::OID, oid.bytes()),
            Value::IpAddress(address) => writer.element(tag::IP_ADDRESS, &address),
            Value::Counter32(number) => writer.element(tag::COUNTER32, shortest(&wide(number.into()), false)),
            Value::Gauge32(number) => writer.element(tag::GAUGE32, shortest(&wide(number.into()), false)),
            Value::TimeTicks(number) => {
                writer.element(tag::TIME_TICKS, shortest(&wide(number.into()), false))
            }
            Value::Counter64(number) => writer.element(tag::COUNTER64, shortest(&wide(number), false)),
            Value::Opaque(bytes) => writer.element(tag::OPAQUE, bytes),
            Value::Signed64(number) => {
                let digits = number.to_be_bytes();
                writer.element(tag::OPAQUE, &[&[0x9f, 0x7a, 8][..], &digits].concat());
            }
            Value::Float(number) => {
                let digits = number.to_be_bytes();
                writer.element(tag::OPAQUE, &[&[0x9f, 0x79, 8][..], &digits].concat());
            }
            Value::NoSuchObject => writer.element(tag::NO_SUCH_OBJECT, &[]),
            Value::NoSuchInstance => writer.element(tag::NO_SUCH_INSTANCE, &[]),
            Value::EndOfMibView => writer.element(tag::END_OF_MIB_VIEW, &[]),
        }
    }

    /// True when the agent says that there is no value.
    pub fn is_exception(&self) -> bool {
        matches!(self, Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView)
    }
}

/// Its type and what it says, as net-snmp's tools show them without a MIB; bytes that are no text are hexadecimal.
impl std::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hexadecimal = |f: &mut std::fmt::Formatter<'_>, bytes: &[u8]| {
            bytes.iter().try_for_each(|byte| write!(f, " {byte:02X}"))
        };
        match *self {
            Value::Null => f.write_str("NULL"),
            Value::Integer(number) => write!(f, "INTEGER: {number}"),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.chars().any(|char| char.is_control() && !char.is_whitespace()) => {
                    write!(f, "STRING: \"{text}\"")
                }
                _ => f.write_str("Hex-STRING:").and_then(|()| hexadecimal(f, bytes)),
            },
            Value::Oid(oid) => write!(f, "OID: {oid}"),
            Value::IpAddress(address) => write!(f, "IpAddress: {}", std::net::Ipv4Addr::from(address)),
            Value::Counter32(number) => write!(f, "Counter32: {number}"),
            Value::Gauge32(number) => write!(f, "Gauge32: {number}"),
            Value::TimeTicks(number) => write!(f, "Timeticks: ({number})"),
            Value::Opaque(bytes) => f.write_str("OPAQUE:").and_then(|()| hexadecimal(f, bytes)),
            Value::Counter64(number) => write!(f, "Counter64: {number}"),
            Value::Signed64(number) => write!(f, "Opaque: Int64: {number}"),
            Value::Float(number) => write!(f, "Opaque: Float: {number}"),
            Value::NoSuchObject => f.write_str("No Such Object"),
            Value::NoSuchInstance => f.write_str("No Such Instance"),
            Value::EndOfMibView => f.write_str("No more variables"),
        }
    }
}

/// The bytes of a number that is not negative, with a zero in front.
fn wide(number: u64) -> [u8; 9] {
    let mut digits = [0; 9];
    digits[1..].copy_from_slice(&number.to_be_bytes());
    digits
}

/// Big-endian digits without those at the front that say nothing.
fn shortest(digits: &[u8], is_signed: bool) -> &[u8] {
    let is_repeat =
        |pair: &[u8]| (pair[0] == 0 && pair[1] < 0x80) || (is_signed && pair[0] == 0xff && pair[1] >= 0x80);
    let skipped = digits.windows(2).take_while(|pair| is_repeat(pair)).count();
    &digits[skipped..]
}

/// A [`Value`] with its own memory.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedValue {
    /// A number or an exception, which need none.
    Plain(Value<'static>),
    /// `OCTET STRING`.
    Bytes(Box<[u8]>),
    /// `OBJECT IDENTIFIER`.
    Oid(Oid),
    /// `Opaque`.
    Opaque(Box<[u8]>),
}

impl OwnedValue {
    /// Copies a value.
    pub fn of(value: &Value<'_>) -> Self {
        OwnedValue::Plain(match *value {
            Value::Bytes(bytes) => return OwnedValue::Bytes(bytes.into()),
            Value::Oid(oid) => return OwnedValue::Oid(oid.to_owned()),
            Value::Opaque(bytes) => return OwnedValue::Opaque(bytes.into()),
            Value::Null => Value::Null,
            Value::Integer(number) => Value::Integer(number),
            Value::IpAddress(address) => Value::IpAddress(address),
            Value::Counter32(number) => Value::Counter32(number),
            Value::Gauge32(number) => Value::Gauge32(number),
            Value::TimeTicks(number) => Value::TimeTicks(number),
            Value::Counter64(number) => Value::Counter64(number),
            Value::Signed64(number) => Value::Signed64(number),
            Value::Float(number) => Value::Float(number),
            Value::NoSuchObject => Value::NoSuchObject,
            Value::NoSuchInstance => Value::NoSuchInstance,
            Value::EndOfMibView => Value::EndOfMibView,
        })
    }

    /// Borrows it.
    pub fn value(&self) -> Value<'_> {
        match self {
            OwnedValue::Plain(value) => *value,
            OwnedValue::Bytes(bytes) => Value::Bytes(bytes),
            OwnedValue::Oid(oid) => Value::Oid(oid.as_ref()),
            OwnedValue::Opaque(bytes) => Value::Opaque(bytes),
        }
    }
}

/// An integer of 1 to 8 bytes, in two's complement.
fn signed(body: &[u8]) -> Result<i64, Malformed> {
    let (&first, rest) = body.split_first().ok_or(Malformed)?;
    if body.len() > 8 {
        return Err(Malformed);
    }
    Ok(rest.iter().fold(i64::from(first as i8), |number, &byte| number << 8 | i64::from(byte)))
}

/// A number that is not negative. Agents in the field send a first bit that is set without the zero before it.
fn unsigned(body: &[u8]) -> Result<u64, Malformed> {
    let digits = match body {
        [0, digits @ ..] if digits.len() == 8 => digits,
        digits if !digits.is_empty() && digits.len() <= 8 => digits,
        _ => return Err(Malformed),
    };
    Ok(digits.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// What net-snmp packs into `Opaque`: 0x9f, a tag, a length, the number.
fn opaque(body: &[u8]) -> Value<'_> {
    match body {
        [0x9f, 0x78, 4, digits @ ..] => match <[u8; 4]>::try_from(digits) {
            Ok(digits) => Value::Float(f64::from(f32::from_be_bytes(digits))),
            Err(_) => Value::Opaque(body),
        },
        [0x9f, 0x79, 8, digits @ ..] => match <[u8; 8]>::try_from(digits) {
            Ok(digits) => Value::Float(f64::from_be_bytes(digits)),
            Err(_) => Value::Opaque(body),
        },
        [0x9f, kind @ (0x76 | 0x7b | 0x7a), length, digits @ ..] if usize::from(*length) == digits.len() => {
            let value = match kind {
                0x7a => signed(digits).map(Value::Signed64),
                _ => unsigned(digits).map(Value::Counter64),
            };
            value.unwrap_or(Value::Opaque(body))
        }
        _ => Value::Opaque(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Value<'_>, Malformed> {
        Value::read(&mut Reader::new(bytes))
    }

    #[test]
    fn every_type_is_read() {
        for (bytes, value) in [
            (&[2, 1, 0xff][..], Value::Integer(-1)),
            (&[2, 4, 0x7f, 0xff, 0xff, 0xff], Value::Integer(i64::from(i32::MAX))),
            (&[4, 2, b'h', b'i'], Value::Bytes(b"hi")),
            (&[5, 0], Value::Null),
            (&[6, 1, 0x2b], Value::Oid(OidRef::new(&[0x2b]).unwrap())),
            (&[0x40, 4, 10, 0, 0, 1], Value::IpAddress([10, 0, 0, 1])),
            (&[0x41, 5, 0, 0xff, 0xff, 0xff, 0xff], Value::Counter32(u32::MAX)),
            (&[0x41, 4, 0xff, 0xff, 0xff, 0xff], Value::Counter32(u32::MAX)),
            (&[0x42, 1, 7], Value::Gauge32(7)),
            (&[0x43, 2, 1, 0], Value::TimeTicks(256)),
            (&[0x46, 9, 0, 255, 255, 255, 255, 255, 255, 255, 255], Value::Counter64(u64::MAX)),
            (&[0x46, 1, 0], Value::Counter64(0)),
            (&[0x44, 7, 0x9f, 0x78, 4, 0x3f, 0x80, 0, 0], Value::Float(1.0)),
            (&[0x44, 11, 0x9f, 0x79, 8, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0], Value::Float(1.5)),
            (&[0x44, 4, 0x9f, 0x7a, 1, 0xfe], Value::Signed64(-2)),
            (&[0x44, 4, 0x9f, 0x76, 1, 9], Value::Counter64(9)),
            (&[0x44, 2, 0x9f, 0x78], Value::Opaque(&[0x9f, 0x78])),
            (&[0x80, 0], Value::NoSuchObject),
            (&[0x81, 0], Value::NoSuchInstance),
            (&[0x82, 0], Value::EndOfMibView),
        ] {
            assert_eq!(read(bytes), Ok(value), "{bytes:?}");
            let mut writer = Writer::default();
            value.write(&mut writer);
            assert_eq!(read(writer.bytes()), Ok(value), "{bytes:?}");
            assert_eq!(OwnedValue::of(&value).value(), value);
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let ten = [0x46, 10, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        for bytes in [&[2, 0][..], &ten, &[0x40, 3, 1, 2, 3], &[0x30, 0], &[4, 5, 1], &[6, 0]] {
            assert_eq!(read(bytes), Err(Malformed), "{bytes:?}");
        }
    }
}
