//! Snappy's block format: a length, then literals and copies of what came before.

use super::DecodeError;

/// The longest literal that one tag with a length of two bytes holds.
const LITERAL_MAX: usize = 1 << 16;

/// What `data` stands for, at most `bytes_max`.
///
/// # Errors
/// When it is broken, or longer.
pub fn decompress(data: &[u8], bytes_max: usize) -> Result<Vec<u8>, DecodeError> {
    let mut rest = data;
    let length = super::message::varint(&mut rest)? as usize;
    if length > bytes_max {
        return Err(DecodeError::TooLong);
    }
    let mut out = Vec::with_capacity(length);
    while let Some((&tag, after)) = rest.split_first() {
        rest = after;
        match tag & 3 {
            0 => {
                let size = match usize::from(tag >> 2) {
                    short @ 0..60 => short,
                    long => number(&mut rest, long - 59)?,
                };
                let literal = rest.get(..size + 1).ok_or(DecodeError::Broken)?;
                out.extend_from_slice(literal);
                rest = &rest[size + 1..];
            }
            1 => {
                let offset = usize::from(tag >> 5) << 8 | number(&mut rest, 1)?;
                copy(&mut out, offset, usize::from(tag >> 2 & 7) + 4, length)?;
            }
            kind => {
                let offset = number(&mut rest, if kind == 2 { 2 } else { 4 })?;
                copy(&mut out, offset, usize::from(tag >> 2) + 1, length)?;
            }
        }
        if out.len() > length {
            return Err(DecodeError::Broken);
        }
    }
    if out.len() == length { Ok(out) } else { Err(DecodeError::Broken) }
}

/// A number of so many bytes, the lowest first.
fn number(rest: &mut &[u8], bytes: usize) -> Result<usize, DecodeError> {
    let (digits, after) = rest.split_at_checked(bytes).ok_or(DecodeError::Broken)?;
    *rest = after;
    Ok(digits.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

/// Appends `size` bytes from so far back; they may reach into what is appended.
fn copy(out: &mut Vec<u8>, offset: usize, size: usize, length: usize) -> Result<(), DecodeError> {
    let from = out.len().checked_sub(offset).filter(|_| offset > 0).ok_or(DecodeError::Broken)?;
    if out.len() + size > length {
        return Err(DecodeError::Broken);
    }
    for index in from..from + size {
        out.push(out[index]);
    }
    Ok(())
}

/// `data` in snappy's format, as literals only: nothing is gained, and little time is lost.
pub fn compress(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 16 + data.len() / LITERAL_MAX * 3);
    super::message::put_varint(&mut out, data.len() as u64);
    for piece in data.chunks(LITERAL_MAX) {
        let size = (piece.len() - 1) as u16;
        out.push(61 << 2);
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(piece);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_may_overlap() {
        // "ab", then eight bytes from two back.
        assert_eq!(decompress(&[10, 1 << 2, b'a', b'b', 4 << 2 | 1, 2], 100).unwrap(), b"ababababab");
        assert_eq!(decompress(&[3, 1 << 2, b'a', b'b', 2, 1, 0], 100).unwrap(), b"abb");
    }

    #[test]
    fn broken_blocks_are_refused() {
        for data in [&[][..], &[5, 0, b'a'], &[2, 1, 9], &[255, 255, 255, 255, 15], &[4, 0, b'a', 1, 0]] {
            assert!(decompress(data, 1000).is_err(), "{data:?}");
        }
        assert_eq!(decompress(&[0xe9, 7], 1000), Err(DecodeError::TooLong));
        let long: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
        assert_eq!(decompress(&compress(&long), 200_000).unwrap(), long);
    }
}
