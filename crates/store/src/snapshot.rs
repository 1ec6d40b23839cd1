//! A copy of a store in a directory: what never changes as second names of the same files where that is possible, the rest as
//! copies.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::assemble::{Assembly, ShardAssembly, Until};
use crate::capture::{Capture, CapturedFile, CapturedShard};
use crate::disk::{Disk, Mode, RealDisk};
use crate::filenames::{self, FileKind};
use crate::identity::Identity;
use crate::manifest::Manifest;
use crate::replication::History;

/// Bytes that are copied at once.
const COPY_BYTES: u64 = 4 << 20;

/// What a copy took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Bytes of files that have a second name now.
    pub linked: u64,
    /// Bytes that were copied.
    pub copied: u64,
}

/// Writes a captured store to `to`, which must not be there, or be empty.
///
/// # Errors
/// When it is there; the system's. Nothing is left then.
pub fn write(capture: &Capture, to: &Path) -> io::Result<Copied> {
    let assembly = Assembly::begin(to)?;
    let mut copied = Copied::default();
    let written = capture.shards.iter().zip(0..).try_for_each(|(shard, index)| {
        write_shard(shard, &assembly.shard(index, &shard.manifest())?, &mut copied)
    });
    let completed = written.and_then(|()| {
        for (shard, index) in capture.shards.iter().zip(0..) {
            assembly.shard(index, &shard.manifest())?.complete(shard.log_end(), Until::End, &[])?;
        }
        Ok(())
    });
    match completed {
        Ok(()) => {
            let ends: Vec<_> = capture.shards.iter().map(CapturedShard::log_end).collect();
            let history = capture.history.of_copy(&ends, 0);
            assembly.complete_as(&capture.identity.text(), &history).map(|()| copied)
        }
        Err(error) => {
            assembly.discard();
            Err(error)
        }
    }
}

fn write_shard(shard: &CapturedShard, to: &ShardAssembly<'_>, copied: &mut Copied) -> io::Result<()> {
    if let Some(file) = shard.checkpoint()? {
        copy_file(shard, &file, &to.checkpoint(file.number), copied)?;
    }
    for file in shard.segments() {
        copy_file(shard, &file, &to.segment(file.number), copied)?;
    }
    let from = shard.log_from();
    let bytes = shard.log_end().offset.saturating_sub(from.offset);
    if bytes > 0 {
        copied.copied += bytes;
        copy(&to.log(), bytes, &mut |offset, count| shard.read_log(from.plus(offset), count))?;
    }
    Ok(())
}

fn copy_file(shard: &CapturedShard, file: &CapturedFile, to: &Path, copied: &mut Copied) -> io::Result<()> {
    match shard.link(file, to) {
        Ok(()) => {
            copied.linked += file.bytes;
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        // Another file system, one without links, or too many of them.
        Err(_) => {
            copied.copied += file.bytes;
            copy(to, file.bytes, &mut |offset, count| shard.read_file(file, offset, count))
        }
    }
}

/// Reads a part: from where on, and how many bytes.
type ReadPart<'a> = &'a mut dyn FnMut(u64, usize) -> io::Result<Vec<u8>>;

fn copy(to: &Path, bytes: u64, read: ReadPart<'_>) -> io::Result<()> {
    let mut file = fs::File::create_new(to)?;
    let mut offset = 0;
    while offset < bytes {
        let count = COPY_BYTES.min(bytes - offset);
        file.write_all(&read(offset, count as usize)?)?;
        offset += count;
    }
    file.sync_all()
}

/// Writes the store at `from`, which no daemon has open, to `to`, which must not be there, or be empty. Its log is copied as
/// it is, and what its next start repairs, that of the copy repairs, too.
///
/// # Errors
/// When `from` is no store or a daemon has it open; when `to` is there; the system's. Nothing is left then.
pub fn write_at_rest(from: &Path, to: &Path) -> io::Result<Copied> {
    let disk = RealDisk::open(from)?;
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let identity = Identity::load(&disk).map_err(|error| invalid(error.to_string()))?;
    let identity = identity
        .ok_or_else(|| invalid(format!("\"{}\" is no store: it has no file STORE", from.display())))?;
    let history = History::load(&disk).map_err(|error| invalid(error.to_string()))?;
    // Held until the end.
    let lock = disk.open(&filenames::lock(Path::new("")), Mode::Write)?;
    if !lock.try_lock()? {
        return Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            format!(
                "a daemon has the store \"{}\" open; ask it: roundel snapshot, with --daemon ADDRESS",
                from.display()
            ),
        ));
    }
    let assembly = Assembly::begin(to)?;
    let mut copied = Copied::default();
    let written = (0..identity.shard_count).try_for_each(|index| {
        let dir = filenames::shard(Path::new(""), index);
        let manifest = Manifest::load(&disk, &dir).map_err(|error| invalid(error.to_string()))?;
        let manifest = manifest.ok_or_else(|| invalid(format!("{} has no manifest", dir.display())))?;
        fs::create_dir(to.join(&dir))?;
        for file in files_of(&disk, &dir, &manifest)? {
            copy_at_rest(&disk, &file, &to.join(&file), &mut copied)?;
        }
        manifest.store(&RealDisk::open(to)?, &dir)
    });
    match written {
        // It has all of the log, and therefore all epochs.
        Ok(()) => assembly.complete_as(&identity.text(), &history.of_copy(&[], 0)).map(|()| copied),
        Err(error) => {
            assembly.discard();
            Err(error)
        }
    }
}

/// What a shard at rest consists of, but for its manifest.
fn files_of(disk: &RealDisk, dir: &Path, manifest: &Manifest) -> io::Result<Vec<PathBuf>> {
    let needed = |kind: FileKind| match kind {
        FileKind::Log(_) => true,
        FileKind::Checkpoint(number) => number == manifest.checkpoint,
        FileKind::Segment(number) => manifest.segments.iter().any(|segment| segment.number == number),
        FileKind::Manifest | FileKind::ManifestNew | FileKind::ManifestCopy => false,
    };
    let names = disk.list(dir)?;
    Ok(names
        .iter()
        .filter(|name| filenames::kind_of(name).is_some_and(needed))
        .map(|name| dir.join(name))
        .collect())
}

fn copy_at_rest(disk: &RealDisk, path: &Path, to: &Path, copied: &mut Copied) -> io::Result<()> {
    let bytes = disk.length(path)?;
    let is_log =
        path.file_name().and_then(filenames::kind_of).is_some_and(|kind| matches!(kind, FileKind::Log(_)));
    // The log is the one file that is written in place.
    if !is_log && disk.link_out(path, to).is_ok() {
        copied.linked += bytes;
        return Ok(());
    }
    copied.copied += bytes;
    let file = disk.open(path, Mode::Read)?;
    copy(to, bytes, &mut |offset, count| {
        let mut read = vec![0; count];
        let filled = file.read_at(&mut read, offset)?;
        read.truncate(filled);
        Ok(read)
    })
}
