//! A running store as it is at one moment, held for a copy: the files that its manifests name, and the log up to there.
//!
//! It is what a crash at that moment would leave, so opening the copy is an ordinary start. The ends of all logs are taken
//! between any two commits: what one shard's log says of the others' (`docs/format/log.md`, streams) holds in the copy, too.
//! While it is held, the files stay, and so does the log ([`crate::shard::pins`]); nothing waits for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, Mode};
use crate::engine::StoreError;
use crate::filenames;
use crate::identity::Identity;
use crate::log;
use crate::manifest::Manifest;
use crate::position::Position;
use crate::replication::History;
use crate::segment;
use crate::segments::into_io;
use crate::shard::files::Files;
use crate::shard::pins::{FilePin, LogPin};

/// A store at one moment.
pub struct Capture {
    /// Whose it is.
    pub identity: Identity,
    /// The moment, in milliseconds since the epoch.
    pub time_ms: i64,
    /// What it was: it has the epochs of all records, and may have a later one.
    pub history: History,
    /// Its shards.
    pub shards: Vec<CapturedShard>,
}

/// A shard at that moment.
pub struct CapturedShard {
    manifest: Manifest,
    end: Position,
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    files: FilePin,
    log: LogPin,
}

/// A file that never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFile {
    /// Its path in the store.
    pub path: PathBuf,
    /// Its number in the shard.
    pub number: u64,
    /// Its length.
    pub bytes: u64,
    /// The hash of its content, as far as the manifest knows it.
    pub content: Option<u64>,
}

/// Keeps the log from the end of a capture on, until the next one is taken.
pub struct LogHold {
    _pins: Vec<LogPin>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "store {} at {}", self.identity.id_text(), self.time_ms)
    }
}

impl Capture {
    /// Gives the files free, and the log up to the end.
    pub fn into_log_hold(self) -> LogHold {
        let raised = |shard: CapturedShard| {
            shard.log.raise(shard.end);
            drop(shard.files);
            shard.log
        };
        LogHold { _pins: self.shards.into_iter().map(raised).collect() }
    }
}

impl CapturedShard {
    /// The shard of `files`, of which `pinned` is held, up to `end`.
    pub(crate) fn new(
        files: &Files,
        pinned: (Manifest, FilePin, LogPin),
        end: Position,
    ) -> Result<Self, StoreError> {
        let (manifest, pin, log) = pinned;
        if manifest.position.generation != end.generation {
            return Err(StoreError::Unsupported(
                "its log has begun again; after the next checkpoint it can be copied",
            ));
        }
        let (disk, dir) = (Arc::clone(&files.disk), files.dir.clone());
        Ok(CapturedShard { manifest, end, disk, dir, files: pin, log })
    }

    /// The text of its manifest, of a shard whose log is one file from [`CapturedShard::log_from`] to [`CapturedShard::log_end`].
    pub fn manifest(&self) -> String {
        with_log(&self.manifest, self.end).encode()
    }

    /// Where replay starts.
    pub fn log_from(&self) -> Position {
        self.manifest.position
    }

    /// Where the log ends.
    pub fn log_end(&self) -> Position {
        self.end
    }

    /// Its directory in the store.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The checkpoint, if there is one.
    ///
    /// # Errors
    /// When its length cannot be found out.
    pub fn checkpoint(&self) -> io::Result<Option<CapturedFile>> {
        let number = self.manifest.checkpoint;
        if number == 0 {
            return Ok(None);
        }
        let path = filenames::checkpoint(&self.dir, number);
        let bytes = self.disk.length(&path)?;
        let content = self.manifest.checkpoint_content.map(|content| content.0);
        Ok(Some(CapturedFile { path, number, bytes, content }))
    }

    /// The segments.
    pub fn segments(&self) -> impl Iterator<Item = CapturedFile> {
        self.manifest.segments.iter().map(|segment| CapturedFile {
            path: filenames::segment(&self.dir, segment.number),
            number: segment.number,
            bytes: segment.bytes,
            content: segment.content.map(|content| content.0),
        })
    }

    /// Reads a part of a file.
    ///
    /// # Errors
    /// `NotFound` when the copy took so long that the file is gone; `UnexpectedEof` when it is shorter; the disk's.
    pub fn read_file(&self, file: &CapturedFile, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut read = vec![0; bytes];
        match self.open(file)?.read_at(&mut read, offset)? {
            count if count == bytes => Ok(read),
            _ => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("{} is too short", file.path.display()),
            )),
        }
    }

    /// How many bytes at the end of a segment are needed to open it.
    ///
    /// # Errors
    /// When the file is gone or damaged; the disk's.
    pub fn end_of_segment(&self, file: &CapturedFile) -> io::Result<u64> {
        let opened = self.open(file)?;
        let mut read = |offset: u64, bytes: &mut [u8]| match opened.read_at(bytes, offset)? {
            count if count == bytes.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        segment::end_bytes(file.bytes, &file.path.display().to_string(), &mut read).map_err(into_io)
    }

    fn open(&self, file: &CapturedFile) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(&file.path, Mode::Read)
    }

    /// Gives a file a second name outside of the store, if they are on one file system.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn link(&self, file: &CapturedFile, to: &Path) -> io::Result<()> {
        self.disk.link_out(&file.path, to)
    }

    /// Reads the log from `from` on, which may also lie before where replay starts, as far as it is still there.
    ///
    /// # Errors
    /// When it is not; the disk's.
    pub fn read_log(&self, from: Position, bytes: usize) -> io::Result<Vec<u8>> {
        let mut read = vec![0; bytes];
        log::range::read(&*self.disk, &self.dir, from, &mut read)?;
        Ok(read)
    }
}

/// A manifest of the same shard whose log is one file that ends at `end`.
pub(crate) fn with_log(manifest: &Manifest, end: Position) -> Manifest {
    let known = log::Known { durable: end, newest_file: manifest.position, ..manifest.known };
    Manifest { known, ..manifest.clone() }
}
