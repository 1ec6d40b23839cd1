//! Repairs the log of a shard: what is lost of it is taken from a backup that has the same records.
//!
//! A log is only appended to, so a copy of any time has the same records at the same positions, as far as they were durable when it
//! was made. What was not, a loss of power may have cut off, and others then took its place. So records of a backup are taken only
//! where they are proven to be those that are lost: the backup's manifest says that they were durable, or the record that follows the
//! lost ones is the same in both.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::Work;
use super::backup::copy_bytes;
use crate::disk::{Disk, Mode};
use crate::filenames;
use crate::log::writer::log_files;
use crate::log::{self, Damage, Known, LogError, Position, Record, ReplayEnd, ReplayError, Stamp};
use crate::manifest::Manifest;

/// What a start does about it.
const ADVICE: &str =
    "a start goes on without it, keeps the damaged file as damaged-..., and names the RRDs that lack updates";

/// Enough was read.
struct Enough;

impl Work<'_> {
    /// Looks for lost parts of the log that completes the checkpoint.
    pub(super) fn check_log(&mut self, dir: &Path, manifest: &Manifest) -> io::Result<()> {
        self.look(dir, manifest, false)
    }

    fn look(&mut self, dir: &Path, manifest: &Manifest, again: bool) -> io::Result<()> {
        let from = manifest.position;
        let end = match log::replay(self.disk, dir, from, manifest.known(), &mut |_| Ok::<_, Enough>(())) {
            Ok(end) => end,
            Err(ReplayError::Log(LogError::Io(error))) => return Err(error),
            Err(ReplayError::Log(error)) => {
                self.damage(error);
                self.hopeless("restore the shard from a backup, or use the newer program if there is one");
                return Ok(());
            }
            Err(ReplayError::Visitor(Enough)) => return Ok(()),
        };
        if !end.misplaced.is_empty() && !again {
            return self.straighten(dir, manifest, &end);
        }
        for damage in &end.damage {
            self.damage(damage);
            let Some(backup) = self.options.backup else {
                self.hopeless(format_args!(
                    "a copy of the store that is not older may have it: give it with --from DIR before the next start; {ADVICE}"
                ));
                continue;
            };
            let to = same_until(backup, self.disk, dir, manifest, damage)?;
            let (bytes, all) = (to.offset - damage.from.offset, damage.to.offset - damage.from.offset);
            if bytes > 0
                && self.step(format_args!("take {bytes} of the {all} lost bytes from the backup"), None)
            {
                self.fill(backup, dir, damage.from..to)?;
            }
            if bytes < all {
                let which = if bytes > 0 { "the rest of it" } else { "it" };
                self.hopeless(format_args!("the backup does not have {which}; {ADVICE}"));
            }
        }
        Ok(())
    }

    /// Puts records at their places again, where bytes were removed or added: only then it is known which are lost.
    fn straighten(&mut self, dir: &Path, manifest: &Manifest, end: &ReplayEnd) -> io::Result<()> {
        for damage in &end.damage {
            self.damage(damage);
        }
        let mut is_straight = true;
        for path in &end.misplaced {
            let what = format_args!("put the records of {} at their places, and look again", path.display());
            is_straight &= self.step(what, None);
            if is_straight {
                self.copy_aside(path)?;
                log::straighten(self.disk, dir, path, manifest.tag())?;
            }
        }
        if is_straight { self.look(dir, manifest, true) } else { Ok(()) }
    }

    fn copy_aside(&mut self, path: &Path) -> io::Result<()> {
        if let Some(copy) = log::copy_aside(self.disk, path)? {
            self.line(format_args!("    the old one is now {}", copy.display()));
        }
        Ok(())
    }

    /// Copies a range of the backup's log to the same positions.
    fn fill(&mut self, backup: &dyn Disk, dir: &Path, range: Range<Position>) -> io::Result<()> {
        let starts = log_files(backup, dir)?;
        for (index, &start) in starts.iter().enumerate() {
            let next = starts.get(index + 1).filter(|next| next.generation == start.generation);
            let from = range.start.max(start);
            let to = next.map_or(range.end, |next| range.end.min(*next));
            if start.generation != range.start.generation || from >= to {
                continue;
            }
            let path = filenames::log(dir, start);
            let file = match self.disk.exists(&path)? {
                true => {
                    self.copy_aside(&path)?;
                    self.disk.open(&path, Mode::Write)?
                }
                false => self.disk.create(&path)?,
            };
            let in_file = from.offset - start.offset..to.offset - start.offset;
            copy_bytes(&*backup.open(&path, Mode::Read)?, &*file, in_file)?;
            file.sync()?;
        }
        self.disk.sync_dir(dir)
    }
}

/// Up to where the backup has what `damage` cost, without any doubt; its beginning if it has nothing.
fn same_until(
    backup: &dyn Disk,
    disk: &dyn Disk,
    dir: &Path,
    manifest: &Manifest,
    damage: &Damage,
) -> io::Result<Position> {
    let Damage { from, to, .. } = *damage;
    let of_backup = Manifest::load(backup, dir).ok().flatten();
    let Some(of_backup) = of_backup.filter(|found| found.owner.is_some() && found.owner == manifest.owner)
    else {
        return Ok(from);
    };
    // A copy that has lived on by itself is none of this store.
    let before = before(disk, dir, manifest, from)?;
    if let Some((position, ours)) = before
        && first(backup, dir, position, manifest.tag())?.is_some_and(|theirs| theirs != ours)
    {
        return Ok(from);
    }
    let durable = of_backup.known.durable;
    let (mut at, mut proven, mut next) = (from, from, None);
    visit(backup, dir, from, manifest.tag(), &mut |record| {
        if record.position == to {
            next = (at == to).then(|| fingerprint(record));
            return false;
        }
        if record.position != at || record.end > to {
            return false;
        }
        at = record.end;
        if durable.generation == at.generation && at <= durable {
            proven = at;
        }
        true
    })?;
    let ours = first(disk, dir, to, manifest.tag())?;
    Ok(match (next, ours) {
        (Some(theirs), Some(ours)) if theirs == ours => to,
        (Some(_), Some(_)) => from,
        _ => proven,
    })
}

/// The last record before a position, if one ends there.
fn before(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &Manifest,
    end: Position,
) -> io::Result<Option<(Position, Fingerprint)>> {
    let mut found = None;
    visit(disk, dir, manifest.position, manifest.tag(), &mut |record| {
        if record.end == end {
            found = Some((record.position, fingerprint(record)));
        }
        record.end < end
    })?;
    Ok(found)
}

/// The record at a position.
fn first(disk: &dyn Disk, dir: &Path, at: Position, owner: u32) -> io::Result<Option<Fingerprint>> {
    let mut found = None;
    visit(disk, dir, at, owner, &mut |record| {
        found = (record.position == at).then(|| fingerprint(record));
        false
    })?;
    Ok(found)
}

/// Passes on the records from a position on, as long as `visit` returns true. A log that cannot be read has none.
fn visit(
    disk: &dyn Disk,
    dir: &Path,
    from: Position,
    owner: u32,
    visit: &mut dyn FnMut(&Record<'_>) -> bool,
) -> io::Result<()> {
    let known = Known { owner, ..Known::default() };
    let read =
        log::replay(disk, dir, from, known, &mut |record| if visit(&record) { Ok(()) } else { Err(Enough) });
    match read {
        Err(ReplayError::Log(LogError::Io(error))) if crate::disk::Shortage::of(&error).is_some() => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// What tells a record from all others: its envelope, and length and checksum of its body.
type Fingerprint = (Stamp, u64, usize, u32);

fn fingerprint(record: &Record<'_>) -> Fingerprint {
    (record.stamp, record.durable, record.body.len(), crc32c::crc32c(record.body))
}
