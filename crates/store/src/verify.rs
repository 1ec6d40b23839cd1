//! Reads every checksum of a store, and says what is damaged, where, and whose rows it costs. This is `roundel verify`, and
//! the background pass of the daemon.
//!
//! Nothing is written. A store that is in use is read beside its writers: a file that they replace meanwhile is no finding.

mod line;
mod live;
mod segment;
mod tree;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::awaited;
use crate::checkpoint::survey::{Frame, Visitor, survey};
use crate::checkpoint::{CheckpointError, Label, LoadedRrd, Loader, PageDefinition};
use crate::content::Content;
use crate::disk::{Disk, Mode, RealDisk};
use crate::filenames;
use crate::group::Geometry;
use crate::identity::{Identity, Owner};
use crate::log::{self, Record, ReplayError};
use crate::manifest::Manifest;
use crate::segments::open_named;

pub(crate) use live::shard as live_shard;
pub use tree::files;

use self::segment::Namer;

/// The most names of RRDs in a [`Finding`]; others are counted.
pub const NAMES_MAX: usize = 1000;

/// Damage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the store.
    pub file: PathBuf,
    /// Where in the file it begins.
    pub byte: u64,
    /// What is wrong.
    pub what: String,
    /// Whose rows it costs, as far as that is known.
    pub lost: Option<LostRows>,
}

/// The rows that may be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostRows {
    /// Names of RRDs, at most [`NAMES_MAX`].
    pub rrds: Vec<String>,
    /// How many RRDs.
    pub count: u64,
    /// The time of the oldest row, in seconds since the epoch.
    pub from: i64,
    /// The time of the newest row.
    pub to: i64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} byte {}: {}", self.file.display(), self.byte, self.what)
    }
}

/// Where a pass is: a part of a shard. Parts are visited in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The shard.
    pub shard: u32,
    /// A segment's number, or 0 for manifest, checkpoint and log.
    pub segment: u64,
}

/// Follows a pass.
pub trait Watch {
    /// A part is next; false passes over it.
    fn begin(&mut self, _place: Place) -> bool {
        true
    }
    /// So many bytes more were read; false ends the pass.
    fn checked(&mut self, bytes: u64) -> bool;
    /// Damage.
    fn found(&mut self, finding: Finding);
}

/// Why a store could not be verified.
#[derive(Debug)]
pub enum VerifyError {
    /// The directory holds neither a store nor anything of the files layout.
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
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerifyError::NoStore(path) => write!(
                f,
                "\"{}\" is no store: it has neither a file STORE nor a directory shard-NNN, nor journals or .rrd files",
                path.display()
            ),
            VerifyError::InUse(path) => write!(
                f,
                "a daemon has the store \"{}\" open; ask it: roundel verify --daemon ADDRESS",
                path.display()
            ),
            VerifyError::Io { path, error } => write!(f, "cannot verify \"{}\": {error}", path.display()),
        }
    }
}

impl std::error::Error for VerifyError {}

/// Bytes that [`store`] will read of the store or the tree at `path`, for a progress bar.
pub fn bytes(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let one = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(found) if found.is_dir() => bytes(&entry.path()),
        Ok(found) if found.is_file() && !entry.file_name().to_string_lossy().starts_with("damaged-") => {
            entry.metadata().map_or(0, |found| found.len())
        }
        _ => 0,
    };
    entries.flatten().map(one).sum()
}

/// Verifies what is at `path`, which no daemon has open: a store, or a directory with journals or `.rrd` files.
///
/// # Errors
/// When there is nothing of that kind, a daemon has it open, or the disk fails.
pub fn path(path: &Path, watch: &mut dyn Watch) -> Result<(), VerifyError> {
    let failed = |error| VerifyError::Io { path: path.to_owned(), error };
    let disk = RealDisk::open(path).map_err(failed)?;
    let names = disk.list(Path::new("")).map_err(failed)?;
    let is_store = names.iter().any(|name| name == "STORE" || filenames::shard_index(name).is_some());
    // Held until the end. Opened to be read: a copy of a store may be on a medium that cannot be written.
    let lock = match disk.open(&filenames::lock(Path::new("")), Mode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => Some(opened.map_err(failed)?),
    };
    if let Some(lock) = &lock
        && !lock.try_lock().map_err(failed)?
    {
        return Err(VerifyError::InUse(path.to_owned()));
    }
    match is_store {
        true => store(&disk, watch).map_err(failed),
        false if files(path, None, watch) => Ok(()),
        false => Err(VerifyError::NoStore(path.to_owned())),
    }
}

/// Verifies a store that no daemon has open.
///
/// # Errors
/// When the disk fails.
pub fn store(disk: &dyn Disk, watch: &mut dyn Watch) -> io::Result<()> {
    awaited::refuse(disk).map_err(io::Error::other)?;
    let root = Path::new("");
    let mut whole = |file: PathBuf, what: String| watch.found(Finding { file, what, ..Finding::default() });
    let identity = match Identity::load(disk) {
        Ok(Some(identity)) => Some(identity),
        Ok(None) => {
            whole(filenames::identity(root), "it is missing; `roundel repair` can write it again".into());
            None
        }
        Err(error) => {
            whole(filenames::identity(root), error.to_string());
            None
        }
    };
    let mut shards: Vec<u32> =
        disk.list(root)?.iter().filter_map(|name| filenames::shard_index(name)).collect();
    let count = identity.map_or(0, |identity| identity.shard_count);
    for index in (0..count).filter(|index| !shards.contains(index)) {
        whole(filenames::shard(root, index), "the directory is missing".into());
    }
    shards.sort_unstable();
    for index in shards {
        let owner = identity.map(|store| Owner { store, shard: index });
        if !shard(disk, index, owner, watch) {
            break;
        }
    }
    Ok(())
}

/// False when the pass is to end.
fn shard(disk: &dyn Disk, index: u32, owner: Option<Owner>, watch: &mut dyn Watch) -> bool {
    let dir = &filenames::shard(Path::new(""), index);
    let place = Place { shard: index, segment: 0 };
    let Some(manifest) = check_manifests(disk, dir, owner, watch) else { return true };
    let mut names = CheckpointNames { disk, dir, number: manifest.checkpoint, loaded: None };
    if watch.begin(place) {
        let go_on = check_checkpoint(disk, dir, &manifest, watch) && check_log(disk, dir, &manifest, watch);
        if !go_on {
            return false;
        }
    }
    for name in &manifest.segments {
        if !watch.begin(Place { segment: name.number, ..place }) {
            continue;
        }
        let path = filenames::segment(dir, name.number);
        let go_on = match open_named(disk, &path, &manifest.expected(name)) {
            Ok((open, damage)) => {
                // Blocks that are lost are reported with the rows they cost.
                for error in damage.iter().take(damage.len() - open.gaps().len()) {
                    watch.found(segment::finding(&path, error, None));
                }
                segment::check(&open, name.content, &path, &mut names, watch)
            }
            Err(error) => {
                watch.found(segment::finding(&path, &error, None));
                watch.checked(name.bytes)
            }
        };
        if !go_on {
            return false;
        }
    }
    true
}

/// The manifest of a shard, or else its copy.
fn check_manifests(
    disk: &dyn Disk,
    dir: &Path,
    owner: Option<Owner>,
    watch: &mut dyn Watch,
) -> Option<Manifest> {
    let mut first: Option<Manifest> = None;
    for file in [filenames::manifest(dir), filenames::manifest_copy(dir)] {
        let what = match Manifest::load_from(disk, &file) {
            Ok(Some(manifest)) if manifest.owner.is_some() && owner.is_some() && manifest.owner != owner => {
                let whose = manifest.owner.map_or_else(String::new, |owner| owner.to_string());
                format!("it is that of {whose}")
            }
            Ok(Some(manifest)) => {
                first.get_or_insert(manifest);
                continue;
            }
            Ok(None) => "it is missing".into(),
            Err(error) => error.to_string(),
        };
        watch.found(Finding {
            file,
            what: format!("{what}; `roundel repair` can restore it"),
            ..Finding::default()
        });
    }
    first
}

/// What is wrong with a checkpoint that has the right number and another content than the manifest names.
pub(crate) const CHECKPOINT_OF_COPY: &str =
    "it is not the one that the manifest names but that of a copy of the store which has run since";

/// Reports the damage of a checkpoint; false when the pass is to end.
fn check_checkpoint(disk: &dyn Disk, dir: &Path, manifest: &Manifest, watch: &mut dyn Watch) -> bool {
    if manifest.checkpoint == 0 {
        return true;
    }
    let label = Label { owner: manifest.tag(), number: manifest.checkpoint };
    let file = filenames::checkpoint(dir, manifest.checkpoint);
    let mut pages = Pages { file: file.clone(), watch, go_on: true, is_whole: true, last: Label::default() };
    let ended = survey(disk, &file, &mut pages);
    let Pages { go_on, is_whole, last, watch, .. } = pages;
    let what = match ended {
        Ok(true) if !label.matches(last) => "it is another checkpoint".to_string(),
        Ok(true) => match manifest.checkpoint_content.filter(|_| is_whole && go_on) {
            Some(want) => match Content::of_file(disk, &file) {
                Ok(content) if content == want => return go_on,
                Ok(_) => CHECKPOINT_OF_COPY.to_string(),
                // A checkpoint that was replaced meanwhile cannot be opened: no reason to end the pass.
                Err(error) => error.to_string(),
            },
            None => return go_on,
        },
        Ok(false) => "its end is missing; the shard does not open without it".to_string(),
        Err(error) => error.to_string(),
    };
    watch.found(Finding { file, what, ..Finding::default() });
    go_on
}

struct Pages<'a> {
    file: PathBuf,
    watch: &'a mut dyn Watch,
    go_on: bool,
    is_whole: bool,
    last: Label,
}

impl Loader for Pages<'_> {
    fn group(&mut self, _: Geometry) {}
    fn page(&mut self, _: &[PageDefinition<'_>]) {}
    fn rrd(&mut self, _: LoadedRrd<'_>) {}
}

impl Visitor for Pages<'_> {
    fn frame(&mut self, frame: &Frame) {
        self.last = frame.label;
        self.go_on &= self.watch.checked(frame.bytes);
    }

    fn damage(&mut self, error: CheckpointError) {
        self.is_whole = false;
        let byte = match &error {
            CheckpointError::Damaged { offset, .. } => *offset,
            CheckpointError::Io(_) => 0,
        };
        self.watch.found(Finding { file: self.file.clone(), byte, what: error.to_string(), lost: None });
    }
}

/// Reports the damage of a log from the manifest's position on; false when the pass is to end.
fn check_log(disk: &dyn Disk, dir: &Path, manifest: &Manifest, watch: &mut dyn Watch) -> bool {
    let mut go_on = true;
    let replayed = log::replay(disk, dir, manifest.position, manifest.known(), &mut |record: Record<'_>| {
        go_on &= watch.checked(record.end.offset.saturating_sub(record.position.offset));
        if go_on { Ok(()) } else { Err(Stopped) }
    });
    match replayed {
        Ok(end) => {
            for damage in end.damage {
                watch.found(Finding {
                    file: damage.path.clone(),
                    byte: damage.file_offset,
                    what: format!("{damage}; the next start says which RRDs lack updates"),
                    lost: None,
                });
            }
        }
        Err(ReplayError::Visitor(Stopped)) => {}
        Err(ReplayError::Log(error)) => {
            let file = filenames::log(dir, manifest.position);
            watch.found(Finding { file, what: error.to_string(), ..Finding::default() });
        }
    }
    go_on
}

struct Stopped;

/// The names of a shard's RRDs by its checkpoint, read when the first one is asked for.
struct CheckpointNames<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    number: u64,
    loaded: Option<Vec<(u32, String)>>,
}

impl Namer for CheckpointNames<'_> {
    fn names(&mut self, _: u32, slots: std::ops::RangeInclusive<u32>) -> Vec<String> {
        let names = self.loaded.get_or_insert_with(|| {
            let mut names = Names(Vec::new());
            let path = filenames::checkpoint(self.dir, self.number);
            // Without a checkpoint there are no names; that it is damaged was reported.
            let _ = survey(self.disk, &path, &mut names);
            names.0
        });
        names.iter().filter(|(id, _)| slots.contains(id)).map(|(_, name)| name.clone()).collect()
    }
}

struct Names(Vec<(u32, String)>);

impl Loader for Names {
    fn group(&mut self, _: Geometry) {}
    fn page(&mut self, _: &[PageDefinition<'_>]) {}
    fn rrd(&mut self, rrd: LoadedRrd<'_>) {
        self.0.push((rrd.id, String::from_utf8_lossy(rrd.name).into_owned()));
    }
}

impl Visitor for Names {
    fn frame(&mut self, _: &Frame) {}
    fn damage(&mut self, _: CheckpointError) {}
}

/// True when a file is there and can be opened.
fn is_there(disk: &dyn Disk, path: &Path) -> bool {
    disk.open(path, Mode::Read).is_ok()
}

#[cfg(test)]
mod tests;
