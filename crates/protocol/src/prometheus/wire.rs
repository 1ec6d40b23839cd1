//! Protocol buffers: fields of messages, as they stand in memory.

use super::DecodeError;

/// Conditions and queries of a request; more are not sent by anyone.
const PARTS_MAX: usize = 10_000;

/// A field of a message.
pub(super) enum Field<'a> {
    /// A number of variable length.
    Number(u64),
    /// Bytes: a text, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// Eight bytes.
    Eight(u64),
    /// Four bytes.
    Four,
}

/// Reads a number of up to ten bytes, seven bits each.
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut number = 0u64;
    for index in 0..10 {
        let (&byte, after) = rest.split_first().ok_or(DecodeError::Broken)?;
        *rest = after;
        number |= u64::from(byte & 127) << (7 * index);
        if byte < 128 {
            return Ok(number);
        }
    }
    Err(DecodeError::Broken)
}

/// Appends a number, seven bits a byte.
pub(super) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], DecodeError> {
    let (taken, after) = rest.split_at_checked(count).ok_or(DecodeError::Broken)?;
    *rest = after;
    Ok(taken)
}

/// Reads bytes that follow their number.
fn bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let count = usize::try_from(varint(rest)?).map_err(|_| DecodeError::Broken)?;
    take(rest, count)
}

/// Calls `each` with the fields of a message, which has at most [`PARTS_MAX`].
pub(super) fn fields<'a>(
    rest: &'a [u8],
    each: impl FnMut(u64, Field<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    fields_up_to(PARTS_MAX, rest, each)
}

/// Calls `each` with the fields of a message, which has at most so many.
#[inline]
pub(super) fn fields_up_to<'a>(
    parts_max: usize,
    mut rest: &'a [u8],
    mut each: impl FnMut(u64, Field<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut count = 0;
    while !rest.is_empty() {
        count += 1;
        if count > parts_max {
            return Err(DecodeError::TooLong);
        }
        let key = varint(&mut rest)?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut rest)?),
            1 => Field::Eight(u64::from_le_bytes(
                take(&mut rest, 8)?.try_into().map_err(|_| DecodeError::Broken)?,
            )),
            5 => take(&mut rest, 4).map(|_| Field::Four)?,
            2 => Field::Bytes(bytes(&mut rest)?),
            _ => return Err(DecodeError::Broken),
        };
        each(key >> 3, field)?;
    }
    Ok(())
}

pub(super) fn text(bytes: &[u8]) -> Result<String, DecodeError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError::Broken)
}
