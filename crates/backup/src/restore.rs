//! A store of a backup's objects.
//!
//! Every object is checked by its hash before anything of it is written. What is missing or damaged is named, leaves a hole, and
//! the store takes it like damage of its own disk: only the rows in it are lost. Until all is there, what was written is not a
//! store; when the disk is full, it is removed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use store::assemble::{Assembly, ShardAssembly, Until};
use store::filenames;
use store::replication::History;

use crate::later::{LaterFile, Origin, Restoring};
use crate::manifest::{BackedFile, BackedShard, BackupManifest, LogChunk};
use crate::moments::{Found, Moment};
use crate::objects::{ObjectError, Objects};
use crate::own::{self, OwnList, OwnRestored};
use crate::parts::{self, SMALL_BYTES};
use crate::upload::store_position;

/// Objects that are fetched at once.
pub const FETCHED_AT_ONCE: usize = 8;

/// Follows a long work.
pub trait Progress: Send + Sync {
    /// There are so many bytes.
    fn total(&self, bytes: u64);
    /// So many more are done.
    fn done(&self, bytes: u64);
}

/// An object that is missing or damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostObject {
    /// What is wrong with which.
    pub error: ObjectError,
    /// What it held.
    pub held: String,
}

impl std::fmt::Display for LostObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; it held {}", self.error, self.held)
    }
}

/// Why nothing was restored.
#[derive(Debug)]
pub enum RestoreError {
    /// The server fails.
    Object(ObjectError),
    /// The disk fails, or is full.
    Disk(io::Error),
    /// Without this object there is no store at all.
    Essential(LostObject),
}

impl std::fmt::Display for RestoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RestoreError::Object(error) => error.fmt(f),
            RestoreError::Disk(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                write!(f, "{error}: give a directory that is not there yet")
            }
            RestoreError::Disk(error) => {
                write!(f, "cannot write the store: {error}; what was written is removed")
            }
            RestoreError::Essential(lost) => write!(
                f,
                "{lost}, without which the shard does not open; give an earlier moment with --at (`roundel backup list`)"
            ),
        }
    }
}

impl std::error::Error for RestoreError {}

impl From<io::Error> for RestoreError {
    fn from(error: io::Error) -> Self {
        RestoreError::Disk(error)
    }
}

/// What was restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// What is missing, because these objects are.
    pub lost: Vec<LostObject>,
    /// Where the logs end: generation and offset.
    pub ends: Vec<(u32, u64)>,
    /// Bytes that come later.
    pub later_bytes: u64,
    /// The daemon's own files.
    pub own: OwnRestored,
}

/// What of a backup is wanted, and when.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The moment.
    pub moment: &'a Moment,
    /// Shards of which nothing is wanted are empty then; `None` = all are wanted.
    pub shards: Option<&'a BTreeSet<u32>>,
    /// Segments come later, by what is written for [`crate::later`]; `None` = everything comes now.
    pub later: Option<&'a Origin>,
    /// Whether the daemon's own files are wanted, too.
    pub own: bool,
    /// The replica of a cluster's node is wanted, as it was; not a store that goes its own way from there.
    pub is_replica: bool,
}

impl Wanted<'_> {
    fn is_wanted(&self, shard: usize) -> bool {
        self.shards.is_none_or(|shards| shards.contains(&(shard as u32)))
    }

    pub(crate) fn bytes_of(&self, (index, shard): (usize, &BackedShard)) -> u64 {
        if !self.is_wanted(index) {
            return 0;
        }
        let segments = shard.segments.iter().map(|file| match self.later {
            Some(_) => end_of(file).0,
            None => file.bytes,
        });
        let log = shard.log.iter().map(|chunk| chunk.bytes);
        shard.checkpoint.iter().map(|file| file.bytes).chain(segments).chain(log).sum()
    }
}

/// What of a segment is fetched at once when the rest comes later: how many bytes at its end, and the object with them; `None` =
/// its last part.
fn end_of(file: &BackedFile) -> (u64, Option<&str>) {
    match &file.end {
        Some(end) => (end.bytes, Some(&end.object)),
        None => (parts::range(file.bytes, parts::count(file.bytes) - 1).1, None),
    }
}

/// Makes the store of a moment in a directory, which must not be there, or be empty.
///
/// # Errors
/// When the server or the disk fails, or an object is missing without which there is no store. Nothing is left then.
pub async fn restore(
    objects: &Objects,
    found: &Found,
    wanted: &Wanted<'_>,
    to: &Path,
    progress: &dyn Progress,
) -> Result<Restored, RestoreError> {
    progress.total(found.base.shards.iter().enumerate().map(|shard| wanted.bytes_of(shard)).sum());
    let assembly = Assembly::begin(to)?;
    let mut restored = Restored::default();
    match all(objects, found, wanted, &assembly, (&mut restored, progress)).await {
        Ok(history) => assembly.complete_as(&found.base.store, &history)?,
        Err(error) => {
            assembly.discard();
            return Err(error);
        }
    }
    Ok(restored)
}

/// Restores the shards and the daemon's own files. Returns the history of the store, which is a copy.
async fn all(
    objects: &Objects,
    found: &Found,
    wanted: &Wanted<'_>,
    assembly: &Assembly,
    (restored, progress): (&mut Restored, &dyn Progress),
) -> Result<History, RestoreError> {
    all_shards(objects, found, wanted, assembly, (&mut *restored, progress)).await?;
    if wanted.own {
        own_files(objects, found, assembly, restored).await?;
    }
    if wanted.is_replica {
        if let Some(mark) = &found.base.mark {
            let path = filenames::replicated(Path::new(""));
            assembly.own_file(&path.display().to_string(), mark.as_bytes())?;
        }
        return Ok(found.base.history());
    }
    let ends: Vec<_> = restored.ends.iter().map(|end| store_position(*end)).collect();
    // Of a part of the shards, the ends of the others are not known; and no one takes that for the store.
    Ok(match wanted.shards {
        Some(_) => History::default(),
        None => found.base.history().of_copy(&ends, found.known_epoch),
    })
}

/// Writes the daemon's own files.
async fn own_files(
    objects: &Objects,
    found: &Found,
    assembly: &Assembly,
    restored: &mut Restored,
) -> Result<(), RestoreError> {
    let lost = |error: ObjectError, held: String| match error.is_loss() {
        true => Ok(LostObject { error, held }),
        false => Err(RestoreError::Object(error)),
    };
    let list = match OwnList::fetch(objects, found.base.own.as_deref()).await {
        Ok(list) => list,
        Err(error) => {
            restored.lost.push(lost(error, OwnList::HELD.to_string())?);
            return Ok(());
        }
    };
    restored.own.left_out = list.left_out;
    for file in list.files {
        let Some(path) = own::path_in_store(&file.name) else {
            restored.own.left_out.push(file.is_foreign());
            continue;
        };
        match objects.get(&file.object).await {
            Err(error) => restored.lost.push(lost(error, file.held())?),
            Ok(content) => match assembly.own_file(path, &content) {
                Ok(()) => restored.own.written.push(file.name),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    restored.own.left_out.push(file.is_there());
                }
                Err(error) => return Err(error.into()),
            },
        }
    }
    Ok(())
}

/// Restores the shards, and writes what comes later.
async fn all_shards(
    objects: &Objects,
    found: &Found,
    wanted: &Wanted<'_>,
    assembly: &Assembly,
    (restored, progress): (&mut Restored, &dyn Progress),
) -> Result<(), RestoreError> {
    if wanted.shards.is_none() {
        has_room(found, assembly.free_bytes()?)?;
    }
    let mut later = Vec::new();
    for (index, shard) in found.base.shards.iter().enumerate() {
        let after = found.after.as_ref().and_then(|after| after.shards.get(index));
        let to = assembly.shard(index as u32, &shard.manifest)?;
        if !wanted.is_wanted(index) {
            to.complete_empty()?;
            continue;
        }
        let until = match wanted.moment {
            Moment::Newest => Until::End,
            Moment::Time(ms) => Until::Time(*ms),
            Moment::Positions(positions) => {
                positions.get(index).map_or(Until::End, |position| Until::Position(store_position(*position)))
            }
        };
        let work = Work { objects, shard, after, index, progress };
        work.restore(to, until, wanted.later.map(|_| &mut later), restored).await?;
    }
    let Some(origin) = wanted.later.filter(|_| !later.is_empty()) else { return Ok(()) };
    restored.later_bytes = later.iter().map(|one| one.file.bytes - one.end).sum();
    let text = Restoring::new(origin.clone(), later).encode()?;
    Ok(assembly.expect_later(&text)?)
}

/// Whether a store fits on the disk: what comes later must fit, too.
pub(crate) fn has_room(found: &Found, free: u64) -> Result<(), RestoreError> {
    let files: u64 = found.base.files().map(|file| file.bytes).sum();
    let log = |shard: &BackedShard| shard.log_end.1.saturating_sub(shard.log_from.1);
    let bytes = files + found.base.shards.iter().map(log).sum::<u64>();
    match bytes <= free {
        true => Ok(()),
        false => Err(RestoreError::Disk(io::Error::new(
            io::ErrorKind::StorageFull,
            format!("it takes {bytes} bytes, and {free} are free"),
        ))),
    }
}

/// A shard that is being restored.
struct Work<'a> {
    objects: &'a Objects,
    shard: &'a BackedShard,
    after: Option<&'a BackedShard>,
    index: usize,
    progress: &'a dyn Progress,
}

impl Work<'_> {
    async fn restore(
        &self,
        to: ShardAssembly<'_>,
        until: Until,
        later: Option<&mut Vec<LaterFile>>,
        restored: &mut Restored,
    ) -> Result<(), RestoreError> {
        let mut missing = Vec::new();
        if let Some(file) = &self.shard.checkpoint {
            let lost =
                self.file(file, &to.checkpoint(file.number), "the checkpoint", &mut restored.lost).await?;
            // Its end holds what all pages need.
            if let Some(last) = lost.last().filter(|last| last.0 + 1 == parts::count(file.bytes)) {
                return Err(RestoreError::Essential(last.1.clone()));
            }
        }
        let now = match later {
            Some(later) => self.ends(&to, later).await?,
            None => self.shard.segments.iter().collect(),
        };
        for file in now {
            let path = to.segment(file.number);
            let what = format!("segment {:016x}", file.number);
            let lost = self.file(file, &path, &what, &mut restored.lost).await?;
            let is_lost = |part: u64| lost.iter().any(|lost| lost.0 == part);
            // A segment without its head and its end tells nothing of what is between.
            if is_lost(0) && is_lost(parts::count(file.bytes) - 1) {
                std::fs::remove_file(&path)?;
                missing.push(file.number);
            }
        }
        let end = self.log(&to, &mut restored.lost).await?;
        let end = to.complete(store_position(end), until, &missing)?;
        restored.ends.push((end.generation, end.offset));
        Ok(())
    }

    fn lost(&self, error: ObjectError, what: &str, from: u64, bytes: u64) -> LostObject {
        LostObject {
            error,
            held: format!("bytes {from} to {} of {what} of shard {}", from + bytes, self.index),
        }
    }

    /// Writes a file. Returns which parts are lost.
    async fn file(
        &self,
        file: &BackedFile,
        path: &Path,
        what: &str,
        all_lost: &mut Vec<LostObject>,
    ) -> Result<Vec<(u64, LostObject)>, RestoreError> {
        let out = Arc::new(File::create_new(path)?);
        out.set_len(file.bytes)?;
        let names = match parts::names(self.objects, &file.object, file.bytes).await {
            Ok(names) => names,
            Err(error) if error.is_loss() => {
                let lost = self.lost(error, what, 0, file.bytes);
                all_lost.push(lost.clone());
                // The first and the last tell what is left, and all others are lost with them.
                let ends = BTreeSet::from([0, parts::count(file.bytes) - 1]);
                return Ok(ends.into_iter().map(|part| (part, lost.clone())).collect());
            }
            Err(error) => return Err(RestoreError::Object(error)),
        };
        let parts = names.iter().enumerate().map(|(part, name)| {
            let (from, bytes) = parts::range(file.bytes, part as u64);
            (part as u64, name.as_str(), from, bytes)
        });
        let lost = self.write(parts.collect(), &out, 0, what).await?;
        all_lost.extend(lost.iter().map(|lost| lost.1.clone()));
        out.sync_all()?;
        Ok(lost)
    }

    /// Writes the ends of segments that come later. Returns the segments that have to come now, because they are small or
    /// because their end is lost.
    async fn ends(
        &self,
        to: &ShardAssembly<'_>,
        later: &mut Vec<LaterFile>,
    ) -> Result<Vec<&BackedFile>, RestoreError> {
        let ends: Vec<Option<u64>> = stream::iter(&self.shard.segments)
            .map(|file| self.end(file, to.segment(file.number)))
            .buffered(FETCHED_AT_ONCE)
            .try_collect()
            .await?;
        let mut now = Vec::new();
        for (file, end) in self.shard.segments.iter().zip(ends) {
            match end {
                Some(end) => {
                    let path = to.segment_in_store(file.number);
                    later.push(LaterFile { path, shard: self.index as u32, file: file.clone(), end });
                }
                None => now.push(file),
            }
        }
        Ok(now)
    }

    /// Writes the end of a segment, and returns how long it is; `None` when all of it has to come now.
    async fn end(&self, file: &BackedFile, path: PathBuf) -> Result<Option<u64>, RestoreError> {
        if file.bytes <= SMALL_BYTES {
            return Ok(None);
        }
        let of_its_own = end_of(file);
        let last = (parts::range(file.bytes, parts::count(file.bytes) - 1).1, None);
        for (bytes, object) in [of_its_own, last] {
            let got = match object {
                Some(object) => self.objects.get(object).await,
                None => match parts::names(self.objects, &file.object, file.bytes).await {
                    Ok(names) => self.objects.get(names.last().map_or("", |name| name)).await,
                    Err(error) => Err(error),
                },
            };
            match got {
                Ok(plain) => {
                    let out = File::create_new(filenames::awaited(&path))?;
                    out.set_len(file.bytes)?;
                    out.write_all_at(&plain, file.bytes - bytes)?;
                    out.sync_all()?;
                    self.progress.done(bytes);
                    return Ok(Some(bytes));
                }
                Err(error) if error.is_loss() => {}
                Err(error) => return Err(RestoreError::Object(error)),
            }
        }
        Ok(None)
    }

    /// Fetches objects, each with its number, its place and its length, and writes them from `skipped` bytes before their
    /// places on. Returns those that are lost.
    async fn write(
        &self,
        parts: Vec<(u64, &str, u64, u64)>,
        out: &File,
        skipped: u64,
        what: &str,
    ) -> Result<Vec<(u64, LostObject)>, RestoreError> {
        let lost: Vec<Option<(u64, LostObject)>> = stream::iter(parts)
            .map(|(part, name, from, bytes)| async move {
                let plain = match self.objects.get(name).await {
                    Ok(plain) => plain,
                    Err(error) if error.is_loss() => {
                        return Ok(Some((part, self.lost(error, what, from, bytes))));
                    }
                    Err(error) => return Err(RestoreError::Object(error)),
                };
                let before =
                    usize::try_from(skipped.saturating_sub(from)).unwrap_or(usize::MAX).min(plain.len());
                out.write_all_at(&plain[before..], from.saturating_sub(skipped))?;
                self.progress.done(bytes);
                Ok(None)
            })
            .buffer_unordered(FETCHED_AT_ONCE)
            .try_collect()
            .await?;
        let mut lost: Vec<_> = lost.into_iter().flatten().collect();
        lost.sort_by_key(|(part, _)| *part);
        Ok(lost)
    }

    /// Writes the log. Returns where it ends.
    async fn log(
        &self,
        to: &ShardAssembly<'_>,
        all_lost: &mut Vec<LostObject>,
    ) -> Result<(u32, u64), RestoreError> {
        let (generation, from) = self.shard.log_from;
        let mut chunks: Vec<&LogChunk> = self.shard.log.iter().filter(|chunk| chunk.end() > from).collect();
        let mut end = self.shard.log_end;
        if let Some(after) = self.after {
            chunks.extend(after.log.iter().filter(|chunk| chunk.from.0 == generation && chunk.end() > end.1));
            end = after.log_end;
        }
        if end.1 <= from {
            return Ok(end);
        }
        let out = File::create_new(to.log())?;
        out.set_len(end.1 - from)?;
        // Where they overlap, they have the same bytes.
        let parts = chunks
            .iter()
            .zip(0..)
            .map(|(chunk, part)| (part, chunk.object.as_str(), chunk.from.1, chunk.bytes));
        let lost = self.write(parts.collect(), &out, from, "the log").await?;
        all_lost.extend(lost.into_iter().map(|lost| lost.1));
        out.sync_all()?;
        Ok(end)
    }
}

/// Fetches every object of a manifest, and says which are missing or damaged.
///
/// # Errors
/// When the server fails.
pub async fn verify(
    objects: &Objects,
    manifest: &BackupManifest,
    progress: &dyn Progress,
) -> Result<Vec<LostObject>, ObjectError> {
    let mut named: Vec<(String, u64, String)> = Vec::new();
    let mut lost = Vec::new();
    for file in manifest.files() {
        let held = format!("a part of file {:016x}", file.number);
        if let Some(end) = &file.end {
            let held = format!("the end of file {:016x}, which is also in its last part", file.number);
            named.push((end.object.clone(), end.bytes, held));
        }
        match parts::names(objects, &file.object, file.bytes).await {
            Ok(names) => {
                let parts = names.into_iter().zip(0..);
                named
                    .extend(parts.map(|(name, part)| (name, parts::range(file.bytes, part).1, held.clone())));
            }
            Err(error) if error.is_loss() => lost.push(LostObject { error, held }),
            Err(error) => return Err(error),
        }
    }
    for chunk in manifest.shards.iter().flat_map(|shard| &shard.log) {
        named.push((
            chunk.object.clone(),
            chunk.bytes,
            format!("the log from {}:{} on", chunk.from.0, chunk.from.1),
        ));
    }
    match OwnList::fetch(objects, manifest.own.as_deref()).await {
        Ok(list) => {
            let files = list.files.into_iter();
            named.extend(files.map(|file| (file.object.clone(), file.bytes, file.held())));
        }
        Err(error) if error.is_loss() => lost.push(LostObject { error, held: OwnList::HELD.to_string() }),
        Err(error) => return Err(error),
    }
    progress.total(named.iter().map(|named| named.1).sum());
    let found: Vec<Option<LostObject>> = stream::iter(named)
        .map(|(name, bytes, held)| async move {
            let got = objects.get(&name).await;
            progress.done(bytes);
            match got {
                Ok(_) => Ok(None),
                Err(error) if error.is_loss() => Ok(Some(LostObject { error, held })),
                Err(error) => Err(error),
            }
        })
        .buffer_unordered(FETCHED_AT_ONCE)
        .try_collect()
        .await?;
    lost.extend(found.into_iter().flatten());
    Ok(lost)
}
