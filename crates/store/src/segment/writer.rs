//! Writes a segment: runs in, blocks out, footer last. Holds one block and the directory.

use std::io::Write;

use super::block::{self, BLOCK_HEAD_BYTES, Head, SegmentSeal};
use super::footer::{self, BlockPlace};
use super::{
    BLOCK_BODY_BYTES, DS_COUNT_MAX, Key, SegmentError, SegmentSummary, SourceSummary, VERSION, run_rows_max,
};
use crate::column::codec::{self, ColumnHint, Effort, Scratch};
use crate::content::ContentHasher;

/// Merges encode rows of at least this many seconds thoroughly, at some 200 ns per value: they are few. A
/// million RRDs complete one such row of an archive in 300 microseconds of that rate.
const THOROUGH_SECONDS_MIN: u64 = 300;
/// Rows of single PDPs are excepted: they are merged most often and kept for the shortest time.
const THOROUGH_PDPS_MIN: u64 = 2;

/// Writes one segment front to back, with one `write` per block.
///
/// Until [`SegmentWriter::finish`] has written the footer, the segment cannot be opened. The caller syncs the
/// file and makes it known to readers.
pub struct SegmentWriter<W: Write> {
    sink: W,
    name: String,
    segment_id: u64,
    /// The tag of its shard.
    owner: u32,
    offset: u64,
    content: ContentHasher,
    block: Vec<u8>,
    block_entries: u32,
    /// Key and first row of the open block's first run.
    block_first: Option<(u32, u32, i64)>,
    previous: Option<Head>,
    columns: Vec<u8>,
    scratch: Scratch,
    merging: bool,
    sources: Vec<SourceSummary>,
    directory: Vec<PendingPlace>,
    entry_count: u64,
}

/// A directory entry whose source's oldest row is not known yet.
struct PendingPlace {
    source_index: u32,
    slot: u32,
    first_row: i64,
    offset: u64,
}

impl<W: Write> SegmentWriter<W> {
    /// Starts a segment of no known shard. `name` is for messages; `segment_id` is part of every checksum.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn new(sink: W, name: &str, segment_id: u64) -> Result<Self, SegmentError> {
        SegmentWriter::of_shard(sink, name, segment_id, 0)
    }

    /// Starts a segment of the shard whose [`crate::identity::Owner::tag`] is `owner`.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn of_shard(sink: W, name: &str, segment_id: u64, owner: u32) -> Result<Self, SegmentError> {
        let mut writer = SegmentWriter {
            sink,
            name: name.into(),
            segment_id,
            owner,
            offset: 0,
            content: ContentHasher::default(),
            block: vec![0; BLOCK_HEAD_BYTES],
            block_entries: 0,
            block_first: None,
            previous: None,
            columns: Vec::new(),
            scratch: Scratch::default(),
            merging: false,
            sources: Vec::new(),
            directory: Vec::new(),
            entry_count: 0,
        };
        writer.write(&footer::file_head(segment_id, owner))?;
        Ok(writer)
    }

    /// Encodes with the effort that suits merges, which saves some 10 % of the bytes: ten times the time of a
    /// flush for rows of many PDPs, which are few, and a third more for all others.
    pub fn set_merging(&mut self) {
        self.merging = true;
    }

    /// Bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.offset
    }

    /// Appends rows of `key` from `first_row` on: one slice per data source, all of equal length.
    ///
    /// Keys must come in order, and the rows of a key in order and without overlap; all runs of a (group,
    /// source) must have the same columns and hint.
    ///
    /// # Errors
    /// [`SegmentError::Misuse`] when they do not; when the sink fails.
    pub fn push(
        &mut self,
        key: Key,
        first_row: i64,
        columns: &[&[f64]],
        hint: &ColumnHint,
    ) -> Result<(), SegmentError> {
        let count = columns.first().map_or(0, |column| column.len());
        if count == 0 || columns.len() > DS_COUNT_MAX || columns.iter().any(|column| column.len() != count) {
            return Err(SegmentError::Misuse("columns of a run must be of one length, at least 1"));
        }
        if first_row.checked_add(count as i64).is_none() {
            return Err(SegmentError::Misuse("a run goes beyond the last row number"));
        }
        self.scratch.set_effort(self.effort(hint));
        let rows_max = run_rows_max(columns.len());
        let mut from = 0;
        while from < count {
            let rows = from..count.min(from + rows_max);
            self.columns.clear();
            for column in columns {
                codec::encode(&column[rows.clone()], hint, &mut self.scratch, &mut self.columns);
            }
            let first_row = first_row + from as i64;
            let head = Head { key, ds_count: columns.len(), hint: *hint, first_row, count: rows.len() };
            self.put(head)?;
            from = rows.end;
        }
        Ok(())
    }

    fn effort(&self, hint: &ColumnHint) -> Effort {
        let row_seconds =
            hint.step.saturating_mul(hint.pdp_per_row) / u64::from(hint.units_per_second.max(1));
        let rare = hint.pdp_per_row >= THOROUGH_PDPS_MIN && row_seconds >= THOROUGH_SECONDS_MIN;
        match self.merging {
            false => Effort::Quick,
            true if rare => Effort::Thorough,
            true => Effort::Dense,
        }
    }

    /// Appends a run with the encoded columns of another segment.
    pub(super) fn push_encoded(&mut self, head: Head, columns: &[u8]) -> Result<(), SegmentError> {
        self.columns.clear();
        self.columns.extend_from_slice(columns);
        self.put(head)
    }

    /// Appends the run whose encoded columns are in `self.columns`.
    fn put(&mut self, head: Head) -> Result<(), SegmentError> {
        let source_index = self.note_source(&head)?;
        let before = self.block.len();
        let previous = self.previous.filter(|_| self.block_entries > 0);
        block::put_entry(&mut self.block, previous.as_ref(), &head, &self.columns);
        self.block_entries += 1;
        self.block_first.get_or_insert((source_index, head.key.slot, head.first_row));
        self.previous = Some(head);
        self.entry_count += 1;
        self.sources[source_index as usize].bytes += (self.block.len() - before) as u64;
        if self.block.len() - BLOCK_HEAD_BYTES >= BLOCK_BODY_BYTES {
            self.close_block()?;
        }
        Ok(())
    }

    /// Checks the order and updates the summary of the run's source; returns the source's index.
    fn note_source(&mut self, head: &Head) -> Result<u32, SegmentError> {
        if self
            .previous
            .is_some_and(|previous| (head.key, head.first_row) < (previous.key, previous.end_row()))
        {
            return Err(SegmentError::Misuse("runs must come in the order of their keys and rows"));
        }
        let same =
            |source: &SourceSummary| (source.group, source.source) == (head.key.group, head.key.source);
        match self.sources.last().filter(|source| same(source)) {
            Some(source) if usize::from(source.ds_count) != head.ds_count || source.hint != head.hint => {
                return Err(SegmentError::Misuse("all runs of a source must have the same columns and hint"));
            }
            Some(_) => {}
            None => self.sources.push(SourceSummary::of(head)),
        }
        let index = self.sources.len() - 1;
        self.sources[index].add(head);
        Ok(index as u32)
    }

    fn close_block(&mut self) -> Result<(), SegmentError> {
        let Some((source_index, slot, first_row)) = self.block_first.take() else { return Ok(()) };
        self.directory.push(PendingPlace { source_index, slot, first_row, offset: self.offset });
        let mut block = std::mem::take(&mut self.block);
        let segment = SegmentSeal::new(VERSION, self.segment_id, self.owner);
        block::seal(&mut block, segment, self.offset, self.block_entries);
        let written = self.write(&block);
        block.truncate(BLOCK_HEAD_BYTES);
        self.block = block;
        self.block_entries = 0;
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SegmentError> {
        let at = |error| SegmentError::Io { file: self.name.clone(), offset: self.offset, error };
        self.sink.write_all(bytes).map_err(at)?;
        self.content.add(bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes the footer. Returns the summary, and the sink to be synced.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn finish(mut self) -> Result<(SegmentSummary, W), SegmentError> {
        self.close_block()?;
        let sources = std::mem::take(&mut self.sources);
        let directory: Vec<BlockPlace> = std::mem::take(&mut self.directory)
            .into_iter()
            .map(|place| BlockPlace {
                offset: place.offset,
                source_index: place.source_index,
                slot: place.slot,
                row: relative_row(place.first_row, sources[place.source_index as usize].first_row),
            })
            .collect();
        let block_count = directory.len() as u64;
        let bytes =
            footer::encode(self.segment_id, self.owner, self.offset, self.entry_count, &sources, &directory);
        self.write(&bytes)?;
        let summary = SegmentSummary {
            segment_id: self.segment_id,
            file_bytes: self.offset,
            content: self.content.content(),
            block_count,
            entry_count: self.entry_count,
            sources,
        };
        Ok((summary, self.sink))
    }
}

/// Rows since the oldest of the source; saturates, and then means "at least this many".
pub(super) fn relative_row(row: i64, oldest: i64) -> u32 {
    u32::try_from(row.wrapping_sub(oldest) as u64).unwrap_or(u32::MAX)
}
