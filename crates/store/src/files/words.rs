//! Accepted updates as bytes: what an RRD's buffer and a journal record hold.
//!
//! Each is the time (8 bytes of whole units, 4 of millionths), the length of the values (4), and the values
//! as they came (`value:value...`). All integers are little-endian. Times are parsed once, when the update
//! is accepted, so that `N` and relative times mean the same on replay.

use rrd::time::{MICROS, Timestamp};

/// Bytes before the values.
pub const HEAD_BYTES: usize = 16;

/// One accepted update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// When, in seconds.
    pub time: Timestamp,
    /// The text behind the time's colon.
    pub values: &'a [u8],
}

/// Appends one.
pub fn push(buffer: &mut Vec<u8>, word: Word<'_>) {
    buffer.extend_from_slice(&word.time.whole.to_le_bytes());
    buffer.extend_from_slice(&word.time.micros.to_le_bytes());
    buffer.extend_from_slice(&(word.values.len() as u32).to_le_bytes());
    buffer.extend_from_slice(word.values);
}

/// The updates in `buffer`, in order; ends early where the bytes make no sense (see [`is_sound`]).
pub fn iter(buffer: &[u8]) -> impl Iterator<Item = Word<'_>> {
    let mut rest = buffer;
    std::iter::from_fn(move || {
        let (word, behind) = first(rest)?;
        rest = behind;
        Some(word)
    })
}

/// True when `buffer` is a run of whole updates: checked once for bytes that come from a disk.
pub fn is_sound(buffer: &[u8]) -> bool {
    let mut rest = buffer;
    while let Some((_, behind)) = first(rest) {
        rest = behind;
    }
    rest.is_empty()
}

fn first(buffer: &[u8]) -> Option<(Word<'_>, &[u8])> {
    let (head, rest) = buffer.split_at_checked(HEAD_BYTES)?;
    let whole = i64::from_le_bytes(head[..8].try_into().ok()?);
    let micros = u32::from_le_bytes(head[8..12].try_into().ok()?);
    let length = u32::from_le_bytes(head[12..].try_into().ok()?) as usize;
    let (values, rest) = rest.split_at_checked(length)?;
    (micros < MICROS).then(|| (Word { time: Timestamp::new(whole, micros), values }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_comes_back_and_a_cut_is_noticed() {
        let words = [
            Word { time: Timestamp::new(-5, 999_999), values: b"1:U" },
            Word { time: Timestamp::whole(7), values: b"" },
        ];
        let mut buffer = Vec::new();
        words.iter().for_each(|&word| push(&mut buffer, word));
        assert_eq!(iter(&buffer).collect::<Vec<_>>(), words);
        assert!(is_sound(&buffer));
        for length in 1..buffer.len() {
            assert_eq!(is_sound(&buffer[..length]), length == HEAD_BYTES + 3, "{length}");
        }
    }
}
