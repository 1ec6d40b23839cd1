//! Repairs one segment: from a backup, by the whole file or by rows, or without the blocks that are lost.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::Work;
use super::backup::may_be_earlier;
use super::rows::{BackupRows, Missing};
use crate::disk::Disk;
use crate::filenames;
use crate::manifest::{Manifest, SegmentName};
use crate::segment::{Expected, Segment, SegmentError, SegmentWriter};
use crate::segments::{CLASS_MIXED, DiskSink, into_io, open_named};

impl Work<'_> {
    /// Checks a segment that the manifest `kept` names, to its last block.
    pub(super) fn check_segment(
        &mut self,
        dir: &Path,
        kept: &mut Manifest,
        name: &SegmentName,
    ) -> io::Result<()> {
        let path = filenames::segment(dir, name.number);
        let expected = kept.expected(name);
        let (segment, damage) = examine(self.disk, &path, &expected);
        if damage.is_empty() {
            return Ok(());
        }
        for error in &damage {
            self.damage(error);
        }
        let is_whole = |backup: &dyn Disk| {
            is_whole(backup, &path, &expected)
                && (expected.content.is_some() || may_be_earlier(backup, dir, kept))
        };
        if self.options.backup.is_some_and(is_whole) {
            return self.restore(&path);
        }
        self.line(
            "  best: give a copy of the store that has this file with --from DIR; a segment never changes",
        );
        let rows = self.rows_of_backup(dir, kept, segment.as_ref())?;
        if let Some(rows) = rows.filter(|rows| rows.row_count() > 0) {
            let what = format!(
                "write segment {} again, with {} rows of {} RRDs from the backup",
                name.number,
                rows.row_count(),
                rows.rrd_count()
            );
            let loss = "rows that neither it nor the backup has (they become unknown)";
            if self.step(what, Some(loss)) {
                self.write_again(dir, kept, name, segment.as_ref(), rows)?;
                self.put_aside(&path)?;
            }
            return Ok(());
        }
        let Some(segment) = segment else {
            let loss = "the rows in it (they become unknown)";
            if self.step(format_args!("go on without segment {}", name.number), Some(loss)) {
                self.put_aside(&path)?;
                kept.segments.retain(|other| other.number != name.number);
                kept.store(self.disk, dir)?;
            }
            return Ok(());
        };
        // A head or footer that is lost costs no rows.
        let is_complete = entries(&segment, &mut |_| Ok(()))? == 0;
        let what = format_args!("write what can be read of segment {} again", name.number);
        let loss = (!is_complete).then_some("the rows that cannot be read (they become unknown)");
        if self.step(what, loss) {
            self.write_again(dir, kept, name, Some(&segment), BackupRows::default())?;
            self.put_aside(&path)?;
        }
        Ok(())
    }

    /// What the backup has of the rows that cannot be read of a segment.
    fn rows_of_backup(
        &mut self,
        dir: &Path,
        kept: &Manifest,
        segment: Option<&Segment>,
    ) -> io::Result<Option<BackupRows>> {
        let Some(backup) = self.options.backup else { return Ok(None) };
        let missing = segment.map_or(Missing::All, Missing::of);
        let rows = BackupRows::read(backup, dir, kept, &missing)?;
        match &rows {
            None => self.line("  the backup is not one of this shard, or so much is lost that the whole shard is better taken from it"),
            Some(rows) if rows.row_count() == 0 => self.line("  the backup's segments have no rows of what is lost"),
            Some(_) => {}
        }
        Ok(rows)
    }

    /// Writes what can be read of a segment, and `rows`, to a new one, and names that in the manifest.
    fn write_again(
        &self,
        dir: &Path,
        kept: &mut Manifest,
        old: &SegmentName,
        segment: Option<&Segment>,
        mut rows: BackupRows,
    ) -> io::Result<()> {
        let number = kept.next_number;
        let path = filenames::segment(dir, number);
        let file = self.disk.create(&path)?;
        let sink = DiskSink::new(Arc::clone(&file));
        let mut writer = SegmentWriter::of_shard(sink, &path.display().to_string(), number, kept.tag())
            .map_err(into_io)?;
        if let Some(segment) = segment {
            entries(segment, &mut |entry| rows.pass(&entry, &mut writer))?;
        }
        rows.finish(&mut writer)?;
        let (summary, mut sink) = writer.finish().map_err(into_io)?;
        sink.flush()?;
        file.sync()?;
        self.disk.sync_dir(dir)?;
        kept.next_number = number + 1;
        for name in kept.segments.iter_mut().filter(|name| name.number == old.number) {
            let (bytes, content) = (summary.file_bytes, Some(summary.content));
            *name = SegmentName { number, bytes, content, ..*name };
            if segment.is_none() {
                // The rows may be of sources that its class does not have.
                (name.level, name.class) = (0, CLASS_MIXED);
            }
        }
        kept.store(self.disk, dir)
    }
}

/// Opens a segment and reads all of it. Returns its damage, and the segment as far as its rows are those of this store.
fn examine(disk: &dyn Disk, path: &Path, expected: &Expected) -> (Option<Segment>, Vec<SegmentError>) {
    let (segment, mut damage) = match open_named(disk, path, expected) {
        Ok(opened) => opened,
        Err(error) => return (None, vec![error]),
    };
    if damage.is_empty() {
        segment.verify(expected.content, &mut |error| damage.push(error));
    }
    let is_of_copy = matches!(damage[..], [SegmentError::OfCopy { .. }]);
    ((!is_of_copy).then_some(segment), damage)
}

/// Visits every run that can be read; returns how many places cannot.
fn entries(
    segment: &Segment,
    visit: &mut dyn FnMut(crate::segment::Entry<'_>) -> io::Result<()>,
) -> io::Result<u64> {
    let mut entries = segment.entries();
    let mut damages = 0;
    loop {
        match entries.next_entry() {
            Ok(None) => return Ok(damages),
            Ok(Some(entry)) => visit(entry)?,
            Err(SegmentError::Io { error, .. }) if disk::Shortage::of(&error).is_some() => return Err(error),
            Err(_) => damages += 1,
        }
    }
}

/// True when the backup has this segment, without any damage.
pub(super) fn is_whole(backup: &dyn Disk, path: &Path, expected: &Expected) -> bool {
    let Ok((segment, damage)) = open_named(backup, path, expected) else { return false };
    let mut damages = damage.len();
    segment.verify(expected.content, &mut |_| damages += 1);
    damages == 0
}
