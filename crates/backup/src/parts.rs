//! Files as objects: one that is longer than a part is an object with the names of its parts.
//!
//! A part is small enough to be held in memory and to be sent again, and large enough that a request costs little of it.

use crate::objects::{ObjectError, Objects};
use crate::seal::SealError;

/// The longest part.
pub const PART_BYTES: u64 = 8 << 20;

/// A file up to this length is fetched whole: with less of it, a request would be saved by none.
pub const SMALL_BYTES: u64 = 64 << 10;

/// How many parts a file has.
pub fn count(bytes: u64) -> u64 {
    bytes.div_ceil(PART_BYTES).max(1)
}

/// Where a part is in its file: offset and length.
pub fn range(bytes: u64, part: u64) -> (u64, u64) {
    let from = part * PART_BYTES;
    (from, PART_BYTES.min(bytes - from.min(bytes)))
}

/// The content of the object with the names of parts.
pub fn encode(names: &[String]) -> Vec<u8> {
    (names.join("\n") + "\n").into_bytes()
}

/// The names of the parts of a file of so many bytes.
///
/// # Errors
/// When the object with the names is missing or damaged, or the server fails.
pub async fn names(objects: &Objects, object: &str, bytes: u64) -> Result<Vec<String>, ObjectError> {
    if count(bytes) == 1 {
        return Ok(vec![object.to_string()]);
    }
    let plain = objects.get(object).await?;
    let names: Vec<String> = String::from_utf8_lossy(&plain).lines().map(str::to_string).collect();
    match names.len() as u64 == count(bytes) {
        true => Ok(names),
        false => Err(ObjectError::Bad(object.to_string(), SealError::Foreign)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_file() {
        for bytes in [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 5 * PART_BYTES + 7] {
            let ranges: Vec<_> = (0..count(bytes)).map(|part| range(bytes, part)).collect();
            let end = ranges.iter().fold(0, |at, (from, length)| {
                assert_eq!(at, *from);
                at + length
            });
            assert_eq!(end, bytes);
        }
    }
}
