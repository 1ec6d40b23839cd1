//! One block: a checksummed header, then runs, each with a short head that is relative to the previous run.
//!
//! The first head of a block is complete, so a block can be read on its own. The checksum covers the
//! segment ([`SegmentSeal`]) and the block's offset, so a block at the wrong place is damage.

use super::{DS_COUNT_MAX, Fault, Key, run_rows_max};
use crate::column::codec::ColumnHint;
use rrd::codec::varint;

/// CRC-32C of [`SegmentSeal`], block offset and all that follows it.
pub(super) const CHECKSUM_AT: usize = 0;
/// Bytes of the body, `u32`.
pub(super) const BODY_BYTES_AT: usize = 4;
/// Runs in the body, `u32`.
pub(super) const ENTRY_COUNT_AT: usize = 8;
/// Bytes of a block before its body.
pub(super) const BLOCK_HEAD_BYTES: usize = 12;

/// Bits 0 and 1 of a head: the run's key, relative to the previous run.
const KEY_MASK: u8 = 0b11;
const KEY_SAME: u8 = 0;
const KEY_NEXT_SLOT: u8 = 1;
const KEY_LATER_SLOT: u8 = 2;
const KEY_WHOLE: u8 = 3;
/// The first row is not the expected one.
const FIRST_ROW_FOLLOWS: u8 = 1 << 2;
/// The row count differs from the previous run's.
const COUNT_FOLLOWS: u8 = 1 << 3;
/// Bits 4 to 7: bytes of the columns minus one; this value means that the length follows.
const LENGTH_FOLLOWS: u8 = 15;
const LENGTH_SHIFT: u32 = 4;

/// Key, rows and shape of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub key: Key,
    pub ds_count: usize,
    pub hint: ColumnHint,
    pub first_row: i64,
    pub count: usize,
}

impl Head {
    pub(super) fn end_row(&self) -> i64 {
        self.first_row + self.count as i64
    }

    fn same_source(&self, other: &Head) -> bool {
        (self.key.group, self.key.source, self.ds_count, self.hint)
            == (other.key.group, other.key.source, other.ds_count, other.hint)
    }

    /// The first row of the next run unless its head gives another.
    fn expected_row(&self, key: Key) -> i64 {
        if key == self.key { self.end_row() } else { self.first_row }
    }
}

/// Appends head and columns of a run after `previous`.
pub(super) fn put_entry(out: &mut Vec<u8>, previous: Option<&Head>, head: &Head, columns: &[u8]) {
    let related = previous.filter(|previous| previous.same_source(head));
    let expected_row = related.map_or(0, |previous| previous.expected_row(head.key));
    let distance =
        related.map_or(u64::MAX, |previous| u64::from(head.key.slot.wrapping_sub(previous.key.slot)));
    let key_bits = match distance {
        0 => KEY_SAME,
        1 => KEY_NEXT_SLOT,
        u64::MAX => KEY_WHOLE,
        _ => KEY_LATER_SLOT,
    };
    let same_count = related.is_some_and(|previous| previous.count == head.count);
    let length_bits = (columns.len() - 1).min(usize::from(LENGTH_FOLLOWS)) as u8;
    let flags = key_bits
        | if head.first_row == expected_row { 0 } else { FIRST_ROW_FOLLOWS }
        | if same_count { 0 } else { COUNT_FOLLOWS }
        | (length_bits << LENGTH_SHIFT);
    out.push(flags);
    match key_bits {
        KEY_WHOLE => {
            varint::put(out, u64::from(head.key.group));
            varint::put(out, u64::from(head.key.source));
            varint::put(out, u64::from(head.key.slot));
            varint::put(out, head.ds_count as u64);
            varint::put(out, u64::from(head.hint.units_per_second));
            varint::put(out, head.hint.step);
            varint::put(out, head.hint.pdp_per_row);
        }
        KEY_LATER_SLOT => varint::put(out, distance - 2),
        _ => {}
    }
    if head.first_row != expected_row {
        varint::put(out, varint::zigzag(head.first_row.wrapping_sub(expected_row)));
    }
    if !same_count {
        varint::put(out, head.count as u64);
    }
    if length_bits == LENGTH_FOLLOWS {
        varint::put(out, (columns.len() - 1 - usize::from(LENGTH_FOLLOWS)) as u64);
    }
    out.extend_from_slice(columns);
}

/// The first version whose blocks name their shard.
const VERSION_OWNED: u32 = 3;
/// Segments of a shard are counted from 1, far below.
const OWNER_SHIFT: u32 = 40;

/// What the checksum of each block says of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentSeal(u64);

impl SegmentSeal {
    /// That of segment `segment_id` of the shard with the tag `owner`, written by a version of the format.
    pub(super) fn new(version: u32, segment_id: u64, owner: u32) -> Self {
        let owner = if version >= VERSION_OWNED { owner } else { 0 };
        SegmentSeal(segment_id ^ u64::from(owner) << OWNER_SHIFT)
    }
}

/// Fills in the header of a finished block; `block` starts with [`BLOCK_HEAD_BYTES`] bytes for it.
pub(super) fn seal(block: &mut [u8], segment: SegmentSeal, offset: u64, entry_count: u32) {
    let body_bytes = (block.len() - BLOCK_HEAD_BYTES) as u32;
    block[BODY_BYTES_AT..][..4].copy_from_slice(&body_bytes.to_le_bytes());
    block[ENTRY_COUNT_AT..][..4].copy_from_slice(&entry_count.to_le_bytes());
    let checksum = checksum(block, segment, offset);
    block[CHECKSUM_AT..][..4].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum(block: &[u8], segment: SegmentSeal, offset: u64) -> u32 {
    let place = crc32c::crc32c_append(crc32c::crc32c(&segment.0.to_le_bytes()), &offset.to_le_bytes());
    crc32c::crc32c_append(place, &block[BODY_BYTES_AT..])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Checks a block as delimited by the directory and returns its runs.
pub(super) fn open(block: &[u8], segment: SegmentSeal, offset: u64) -> Result<Runs<'_>, Fault> {
    if block.len() < BLOCK_HEAD_BYTES {
        let want = format!("a block of {BLOCK_HEAD_BYTES} bytes or more");
        return Err(Fault::new(0, want, format!("{} bytes", block.len())));
    }
    let (stored, computed) = (word(block, CHECKSUM_AT), checksum(block, segment, offset));
    if stored != computed {
        return Err(Fault::new(0, format!("checksum {stored:08x}"), format!("{computed:08x}")));
    }
    let body_bytes = block.len() - BLOCK_HEAD_BYTES;
    if word(block, BODY_BYTES_AT) as usize != body_bytes {
        let got = word(block, BODY_BYTES_AT).to_string();
        return Err(Fault::new(BODY_BYTES_AT, format!("{body_bytes} bytes of body"), got));
    }
    let place = RunPlace { at: BLOCK_HEAD_BYTES, left: word(block, ENTRY_COUNT_AT), previous: None };
    Ok(Runs { block, place })
}

/// The runs of a checked block, in order.
pub(super) struct Runs<'a> {
    block: &'a [u8],
    place: RunPlace,
}

/// A place between two runs of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunPlace {
    at: usize,
    left: u32,
    previous: Option<Head>,
}

impl RunPlace {
    /// The key of the run before it.
    pub(super) fn previous_key(&self) -> Option<Key> {
        self.previous.map(|head| head.key)
    }
}

/// A run as stored in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    pub head: Head,
    /// Its columns, concatenated.
    pub columns: &'a [u8],
    /// Offset of the columns within the block.
    pub columns_at: usize,
}

impl<'a> Runs<'a> {
    /// The runs of a checked block from a place on that its runs had.
    pub(super) fn from(block: &'a [u8], place: RunPlace) -> Self {
        Runs { block, place }
    }

    /// The place before the next run.
    pub(super) fn place(&self) -> RunPlace {
        self.place
    }

    /// The next run; `Ok(None)` after the last one. Must not be called again after an error.
    pub(super) fn next(&mut self) -> Result<Option<Run<'a>>, Fault> {
        let RunPlace { at, left, previous } = self.place;
        if left == 0 {
            let extra = self.block.len() - at;
            return match extra {
                0 => Ok(None),
                _ => Err(Fault::new(at, "the end of the block", format!("{extra} bytes more"))),
            };
        }
        let mut rest = self.block.get(at..).unwrap_or_default();
        let (head, length) = take_head(&mut rest, previous.as_ref())
            .ok_or_else(|| Fault::new(at, "the head of a run", "impossible fields"))?;
        let columns_at = self.block.len() - rest.len();
        let columns = rest
            .get(..length)
            .ok_or_else(|| Fault::new(at, format!("{length} bytes of columns"), "the end of the block"))?;
        self.place = RunPlace { at: columns_at + length, left: left - 1, previous: Some(head) };
        Ok(Some(Run { head, columns, columns_at }))
    }
}

/// Reads a head and the length of its columns; `None` when no writer produces such a head.
fn take_head(rest: &mut &[u8], previous: Option<&Head>) -> Option<(Head, usize)> {
    let flags = take_byte(rest)?;
    let mut head = match (flags & KEY_MASK, previous) {
        (KEY_WHOLE, _) => take_whole_key(rest)?,
        (_, None) => return None,
        (KEY_SAME, Some(previous)) => *previous,
        (bits, Some(previous)) => {
            let distance = if bits == KEY_NEXT_SLOT { 1 } else { varint::take(rest)?.checked_add(2)? };
            let slot = u32::try_from(u64::from(previous.key.slot).checked_add(distance)?).ok()?;
            Head { key: Key { slot, ..previous.key }, ..*previous }
        }
    };
    let expected_row = match previous {
        Some(previous) if flags & KEY_MASK != KEY_WHOLE => previous.expected_row(head.key),
        _ => 0,
    };
    head.first_row = expected_row;
    if flags & FIRST_ROW_FOLLOWS != 0 {
        head.first_row = expected_row.checked_add(varint::unzigzag(varint::take(rest)?))?;
    }
    if flags & COUNT_FOLLOWS != 0 {
        head.count = usize::try_from(varint::take(rest)?).ok()?;
    }
    if head.count == 0 || head.count > run_rows_max(head.ds_count) {
        return None;
    }
    head.first_row.checked_add(head.count as i64)?;
    if let Some(previous) = previous {
        let before = (previous.key, previous.end_row());
        if (head.key, head.first_row) < before {
            return None;
        }
    }
    let short = flags >> LENGTH_SHIFT;
    let length = match short {
        LENGTH_FOLLOWS => varint::take(rest)?.checked_add(u64::from(LENGTH_FOLLOWS) + 1)?,
        _ => u64::from(short) + 1,
    };
    Some((head, usize::try_from(length).ok()?))
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (&byte, behind) = rest.split_first()?;
    *rest = behind;
    Some(byte)
}

fn take_whole_key(rest: &mut &[u8]) -> Option<Head> {
    let group = u32::try_from(varint::take(rest)?).ok()?;
    let source = u16::try_from(varint::take(rest)?).ok()?;
    let slot = u32::try_from(varint::take(rest)?).ok()?;
    let ds_count = usize::try_from(varint::take(rest)?).ok()?;
    let units_per_second = u32::try_from(varint::take(rest)?).ok()?;
    let hint = ColumnHint { units_per_second, step: varint::take(rest)?, pdp_per_row: varint::take(rest)? };
    if ds_count == 0 || ds_count > DS_COUNT_MAX {
        return None;
    }
    Some(Head { key: Key { group, source, slot }, ds_count, hint, first_row: 0, count: 0 })
}
