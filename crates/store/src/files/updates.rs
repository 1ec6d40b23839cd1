//! Accepted updates as bytes: the content of an RRD's buffer and of a journal record.
//!
//! Each is the time (8 bytes of whole seconds, 4 of microseconds), the length of the values (4), and the
//! values as received (`value:value...`). All integers are little-endian. Times are parsed once, when the
//! update is accepted, so that `N` and relative times mean the same in replay.

use rrd::time::{MICROS, Timestamp};

/// Bytes before the values.
pub const HEAD_BYTES: usize = 16;

/// One accepted update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingUpdate<'a> {
    /// Its time.
    pub time: Timestamp,
    /// The text after the time's colon.
    pub values: &'a [u8],
}

impl PendingUpdate<'_> {
    /// The update as a client would send it: the shortest number of seconds, and the values.
    pub fn text(&self) -> Vec<u8> {
        // Reading cuts a time after its microseconds; a final 9 is what such a cut leaves.
        let cut = u32::from(self.time.micros % 10 == 9);
        let micros = i128::from(self.time.whole) * i128::from(MICROS) + i128::from(self.time.micros + cut);
        let (whole, rest) = (micros.div_euclid(MICROS.into()), micros.rem_euclid(MICROS.into()));
        let time = format!("{whole}.{rest:06}");
        let time = time.trim_end_matches('0').trim_end_matches('.');
        [time.as_bytes(), b":", self.values].concat()
    }
}

/// Appends an update.
pub fn push(buffer: &mut Vec<u8>, update: PendingUpdate<'_>) {
    buffer.extend_from_slice(&update.time.whole.to_le_bytes());
    buffer.extend_from_slice(&update.time.micros.to_le_bytes());
    buffer.extend_from_slice(&(update.values.len() as u32).to_le_bytes());
    buffer.extend_from_slice(update.values);
}

/// Iterates over the updates in `buffer`; ends early at invalid bytes (see [`is_sound`]).
pub fn iter(buffer: &[u8]) -> impl Iterator<Item = PendingUpdate<'_>> {
    let mut rest = buffer;
    std::iter::from_fn(move || {
        let (update, behind) = first(rest)?;
        rest = behind;
        Some(update)
    })
}

/// The updates in the form that [`rrd_file::apply::Loaded::apply`] takes.
pub fn pending(buffer: &[u8]) -> impl Iterator<Item = (Timestamp, &[u8])> {
    iter(buffer).map(|update| (update.time, update.values))
}

/// True when `buffer` consists of whole updates; checked once for bytes from disk.
pub fn is_sound(buffer: &[u8]) -> bool {
    let mut rest = buffer;
    while let Some((_, behind)) = first(rest) {
        rest = behind;
    }
    rest.is_empty()
}

fn first(buffer: &[u8]) -> Option<(PendingUpdate<'_>, &[u8])> {
    let (head, rest) = buffer.split_at_checked(HEAD_BYTES)?;
    let whole = i64::from_le_bytes(head[..8].try_into().ok()?);
    let micros = u32::from_le_bytes(head[8..12].try_into().ok()?);
    let length = u32::from_le_bytes(head[12..].try_into().ok()?) as usize;
    let (values, rest) = rest.split_at_checked(length)?;
    (micros < MICROS).then(|| (PendingUpdate { time: Timestamp::new(whole, micros), values }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_a_client_would_send() {
        let check = |whole, micros, want: &str| {
            let update = PendingUpdate { time: Timestamp::new(whole, micros), values: b"1:U" };
            assert_eq!(update.text(), want.as_bytes());
        };
        check(1_000_000_010, 0, "1000000010:1:U");
        check(1_000_000_020, 500_000, "1000000020.5:1:U");
        check(1_000_000_020, 299_999, "1000000020.3:1:U");
        check(1_000_000_020, 999_999, "1000000021:1:U");
        check(0, 1, "0.000001:1:U");
    }

    #[test]
    fn updates_round_trip_and_truncation_is_detected() {
        let updates = [
            PendingUpdate { time: Timestamp::new(-5, 999_999), values: b"1:U" },
            PendingUpdate { time: Timestamp::whole(7), values: b"" },
        ];
        let mut buffer = Vec::new();
        updates.iter().for_each(|&update| push(&mut buffer, update));
        assert_eq!(iter(&buffer).collect::<Vec<_>>(), updates);
        assert!(is_sound(&buffer));
        for length in 1..buffer.len() {
            assert_eq!(is_sound(&buffer[..length]), length == HEAD_BYTES + 3, "{length}");
        }
    }
}
