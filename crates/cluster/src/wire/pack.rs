//! Large messages are compressed: rows and names shrink by half and more, and the network between nodes is slower than zstd.

use store::transfer::{self, Cursor, DecodeError, varint};

use super::MESSAGE_BYTES_MAX;

/// Messages below this are sent as they are: batches of updates are, which cost CPU on every update. Guessed.
const PACKED_FROM_BYTES: usize = 256 << 10;
/// zstd's quickest ordinary level.
const ZSTD_LEVEL: i32 = 1;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// A message as it is sent: compressed if that is worth it.
pub(super) fn pack(plain: Vec<u8>) -> Vec<u8> {
    if plain.len() >= PACKED_FROM_BYTES
        && let Ok(packed) = zstd::bulk::compress(&plain, ZSTD_LEVEL)
        && packed.len() < plain.len()
    {
        let mut out = Vec::with_capacity(packed.len() + 8);
        out.push(ZSTD);
        varint::put(&mut out, plain.len() as u64);
        out.extend_from_slice(&packed);
        return out;
    }
    let mut out = plain;
    out.insert(0, PLAIN);
    out
}

/// The message that [`pack`] packed.
///
/// # Errors
/// When it is malformed, or longer than [`MESSAGE_BYTES_MAX`].
pub(super) fn unpack(message: &[u8]) -> Result<std::borrow::Cow<'_, [u8]>, DecodeError> {
    let mut cursor = Cursor::new(message);
    let bad = cursor.bad("a packed message");
    match cursor.byte(bad.expected)? {
        PLAIN => Ok(cursor.take_rest().into()),
        ZSTD => {
            let length: usize = cursor.number("the length of a message")?;
            if length > MESSAGE_BYTES_MAX {
                return Err(bad);
            }
            transfer::unpack(cursor.take_rest(), length).map(Into::into).ok_or(bad)
        }
        _ => Err(bad),
    }
}
