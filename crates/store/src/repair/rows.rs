//! Single rows from a backup: what its segments hold of the places that are lost in a segment.
//!
//! A backup of an earlier or later state has other segments with the same rows, because a row never changes once it is complete and
//! ids are never used again. So rows of the same id and source fit in wherever they were.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use crate::column::codec::ColumnHint;
use crate::disk::{Disk, Shortage};
use crate::filenames;
use crate::manifest::Manifest;
use crate::segment::{Entry, Key, Segment, SegmentError, SegmentWriter, Stake};
use crate::segments::{into_io, open_named};

/// The most rows that one repair of a segment takes: they are held in memory, about a hundred bytes each.
const ROWS_MAX: u64 = 20_000_000;

/// What may be lost.
pub(super) enum Missing {
    /// All of a segment.
    All,
    /// These rows, of these pairs of group and source.
    Some(Vec<Stake>, BTreeSet<(u32, u16)>),
}

impl Missing {
    /// What cannot be read of a segment.
    pub(super) fn of(segment: &Segment) -> Missing {
        let mut stakes: Vec<Stake> =
            segment.gaps().iter().flat_map(|gap| segment.stakes_of_gap(gap)).collect();
        let mut scratch = Default::default();
        for index in 0..segment.block_count() {
            if segment.check_block(index, &mut scratch).is_err() {
                stakes.extend(segment.stakes_of_block(index));
            }
        }
        let sources = segment.sources().iter().map(|source| (source.group, source.source)).collect();
        Missing::Some(stakes, sources)
    }

    fn has_source(&self, source: (u32, u16)) -> bool {
        match self {
            Missing::All => true,
            Missing::Some(_, sources) => sources.contains(&source),
        }
    }

    fn has(&self, entry: &Entry<'_>, row: i64) -> bool {
        match self {
            Missing::All => true,
            Missing::Some(stakes, _) => stakes.iter().any(|stake| {
                stake.group == entry.key.group
                    && stake.hint == entry.hint
                    && stake.slots.contains(&entry.key.slot)
                    && stake.rows.contains(&row)
            }),
        }
    }
}

/// Rows of one RRD and source.
struct RowsOfKey {
    hint: ColumnHint,
    ds_count: usize,
    rows: BTreeMap<i64, Vec<f64>>,
}

impl RowsOfKey {
    fn add(&mut self, entry: &Entry<'_>, is_wanted: &dyn Fn(i64) -> bool) -> u64 {
        let mut added = 0;
        for index in 0..entry.count {
            let row = entry.first_row + index as i64;
            let values = || entry.values.iter().skip(index).step_by(entry.count).copied();
            if is_wanted(row) && values().any(|value| !value.is_nan()) {
                self.rows.insert(row, values().collect());
                added += 1;
            }
        }
        added
    }

    fn write<W: Write>(&self, key: Key, writer: &mut SegmentWriter<W>) -> io::Result<()> {
        let rows: Vec<_> = self.rows.iter().collect();
        for run in rows.chunk_by(|(row, _), (next, _)| *row + 1 == **next) {
            let column = |ds: usize| run.iter().map(|(_, values)| values[ds]).collect();
            let columns: Vec<Vec<f64>> = (0..self.ds_count).map(column).collect();
            let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            writer.push(key, *run[0].0, &columns, &self.hint).map_err(into_io)?;
        }
        Ok(())
    }
}

/// Rows of a backup that may be among the lost ones.
#[derive(Default)]
pub(super) struct BackupRows {
    keys: BTreeMap<Key, RowsOfKey>,
    /// About how many rows there are; more when segments repeat them.
    added: u64,
}

impl BackupRows {
    /// The rows that the segments of shard `dir` of a backup have of what is `missing` in that of `kept`; `None` when it is no backup of
    /// this shard, or has more than a repair takes.
    ///
    /// # Errors
    /// When the machine runs short of something.
    pub(super) fn read(
        backup: &dyn Disk,
        dir: &Path,
        kept: &Manifest,
        missing: &Missing,
    ) -> io::Result<Option<BackupRows>> {
        let manifest = Manifest::load(backup, dir).ok().flatten();
        let Some(manifest) = manifest.filter(|found| found.owner.is_some() && found.owner == kept.owner)
        else {
            return Ok(None);
        };
        let mut found = BackupRows::default();
        for name in &manifest.segments {
            let path = filenames::segment(dir, name.number);
            let Ok((segment, _)) = open_named(backup, &path, &manifest.expected(name)) else { continue };
            let mut entries = segment.entries_of(&|group, source| missing.has_source((group, source)));
            loop {
                match entries.next_entry() {
                    Ok(None) => break,
                    Ok(Some(entry)) => found.add(&entry, missing),
                    Err(SegmentError::Io { error, .. }) if Shortage::of(&error).is_some() => {
                        return Err(error);
                    }
                    Err(_) => {}
                }
                if found.added > ROWS_MAX {
                    return Ok(None);
                }
            }
        }
        found.keys.retain(|_, of_key| !of_key.rows.is_empty());
        Ok(Some(found))
    }

    fn add(&mut self, entry: &Entry<'_>, missing: &Missing) {
        let fresh = || RowsOfKey { hint: entry.hint, ds_count: entry.ds_count, rows: BTreeMap::new() };
        let of_key = self.keys.entry(entry.key).or_insert_with(fresh);
        if of_key.ds_count == entry.ds_count {
            self.added += of_key.add(entry, &|row| missing.has(entry, row));
        }
    }

    pub(super) fn row_count(&self) -> u64 {
        self.keys.values().map(|of_key| of_key.rows.len() as u64).sum()
    }

    pub(super) fn rrd_count(&self) -> usize {
        self.keys.keys().map(|key| key.slot).collect::<BTreeSet<_>>().len()
    }

    /// Takes a run that can be read; first writes the rows that come before it.
    pub(super) fn pass<W: Write>(
        &mut self,
        entry: &Entry<'_>,
        writer: &mut SegmentWriter<W>,
    ) -> io::Result<()> {
        while let Some(first) = self.keys.first_entry().filter(|first| *first.key() < entry.key) {
            let (key, rows) = first.remove_entry();
            rows.write(key, writer)?;
        }
        match self.keys.get_mut(&entry.key) {
            // They are the same rows, or rows between them.
            Some(of_key) if of_key.ds_count == entry.ds_count => {
                of_key.add(entry, &|_| true);
                return Ok(());
            }
            Some(_) => drop(self.keys.remove(&entry.key)),
            None => {}
        }
        let columns: Vec<&[f64]> = entry.values.chunks_exact(entry.count).collect();
        writer.push(entry.key, entry.first_row, &columns, &entry.hint).map_err(into_io)
    }

    /// Writes the rows after the last run.
    pub(super) fn finish<W: Write>(self, writer: &mut SegmentWriter<W>) -> io::Result<()> {
        self.keys.into_iter().try_for_each(|(key, rows)| rows.write(key, writer))
    }
}
