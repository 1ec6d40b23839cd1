//! The body of an update record: many updates as compressed columns, in order of arrival.
//!
//! `docs/format/log.md` describes the bytes. Ids, times and microseconds are run-length coded differences;
//! values are the clients' own text, one nibble per character. Updates are decoded in order, with any text
//! restored exactly; no input makes the decoder panic or allocate more than a few times its length.
//!
//! Cost (`examples/log_body.rs`, one core of an AMD EPYC, ids in order, one time per round): W1 text
//! ("123.45") 3.5 bytes, 7.5 ns per push and 11 ns per decode; W2 text ("123.45:2050006150") 9.2 bytes, 15
//! and 30 ns.

use rrd::time::{MICROS, Timestamp};

use crate::codec::{Cursor, DecodeError};
use rrd::codec::varint;

/// Nibbles with a special meaning; 0 to 9 are the digits. Colon, minus and full stop are the low halves of
/// their ASCII codes, as the digits are, so that eight characters are packed in a few operations.
mod nibble {
    /// Separates the values of data sources.
    pub const COLON: u8 = 0xa;
    /// `e` of an exponent.
    pub const EXPONENT: u8 = 0xb;
    /// An index into [`super::ESCAPED`] follows, or 15 and a byte, low half first.
    pub const ESCAPE: u8 = 0xc;
    /// A minus.
    pub const MINUS: u8 = 0xd;
    /// A full stop.
    pub const FULL_STOP: u8 = 0xe;
    /// The end of an update.
    pub const END: u8 = 0xf;
}

/// Characters of two nibbles: an escape and the index here. `U` is RRDtool's unknown; the others occur in
/// numbers as `printf` writes them.
pub(super) const ESCAPED: [u8; 7] = *b"U+ENnai";
/// After an escape: a whole byte follows in two nibbles.
const ESCAPED_BYTE: u8 = 0xf;

/// A column of integers as differences from the expected value, with runs of zeros combined.
#[derive(Debug, Default)]
struct DeltaColumn {
    bytes: Vec<u8>,
    run: u64,
}

impl DeltaColumn {
    #[inline]
    fn push(&mut self, delta: i64) {
        if delta == 0 {
            self.run += 1;
        } else {
            self.end_run();
            self.put(1, varint::zigzag(delta));
        }
    }

    fn end_run(&mut self) {
        if self.run > 0 {
            self.put(0, self.run - 1);
            self.run = 0;
        }
    }

    /// A varint whose lowest bit is `tag`: the length of a run minus one, or a zigzag-coded difference.
    #[inline]
    fn put(&mut self, tag: u8, value: u64) {
        let low = (value as u8 & 0x3f) << 1 | tag;
        if value < 0x40 {
            self.bytes.push(low);
        } else {
            self.bytes.push(low | 0x80);
            varint::put(&mut self.bytes, value >> 6);
        }
    }

    /// Appends the length-prefixed column and empties it.
    fn finish(&mut self, out: &mut Vec<u8>) {
        self.end_run();
        varint::put(out, self.bytes.len() as u64);
        out.append(&mut self.bytes);
    }
}

/// Reads a [`DeltaColumn`].
struct Deltas<'a> {
    cursor: Cursor<'a>,
    /// Where the column starts in the body.
    base: usize,
    run: u64,
}

impl<'a> Deltas<'a> {
    fn take(body: &mut Cursor<'a>, expected: &'static str) -> Result<Self, DecodeError> {
        let bytes = body.counted_bytes(expected)?;
        Ok(Deltas { cursor: Cursor::new(bytes), base: body.offset() - bytes.len(), run: 0 })
    }

    #[inline]
    fn next(&mut self) -> Result<i64, DecodeError> {
        if self.run > 0 {
            self.run -= 1;
            return Ok(0);
        }
        self.next_token().map_err(|error| self.in_body(error))
    }

    fn next_token(&mut self) -> Result<i64, DecodeError> {
        const TOKEN: &str = "a run or a difference";
        let low = self.cursor.byte(TOKEN)?;
        let mut value = u64::from((low & 0x7f) >> 1);
        if low & 0x80 != 0 {
            let error = self.cursor.bad("a number of 64 bits, in its shortest form");
            let high = self.cursor.varint(TOKEN)?;
            if high == 0 || high >> 58 != 0 {
                return Err(error);
            }
            value |= high << 6;
        }
        if low & 1 == 1 {
            return if value == 0 {
                Err(self.cursor.bad("a difference that is not zero"))
            } else {
                Ok(varint::unzigzag(value))
            };
        }
        self.run = value;
        Ok(0)
    }

    fn end(&self) -> Result<(), DecodeError> {
        let all_used = self.run == 0 && self.cursor.left() == 0;
        if all_used { Ok(()) } else { Err(self.in_body(self.cursor.bad("the end of the column"))) }
    }

    fn in_body(&self, error: DecodeError) -> DecodeError {
        DecodeError { offset: self.base + error.offset, ..error }
    }
}

/// Collects updates for one record. Reuse it: nothing is allocated once its columns have grown.
#[derive(Debug)]
pub struct UpdatesBody {
    count: u64,
    ids: DeltaColumn,
    times: DeltaColumn,
    micros: DeltaColumn,
    values: Vec<u8>,
    /// Nibbles not yet in `values`: fewer than eight, the first lowest.
    pending: u64,
    pending_bits: u32,
    last_id: u32,
    last_time: Timestamp,
}

impl Default for UpdatesBody {
    /// An empty body: the first id is encoded as the distance from 0.
    fn default() -> Self {
        UpdatesBody {
            count: 0,
            ids: DeltaColumn::default(),
            times: DeltaColumn::default(),
            micros: DeltaColumn::default(),
            values: Vec::new(),
            pending: 0,
            pending_bits: 0,
            last_id: u32::MAX,
            last_time: Timestamp::default(),
        }
    }
}

impl UpdatesBody {
    /// Updates so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True before the first update.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// About how many bytes [`UpdatesBody::finish`] will append.
    pub fn bytes(&self) -> usize {
        self.ids.bytes.len() + self.times.bytes.len() + self.micros.bytes.len() + self.values.len() + 32
    }

    /// Adds an update. `time` is in seconds; `values` is the text after the time's colon, verbatim.
    #[inline]
    pub fn push(&mut self, rrd_id: u32, time: Timestamp, values: &[u8]) {
        self.count += 1;
        self.ids.push(i64::from(rrd_id.wrapping_sub(self.last_id.wrapping_add(1)) as i32));
        self.last_id = rrd_id;
        self.times.push(time.whole.wrapping_sub(self.last_time.whole));
        self.micros.push(i64::from(time.micros) - i64::from(self.last_time.micros));
        self.last_time = time;
        let mut rest = values;
        while let Some((eight, behind)) = rest.split_first_chunk::<8>() {
            self.push_characters(u64::from_le_bytes(*eight), 8);
            rest = behind;
        }
        if let Some((last, padded)) = load_short(rest) {
            self.push_characters(padded, last);
        }
        self.push_nibbles(u64::from(nibble::END), 1);
    }

    /// Adds the first `count` characters of `text`, the first one lowest; the rest must be `0`s.
    #[inline]
    fn push_characters(&mut self, text: u64, count: u32) {
        if is_plain(text) {
            self.push_nibbles(pack(text), count);
        } else {
            self.push_odd_characters(text, count);
        }
    }

    #[cold]
    fn push_odd_characters(&mut self, text: u64, count: u32) {
        for &byte in &text.to_le_bytes()[..count as usize] {
            let code = match byte {
                b'0'..=b':' | b'-' | b'.' => {
                    self.push_nibbles(u64::from(byte & 0xf), 1);
                    continue;
                }
                b'e' => {
                    self.push_nibbles(u64::from(nibble::EXPONENT), 1);
                    continue;
                }
                byte => ESCAPED.iter().position(|&escaped| escaped == byte),
            };
            self.push_nibbles(u64::from(nibble::ESCAPE), 1);
            match code {
                Some(code) => self.push_nibbles(code as u64, 1),
                None => {
                    self.push_nibbles(u64::from(ESCAPED_BYTE), 1);
                    self.push_nibbles(u64::from(byte), 2);
                }
            }
        }
    }

    /// Adds `count` nibbles, at most eight; further nibbles in `nibbles` are ignored.
    #[inline]
    fn push_nibbles(&mut self, nibbles: u64, count: u32) {
        let bits = count * 4;
        self.pending |= (nibbles & ((1 << bits) - 1)) << self.pending_bits;
        self.pending_bits += bits;
        if self.pending_bits >= 32 {
            self.values.extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.pending_bits -= 32;
        }
    }

    /// Appends the body to `out` and starts an empty one.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        varint::put(out, self.count);
        self.ids.finish(out);
        self.times.finish(out);
        self.micros.finish(out);
        let pending_bytes = self.pending_bits.div_ceil(8) as usize;
        self.values.extend_from_slice(&self.pending.to_le_bytes()[..pending_bytes]);
        out.append(&mut self.values);
        (self.pending, self.pending_bits, self.count) = (0, 0, 0);
        (self.last_id, self.last_time) = (u32::MAX, Timestamp::default());
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// True when each of eight characters is a digit, `:`, `-` or `.`, so that its low half is its nibble.
#[inline]
fn is_plain(text: u64) -> bool {
    // With all top bits clear, no sum carries into its neighbour; a set one fails the test by itself.
    let low = text & !TOPS;
    let above_colon = low + (0x7f - 0x3a) * ONES;
    let from_minus_on = low + (0x80 - 0x2d) * ONES;
    let not_slash = (low ^ (0x2f * ONES)) + 0x7f * ONES;
    (text | above_colon | !from_minus_on | !not_slash) & TOPS == 0
}

/// The low halves of eight bytes, the first byte lowest.
#[inline]
fn pack(text: u64) -> u64 {
    let x = text & (0x0f * ONES);
    let x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0xffff_ffff
}

/// The inverse of [`pack`]: eight nibbles, each in a byte.
#[inline]
fn unpack(nibbles: u32) -> u64 {
    let x = u64::from(nibbles);
    let x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    let x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    (x | x << 4) & (0x0f * ONES)
}

/// One to seven bytes as a word, padded with `0`s. Avoids a loop, because the length changes with every
/// value.
#[inline]
fn load_short(bytes: &[u8]) -> Option<(u32, u64)> {
    let count = bytes.len();
    let word = match count {
        0 => return None,
        1..=3 => {
            // First, middle and last byte: with one or two bytes, the same byte is written to the same
            // position twice.
            u64::from(bytes[0])
                | u64::from(bytes[count / 2]) << (8 * (count / 2))
                | u64::from(bytes[count - 1]) << (8 * (count - 1))
        }
        _ => {
            let (first, _) = bytes.split_first_chunk::<4>()?;
            let (_, last) = bytes.split_last_chunk::<4>()?;
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (count - 4))
        }
    };
    Some((count as u32, word | (0x30 * ONES) << (8 * count)))
}

/// How many updates a body claims to have.
///
/// # Errors
/// When the body does not start with a count.
pub fn count(body: &[u8]) -> Result<u64, DecodeError> {
    Cursor::new(body).varint("the number of updates")
}

/// Visits the updates of a body in the order they were pushed: id, time in seconds, text of the values.
///
/// # Errors
/// At the first malformed byte, with its offset in the body; updates visited before that are valid. A body
/// that passed its checksum never fails.
/// visited before stands. A body that passed its checksum never gives one.
pub fn decode(
    body: &[u8],
    visit: &mut (impl FnMut(u32, Timestamp, &[u8]) + ?Sized),
) -> Result<(), DecodeError> {
    let mut cursor = Cursor::new(body);
    let count: u64 = cursor.varint("the number of updates")?;
    let mut ids = Deltas::take(&mut cursor, "the ids")?;
    let mut times = Deltas::take(&mut cursor, "the times")?;
    let mut micros = Deltas::take(&mut cursor, "the microseconds")?;
    let base = cursor.offset();
    let mut values = Nibbles { bytes: cursor.take_rest(), at: 0 };
    // Each update ends in a nibble, so a count cannot exceed the nibbles there are.
    if count > values.left() as u64 {
        return Err(DecodeError { offset: 0, expected: "no more updates than there are values" });
    }
    let (mut id, mut whole, mut micro) = (u32::MAX, 0i64, 0i64);
    let mut text = Vec::with_capacity(64);
    for _ in 0..count {
        id = id.wrapping_add(1).wrapping_add(ids.next()? as u32);
        whole = whole.wrapping_add(times.next()?);
        micro = micro.wrapping_add(micros.next()?);
        if !(0..i64::from(MICROS)).contains(&micro) {
            return Err(micros.in_body(micros.cursor.bad("microseconds below a million")));
        }
        text.clear();
        let in_body = |error: DecodeError| DecodeError { offset: base + error.offset, ..error };
        values.take_text(&mut text).map_err(in_body)?;
        visit(id, Timestamp::new(whole, micro as u32), &text);
    }
    ids.end()?;
    times.end()?;
    micros.end()?;
    let padding_is_zero = values.left() == 0 || (values.left() == 1 && values.next() == Some(0));
    let padding = DecodeError { offset: base + values.at / 2, expected: "the end" };
    if padding_is_zero { Ok(()) } else { Err(padding) }
}

/// Visits the updates of one RRD: time in seconds and text of the values. The first `skipped` updates of the body, of
/// any RRD, are skipped. A body without one of it costs a look at its ids.
///
/// # Errors
/// As [`decode`].
pub fn decode_of(
    body: &[u8],
    rrd_id: u32,
    skipped: usize,
    visit: &mut dyn FnMut(Timestamp, &[u8]),
) -> Result<(), DecodeError> {
    if !has_update_of(body, rrd_id)? {
        return Ok(());
    }
    let mut index = 0;
    decode(body, &mut |id, time, values: &[u8]| {
        if id == rrd_id && index >= skipped {
            visit(time, values);
        }
        index += 1;
    })
}

fn has_update_of(body: &[u8], rrd_id: u32) -> Result<bool, DecodeError> {
    let mut cursor = Cursor::new(body);
    let count: u64 = cursor.varint("the number of updates")?;
    let mut ids = Deltas::take(&mut cursor, "the ids")?;
    let mut id = u32::MAX;
    for _ in 0..count {
        id = id.wrapping_add(1).wrapping_add(ids.next()? as u32);
        if id == rrd_id {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A stream of nibbles, low half first.
struct Nibbles<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Nibbles<'_> {
    fn left(&self) -> usize {
        self.bytes.len() * 2 - self.at
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at / 2)?;
        let nibble = if self.at.is_multiple_of(2) { byte & 0xf } else { byte >> 4 };
        self.at += 1;
        Some(nibble)
    }

    fn need(&mut self, expected: &'static str) -> Result<u8, DecodeError> {
        let error = DecodeError { offset: self.at / 2, expected };
        self.next().ok_or(error)
    }

    /// The next eight nibbles; those after the last one read as ends.
    #[inline]
    fn peek(&self) -> u32 {
        let rest = &self.bytes[(self.at / 2).min(self.bytes.len())..];
        let word = match rest.first_chunk::<8>() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => {
                let mut eight = [0xff; 8];
                eight[..rest.len()].copy_from_slice(rest);
                u64::from_le_bytes(eight)
            }
        };
        (word >> (4 * (self.at % 2))) as u32
    }

    /// Appends the text of one update to `text`.
    #[inline]
    fn take_text(&mut self, text: &mut Vec<u8>) -> Result<(), DecodeError> {
        loop {
            let nibbles = unpack(self.peek());
            let plain = plain_count(nibbles);
            text.extend_from_slice(&ascii(nibbles).to_le_bytes());
            text.truncate(text.len() - (8 - plain));
            self.at += plain;
            if plain < 8 && self.take_special(text)? {
                return Ok(());
            }
        }
    }

    /// Consumes an exponent, an escape or an end; true for the end.
    #[inline]
    fn take_special(&mut self, text: &mut Vec<u8>) -> Result<bool, DecodeError> {
        match self.need("the end of an update")? {
            nibble::END => Ok(true),
            nibble::EXPONENT => {
                text.push(b'e');
                Ok(false)
            }
            _ => self.take_escaped(text).map(|()| false),
        }
    }

    #[cold]
    fn take_escaped(&mut self, text: &mut Vec<u8>) -> Result<(), DecodeError> {
        const ESCAPE: &str = "an escaped character";
        let code = self.need(ESCAPE)?;
        let byte = match ESCAPED.get(usize::from(code)) {
            Some(&byte) => byte,
            None if code == ESCAPED_BYTE => self.need(ESCAPE)? | self.need(ESCAPE)? << 4,
            None => return Err(DecodeError { offset: (self.at - 1) / 2, expected: ESCAPE }),
        };
        text.push(byte);
        Ok(())
    }
}

/// How many of eight nibbles, one per byte, come before the first special one.
#[inline]
fn plain_count(nibbles: u64) -> usize {
    let differs_from = |code: u8| (nibbles ^ (u64::from(code) * ONES)) + 0x7f * ONES;
    let plain =
        differs_from(nibble::EXPONENT) & differs_from(nibble::ESCAPE) & differs_from(nibble::END) & TOPS;
    ((plain ^ TOPS).trailing_zeros() / 8) as usize
}

/// The characters of eight nibbles, one per byte: plus 0x30, or 0x20 from [`nibble::MINUS`] on.
#[inline]
fn ascii(nibbles: u64) -> u64 {
    let from_minus_on = (nibbles + (0x80 - u64::from(nibble::MINUS)) * ONES) & TOPS;
    nibbles + 0x30 * ONES - (from_minus_on >> 3)
}

const _: () = assert!(
    nibble::COLON == b':' & 0xf && nibble::MINUS == b'-' & 0xf && nibble::FULL_STOP == b'.' & 0xf,
    "what is_plain and ascii count on"
);

#[cfg(test)]
mod tests;
