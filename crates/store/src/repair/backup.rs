//! Takes whole files from a backup: those that never change, a manifest, and a shard.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Work;
use super::segment::is_whole;
use super::shard::position_of;
use crate::checkpoint::Label;
use crate::disk::{Disk, DiskFile, Mode, Shortage};
use crate::filenames;
use crate::identity::Owner;
use crate::log::writer::log_files;
use crate::log::{self, ReplayError};
use crate::manifest::{Manifest, SegmentName};

/// Bytes that are copied at once.
const COPY_BYTES: usize = 1 << 20;

impl Work<'_> {
    /// Takes a file from the backup, which has it whole.
    pub(super) fn restore(&mut self, path: &Path) -> io::Result<()> {
        let Some(backup) = self.options.backup else { return Ok(()) };
        if !self.step(format_args!("take {} from the backup", path.display()), None) {
            return Ok(());
        }
        let new = path.with_file_name("restored.new");
        match self.disk.remove(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        copy(backup, path, self.disk, &new)?;
        self.put_aside(path)?;
        self.disk.rename(&new, path)?;
        self.disk.sync_dir(path.parent().unwrap_or(Path::new("")))
    }

    /// The manifest of the backup, if the shard is what it says and the log since then: everything that it names is there, nothing
    /// newer is, and the log is whole from its position on. Replay then ends in the state that the lost manifest had.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn manifest_of_backup(&self, dir: &Path, owner: Owner) -> io::Result<Option<Manifest>> {
        let Some(backup) = self.options.backup else { return Ok(None) };
        let Some(manifest) = manifest_of(backup, dir, owner) else { return Ok(None) };
        for path in named(dir, &manifest) {
            if !self.disk.exists(&path)? {
                return Ok(None);
            }
        }
        let from = manifest.position;
        let starts = log_files(self.disk, dir)?;
        let has_start = starts.iter().any(|start| start.generation == from.generation && *start <= from);
        if !has_start || self.has_newer(dir, &manifest)? {
            return Ok(None);
        }
        match log::replay(self.disk, dir, from, manifest.known(), &mut |_| Ok::<_, ()>(())) {
            Ok(end) => Ok(end.damage.is_empty().then_some(manifest)),
            Err(ReplayError::Log(log::LogError::Io(error))) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Takes a shard's directory, which is gone, from the backup; false when that does not have it whole.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn restore_shard(&mut self, dir: &Path, owner: Owner) -> io::Result<bool> {
        let Some(backup) = self.options.backup else { return Ok(false) };
        let Some(manifest) = manifest_of(backup, dir, owner) else { return Ok(false) };
        if !is_sound(backup, dir, &manifest)? {
            self.line("  the backup of this shard is damaged, too; repair it first");
            return Ok(false);
        }
        let loss = "every change of its RRDs since the backup was made";
        if self.step("take the directory from the backup", Some(loss)) {
            self.disk.create_dir_all(dir)?;
            let logs = log_files(backup, dir)?.into_iter().map(|start| filenames::log(dir, start));
            for path in logs.chain(named(dir, &manifest)) {
                copy(backup, &path, self.disk, &path)?;
            }
            manifest.store(self.disk, dir)?;
        }
        Ok(true)
    }
}

/// The manifest of a shard of the backup, or its copy.
fn manifest_of(backup: &dyn Disk, dir: &Path, owner: Owner) -> Option<Manifest> {
    [filenames::manifest(dir), filenames::manifest_copy(dir)].into_iter().find_map(|path| {
        let manifest = Manifest::load_from(backup, &path).ok()??;
        (manifest.owner == Some(owner)).then_some(manifest)
    })
}

/// Whether a shard of the backup may be an earlier state of that of `kept`. A copy that has run since has segments of its own under
/// the same numbers, of which one may even be as large. Without a manifest, nothing says so.
pub(super) fn may_be_earlier(backup: &dyn Disk, dir: &Path, kept: &Manifest) -> bool {
    let Some(earlier) = kept.owner.and_then(|owner| manifest_of(backup, dir, owner)) else { return true };
    let is_same = |name: &SegmentName| {
        kept.segments.iter().all(|other| other.number != name.number || other.bytes == name.bytes)
    };
    earlier.next_number <= kept.next_number
        && earlier.checkpoint <= kept.checkpoint
        && earlier.position <= kept.position
        && (earlier.checkpoint < kept.checkpoint || earlier.position == kept.position)
        && earlier.segments.iter().all(is_same)
}

/// The checkpoint and the segments that a manifest names.
fn named(dir: &Path, manifest: &Manifest) -> Vec<PathBuf> {
    let checkpoint = (manifest.checkpoint != 0).then(|| filenames::checkpoint(dir, manifest.checkpoint));
    let segments = manifest.segments.iter().map(|segment| filenames::segment(dir, segment.number));
    checkpoint.into_iter().chain(segments).collect()
}

/// True when every file that a manifest names is whole, and the log after it.
fn is_sound(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> io::Result<bool> {
    let number = manifest.checkpoint;
    let label = Label { owner: manifest.tag(), number };
    if number != 0 && position_of(disk, &filenames::checkpoint(dir, number), label).is_none() {
        return Ok(false);
    }
    let segments_are_whole = manifest
        .segments
        .iter()
        .all(|name| is_whole(disk, &filenames::segment(dir, name.number), &manifest.expected(name)));
    if !segments_are_whole {
        return Ok(false);
    }
    match log::replay(disk, dir, manifest.position, manifest.known(), &mut |_| Ok::<_, ()>(())) {
        Ok(end) => Ok(end.damage.is_empty()),
        Err(ReplayError::Log(log::LogError::Io(error))) if Shortage::of(&error).is_some() => Err(error),
        Err(_) => Ok(false),
    }
}

/// Copies a whole file, durably.
fn copy(from: &dyn Disk, path: &Path, to: &dyn Disk, new: &Path) -> io::Result<()> {
    let (from, to) = (from.open(path, Mode::Read)?, to.create(new)?);
    copy_bytes(&*from, &*to, 0..from.length()?)?;
    to.sync()
}

/// Copies a range of a file to the same place of another.
///
/// # Errors
/// When the disk fails, or the file is shorter.
pub(super) fn copy_bytes(from: &dyn DiskFile, to: &dyn DiskFile, range: Range<u64>) -> io::Result<()> {
    let mut bytes = vec![0; COPY_BYTES];
    let mut at = range.start;
    while at < range.end {
        let want = (range.end - at).min(COPY_BYTES as u64) as usize;
        let count = from.read_at(&mut bytes[..want], at)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.write_at(&bytes[..count], at)?;
        at += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use crate::identity::Identity;
    use crate::position::Position;

    #[test]
    fn a_copy_that_has_run_is_no_earlier_state() {
        let place = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(place.path()).unwrap();
        let dir = Path::new("shard-000");
        disk.create_dir_all(dir).unwrap();
        let owner = Owner { store: Identity { id: [7; 16], seed: 1, shard_count: 1 }, shard: 0 };
        let segment = |number, bytes| SegmentName { number, level: 0, class: 0, bytes, content: None };
        let position = |offset| Position { generation: 1, offset };
        let kept = Manifest {
            owner: Some(owner),
            checkpoint: 4,
            position: position(500),
            next_number: 6,
            segments: vec![segment(3, 100), segment(5, 200)],
            ..Manifest::default()
        };
        let check = |earlier: Manifest, want: bool| {
            earlier.store(&disk, dir).unwrap();
            assert_eq!(may_be_earlier(&disk, dir, &kept), want, "{earlier:?}");
        };
        check(kept.clone(), true);
        let before = Manifest { checkpoint: 2, position: position(300), next_number: 4, ..kept.clone() };
        check(Manifest { segments: vec![segment(1, 50), segment(3, 100)], ..before.clone() }, true);
        check(Manifest { segments: vec![segment(1, 50), segment(3, 99)], ..before.clone() }, false);
        check(Manifest { next_number: 7, ..kept.clone() }, false);
        check(Manifest { position: position(600), ..before }, false);
        check(Manifest { position: position(400), ..kept.clone() }, false);
    }
}
