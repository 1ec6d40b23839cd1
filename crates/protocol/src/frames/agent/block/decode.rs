//! Reads blocks. No bytes cause a panic, or more memory than the limits of a context.

use rrd::codec::varint::{take, unzigzag};
use rrd::time::{MICROS, Timestamp};

use super::{
    BlockError, BlockHead, BlockValue, CONTEXT_BYTES_MAX, KIND_DROPPED, KIND_FLOAT, KIND_SIGNED, KIND_TEXT,
    KIND_UNKNOWN, KIND_UNSIGNED, KIND_WHOLE, LastValues,
};

/// How an RRD is made if it does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrdDefinition<'a> {
    /// Its step in seconds.
    pub step: u64,
    /// How many seconds before its first reading it starts.
    pub starts_before: u64,
    /// The `DS:` and `RRA:` arguments of `rrdcreate(1)`.
    pub args: Vec<&'a str>,
}

/// Receives the content of a block. After an error, what it has received of the block is void.
pub trait BlockSink {
    /// A context begins: numbers of definitions and RRDs begin at 0 again.
    fn begin_context(&mut self);
    /// The next definition.
    fn definition(&mut self, definition: RrdDefinition<'_>);
    /// The next RRD: the number of its definition, the assignment it is polled for (0 = none), its name and how many values
    /// its readings have.
    fn rrd(&mut self, definition: u32, assignment: u64, name: &[u8], values: usize);
    /// The next reading, by the number of its RRD.
    fn reading(&mut self, rrd: u32, time: Timestamp, values: &[BlockValue<'_>]);
}

/// The context of the blocks read so far.
#[derive(Clone, Debug, Default)]
pub struct BlockReader {
    begun: bool,
    last: LastValues,
    definition_count: u64,
    /// Bytes of the context's names and definitions.
    context_bytes: usize,
}

type Result<T> = std::result::Result<T, BlockError>;

fn number(bytes: &mut &[u8], what: &'static str) -> Result<u64> {
    take(bytes).ok_or(BlockError::Content(what))
}

fn counted<'a>(bytes: &mut &'a [u8], what: &'static str) -> Result<&'a [u8]> {
    let count = usize::try_from(number(bytes, what)?).unwrap_or(usize::MAX);
    let (front, rest) = bytes.split_at_checked(count).ok_or(BlockError::Content(what))?;
    *bytes = rest;
    Ok(front)
}

impl BlockReader {
    /// Reads the body of a frame, which follows the blocks read so far.
    ///
    /// # Errors
    /// [`BlockError`]: the context is then unknown, and the session cannot go on.
    pub fn read(&mut self, body: &[u8], sink: &mut impl BlockSink) -> Result<()> {
        let head = BlockHead::parse(body)?;
        let plain = zstd::bulk::decompress(head.packed, head.plain_bytes)
            .ok()
            .filter(|plain| plain.len() == head.plain_bytes)
            .ok_or(BlockError::Compression)?;
        if head.begins_context {
            *self = BlockReader { begun: true, ..BlockReader::default() };
            sink.begin_context();
        } else if !self.begun {
            return Err(BlockError::Content("a first block without a context"));
        }
        self.read_content(&plain, sink)
    }

    /// Reads the content of a block of the context.
    pub(crate) fn read_content(&mut self, content: &[u8], sink: &mut impl BlockSink) -> Result<()> {
        let mut rest = content;
        for _ in 0..number(&mut rest, "a number of definitions")? {
            sink.definition(self.definition(&mut rest)?);
        }
        for _ in 0..number(&mut rest, "a number of RRDs")? {
            self.rrd(&mut rest, sink)?;
        }
        self.readings(rest, sink)
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        self.last.bytes() + self.context_bytes
    }

    fn take_room(&mut self, before: &[u8], after: &[u8]) -> Result<()> {
        // An empty definition takes memory, too.
        self.context_bytes += before.len() - after.len() + 32;
        if self.context_bytes > 2 * CONTEXT_BYTES_MAX {
            return Err(BlockError::Limit("bytes of names and definitions"));
        }
        Ok(())
    }

    fn definition<'a>(&mut self, rest: &mut &'a [u8]) -> Result<RrdDefinition<'a>> {
        let before = *rest;
        let step = number(rest, "a step")?;
        let starts_before = number(rest, "a start")?;
        let mut args = Vec::new();
        for _ in 0..number(rest, "a number of arguments")? {
            let arg = counted(rest, "an argument")?;
            args.push(std::str::from_utf8(arg).map_err(|_| BlockError::Content("an argument"))?);
        }
        self.take_room(before, rest)?;
        self.definition_count += 1;
        Ok(RrdDefinition { step, starts_before, args })
    }

    fn rrd(&mut self, rest: &mut &[u8], sink: &mut impl BlockSink) -> Result<()> {
        let before = *rest;
        let definition = number(rest, "a definition")?;
        if definition >= self.definition_count {
            return Err(BlockError::Content("a definition"));
        }
        let assignment = number(rest, "an assignment")?;
        let values = usize::try_from(number(rest, "a number of values")?).unwrap_or(usize::MAX);
        let name = counted(rest, "a name")?;
        self.take_room(before, rest)?;
        self.last.add(values).ok_or(BlockError::Limit("RRDs or values"))?;
        sink.rrd(definition as u32, assignment, name, values);
        Ok(())
    }

    fn readings(&mut self, mut rest: &[u8], sink: &mut impl BlockSink) -> Result<()> {
        let count = number(&mut rest, "a number of readings")?;
        let mut ids = counted(&mut rest, "the RRDs")?;
        let mut seconds = counted(&mut rest, "the seconds")?;
        let mut micros = counted(&mut rest, "the microseconds")?;
        let mut kinds = counted(&mut rest, "the kinds")?;
        let mut payload = rest;
        let (mut next_id, mut second) = (0i64, 0i64);
        let mut values = Vec::new();
        for _ in 0..count {
            let id = next_id.checked_add(unzigzag(number(&mut ids, "an RRD")?));
            let id = id.and_then(|id| u32::try_from(id).ok()).ok_or(BlockError::Content("an RRD"))?;
            next_id = i64::from(id) + 1;
            second = second.wrapping_add(unzigzag(number(&mut seconds, "a time")?));
            let fraction = number(&mut micros, "a time")?;
            if fraction >= u64::from(MICROS) {
                return Err(BlockError::Content("a time"));
            }
            let last = self.last.of(id).ok_or(BlockError::Content("an RRD"))?;
            let of_reading;
            (of_reading, kinds) = kinds.split_at_checked(last.len()).ok_or(BlockError::Content("a kind"))?;
            values.clear();
            for (&kind, last) in of_reading.iter().zip(last) {
                values.push(value(kind, &mut payload, last)?);
            }
            sink.reading(id, Timestamp::new(second, fraction as u32), &values);
        }
        let left = [ids, seconds, micros, kinds, payload];
        if left.iter().any(|column| !column.is_empty()) {
            return Err(BlockError::Content("bytes after the last reading"));
        }
        Ok(())
    }
}

fn value<'a>(kind: u8, payload: &mut &'a [u8], last: &mut u64) -> Result<BlockValue<'a>> {
    const WHAT: &str = "a value";
    let mut whole = |payload: &mut &'a [u8]| {
        *last = last.wrapping_add(unzigzag(number(payload, WHAT)?) as u64);
        Ok(*last)
    };
    Ok(match kind {
        KIND_UNKNOWN => BlockValue::Unknown,
        KIND_DROPPED => BlockValue::Dropped(number(payload, WHAT)?),
        KIND_UNSIGNED => BlockValue::Unsigned(whole(payload)?),
        KIND_SIGNED => BlockValue::Signed(whole(payload)? as i64),
        KIND_WHOLE => BlockValue::Float(whole(payload)? as i64 as f64),
        KIND_FLOAT => {
            *last ^= number(payload, WHAT)?.swap_bytes();
            BlockValue::Float(f64::from_bits(*last))
        }
        KIND_TEXT => BlockValue::Text(word(counted(payload, WHAT)?)?),
        _ => return Err(BlockError::Content("the kind of a value")),
    })
}

/// Texts stand between colons and spaces when they are written as readings.
fn word(text: &[u8]) -> Result<&[u8]> {
    match text.iter().all(|&byte| byte.is_ascii_graphic() && byte != b':') {
        true => Ok(text),
        false => Err(BlockError::Content("a text")),
    }
}
