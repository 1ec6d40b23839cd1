//! Reads a segment. Keeps its footer in memory (24 bytes per block, 64 per source) and nothing of its blocks.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::block::{self, Head, Run, RunPlace, Runs, SegmentSeal};
use super::footer::{self, BlockPlace, TRAILER_BYTES};
use super::held::ReadScratch;
use super::rebuild::{Gap, rebuild};
use super::{Fault, Key, SegmentError, SourceSummary};
use crate::column::codec::{self, ColumnHint};
use crate::content::Content;

/// A file that supports positioned reads by many threads at once.
pub trait ReadAt: Send + Sync {
    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// When the file ends before that, or cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Length of the file.
    ///
    /// # Errors
    /// When the system does not report it.
    fn bytes(&self) -> io::Result<u64>;
    /// Says that a range will not be needed again soon; only a hint.
    fn release(&self, _range: Range<u64>) {}
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).ok().and_then(|from| self.get(from..));
        let part = from.and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for std::fs::File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// How many segments were opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// An open segment.
pub struct Segment {
    file: Box<dyn ReadAt>,
    /// No other segment has it that this process opens.
    serial: u64,
    name: String,
    file_bytes: u64,
    segment_id: u64,
    owner: u32,
    /// What its blocks are sealed with.
    seal: SegmentSeal,
    footer_offset: u64,
    entry_count: u64,
    pub(super) sources: Vec<SourceSummary>,
    pub(super) directory: Vec<BlockPlace>,
    /// Where blocks are lost; only a segment without a good footer has any.
    gaps: Vec<Gap>,
}

/// Which segment a file should be, by the manifest that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The tag of its shard.
    pub owner: u32,
    /// Its number.
    pub number: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Hash of the file; `None` = not known. Only who reads the whole file compares it.
    pub content: Option<Content>,
}

impl Segment {
    /// Opens a segment by reading its footer: two reads. `name` is for messages.
    ///
    /// # Errors
    /// When the file cannot be read, the footer is damaged, or a newer version wrote it.
    pub fn open(file: Box<dyn ReadAt>, name: &str) -> Result<Segment, SegmentError> {
        let failed = |error| SegmentError::Io { file: name.into(), offset: 0, error };
        let file_bytes = file.bytes().map_err(failed)?;
        Segment::open_first(file, file_bytes, name).map_err(|(error, _)| error)
    }

    /// Opens the segment that a manifest names. If its footer is damaged or the file has been cut or extended, what can be
    /// read of it is found by walking its blocks; returns the damage too.
    ///
    /// # Errors
    /// When it is another segment, nothing proves that it is this one, a newer version wrote it, or the disk fails.
    pub fn open_expected(
        file: Box<dyn ReadAt>,
        name: &str,
        expected: &Expected,
    ) -> Result<(Segment, Vec<SegmentError>), SegmentError> {
        let failed = |error| SegmentError::Io { file: name.into(), offset: 0, error };
        let file_bytes = file.bytes().map_err(failed)?;
        let mut damage = Vec::new();
        if file_bytes > expected.bytes {
            let got = format!("{} bytes more", file_bytes - expected.bytes);
            damage.push(Fault::new(0, "the end of the file", got).in_file(name, expected.bytes));
        }
        let (file, error) = match Segment::open_first(file, file_bytes.min(expected.bytes), name) {
            Ok(segment) if !segment.is(expected.owner, expected.number) => {
                let is_ours = segment.owner == expected.owner;
                return Err(SegmentError::Misplaced {
                    file: name.into(),
                    number: segment.segment_id,
                    is_ours,
                });
            }
            Ok(segment) if segment.file_bytes < expected.bytes => {
                let (got, want) = (format!("a whole one of {file_bytes}"), expected.bytes);
                return Err(Fault::new(0, format!("a segment of {want} bytes"), got).in_file(name, 0));
            }
            Ok(segment) => return Ok((segment, damage)),
            Err((error @ SegmentError::Newer { .. }, _)) => return Err(error),
            Err((SegmentError::Io { error, .. }, _)) if disk::Shortage::of(&error).is_some() => {
                return Err(failed(error));
            }
            Err((error, file)) => (file, error),
        };
        let (rebuilt, error) = rebuild(&*file, name, expected, error)?;
        damage.push(error);
        damage.extend(rebuilt.gaps.iter().map(|gap| gap.error(name)));
        let segment = Segment {
            file,
            serial: OPENED.fetch_add(1, Ordering::Relaxed),
            name: name.into(),
            file_bytes: expected.bytes,
            segment_id: expected.number,
            owner: rebuilt.owner,
            seal: rebuilt.seal,
            footer_offset: rebuilt.footer_offset,
            entry_count: rebuilt.entry_count,
            sources: rebuilt.sources,
            directory: rebuilt.directory,
            gaps: rebuilt.gaps,
        };
        Ok((segment, damage))
    }

    /// Opens the segment in the first `file_bytes` of a file; gives the file back if that fails.
    fn open_first(
        file: Box<dyn ReadAt>,
        file_bytes: u64,
        name: &str,
    ) -> Result<Segment, (SegmentError, Box<dyn ReadAt>)> {
        match Segment::read_footer(&*file, file_bytes, name) {
            Err(error) => Err((error, file)),
            Ok((trailer, footer)) => Ok(Segment {
                file,
                serial: OPENED.fetch_add(1, Ordering::Relaxed),
                name: name.into(),
                file_bytes,
                segment_id: footer.segment_id,
                owner: trailer.owner,
                seal: trailer.seal(),
                footer_offset: footer.footer_offset,
                entry_count: footer.entry_count,
                sources: footer.sources,
                directory: footer.directory,
                gaps: Vec::new(),
            }),
        }
    }

    fn read_footer(
        file: &dyn ReadAt,
        file_bytes: u64,
        name: &str,
    ) -> Result<(footer::Trailer, footer::Footer), SegmentError> {
        let failed = |offset| move |error| SegmentError::Io { file: name.into(), offset, error };
        let shortest = (footer::FILE_HEAD_BYTES + TRAILER_BYTES) as u64;
        if file_bytes < shortest {
            let fault =
                Fault::new(0, format!("a segment of {shortest} bytes or more"), format!("{file_bytes}"));
            return Err(fault.in_file(name, 0));
        }
        let trailer_offset = file_bytes - TRAILER_BYTES as u64;
        let mut trailer = [0; TRAILER_BYTES];
        file.read_at(trailer_offset, &mut trailer).map_err(failed(trailer_offset))?;
        let trailer = footer::decode_trailer(&trailer, file_bytes, name)?;
        let mut body = vec![0; (trailer_offset - trailer.footer_offset) as usize];
        file.read_at(trailer.footer_offset, &mut body).map_err(failed(trailer.footer_offset))?;
        let footer = footer::decode(&body, &trailer, name)?;
        Ok((trailer, footer))
    }

    /// The name given to [`Segment::open`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number it was written with.
    pub fn segment_id(&self) -> u64 {
        self.segment_id
    }

    /// The tag of its shard ([`crate::identity::Owner::tag`]); 0 = not known.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// True when it is segment `number` of the shard with the tag `owner`, as far as it says.
    pub fn is(&self, owner: u32, number: u64) -> bool {
        self.segment_id == number && (self.owner == 0 || self.owner == owner)
    }

    /// Where blocks of it are lost.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Number of runs.
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Its sources, sorted.
    pub fn sources(&self) -> &[SourceSummary] {
        &self.sources
    }

    /// The summary of one source.
    pub fn source(&self, group: u32, source: u16) -> Option<&SourceSummary> {
        self.source_index(group, source).map(|index| &self.sources[index])
    }

    fn source_index(&self, group: u32, source: u16) -> Option<usize> {
        self.sources.binary_search_by_key(&(group, source), |summary| (summary.group, summary.source)).ok()
    }

    /// Visits the rows of `key` within `rows`: `visit(first_row, ds, values)` for each data source of each
    /// run, oldest run first. One read per block.
    ///
    /// # Errors
    /// The first damage. A damaged block loses only its own runs: the others are still visited.
    pub fn read(
        &self,
        key: Key,
        rows: Range<i64>,
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(i64, usize, &[f64]),
    ) -> Result<(), SegmentError> {
        let mut first_damage = None;
        for index in self.blocks_of(key, &rows) {
            if let Err(error) = self.visit_block(index, key, &rows, scratch, visit) {
                first_damage.get_or_insert(error);
            }
        }
        let lost = self.gaps.iter().find(|gap| gap.may_hold(key, &rows)).map(|gap| gap.error(&self.name));
        first_damage.or(lost).map_or(Ok(()), Err)
    }

    /// The blocks that may hold rows of `key` in `rows`.
    fn blocks_of(&self, key: Key, rows: &Range<i64>) -> Range<usize> {
        let Some(source_index) = self.source_index(key.group, key.source) else { return 0..0 };
        let summary = &self.sources[source_index];
        if rows.start >= summary.end_row || rows.end <= summary.first_row || rows.is_empty() {
            return 0..0;
        }
        let whose = |place: &BlockPlace| (place.source_index as usize, place.slot);
        let sought = (source_index, key.slot);
        // A row of u32::MAX in the directory is only a lower bound: such a block does not end the search.
        let start = u32::try_from(rows.start.saturating_sub(summary.first_row).max(0)).unwrap_or(u32::MAX);
        let start = start.min(u32::MAX - 1);
        let before =
            |place: &BlockPlace| whose(place) < sought || (whose(place) == sought && place.row <= start);
        let first = self.directory.partition_point(before).saturating_sub(1);
        let end = rows.end.wrapping_sub(summary.first_row) as u64;
        let touched = |place: &BlockPlace| {
            whose(place) < sought || (whose(place) == sought && u64::from(place.row) < end)
        };
        first..self.directory.partition_point(touched).max(first)
    }

    fn block_range(&self, index: usize) -> Range<u64> {
        let start = self.directory[index].offset;
        let end = self.directory.get(index + 1).map_or(self.footer_offset, |place| place.offset);
        let mut gaps = self.gaps.iter().map(|gap| gap.bytes.start);
        start..gaps.find(|gap| (start..end).contains(gap)).unwrap_or(end)
    }

    fn read_block(&self, index: usize, block: &mut Vec<u8>) -> Result<(), SegmentError> {
        let range = self.block_range(index);
        block.resize((range.end - range.start) as usize, 0);
        self.read_bytes(range.start, block)
    }

    /// Fills `bytes` from `offset` of the file on.
    pub(super) fn read_bytes(&self, offset: u64, bytes: &mut [u8]) -> Result<(), SegmentError> {
        let failed = |error| SegmentError::Io { file: self.name.clone(), offset, error };
        self.file.read_at(offset, bytes).map_err(failed)
    }

    fn open_block<'a>(&self, index: usize, block: &'a [u8]) -> Result<Runs<'a>, SegmentError> {
        let offset = self.directory[index].offset;
        block::open(block, self.seal, offset).map_err(|fault| fault.in_file(&self.name, offset))
    }

    fn visit_block(
        &self,
        index: usize,
        key: Key,
        rows: &Range<i64>,
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(i64, usize, &[f64]),
    ) -> Result<(), SegmentError> {
        let in_file = |fault: Fault| fault.in_file(&self.name, self.directory[index].offset);
        let (block, values) = scratch.held(self, index)?;
        let mut runs = block.runs(key);
        let mut place = runs.place();
        while let Some(run) = runs.next().map_err(in_file)? {
            if run.head.key > key || (run.head.key == key && run.head.first_row >= rows.end) {
                break;
            }
            place = runs.place();
            if run.head.key != key || run.head.end_row() <= rows.start {
                continue;
            }
            let first_row = rows.start.max(run.head.first_row);
            let from = (first_row - run.head.first_row) as usize;
            let to = (rows.end.min(run.head.end_row()) - run.head.first_row) as usize;
            decode_columns(&run, values).map_err(in_file)?;
            for (ds, column) in values.chunks_exact(run.head.count).enumerate() {
                visit(first_row, ds, &column[from..to]);
            }
        }
        block.set_later(place);
        Ok(())
    }

    /// Reads and checks a block; returns the place before its first run.
    pub(super) fn read_runs(&self, index: usize, block: &mut Vec<u8>) -> Result<RunPlace, SegmentError> {
        self.read_block(index, block)?;
        Ok(self.open_block(index, block)?.place())
    }

    /// No other segment that this process opens has this number.
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// Reads and decodes a block.
    ///
    /// # Errors
    /// When it is damaged or cannot be read.
    pub fn check_block(&self, index: usize, scratch: &mut ReadScratch) -> Result<(), SegmentError> {
        self.read_block(index, &mut scratch.block)?;
        let in_file = |fault: Fault| fault.in_file(&self.name, self.directory[index].offset);
        let mut runs = self.open_block(index, &scratch.block)?;
        while let Some(run) = runs.next().map_err(in_file)? {
            decode_columns(&run, &mut scratch.values).map_err(in_file)?;
        }
        Ok(())
    }

    /// Frees what the system caches of a block; returns the block's bytes.
    pub fn release_block(&self, index: usize) -> u64 {
        let range = self.block_range(index);
        let bytes = range.end - range.start;
        self.file.release(range);
        bytes
    }

    /// Number of blocks.
    pub fn block_count(&self) -> usize {
        self.directory.len()
    }

    /// Where the footer begins.
    pub fn footer_offset(&self) -> u64 {
        self.footer_offset
    }

    /// Iterates over all runs in order, block by block.
    pub fn entries(&self) -> Entries<'_> {
        self.entries_of(&|_, _| true)
    }

    /// Iterates in order over the runs of wanted (group, source) pairs; blocks without any are not read.
    pub fn entries_of(&self, wanted: &dyn Fn(u32, u16) -> bool) -> Entries<'_> {
        Entries {
            segment: self,
            wanted: self.sources.iter().map(|summary| wanted(summary.group, summary.source)).collect(),
            next_gap: 0,
            next_block: 0,
            block: Vec::new(),
            runs: Vec::new(),
            next_run: 0,
            values: Vec::new(),
        }
    }
}

/// Decodes all columns of a run, concatenated.
pub(super) fn decode_columns(run: &Run<'_>, values: &mut Vec<f64>) -> Result<(), Fault> {
    values.clear();
    let mut at = 0;
    for _ in 0..run.head.ds_count {
        let taken = codec::decode(&run.columns[at..], run.head.count, values);
        at += taken.map_err(|error| Fault::column(run.columns_at + at, error))?;
    }
    match run.columns.len() - at {
        0 => Ok(()),
        extra => Err(Fault::new(run.columns_at + at, "the end of a run", format!("{extra} bytes more"))),
    }
}

/// One run of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry<'a> {
    /// Identifies whose rows these are.
    pub key: Key,
    /// Number of the first row.
    pub first_row: i64,
    /// Rows.
    pub count: usize,
    /// Columns.
    pub ds_count: usize,
    /// How the values came about.
    pub hint: ColumnHint,
    /// `ds_count` concatenated columns of `count` values.
    pub values: &'a [f64],
}

/// Iterates over the runs of a segment. Holds one block.
pub struct Entries<'a> {
    segment: &'a Segment,
    /// For each source of the segment.
    wanted: Vec<bool>,
    /// Gaps that were not reported yet.
    next_gap: usize,
    next_block: usize,
    block: Vec<u8>,
    /// The wanted runs of the block: head, and the range of its columns in the block.
    runs: Vec<(Head, Range<usize>)>,
    next_run: usize,
    values: Vec<f64>,
}

impl Entries<'_> {
    /// The next run, or `None` at the end.
    ///
    /// # Errors
    /// At damage. The next call continues after it: with the next block, or with the next run when only one
    /// column was damaged.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>, SegmentError> {
        let Some(head) = self.advance()? else { return Ok(None) };
        let values = self.decoded()?;
        Ok(Some(Entry {
            key: head.key,
            first_row: head.first_row,
            count: head.count,
            ds_count: head.ds_count,
            hint: head.hint,
            values,
        }))
    }

    /// Moves to the next run without decoding it.
    pub(super) fn advance(&mut self) -> Result<Option<Head>, SegmentError> {
        if let Some(gap) = self.segment.gaps.get(self.next_gap) {
            self.next_gap += 1;
            return Err(gap.error(&self.segment.name));
        }
        while self.next_run == self.runs.len() {
            if self.next_block == self.segment.directory.len() {
                return Ok(None);
            }
            self.load_block()?;
        }
        self.next_run += 1;
        Ok(Some(self.runs[self.next_run - 1].0))
    }

    /// The encoded columns of the current run of [`Entries::advance`].
    pub(super) fn encoded(&self) -> &[u8] {
        self.block_offset_and_run().1
    }

    /// The values of the current run of [`Entries::advance`], column by column.
    pub(super) fn decoded(&mut self) -> Result<&[f64], SegmentError> {
        let mut values = std::mem::take(&mut self.values);
        let (block_offset, columns) = self.block_offset_and_run();
        let (head, place) = &self.runs[self.next_run - 1];
        let run = Run { head: *head, columns, columns_at: place.start };
        let decoded = decode_columns(&run, &mut values);
        let decoded = decoded.map_err(|fault| fault.in_file(&self.segment.name, block_offset));
        self.values = values;
        decoded.map(|()| self.values.as_slice())
    }

    fn block_offset_and_run(&self) -> (u64, &[u8]) {
        let columns = &self.block[self.runs[self.next_run - 1].1.clone()];
        (self.segment.directory[self.next_block - 1].offset, columns)
    }

    /// True when the block may hold a wanted run: its first run, or one of the sources that begin in it.
    fn is_wanted(&self, index: usize) -> bool {
        let directory = &self.segment.directory;
        let first = directory[index].source_index as usize;
        let last = directory.get(index + 1).map_or(self.wanted.len() - 1, |next| next.source_index as usize);
        self.wanted[first..=last].contains(&true)
    }

    fn load_block(&mut self) -> Result<(), SegmentError> {
        let index = self.next_block;
        self.next_block += 1;
        self.runs.clear();
        self.next_run = 0;
        if !self.is_wanted(index) {
            return Ok(());
        }
        self.segment.read_block(index, &mut self.block)?;
        let offset = self.segment.directory[index].offset;
        let mut runs = self.segment.open_block(index, &self.block)?;
        while let Some(run) = runs.next().map_err(|fault| fault.in_file(&self.segment.name, offset))? {
            let Some(source) = self.segment.source_index(run.head.key.group, run.head.key.source) else {
                let fault = Fault::new(run.columns_at, "a run of a source in the footer", "another");
                return Err(fault.in_file(&self.segment.name, offset));
            };
            if self.wanted[source] {
                self.runs.push((run.head, run.columns_at..run.columns_at + run.columns.len()));
            }
        }
        Ok(())
    }
}
