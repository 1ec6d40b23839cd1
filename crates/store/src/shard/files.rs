//! The files of a shard: the manifest and the set of segments it names, always changed together.
//!
//! The checkpointer and the compactor both change them, so a lock guards them; it is held while the manifest
//! is written (some milliseconds, a few times per minute). Neither the update path nor a reader ever takes
//! it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::content::Content;
use crate::disk::Disk;
use crate::filenames;
use crate::lock::lock;
use crate::log::{Known, LogSyncer, Position};
use crate::manifest::Manifest;
use crate::segments::{SegmentFile, SegmentSet};
use crate::shard::pins::{FilePin, LOG_BYTES_MAX, LogPin, Pins};

/// The manifest and the segments it names.
pub struct Files {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// The shard's directory.
    pub dir: PathBuf,
    /// The tag of the shard, for its files.
    pub owner: u32,
    /// Tells how far the log is durable, which every manifest records.
    log: LogSyncer,
    /// What must stay although the manifest no longer names it.
    pins: Arc<Pins>,
    /// Keeps the log that was there at the start.
    held: Mutex<Option<LogPin>>,
    inner: Mutex<Inner>,
}

/// A checkpoint that was written.
#[derive(Clone, Copy)]
pub struct NewCheckpoint {
    /// Its number.
    pub number: u64,
    /// Where replay starts with it.
    pub position: Position,
    /// Hash of its file.
    pub content: Content,
}

struct Inner {
    manifest: Manifest,
    segments: Arc<SegmentSet>,
}

impl Files {
    /// The files that the manifest of an opened shard names, and its log.
    pub fn new(
        disk: Arc<dyn Disk>,
        dir: &Path,
        manifest: Manifest,
        segments: SegmentSet,
        log: LogSyncer,
    ) -> Self {
        let owner = manifest.tag();
        let inner = Mutex::new(Inner { manifest, segments: Arc::new(segments) });
        let pins = Arc::new(Pins::new(Arc::clone(&disk)));
        Files { disk, dir: dir.to_owned(), owner, log, pins, held: Mutex::new(None), inner }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Allocates a number for a new segment or checkpoint.
    pub fn next_number(&self) -> u64 {
        let mut inner = self.lock();
        inner.manifest.next_number += 1;
        inner.manifest.next_number - 1
    }

    /// The current segments.
    pub fn segments(&self) -> Arc<SegmentSet> {
        Arc::clone(&self.lock().segments)
    }

    /// The manifest as it was written last.
    pub fn manifest(&self) -> Manifest {
        self.lock().manifest.clone()
    }

    /// The log's other end.
    pub fn log(&self) -> &LogSyncer {
        &self.log
    }

    /// The manifest as it was written last, with what keeps the files that it names, and the log from its position on.
    pub fn pin(&self) -> (Manifest, FilePin, LogPin) {
        // In this order: what the manifest names when it is looked at can only be removed later.
        let files = self.pins.hold_files();
        let log = self.pins.hold_log(LOG_BYTES_MAX);
        let manifest = self.manifest();
        log.raise(manifest.position);
        (manifest, files, log)
    }

    /// Keeps all of the log until [`Files::release_log`].
    pub fn hold_log(&self) {
        *lock(&self.held) = Some(self.pins.hold_log(u64::MAX));
    }

    /// Lets go of what [`Files::hold_log`] keeps.
    pub fn release_log(&self) {
        lock(&self.held).take();
    }

    /// Keeps the log that is there now, and later `bytes_max` bytes of it.
    pub fn pin_log(&self, bytes_max: u64) -> LogPin {
        self.pins.hold_log(bytes_max)
    }

    /// How much of the log may be released when replay starts at `replay_from`.
    pub fn log_kept_from(&self, replay_from: Position) -> Position {
        self.pins.log_kept_from(replay_from)
    }

    /// Replaces the segments numbered `gone` with `new` ones and, given `checkpoint`, the old checkpoint with
    /// that one. New files must already be durable. Files that are no longer named are removed.
    ///
    /// # Errors
    /// When the manifest cannot be written; then nothing has changed.
    pub fn commit(
        &self,
        gone: &[u64],
        new: Vec<Arc<SegmentFile>>,
        checkpoint: Option<NewCheckpoint>,
    ) -> io::Result<()> {
        let mut inner = self.lock();
        let segments = inner.segments.replace(gone, new);
        let mut manifest = inner.manifest.clone();
        let old_checkpoint = manifest.checkpoint;
        if let Some(new) = checkpoint {
            manifest.checkpoint = new.number;
            manifest.checkpoint_content = Some(new.content);
            manifest.position = new.position;
        }
        manifest.known = self.known(manifest.known);
        manifest.segments = segments.files.iter().map(|file| file.name).collect();
        manifest.store(&*self.disk, &self.dir)?;
        let old = std::mem::replace(&mut inner.segments, Arc::new(segments));
        inner.manifest = manifest;
        drop(inner);
        // A file that cannot be removed now is removed when the shard is next opened, because nothing names
        // it.
        for file in old.files.iter().filter(|file| gone.contains(&file.name.number)) {
            self.pins.remove(&file.path, file.name.bytes);
        }
        if checkpoint.is_some() && old_checkpoint != 0 {
            let path = filenames::checkpoint(&self.dir, old_checkpoint);
            let bytes = self.disk.length(&path).unwrap_or(0);
            self.pins.remove(&path, bytes);
        }
        Ok(())
    }

    /// How far the log is durable now, if that is further than `noted`.
    fn known(&self, noted: Known) -> Known {
        let newest_file = self.log.newest_file();
        let durable = self.log.durable();
        match durable > noted.durable {
            // A file that was begun meanwhile holds nothing yet that is durable.
            true if newest_file < durable => Known { durable, newest_file, ..noted },
            true => Known { durable, ..noted },
            false => noted,
        }
    }

    /// Records in the manifest how far the log is durable, so that a log which ends earlier is known to be damaged. Without
    /// `always`, only if the manifest does not yet vouch for the log's newest file.
    ///
    /// # Errors
    /// When the manifest cannot be written; then nothing has changed.
    pub fn note_durable(&self, always: bool) -> io::Result<()> {
        let mut inner = self.lock();
        let noted = inner.manifest.known;
        let known = self.known(noted);
        let is_new_file = noted.durable <= known.newest_file && known.durable > known.newest_file;
        if known.durable > noted.durable && (always || is_new_file) {
            let manifest = Manifest { known, ..inner.manifest.clone() };
            manifest.store(&*self.disk, &self.dir)?;
            inner.manifest = manifest;
        }
        Ok(())
    }
}
