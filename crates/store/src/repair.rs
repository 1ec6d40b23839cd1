//! Repairs a store whose files are missing or damaged, as far as what remains allows. This is `roundel repair`.
//!
//! It first only says what it would do. Nothing is deleted: what a repair replaces or drops is renamed to
//! `damaged-NAME` beside it. A step that gives up data needs the operator's consent, because a backup may be better.

mod backup;
mod log;
mod rows;
mod segment;
mod shard;

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::awaited;
use crate::disk::{Disk, DiskFile, Mode, RealDisk};
use crate::filenames;
use crate::identity::Identity;
use crate::manifest::Manifest;

/// What a repair may do.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Do it, instead of only saying what would be done.
    pub apply: bool,
    /// Also take the steps that give up data.
    pub accept_loss: bool,
    /// A copy of the store, of any time, from which files that never change and rows are taken.
    pub backup: Option<&'a dyn Disk>,
}

/// The result of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Steps taken, or with [`Options::apply`] unset, to take.
    pub steps: u64,
    /// Steps that need [`Options::accept_loss`].
    pub refused: u64,
    /// Damage that no step can repair.
    pub hopeless: u64,
}

/// Why a store could not be looked at or repaired.
#[derive(Debug)]
pub enum RepairError {
    /// The directory holds no part of a store.
    NoStore(PathBuf),
    /// A daemon has the store open.
    InUse(PathBuf),
    /// The disk failed.
    Io {
        /// The store.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The report could not be written.
    Write(io::Error),
}

impl fmt::Display for RepairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RepairError::NoStore(path) => write!(
                f,
                "\"{}\" is no store: it has neither a file STORE nor a directory shard-NNN; give the store's directory",
                path.display()
            ),
            RepairError::InUse(path) => {
                write!(f, "a daemon has the store \"{}\" open; stop it first", path.display())
            }
            RepairError::Io { path, error } => write!(f, "cannot repair \"{}\": {error}", path.display()),
            RepairError::Write(error) => write!(f, "cannot write the report: {error}"),
        }
    }
}

impl std::error::Error for RepairError {}

/// Repairs the store in the directory `path`, and reports to `out`.
///
/// # Errors
/// When there is no store, a daemon has it open, the disk fails, or `out` does.
pub fn repair(path: &Path, options: Options<'_>, out: &mut dyn Write) -> Result<Outcome, RepairError> {
    let failed = |error| RepairError::Io { path: path.to_owned(), error };
    let disk = RealDisk::open(path).map_err(failed)?;
    let lock = lock(&disk).map_err(failed)?;
    if lock.as_ref().is_some_and(|(_, held)| !held) {
        return Err(RepairError::InUse(path.to_owned()));
    }
    let mut work = Work { disk: &disk, options, out, broken: None, outcome: Outcome::default() };
    if !work.store().map_err(failed)? {
        return Err(RepairError::NoStore(path.to_owned()));
    }
    match work.broken {
        Some(error) => Err(RepairError::Write(error)),
        None => Ok(work.outcome),
    }
}

/// Repairs the store on `disk`, which no daemon has open; false when there is none.
///
/// # Errors
/// When the disk fails.
pub fn repair_disk(
    disk: &dyn Disk,
    options: Options<'_>,
    out: &mut dyn Write,
) -> io::Result<Option<Outcome>> {
    let mut work = Work { disk, options, out, broken: None, outcome: Outcome::default() };
    Ok(work.store()?.then_some(work.outcome))
}

/// The store's lock file, if there is one, and whether it could be locked.
fn lock(disk: &dyn Disk) -> io::Result<Option<(Arc<dyn DiskFile>, bool)>> {
    match disk.open(&filenames::lock(Path::new("")), Mode::Write) {
        Ok(file) => {
            let held = file.try_lock()?;
            Ok(Some((file, held)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A repair in progress.
struct Work<'a> {
    disk: &'a dyn Disk,
    options: Options<'a>,
    out: &'a mut dyn Write,
    broken: Option<io::Error>,
    outcome: Outcome,
}

impl Work<'_> {
    fn line(&mut self, text: impl fmt::Display) {
        if self.broken.is_none()
            && let Err(error) = writeln!(self.out, "{text}")
        {
            self.broken = Some(error);
        }
    }

    fn damage(&mut self, text: impl fmt::Display) {
        self.line(format_args!("DAMAGE {text}"));
    }

    fn hopeless(&mut self, advice: impl fmt::Display) {
        self.outcome.hopeless += 1;
        self.line(format_args!("  cannot be repaired: {advice}"));
    }

    /// Announces a step; true when it is to be taken now. `loss`: what it gives up.
    fn step(&mut self, what: impl fmt::Display, loss: Option<&str>) -> bool {
        match loss {
            Some(loss) if !self.options.accept_loss => {
                self.outcome.refused += 1;
                self.line(format_args!("  only with --accept-loss: {what}"));
                self.line(format_args!("    this gives up {loss}"));
                return false;
            }
            Some(loss) => self.line(format_args!("  this gives up {loss}")),
            None => {}
        }
        self.outcome.steps += 1;
        let verb = if self.options.apply { "now" } else { "would" };
        self.line(format_args!("  {verb}: {what}"));
        self.options.apply
    }

    /// Renames a file to `damaged-NAME`, if it is there, so that nothing is lost.
    fn put_aside(&mut self, path: &Path) -> io::Result<()> {
        let mut aside = filenames::damaged(path, 1);
        for count in 2.. {
            if !self.disk.exists(&aside)? {
                break;
            }
            aside = filenames::damaged(path, count);
        }
        match self.disk.rename(path, &aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                self.line(format_args!("    the old one is now {}", aside.display()));
                self.disk.sync_dir(path.parent().unwrap_or(Path::new("")))
            }
        }
    }

    /// False when there is no store.
    fn store(&mut self) -> io::Result<bool> {
        let root = Path::new("");
        let present: Vec<u32> =
            self.disk.list(root)?.iter().filter_map(|name| filenames::shard_index(name)).collect();
        let is_store = self.disk.exists(&filenames::identity(root))? || !present.is_empty();
        if !is_store {
            return Ok(false);
        }
        awaited::refuse(self.disk).map_err(io::Error::other)?;
        let Some(identity) = self.identity(&present)? else { return Ok(true) };
        self.line(format_args!("store {}, {} shards", identity.id_text(), identity.shard_count));
        for index in 0..identity.shard_count {
            self.shard(&identity, index)?;
        }
        for index in present.into_iter().filter(|index| *index >= identity.shard_count) {
            self.line(format_args!("{} is not part of this store", filenames::shard(root, index).display()));
        }
        Ok(true)
    }

    /// The identity from the file STORE, or else from the shards' manifests.
    fn identity(&mut self, shards: &[u32]) -> io::Result<Option<Identity>> {
        match Identity::load(self.disk) {
            Ok(Some(identity)) => return Ok(Some(identity)),
            Ok(None) => self.damage("the file STORE is missing"),
            Err(error) => self.damage(error),
        }
        let mut found: Vec<Identity> = Vec::new();
        for &index in shards {
            let dir = filenames::shard(Path::new(""), index);
            let named =
                [filenames::manifest(&dir), filenames::manifest_copy(&dir)].into_iter().find_map(|path| {
                    let manifest = Manifest::load_from(self.disk, &path).ok()??;
                    manifest.owner.filter(|owner| owner.shard == index)
                });
            let Some(owner) = named else { continue };
            if !found.contains(&owner.store) {
                found.push(owner.store);
            }
        }
        match found[..] {
            [identity] => {
                let what = format!(
                    "write it again from the shards' manifests: store {}, {} shards",
                    identity.id_text(),
                    identity.shard_count
                );
                if self.step(what, None) {
                    self.put_aside(&filenames::identity(Path::new("")))?;
                    identity.store(self.disk)?;
                }
                Ok(Some(identity))
            }
            [] => {
                self.hopeless("no shard's manifest says which store it belongs to; restore STORE from a backup (it never changes)");
                Ok(None)
            }
            _ => {
                self.hopeless("the shards are those of several stores; put back the right ones");
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests;
