//! A round of a backup: what a captured store has and the backup has not is sent, the manifest last.
//!
//! Nothing is remembered but the newest manifest: after any interruption it is found again, and of what the round that was cut
//! off has sent, the server is asked. Contents name objects, so sending one twice changes nothing.

use std::collections::HashSet;
use std::io;
use std::time::SystemTime;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use ring::rand::{SecureRandom, SystemRandom};
use store::capture::{Capture, CapturedFile, CapturedShard};
use store::replication::History;

use crate::manifest::{
    self, BackedEnd, BackedFile, BackedShard, BackupManifest, LogChunk, LogPosition, NEWEST, VERSION, pruned,
    runs,
};
use crate::objects::{ObjectError, Objects};
use crate::own::{self, Looked, OwnFile, OwnList, OwnPaths, OwnReader};
use crate::parts::{self, PART_BYTES, SMALL_BYTES};
use crate::sent::{BELIEVED, SentObjects};

/// Parts that are sent at once; each is held in memory twice.
const PARTS_AT_ONCE: usize = 4;
/// So many small chunks of the log become one, so that a manifest of a quiet store does not name thousands.
const CHUNKS_MERGED: usize = 16;
/// What those may hold together.
const MERGED_BYTES_MAX: u64 = 1 << 20;

/// Of a log that is not this store's: no generation is that high.
const NO_POSITION: LogPosition = (u32::MAX, 0);
/// Of a manifest of such a log.
const NO_BASE: u64 = u64::MAX;

/// Why a round failed.
#[derive(Debug)]
pub enum RoundError {
    /// An object could not be sent or fetched.
    Object(ObjectError),
    /// The store could not be read; `NotFound` when a file went while the round took so long.
    Store(io::Error),
    /// The place holds the backup of another store.
    OtherStore(String),
    /// A copy of this store, or another server of it, has gone on with the backup in this later epoch.
    Replaced(u32),
}

impl std::fmt::Display for RoundError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RoundError::Object(error) => error.fmt(f),
            RoundError::Store(error) => write!(f, "cannot read the store: {error}"),
            RoundError::OtherStore(id) => {
                write!(f, "the backup of another store is there already ({id}): give this one another place")
            }
            RoundError::Replaced(epoch) => write!(
                f,
                "a store that was restored from this backup, or promoted, has gone on with it (epoch {epoch}): give this one another place"
            ),
        }
    }
}

impl std::error::Error for RoundError {}

impl From<ObjectError> for RoundError {
    fn from(error: ObjectError) -> Self {
        RoundError::Object(error)
    }
}

impl From<io::Error> for RoundError {
    fn from(error: io::Error) -> Self {
        RoundError::Store(error)
    }
}

/// Sends rounds to one place.
#[derive(Debug)]
pub struct Uploader {
    /// Where they go.
    pub objects: Objects,
    writer: u64,
    /// The newest manifest there; outer `None`: not looked yet.
    last: Option<Option<BackupManifest>>,
    /// Whether a round of this uploader was completed: until then, objects of one that was cut off may be there.
    is_settled: bool,
    /// The server's clock when this uploader began; `None`: there was no manifest, so that nothing is ever pruned.
    server_now: Option<SystemTime>,
    /// The highest number of a manifest that was given away, as far as is known; later ones are free.
    highest: u64,
    /// What this round and those before it, up to the last manifest, have sent.
    sent: SentObjects,
    /// The daemon's own files, if they are backed up, too.
    own: Option<OwnReader>,
    /// Objects of these that the manifest named by this object has.
    own_known: (Option<String>, HashSet<String>),
}

impl Uploader {
    /// Sends to this place; nothing is looked at yet.
    pub fn new(objects: Objects) -> Self {
        let mut writer = [0; 8];
        // Without random bytes two writers would not notice each other, which is a service only.
        let _ = SystemRandom::new().fill(&mut writer);
        let writer = u64::from_le_bytes(writer);
        Uploader {
            objects,
            writer,
            last: None,
            is_settled: false,
            server_now: None,
            highest: 0,
            sent: SentObjects::default(),
            own: None,
            own_known: (None, HashSet::new()),
        }
    }

    /// The same, with the daemon's own files.
    pub fn with_own(self, paths: OwnPaths) -> Self {
        Uploader { own: Some(OwnReader::new(paths)), ..self }
    }

    /// Sends what is new of a captured store; nothing if nothing has changed. `mark` is the text of a replica's file REPLICATED.
    ///
    /// # Errors
    /// When the server or the disk fails. What was sent is not sent again by the next round.
    pub async fn round(&mut self, capture: &Capture, mark: Option<&str>) -> Result<(), RoundError> {
        let last = match self.last.take() {
            Some(last) => last,
            None => self.look(capture).await?,
        };
        // Put back before anything can fail.
        self.last = Some(last.clone());
        self.sent.drop_old();
        let own = self.own_files(last.as_ref()).await?;
        let is_same =
            |last: &BackupManifest| is_same(last, capture) && last.own == own && last.mark.as_deref() == mark;
        if self.is_settled && last.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let mut shards = Vec::with_capacity(capture.shards.len());
        for (index, shard) in capture.shards.iter().enumerate() {
            let before = last.as_ref().and_then(|last| last.shards.get(index));
            shards.push(self.shard(shard, before).await?);
        }
        let mut manifest = self.number(capture, shards, last.as_ref()).await?;
        (manifest.own, manifest.mark) = (own, mark.map(str::to_owned));
        self.look_for_old(&manifest).await?;
        let number = manifest.number;
        self.objects.put(&BackupManifest::name(number), manifest.encode()?).await?;
        self.is_settled = true;
        // What the manifest names is known by it from now on.
        self.sent = SentObjects::default();
        self.last = Some(Some(manifest));
        // Only a hint, so that its loss is no failure.
        if let Err(error) = self.objects.put(NEWEST, format!("{number}\n").into_bytes()).await {
            tracing::debug!(%error, "cannot say which manifest is the newest");
        }
        Ok(())
    }

    /// Makes sure that what was sent long ago, by this round or those that failed, is still there.
    async fn look_for_old(&mut self, manifest: &BackupManifest) -> Result<(), RoundError> {
        let old = self.sent.old();
        // Parts are named by lists only, so that all are looked for, even those that this manifest may not need.
        for name in old {
            if self.objects.look(&name).await?.is_none() {
                tracing::warn!(
                    manifest = manifest.number,
                    name,
                    "what was sent was removed meanwhile, and is sent again"
                );
                self.sent.remove(&name);
                return Err(ObjectError::Missing(name).into());
            }
        }
        Ok(())
    }

    /// The newest manifest, once one was looked for or sent.
    pub fn last(&self) -> Option<&BackupManifest> {
        self.last.as_ref().and_then(Option::as_ref)
    }

    /// Forgets what is there, for a look at what others have changed.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// The newest manifest there, as far as what it says of the log is true of this store.
    async fn look(&mut self, capture: &Capture) -> Result<Option<BackupManifest>, RoundError> {
        let known = manifest::look(&self.objects).await?;
        self.highest = known.highest;
        let Some(mut last) = known.newest else { return Ok(None) };
        if last.store != capture.identity.text() {
            let id = last.store.lines().nth(1).unwrap_or_default().to_string();
            return Err(RoundError::OtherStore(id));
        }
        is_not_later(&last, capture)?;
        // The hint once more, for its time.
        self.objects.put(NEWEST, format!("{}\n", last.number).into_bytes()).await?;
        self.server_now = self.objects.look(NEWEST).await?.map(|seen| seen.written);
        let gone = pruned(&self.objects).await?;
        let earlier = last.numbers().into_iter().filter(|number| !gone.contains(number)).collect();
        last.earlier = runs(&earlier);
        for (shard, before) in capture.shards.iter().zip(&mut last.shards) {
            // After a restore the log may have gone another way since: only what is the same here is the same log.
            let is_ours = before.log_end <= position(shard.log_end())
                && before.log.iter().all(|chunk| {
                    let bytes = usize::try_from(chunk.bytes).unwrap_or(usize::MAX).min(PART_BYTES as usize);
                    let read = shard.read_log(store_position(chunk.from), bytes);
                    read.is_ok_and(|bytes| chunk.object == self.objects.content_name(&bytes))
                });
            if !is_ours {
                before.log.clear();
                before.log_end = NO_POSITION;
                last.base = NO_BASE;
            }
        }
        Ok(Some(last))
    }

    /// Sends what is new of the daemon's own files. Returns the object with their list.
    async fn own_files(&mut self, last: Option<&BackupManifest>) -> Result<Option<String>, RoundError> {
        let Some(mut reader) = self.own.take() else { return Ok(None) };
        let sent = self.own_files_by(&mut reader, last).await;
        self.own = Some(reader);
        sent.map(Some)
    }

    async fn own_files_by(
        &mut self,
        reader: &mut OwnReader,
        last: Option<&BackupManifest>,
    ) -> Result<String, RoundError> {
        self.know_own(last.and_then(|last| last.own.as_deref())).await?;
        let before = SystemTime::now();
        let (paths, left_out) = reader.files();
        let mut list = OwnList { left_out, ..OwnList::default() };
        let mut room = own::room();
        for (name, path) in paths {
            let is_there = |object: &str| self.own_known.1.contains(object) || self.sent.has(object);
            let file = match reader.look(&name, &path, room, is_there) {
                None => continue,
                Some(Looked::Left(left)) => {
                    list.left_out.push(left);
                    continue;
                }
                Some(Looked::Same(file)) => file,
                Some(Looked::Read(content)) => {
                    let bytes = content.len() as u64;
                    let file = OwnFile { name, bytes, object: self.own_content(content).await? };
                    reader.remember(&file, &path, before);
                    file
                }
            };
            room = room.saturating_sub(file.bytes);
            list.files.push(file);
        }
        self.own_content(list.encode()?).await
    }

    /// Learns which objects the manifest has whose list is in `object`.
    async fn know_own(&mut self, object: Option<&str>) -> Result<(), RoundError> {
        if self.own_known.0.as_deref() == object {
            return Ok(());
        }
        let objects = match OwnList::fetch(&self.objects, object).await {
            Ok(list) => {
                list.files.into_iter().map(|file| file.object).chain(object.map(str::to_string)).collect()
            }
            // Then all are sent again.
            Err(error) if error.is_loss() => HashSet::new(),
            Err(error) => return Err(error.into()),
        };
        self.own_known = (object.map(str::to_string), objects);
        Ok(())
    }

    /// Sends a content that neither the last manifest nor this round has.
    async fn own_content(&mut self, plain: Vec<u8>) -> Result<String, RoundError> {
        let name = self.objects.content_name(&plain);
        if !self.own_known.1.contains(&name) {
            self.content(plain).await?;
            self.sent.add(&name);
        }
        Ok(name)
    }

    /// Sends what is new of a shard.
    async fn shard(
        &mut self,
        shard: &CapturedShard,
        before: Option<&BackedShard>,
    ) -> Result<BackedShard, RoundError> {
        let known: Vec<&BackedFile> =
            before.iter().flat_map(|before| before.checkpoint.iter().chain(&before.segments)).collect();
        let find = |file: &CapturedFile| {
            let is_it = |known: &&&BackedFile| {
                known.number == file.number
                    && known.bytes == file.bytes
                    && known.content == file.content
                    && file.content.is_some()
            };
            known.iter().find(is_it).map(|known| (*known).clone())
        };
        let checkpoint = match shard.checkpoint()? {
            None => None,
            Some(file) => match find(&file) {
                Some(known) => Some(known),
                None => Some(self.file(shard, &file).await?),
            },
        };
        let mut segments = Vec::new();
        for file in shard.segments() {
            segments.push(match find(&file) {
                Some(known) => known,
                None => BackedFile { end: self.end(shard, &file).await?, ..self.file(shard, &file).await? },
            });
        }
        let (log_from, log_end) = (position(shard.log_from()), position(shard.log_end()));
        let number = |file: &Option<BackedFile>| file.as_ref().map(|file| file.number);
        let since = match before {
            Some(before) if before.log_end.0 != log_end.0 => log_from,
            Some(before) if number(&before.checkpoint) == number(&checkpoint) => before.since,
            Some(before) => before.log_end,
            None => log_from,
        };
        let log = self.log(shard, before, since.min(log_from)).await?;
        Ok(BackedShard { manifest: shard.manifest(), log_from, log_end, since, checkpoint, segments, log })
    }

    /// Sends a file.
    async fn file(&mut self, shard: &CapturedShard, file: &CapturedFile) -> Result<BackedFile, RoundError> {
        let uploader = &*self;
        let names: Vec<String> = stream::iter(0..parts::count(file.bytes))
            .map(|part| async move {
                let (from, bytes) = parts::range(file.bytes, part);
                let plain = shard.read_file(file, from, bytes as usize)?;
                uploader.content(plain).await
            })
            .buffered(PARTS_AT_ONCE)
            .try_collect()
            .await?;
        names.iter().for_each(|name| self.sent.add(name));
        let object = match &names[..] {
            [only] => only.clone(),
            several => self.content(parts::encode(several)).await?,
        };
        self.sent.add(&object);
        Ok(BackedFile { number: file.number, bytes: file.bytes, content: file.content, object, end: None })
    }

    /// Sends the end of a segment once more, by which it can be opened before all of it has come.
    async fn end(
        &mut self,
        shard: &CapturedShard,
        file: &CapturedFile,
    ) -> Result<Option<BackedEnd>, RoundError> {
        if file.bytes <= SMALL_BYTES {
            return Ok(None);
        }
        let bytes = match shard.end_of_segment(file) {
            Ok(bytes) if bytes <= PART_BYTES => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error.into()),
            // A damaged one is sent as it is.
            _ => return Ok(None),
        };
        let plain = shard.read_file(file, file.bytes - bytes, bytes as usize)?;
        let object = self.content(plain).await?;
        self.sent.add(&object);
        Ok(Some(BackedEnd { bytes, object }))
    }

    /// Sends a content that is not there yet.
    async fn content(&self, plain: Vec<u8>) -> Result<String, RoundError> {
        let name = self.objects.content_name(&plain);
        if self.sent.has(&name) {
            return Ok(name);
        }
        if !self.is_settled {
            let bytes = self.objects.keys.stored_bytes(plain.len()) as u64;
            let found = self.objects.look(&name).await?;
            // By the server's own clock: this machine's may be days away from it.
            let is_young = |written: SystemTime| {
                self.server_now.is_none_or(|now| now.duration_since(written).unwrap_or_default() < BELIEVED)
            };
            if found.is_some_and(|found| found.bytes == bytes && is_young(found.written)) {
                return Ok(name);
            }
        }
        self.objects.put(&name, plain).await?;
        Ok(name)
    }

    /// Sends the log from where the chunks of the last manifest end; returns all chunks from `from` on.
    async fn log(
        &mut self,
        shard: &CapturedShard,
        before: Option<&BackedShard>,
        from: LogPosition,
    ) -> Result<Vec<LogChunk>, RoundError> {
        let end = position(shard.log_end());
        let mut chunks: Vec<LogChunk> = before.map_or(Vec::new(), |before| before.log.clone());
        chunks.retain(|chunk| chunk.from.0 == end.0 && chunk.end() > from.1);
        let log_from = position(shard.log_from());
        let mut start = match before {
            Some(before) if before.log_end.0 == end.0 => before.log_end.1,
            // Nothing that goes on to here: moments in between are lost, this one is not.
            _ => log_from.1,
        };
        let small = chunks.len().saturating_sub(CHUNKS_MERGED);
        let merged = &chunks[small..];
        let is_small = merged.iter().map(|chunk| chunk.bytes).sum::<u64>() < MERGED_BYTES_MAX;
        if merged.len() == CHUNKS_MERGED && is_small && is_dense(merged) && merged[0].from >= log_from {
            start = merged[0].from.1;
            chunks.truncate(small);
        }
        while start < end.1 {
            let bytes = PART_BYTES.min(end.1 - start);
            let from = (end.0, start);
            let plain = match shard.read_log(store_position(from), bytes as usize) {
                Ok(plain) => plain,
                // It was released, because the backup fell too far back.
                Err(_) if start < log_from.1 => {
                    start = log_from.1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let object = self.content(plain).await?;
            self.sent.add(&object);
            chunks.push(LogChunk { from, bytes, object });
            start += bytes;
        }
        Ok(chunks)
    }

    /// The manifest, with the next number that is free.
    async fn number(
        &self,
        capture: &Capture,
        shards: Vec<BackedShard>,
        last: Option<&BackupManifest>,
    ) -> Result<BackupManifest, RoundError> {
        let first = last.map_or(1, |last| last.number + 1);
        // Above all that may only be missing for a moment.
        let mut number = first.max(self.highest + 1);
        let mut is_other = false;
        while self.objects.look(&BackupManifest::name(number)).await?.is_some() {
            // One of this daemon that was sent, of which only the answer was lost, is no other's.
            let found = BackupManifest::fetch(&self.objects, number).await;
            if let Ok(found) = &found
                && found.writer != self.writer
            {
                is_not_later(found, capture)?;
                is_other = true;
            }
            number += 1;
        }
        if is_other {
            tracing::warn!(
                "another daemon writes a backup to the same place; give each store a place of its own"
            );
        }
        // What is missing may come back: its moments are to be found then.
        let mut earlier = last.map_or(Vec::new(), BackupManifest::earlier_of_next);
        if last.is_some() && first <= self.highest {
            earlier.push((first, self.highest));
        }
        let bases = |shards: &[BackedShard]| {
            shards.iter().map(|shard| shard.checkpoint.as_ref().map(|file| file.number)).collect::<Vec<_>>()
        };
        let is_same_base =
            |last: &&BackupManifest| last.base != NO_BASE && bases(&last.shards) == bases(&shards);
        let (base, base_ms) = last
            .filter(is_same_base)
            .map_or((number, Some(capture.time_ms)), |last| (last.base, last.base_ms));
        Ok(BackupManifest {
            version: VERSION,
            number,
            time_ms: capture.time_ms,
            store: capture.identity.text(),
            history: match capture.history == History::default() {
                true => String::new(),
                false => capture.history.encode(),
            },
            writer: self.writer,
            base,
            base_ms,
            shards,
            earlier,
            own: None,
            mark: None,
        })
    }
}

/// # Errors
/// When a manifest is of a later epoch than the store: its moments are not this store's.
fn is_not_later(manifest: &BackupManifest, capture: &Capture) -> Result<(), RoundError> {
    match manifest.history().epoch() {
        epoch if epoch > capture.history.epoch() => Err(RoundError::Replaced(epoch)),
        _ => Ok(()),
    }
}

/// Whether chunks follow each other without a gap.
pub fn is_dense(chunks: &[LogChunk]) -> bool {
    chunks.windows(2).all(|pair| pair[0].from.0 == pair[1].from.0 && pair[0].end() == pair[1].from.1)
}

/// Whether nothing has changed since a manifest.
fn is_same(last: &BackupManifest, capture: &Capture) -> bool {
    let shards = last.shards.iter().zip(&capture.shards);
    last.shards.len() == capture.shards.len()
        && last.history() == capture.history
        && shards
            .into_iter()
            .all(|(last, now)| last.log_end == position(now.log_end()) && last.manifest == now.manifest())
}

/// A position as manifests have it.
pub fn position(position: store::position::Position) -> LogPosition {
    (position.generation, position.offset)
}

/// A position as the store has it.
pub fn store_position((generation, offset): LogPosition) -> store::position::Position {
    store::position::Position { generation, offset }
}
