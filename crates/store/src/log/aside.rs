//! What happens to a damaged log file before anything is written: it is copied aside, and records that are not at their
//! places are put there.
//!
//! Nothing here is on the way of an update or of an ordinary start.

use std::io;
use std::path::{Path, PathBuf};

use super::envelope::ENVELOPE_BYTES;
use super::replay::Window;
use super::writer::log_files;
use super::{Position, ReplayEnd};
use crate::disk::{Disk, Mode};
use crate::filenames::{self, FileKind};

/// Bytes copied at once.
const COPY_BYTES: usize = 1 << 20;

/// Copies the files in which `end` reports damage, or bytes to be cut off, to `damaged-NAME` beside them. Returns the new
/// files; a copy that is there already is not made again.
///
/// # Errors
/// When the disk fails.
pub fn put_aside(disk: &dyn Disk, dir: &Path, end: &ReplayEnd) -> io::Result<Vec<PathBuf>> {
    let starts = log_files(disk, dir)?;
    let mut copies = Vec::new();
    for (index, &start) in starts.iter().enumerate() {
        let next = starts.get(index + 1).filter(|next| next.generation == start.generation);
        let holds = |from: Position, to: Option<Position>| {
            start.generation == from.generation
                && next.is_none_or(|next| from < *next)
                && to.is_none_or(|to| start < to)
        };
        let path = filenames::log(dir, start);
        let is_hit = end.damage.iter().any(|damage| holds(damage.from, Some(damage.to)))
            || end.cut.as_ref().is_some_and(|cut| cut.record_count > 0 && holds(cut.from, None))
            || end.misplaced.contains(&path);
        if is_hit {
            copies.extend(copy_aside(disk, &path)?);
        }
    }
    Ok(copies)
}

/// Copies a file to the first free name `damaged-NAME`, unless one of them has its content; without the zeros at its end.
pub(crate) fn copy_aside(disk: &dyn Disk, path: &Path) -> io::Result<Option<PathBuf>> {
    let content = used(disk, path)?;
    if content.is_empty() {
        return Ok(None);
    }
    let mut aside = filenames::damaged(path, 1);
    for count in 2.. {
        if !disk.exists(&aside)? {
            break;
        }
        if used(disk, &aside)? == content {
            return Ok(None);
        }
        aside = filenames::damaged(path, count);
    }
    let file = disk.create(&aside)?;
    file.write_at(&content, 0)?;
    file.sync()?;
    disk.sync_dir(path.parent().unwrap_or(Path::new("")))?;
    Ok(Some(aside))
}

/// The content of a file up to its last byte that is not zero.
fn used(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, Mode::Read)?;
    let mut content = Vec::new();
    loop {
        let at = content.len();
        content.resize(at + COPY_BYTES, 0);
        let count = file.read_at(&mut content[at..], at as u64)?;
        content.truncate(at + count);
        if count < COPY_BYTES {
            break;
        }
    }
    let length = content.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    content.truncate(length);
    Ok(content)
}

/// A good record, and where it stands in its file.
struct Found {
    position: Position,
    file_offset: u64,
    bytes: usize,
}

/// Rewrites a log file so that each of its good records stands at its own position. Records of positions before the file or
/// after the start of the next one are left out, and so are one that repeats an earlier
/// position, and those that have not the tag `owner`.
///
/// # Errors
/// When the disk fails; the file is then as it was, or rewritten.
pub fn straighten(disk: &dyn Disk, dir: &Path, path: &Path, owner: u32) -> io::Result<()> {
    let Some(FileKind::Log(start)) = path.file_name().and_then(filenames::kind_of) else { return Ok(()) };
    let next = log_files(disk, dir)?.into_iter().find(|other| *other > start);
    let next = next.filter(|next| next.generation == start.generation);
    let file = disk.open(path, Mode::Read)?;
    let mut window = Window::new(file, start, start.offset.saturating_add(disk.length(path)?), owner);
    let new_path = filenames::log_new(dir);
    match disk.remove(&new_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let new = disk.create(&new_path)?;
    let mut done = start;
    let mut at = start;
    while window.find_magic(&mut at)? {
        let Some(found) = window.any_record(at)? else {
            at.offset += 1;
            continue;
        };
        let Found { position, file_offset, bytes } = found;
        let end = position.plus(bytes as u64);
        if position.generation == start.generation && position >= done && next.is_none_or(|next| end <= next)
        {
            let record = window.bytes(start.offset + file_offset, bytes)?[..bytes].to_vec();
            new.write_at(&record, position.offset - start.offset)?;
            done = end;
        }
        at.offset += bytes as u64;
    }
    new.sync()?;
    disk.rename(&new_path, path)?;
    disk.sync_dir(dir)
}

impl Window {
    /// The good record that stands where `at` should, whatever its own position is.
    fn any_record(&mut self, at: Position) -> io::Result<Option<Found>> {
        let Some(position) = super::envelope::place_of(self.bytes(at.offset, ENVELOPE_BYTES)?) else {
            return Ok(None);
        };
        let start = self.start();
        let Ok(record) = self.record_of(at.offset, position)? else { return Ok(None) };
        let bytes = (record.end.offset - record.position.offset) as usize;
        Ok(Some(Found { position, file_offset: at.offset - start.offset, bytes }))
    }
}
