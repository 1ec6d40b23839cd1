//! Writes blocks.

use rrd::codec::varint::{put, zigzag};
use rrd::time::Timestamp;

use super::super::super::{HEADER_BYTES, begin, finish};
use super::super::session::BLOCK;
use super::{
    BLOCK_PLAIN_BYTES_MAX, BlockValue, CONTEXT_BYTES_MAX, FLAG_BEGINS, KIND_DROPPED, KIND_FLOAT, KIND_SIGNED,
    KIND_TEXT, KIND_UNKNOWN, KIND_UNSIGNED, KIND_WHOLE, LastValues, OFFSET_CHECKSUM, OFFSET_CONTENT,
    WHOLE_MAX, checksum,
};

/// zstd's level: its default.
const ZSTD_LEVEL: i32 = 3;
/// From so many bytes on a block is full; the next reading still fits.
const FULL_BYTES: usize = BLOCK_PLAIN_BYTES_MAX / 2;

/// The block being filled, and its context.
#[derive(Clone, Debug, Default)]
pub struct BlockWriter {
    last: LastValues,
    /// Bytes of the context's names and definitions.
    context_bytes: usize,
    definition_count: u32,
    /// The next block does not begin a context.
    continues: bool,
    definitions: Column,
    rrds: Column,
    readings: u64,
    ids: Vec<u8>,
    seconds: Vec<u8>,
    micros: Vec<u8>,
    kinds: Vec<u8>,
    values: Vec<u8>,
    next_id: u32,
    second: i64,
    plain: Vec<u8>,
}

/// Entries, with their number.
#[derive(Clone, Debug, Default)]
struct Column {
    count: u64,
    bytes: Vec<u8>,
}

fn put_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

impl BlockWriter {
    /// Forgets all names and values: the next block begins a context. Nothing may wait to be written.
    pub fn begin_context(&mut self) {
        debug_assert!(self.is_empty(), "a block has one context");
        *self = BlockWriter::default();
    }

    /// True when a context begins with the block.
    pub fn begins_context(&self) -> bool {
        !self.continues
    }

    /// True when the block would have no readings.
    pub fn is_empty(&self) -> bool {
        self.readings == 0
    }

    /// True when the block should be written.
    pub fn is_full(&self) -> bool {
        self.bytes() >= FULL_BYTES
    }

    /// Bytes of the block so far, before compression.
    pub fn bytes(&self) -> usize {
        [
            &self.ids,
            &self.seconds,
            &self.micros,
            &self.kinds,
            &self.values,
            &self.definitions.bytes,
            &self.rrds.bytes,
        ]
        .iter()
        .map(|column| column.len())
        .sum()
    }

    /// Adds how RRDs are made; returns its number. `None` when the context is full: begin another.
    pub fn add_definition(&mut self, step: u64, starts_before: u64, args: &[String]) -> Option<u32> {
        let bytes = args.iter().map(|arg| arg.len() + 10).sum::<usize>() + 30;
        self.take_room(bytes)?;
        let out = &mut self.definitions.bytes;
        put(out, step);
        put(out, starts_before);
        put(out, args.len() as u64);
        args.iter().for_each(|arg| put_counted(out, arg.as_bytes()));
        self.definitions.count += 1;
        self.definition_count += 1;
        Some(self.definition_count - 1)
    }

    /// Adds an RRD whose readings have so many values; returns its number. `None` when the context is full: begin another.
    /// `assignment` is the one it is polled for, 0 without one.
    pub fn add_rrd(&mut self, definition: u32, assignment: u64, name: &[u8], values: usize) -> Option<u32> {
        debug_assert!(definition < self.definition_count, "a definition comes before its RRDs");
        self.take_room(name.len() + 30)?;
        self.last.add(values)?;
        let out = &mut self.rrds.bytes;
        put(out, u64::from(definition));
        put(out, assignment);
        put(out, values as u64);
        put_counted(out, name);
        self.rrds.count += 1;
        Some(self.last.rrds.len() as u32 - 1)
    }

    fn take_room(&mut self, bytes: usize) -> Option<()> {
        let all = self.context_bytes + bytes;
        let fits = all <= CONTEXT_BYTES_MAX && self.bytes() + bytes <= FULL_BYTES * 2 - (64 << 10);
        fits.then(|| self.context_bytes = all)
    }

    /// Appends a reading, with as many values as its RRD was added with.
    pub fn push<'v>(&mut self, rrd: u32, time: Timestamp, values: impl IntoIterator<Item = BlockValue<'v>>) {
        put(&mut self.ids, zigzag(i64::from(rrd) - i64::from(self.next_id)));
        self.next_id = rrd.wrapping_add(1);
        put(&mut self.seconds, zigzag(time.whole.wrapping_sub(self.second)));
        self.second = time.whole;
        put(&mut self.micros, u64::from(time.micros));
        let Some(last) = self.last.of(rrd) else { unreachable!("an RRD is added before it is fed") };
        let mut values = values.into_iter();
        for last in last {
            let value = values.next().unwrap_or(BlockValue::Unknown);
            self.kinds.push(push_value(&mut self.values, value, last));
        }
        self.readings += 1;
    }

    /// Appends the block as a frame, and starts the next one.
    ///
    /// # Errors
    /// When zstd fails, which it does only without memory.
    pub fn finish(&mut self, sequence: u64, out: &mut Vec<u8>) -> std::io::Result<()> {
        let packed = zstd::bulk::compress(self.content(), ZSTD_LEVEL)?;
        let plain_bytes = self.plain.len() as u32;
        let start = begin(out, BLOCK, 0);
        let body = start + HEADER_BYTES;
        out.extend_from_slice(&sequence.to_le_bytes());
        out.extend_from_slice(&plain_bytes.to_le_bytes());
        out.extend_from_slice(&[0; OFFSET_CONTENT - OFFSET_CHECKSUM - 1]);
        out.push(if self.continues { 0 } else { FLAG_BEGINS });
        out.extend_from_slice(&packed);
        let sum = checksum(&out[body..]);
        out[body + OFFSET_CHECKSUM..body + OFFSET_CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
        finish(out, start);
        self.clear();
        Ok(())
    }

    /// The content of the block.
    pub(crate) fn content(&mut self) -> &[u8] {
        let plain = &mut self.plain;
        plain.clear();
        for column in [&self.definitions, &self.rrds] {
            put(plain, column.count);
            plain.extend_from_slice(&column.bytes);
        }
        put(plain, self.readings);
        for column in [&self.ids, &self.seconds, &self.micros, &self.kinds] {
            put_counted(plain, column);
        }
        plain.extend_from_slice(&self.values);
        plain
    }

    fn clear(&mut self) {
        (self.definitions.count, self.rrds.count, self.readings) = (0, 0, 0);
        let columns = [&mut self.ids, &mut self.seconds, &mut self.micros, &mut self.kinds, &mut self.values];
        columns.into_iter().chain([&mut self.definitions.bytes, &mut self.rrds.bytes]).for_each(Vec::clear);
        (self.next_id, self.second, self.continues) = (0, 0, true);
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        self.last.bytes() + self.bytes() + self.plain.capacity()
    }
}

/// Appends a value; returns its kind.
fn push_value(out: &mut Vec<u8>, value: BlockValue<'_>, last: &mut u64) -> u8 {
    let mut whole = |number: u64| {
        put(out, zigzag(number.wrapping_sub(*last) as i64));
        *last = number;
    };
    match value {
        BlockValue::Unknown => KIND_UNKNOWN,
        BlockValue::Dropped(count) => {
            put(out, count);
            KIND_DROPPED
        }
        BlockValue::Unsigned(number) => {
            whole(number);
            KIND_UNSIGNED
        }
        BlockValue::Signed(number) => {
            whole(number as u64);
            KIND_SIGNED
        }
        BlockValue::Float(number) => {
            // Not -0, which is written otherwise.
            if number.abs() <= WHOLE_MAX && (number as i64 as f64).to_bits() == number.to_bits() {
                whole(number as i64 as u64);
                return KIND_WHOLE;
            }
            // The low bits of a float are often zero, and those of an integer short.
            put(out, (number.to_bits() ^ *last).swap_bytes());
            *last = number.to_bits();
            KIND_FLOAT
        }
        BlockValue::Text(text) => {
            put_counted(out, text);
            KIND_TEXT
        }
    }
}
