//! The decompressed content of a checkpoint's frames: RRDs with their definitions and heads, and the groups.
//!
//! Names, definitions and heads are borrowed from the frame's bytes; only seasons and open rows, which few
//! RRDs have, are copied.

use rrd::definition::{Cf, Definition};
use rrd::live::{HeadShape, Season};

use crate::catalogue::RrdId;
use crate::group::{ArchiveGeometry, Geometry};
use crate::log::catalogue::decode_definition;
use crate::streams::StreamPosition;

/// A definition shared by RRDs of one page.
#[derive(Debug)]
pub struct PageDefinition<'a> {
    /// The definition.
    pub definition: Definition,
    /// Its encoding ([`crate::log::catalogue::encode_definition`]).
    pub key: &'a [u8],
    head_bytes: usize,
}

/// One RRD of a checkpoint.
#[derive(Debug)]
pub struct LoadedRrd<'a> {
    /// Its id.
    pub id: RrdId,
    /// Its name.
    pub name: &'a [u8],
    /// Its definition.
    pub definition: &'a PageDefinition<'a>,
    /// The index of the definition in its page.
    pub definition_index: usize,
    /// The number of its group.
    pub group: u32,
    /// The words of its head, little-endian.
    pub head: &'a [u8],
    /// Its seasons; most RRDs have none.
    pub seasons: Vec<Season>,
    /// Its open rows, oldest first.
    pub open: Vec<LoadedRows>,
}

impl LoadedRrd<'_> {
    /// The words of its head.
    pub fn head_words(&self) -> Vec<u64> {
        bytemuck::pod_collect_to_vec(self.head)
    }
}

/// Consecutive open rows of one source.
#[derive(Debug)]
pub struct LoadedRows {
    /// Their source within the group.
    pub source: u16,
    /// Number of the first row.
    pub first_row: i64,
    /// Rows.
    pub count: u64,
    /// The values of one row if all rows are equal, else of all rows, row-major.
    pub values: Vec<f64>,
}

/// Receives the content of a checkpoint.
pub trait Loader {
    /// The number of pages; called first, if the number is known.
    fn page_count(&mut self, _count: usize) {}
    /// A group; groups come in the order of their numbers.
    fn group(&mut self, geometry: Geometry);
    /// How far a stream has been applied.
    fn stream(&mut self, _name: &[u8], _position: StreamPosition) {}
    /// The start of a page, with the definitions of its RRDs.
    fn page(&mut self, definitions: &[PageDefinition<'_>]);
    /// An RRD of the page.
    fn rrd(&mut self, rrd: LoadedRrd<'_>);
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes(4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes(8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
    }

    fn doubles(&mut self, count: usize) -> Option<Vec<f64>> {
        Some(bytemuck::pod_collect_to_vec(self.bytes(count.checked_mul(8)?)?))
    }
}

/// In the word of an archive's function: the archive does not share its rows.
pub const APART: u32 = 1 << 31;

/// Decodes the body of an end frame; `None` when it is truncated.
pub(super) fn decode_end(body: &[u8], loader: &mut dyn Loader) -> Option<()> {
    let mut cursor = Cursor(body);
    for _ in 0..cursor.u32()? {
        let units_per_second = cursor.u32()?;
        let step = cursor.u64()?;
        let ds_count = cursor.u32()? as usize;
        let count = cursor.u32()?;
        let archives: Option<Vec<_>> = (0..count)
            .map(|_| {
                let word = cursor.u32()?;
                let cf = *Cf::ALL.get((word & !APART) as usize)?;
                let (pdp_per_row, row_count) = (cursor.u64()?, cursor.u64()?);
                Some(ArchiveGeometry { cf, pdp_per_row, row_count, is_apart: word & APART != 0 })
            })
            .collect();
        loader.group(Geometry { units_per_second, step, ds_count, archives: archives? });
    }
    // Earlier builds end here.
    let count = if cursor.0.is_empty() { 0 } else { cursor.u32()? };
    for _ in 0..count {
        let length = cursor.u32()? as usize;
        let name = cursor.bytes(length)?;
        loader.stream(name, StreamPosition { epoch: cursor.u64()?, sequence: cursor.u64()? });
    }
    cursor.0.is_empty().then_some(())
}

/// Decodes the body of a page; `None` when it is truncated.
pub(super) fn decode_page(body: &[u8], loader: &mut dyn Loader) -> Option<()> {
    let mut cursor = Cursor(body);
    let mut definitions = Vec::new();
    for _ in 0..cursor.u32()? {
        let length = cursor.u32()? as usize;
        let key = cursor.bytes(length)?;
        let definition = decode_definition(key).ok()?;
        let head_bytes = HeadShape::of(&definition).word_count().checked_mul(8)?;
        definitions.push(PageDefinition { definition, key, head_bytes });
    }
    loader.page(&definitions);
    for _ in 0..cursor.u32()? {
        let rrd = take_rrd(&mut cursor, &definitions)?;
        loader.rrd(rrd);
    }
    cursor.0.is_empty().then_some(())
}

fn take_rrd<'a>(cursor: &mut Cursor<'a>, definitions: &'a [PageDefinition<'a>]) -> Option<LoadedRrd<'a>> {
    let id = cursor.u32()?;
    let definition_index = cursor.u32()? as usize;
    let definition = definitions.get(definition_index)?;
    let group = cursor.u32()?;
    let name_length = cursor.u32()? as usize;
    let name = cursor.bytes(name_length)?;
    let head = cursor.bytes(definition.head_bytes)?;
    let seasons = (0..cursor.u32()?).map(|_| take_season(cursor)).collect::<Option<_>>()?;
    let open: Option<Vec<_>> = (0..cursor.u32()?).map(|_| take_rows(cursor)).collect();
    let mut open = open?;
    open.reverse();
    Some(LoadedRrd { id, name, definition, definition_index, group, head, seasons, open })
}

fn take_season(cursor: &mut Cursor<'_>) -> Option<Season> {
    let rra = cursor.u32()? as usize;
    let current_row = cursor.u64()?;
    let count = cursor.u32()? as usize;
    Some(Season { rra, current_row, values: cursor.doubles(count)? })
}

fn take_rows(cursor: &mut Cursor<'_>) -> Option<LoadedRows> {
    let source = cursor.u32()? as u16;
    let first_row = cursor.u64()? as i64;
    let count = cursor.u64()?;
    let value_count = cursor.u32()? as usize;
    Some(LoadedRows { source, first_row, count, values: cursor.doubles(value_count)? })
}
