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

impl Word<'_> {
    /// As a client says it: the shortest number of seconds and the values.
    pub fn text(&self) -> Vec<u8> {
        // A time is cut behind its microseconds when it is read, and a last 9 is what such a cut leaves.
        let cut = u32::from(self.time.micros % 10 == 9);
        let micros = i128::from(self.time.whole) * i128::from(MICROS) + i128::from(self.time.micros + cut);
        let (whole, rest) = (micros.div_euclid(MICROS.into()), micros.rem_euclid(MICROS.into()));
        let time = format!("{whole}.{rest:06}");
        let time = time.trim_end_matches('0').trim_end_matches('.');
        [time.as_bytes(), b":", self.values].concat()
    }
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

/// The same as [`rrd_file::apply::Loaded::apply`] takes them.
pub fn pending(buffer: &[u8]) -> impl Iterator<Item = (Timestamp, &[u8])> {
    iter(buffer).map(|word| (word.time, word.values))
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
    fn the_text_is_the_client_s() {
        let check = |whole, micros, want: &str| {
            let word = Word { time: Timestamp::new(whole, micros), values: b"1:U" };
            assert_eq!(word.text(), want.as_bytes());
        };
        check(1_000_000_010, 0, "1000000010:1:U");
        check(1_000_000_020, 500_000, "1000000020.5:1:U");
        check(1_000_000_020, 299_999, "1000000020.3:1:U");
        check(1_000_000_020, 999_999, "1000000021:1:U");
        check(0, 1, "0.000001:1:U");
    }

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
