//! The manifest of a backup: the store at one moment, and all objects that make it up. Manifests are numbered upward.
//!
//! `docs/format/backup.md` describes it. A manifest is the last object of its round, so that everything that it names is there.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use store::replication::{History, Mark};

use crate::objects::{ObjectError, Objects};
use crate::seal::SealError;

/// Version of the manifest; a reader refuses any other.
pub const VERSION: u32 = 1;
/// The object that says which manifest was written last; it may be stale.
pub const NEWEST: &str = "newest";
/// The object that says which manifests were pruned.
pub const PRUNED: &str = "pruned";
/// Numbers that are probed above the newest manifest that is found: so many may have been lost in a row.
const PROBED: u64 = 16;
/// The highest number: beyond, it is no manifest's.
const NUMBER_MAX: u64 = 1 << 50;
/// The most numbers that are looked at: one a second for half a year.
const NUMBERS_MAX: usize = 1 << 24;
/// zstd's level: hashes do not compress much better with more.
const LEVEL: i32 = 3;
/// The largest store, and the furthest offset of a log.
pub(crate) const STORE_BYTES_MAX: u64 = 1 << 52;
/// The longest manifest, uncompressed: a million files.
const BYTES_MAX: usize = 256 << 20;

/// A position of a log: generation and offset.
pub type LogPosition = (u32, u64);

/// A store at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// [`VERSION`].
    pub version: u32,
    /// Its number.
    pub number: u64,
    /// The moment, in milliseconds since the epoch.
    pub time_ms: i64,
    /// The text of the file STORE.
    pub store: String,
    /// The text of the file HISTORY; empty = none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub history: String,
    /// Drawn by the daemon that wrote it: two that write to one place notice.
    pub writer: u64,
    /// The first manifest with the same checkpoints: of those that share it, the last has all that the others have.
    pub base: u64,
    /// The moment of that first manifest, in milliseconds since the epoch: from there on every moment is in this one, also when the first was
    /// pruned. Older manifests do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_ms: Option<i64>,
    /// The shards.
    pub shards: Vec<BackedShard>,
    /// Numbers of the manifests before it, as first and last of each run; some may be gone.
    pub earlier: Vec<(u64, u64)>,
    /// The object with the list of the daemon's own files ([`crate::own::OwnList`]); older manifests name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
    /// Of a replica of a cluster's partition: the text of the file REPLICATED, which says at which message it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// A shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedShard {
    /// The text of its manifest.
    pub manifest: String,
    /// Where replay starts.
    pub log_from: LogPosition,
    /// Where the log ended at that moment.
    pub log_end: LogPosition,
    /// Where the log ended when the base began: from there on it is here, for moments in between.
    pub since: LogPosition,
    /// The checkpoint, if there is one.
    pub checkpoint: Option<BackedFile>,
    /// The segments.
    pub segments: Vec<BackedFile>,
    /// The log from the earlier of `log_from` and `since` on, in order.
    pub log: Vec<LogChunk>,
}

/// A file that never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedFile {
    /// Its number in the shard.
    pub number: u64,
    /// Its length.
    pub bytes: u64,
    /// Its hash by the shard's manifest.
    pub content: Option<u64>,
    /// The object: its content, or the names of its parts.
    pub object: String,
    /// Of a segment, what is needed to open it, once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<BackedEnd>,
}

/// The bytes at the end of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedEnd {
    /// How many.
    pub bytes: u64,
    /// The object with these bytes.
    pub object: String,
}

/// A part of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogChunk {
    /// The position of its first byte.
    pub from: LogPosition,
    /// How long it is.
    pub bytes: u64,
    /// The object with these bytes.
    pub object: String,
}

impl LogChunk {
    /// Where the next one begins.
    pub fn end(&self) -> u64 {
        self.from.1 + self.bytes
    }
}

impl BackupManifest {
    /// The name of the manifest of this number.
    pub fn name(number: u64) -> String {
        format!("manifests/{number:016}")
    }

    /// The content of its object.
    ///
    /// # Errors
    /// Never, but as what compresses says.
    pub fn encode(&self) -> Result<Vec<u8>, std::io::Error> {
        let text = serde_json::to_vec(self).map_err(std::io::Error::other)?;
        zstd::bulk::compress(&text, LEVEL)
    }

    pub(crate) fn decode(plain: &[u8]) -> Option<BackupManifest> {
        let text = zstd::bulk::decompress(plain, BYTES_MAX).ok()?;
        BackupManifest::of_text(&text)
    }

    /// Reads what a content is when it is decompressed.
    pub(crate) fn of_text(text: &[u8]) -> Option<BackupManifest> {
        serde_json::from_slice(text).ok().filter(BackupManifest::is_sound)
    }

    /// Whether it is of our version, and its numbers can be those of a store, so that none overflows where it is used: who may write
    /// to the place of a backup without encryption may write what they like.
    fn is_sound(&self) -> bool {
        let is_end_sound = |file: &BackedFile| file.end.as_ref().is_none_or(|end| end.bytes <= file.bytes);
        let chunks = || self.shards.iter().flat_map(|shard| &shard.log);
        // What its files take when it is restored, and what is fetched of logs.
        let logs = self.shards.iter().map(|shard| shard.log_end.1.saturating_sub(shard.log_from.1));
        let mut bytes =
            self.files().map(|file| file.bytes).chain(chunks().map(|chunk| chunk.bytes)).chain(logs);
        let positions = self.shards.iter().flat_map(|shard| [shard.log_from, shard.log_end, shard.since]);
        let mut positions = positions.chain(chunks().map(|chunk| chunk.from));
        self.version == VERSION
            && self.number <= NUMBER_MAX
            && self.earlier.iter().all(|(first, last)| first <= last && *last <= NUMBER_MAX)
            && self.files().all(is_end_sound)
            && bytes.try_fold(0, u64::checked_add).is_some_and(|sum| sum <= STORE_BYTES_MAX)
            && positions.all(|(_, offset)| offset <= STORE_BYTES_MAX)
    }

    /// Fetches the manifest of this number.
    ///
    /// # Errors
    /// When it is missing, damaged, or of a newer version; when the server fails.
    pub async fn fetch(objects: &Objects, number: u64) -> Result<BackupManifest, ObjectError> {
        let name = BackupManifest::name(number);
        let plain = objects.get(&name).await?;
        let manifest = BackupManifest::decode(&plain).filter(|manifest| manifest.number == number);
        manifest.ok_or(ObjectError::Bad(name, SealError::Foreign))
    }

    /// What the store was; one whose text cannot be read was nothing else.
    pub fn history(&self) -> History {
        History::decode(&self.history).unwrap_or_default()
    }

    /// Of a replica: at which message of which replicated log it goes on.
    pub fn mark(&self) -> Option<Mark> {
        Mark::decode(self.mark.as_deref()?).ok()
    }

    /// Its files.
    pub fn files(&self) -> impl Iterator<Item = &BackedFile> {
        self.shards.iter().flat_map(|shard| shard.checkpoint.iter().chain(&shard.segments))
    }

    /// All objects that it names by itself.
    pub fn objects(&self) -> impl Iterator<Item = &str> {
        let chunks = self.shards.iter().flat_map(|shard| &shard.log).map(|chunk| chunk.object.as_str());
        let ends = self.files().filter_map(|file| file.end.as_ref()).map(|end| end.object.as_str());
        self.files().map(|file| file.object.as_str()).chain(ends).chain(chunks).chain(self.own.as_deref())
    }

    /// What the next manifest says of those before it.
    pub fn earlier_of_next(&self) -> Vec<(u64, u64)> {
        let mut runs = self.earlier.clone();
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == self.number => *last = self.number,
            _ => runs.push((self.number, self.number)),
        }
        runs
    }

    /// Numbers of all manifests up to this one, of which some may be gone.
    pub fn numbers(&self) -> BTreeSet<u64> {
        let earlier = self.earlier.iter().flat_map(|(first, last)| *first..=*last).take(NUMBERS_MAX);
        earlier.filter(|number| *number < self.number).chain([self.number]).collect()
    }
}

/// Runs of consecutive numbers.
pub fn runs(numbers: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    runs
}

/// What is known of the manifests of a place.
#[derive(Clone, Debug, Default)]
pub struct KnownManifests {
    /// The newest one that can be read.
    pub newest: Option<BackupManifest>,
    /// Numbers that the place lists; some may be missing, some gone.
    pub listed: BTreeSet<u64>,
    /// The highest number that was given away, as far as anything says so. It is that of the newest, or little higher: then those
    /// between are missing, perhaps for a moment only.
    pub highest: u64,
}

/// The newest manifest that can be read. It is found by its number, from what is said to be the newest upward; neither what says
/// so nor a list needs to be right.
///
/// # Errors
/// When the server fails, or there are manifests and none can be read: the key is wrong, or all are damaged.
pub async fn newest(objects: &Objects) -> Result<Option<BackupManifest>, ObjectError> {
    look(objects).await.map(|known| known.newest)
}

/// [`newest`], and what else there is to know.
///
/// # Errors
/// The same.
pub async fn look(objects: &Objects) -> Result<KnownManifests, ObjectError> {
    let said = match objects.get(NEWEST).await {
        Ok(plain) => String::from_utf8_lossy(&plain).trim().parse::<u64>().ok(),
        Err(error) if error.is_loss() => None,
        Err(error) => return Err(error),
    };
    let number = |seen: &crate::objects::Seen| seen.name.strip_prefix("manifests/")?.parse::<u64>().ok();
    // Both, because each may be stale.
    let listed: BTreeSet<u64> = match objects.list("manifests").await {
        Ok(seen) => seen.iter().filter_map(number).filter(|number| *number <= NUMBER_MAX).collect(),
        Err(_) if said.is_some() => BTreeSet::new(),
        Err(error) => return Err(error),
    };
    let said = said.filter(|said| *said <= NUMBER_MAX);
    let mut starts: Vec<u64> = said.into_iter().chain(listed.last().copied()).collect();
    starts.sort_unstable_by(|a, b| b.cmp(a));
    starts.dedup();
    let highest = starts.first().copied().unwrap_or(0);
    if starts.is_empty() {
        starts.push(1);
    }
    // A place whose manifests cannot be read is not an empty one: a backup that began there from nothing would prune what is not its own.
    let mut unreadable = None;
    for start in starts {
        if let Some(newest) = newest_around(objects, start, &mut unreadable).await? {
            // What is further away is no number of a manifest that was ever sent.
            let is_near = highest <= newest.number + 4 * PROBED;
            let highest = if is_near { highest.max(newest.number) } else { newest.number };
            return Ok(KnownManifests { newest: Some(newest), listed, highest });
        }
    }
    match unreadable {
        Some(error) => Err(error),
        None => Ok(KnownManifests { newest: None, listed, highest }),
    }
}

/// The newest from a number upward, or else the next below that was not removed.
async fn newest_around(
    objects: &Objects,
    start: u64,
    unreadable: &mut Option<ObjectError>,
) -> Result<Option<BackupManifest>, ObjectError> {
    let mut best = None;
    let mut passed_over = |error: ObjectError| {
        if matches!(error, ObjectError::Bad(..)) {
            *unreadable = Some(error);
        }
    };
    let (mut number, mut missed) = (start, 0);
    while missed < PROBED {
        match BackupManifest::fetch(objects, number).await {
            Ok(manifest) => {
                best = Some(manifest);
                missed = 0;
            }
            Err(error) if error.is_loss() => {
                passed_over(error);
                missed += 1;
            }
            Err(error) => return Err(error),
        }
        number += 1;
    }
    if best.is_some() || start <= 1 {
        return Ok(best);
    }
    let removed = pruned(objects).await?;
    // As many as were not removed: those that were may be a long run.
    let below = (1..start).rev().filter(|number| !removed.contains(number)).take(4 * PROBED as usize);
    for number in below {
        match BackupManifest::fetch(objects, number).await {
            Ok(manifest) => return Ok(Some(manifest)),
            Err(error) if error.is_loss() => passed_over(error),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The numbers of manifests that were pruned.
///
/// # Errors
/// When the server fails.
pub async fn pruned(objects: &Objects) -> Result<BTreeSet<u64>, ObjectError> {
    match objects.get(PRUNED).await {
        Ok(plain) => {
            let runs: Vec<(u64, u64)> = serde_json::from_slice(&plain).unwrap_or_default();
            Ok(runs.into_iter().flat_map(|(first, last)| first..=last).take(NUMBERS_MAX).collect())
        }
        Err(error) if error.is_loss() => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_runs() {
        let numbers = BTreeSet::from([1, 2, 3, 7, 9, 10]);
        assert_eq!(runs(&numbers), [(1, 3), (7, 7), (9, 10)]);
        assert!(runs(&BTreeSet::new()).is_empty());
    }
}
