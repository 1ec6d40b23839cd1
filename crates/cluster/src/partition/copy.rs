//! A replica at one moment, for another node to begin with: its files, and the mark that goes with them.

use std::io;
use std::path::Path;

use store::assemble::{Assembly, Until};
use store::capture::{Capture, CapturedFile, CapturedShard};
use store::engine::{Engine, StoreError};
use store::filenames;
use store::replication::{History, Mark, Position};

use super::Replica;

/// Attempts to find a moment in which no checkpoint ends.
const ATTEMPTS: usize = 10;

/// What the parts of a copy are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyHead {
    /// The text of the store's file STORE.
    pub identity: String,
    /// That of its file REPLICATED.
    pub mark: String,
    /// That of its shard's manifest.
    pub manifest: String,
    /// Where its log ends.
    pub end: Position,
    /// Its files: the last one is the log.
    pub files: Vec<CopyFile>,
}

/// A file of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyFile {
    /// What it is.
    pub kind: CopyFileKind,
    /// Its number in the shard; 0 for the log.
    pub number: u64,
    /// Its length.
    pub bytes: u64,
}

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFileKind {
    /// The checkpoint.
    Checkpoint,
    /// A segment.
    Segment,
    /// The log.
    Log,
}

/// A replica that is held as it was at one moment, until this is dropped.
pub struct ReplicaCopy {
    capture: Capture,
    head: CopyHead,
    files: Vec<Option<CapturedFile>>,
}

impl Replica {
    /// Holds the replica as it is now.
    ///
    /// # Errors
    /// As [`Replica::capture`].
    pub fn copy(&self) -> Result<ReplicaCopy, StoreError> {
        let (capture, mark) = self.capture()?;
        ReplicaCopy::new(capture, &mark)
    }

    /// Holds its store as it is now, and says at which message one goes on that is made of that.
    ///
    /// # Errors
    /// When its store is not open, or the disk fails.
    pub fn capture(&self) -> Result<(Capture, Mark), StoreError> {
        let identity =
            self.shared.log.identity().map_err(|error| StoreError::Unavailable(error.to_string()))?;
        for _ in 0..ATTEMPTS {
            let engine = self.shared.state().engine.clone().ok_or(StoreError::Stopping)?;
            let before = checkpoint_number(&engine.capture()?)?;
            let mark = self.shared.mark(&identity);
            let capture = engine.capture()?;
            // A checkpoint that was named before the mark was taken says no more than that does; one that came since may.
            if checkpoint_number(&capture)? == before {
                return Ok((capture, mark));
            }
        }
        Err(StoreError::Unavailable("this replica is too busy to be copied; try again".into()))
    }
}

fn only_shard(capture: &Capture) -> Result<&CapturedShard, StoreError> {
    capture.shards.first().ok_or(StoreError::Unsupported("the store has no shard"))
}

fn checkpoint_number(capture: &Capture) -> Result<Option<u64>, StoreError> {
    let checkpoint = only_shard(capture)?.checkpoint();
    let checkpoint = checkpoint.map_err(|error| StoreError::io("reading the checkpoint", error))?;
    Ok(checkpoint.map(|file| file.number))
}

impl ReplicaCopy {
    fn new(capture: Capture, mark: &Mark) -> Result<ReplicaCopy, StoreError> {
        let shard = only_shard(&capture)?;
        let checkpoint =
            shard.checkpoint().map_err(|error| StoreError::io("reading the checkpoint", error))?;
        let of = |kind| {
            move |file: CapturedFile| (CopyFile { kind, number: file.number, bytes: file.bytes }, Some(file))
        };
        let log_bytes = shard.log_end().offset.saturating_sub(shard.log_from().offset);
        let log = CopyFile { kind: CopyFileKind::Log, number: 0, bytes: log_bytes };
        let all = checkpoint.into_iter().map(of(CopyFileKind::Checkpoint));
        let all = all.chain(shard.segments().map(of(CopyFileKind::Segment))).chain([(log, None)]);
        let (heads, files): (Vec<CopyFile>, Vec<Option<CapturedFile>>) = all.unzip();
        let head = CopyHead {
            identity: capture.identity.text(),
            mark: mark.encode(),
            manifest: shard.manifest(),
            end: shard.log_end(),
            files: heads,
        };
        Ok(ReplicaCopy { head, files, capture })
    }

    /// What it consists of.
    pub fn head(&self) -> &CopyHead {
        &self.head
    }

    /// Reads a part of a file, which is known by its place in [`CopyHead::files`].
    ///
    /// # Errors
    /// When there is no such part; the disk's.
    pub fn read(&self, file: usize, offset: u64, count: usize) -> io::Result<Vec<u8>> {
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "no such part of the copy");
        let shard = only_shard(&self.capture).map_err(io::Error::other)?;
        let about = self.head.files.get(file).ok_or_else(none)?;
        if offset.checked_add(count as u64).is_none_or(|end| end > about.bytes) {
            return Err(none());
        }
        match &self.files[file] {
            Some(file) => shard.read_file(file, offset, count),
            None => shard.read_log(shard.log_from().plus(offset), count),
        }
    }
}

/// Makes the store of a copy in `directory`, of which `read` gives the parts: by the place of the file, where to begin and how many bytes.
///
/// # Errors
/// The system's, and those of `read`; what was made stays, and is no store.
pub fn assemble(
    head: &CopyHead,
    directory: &Path,
    part_bytes: usize,
    read: &mut dyn FnMut(usize, u64, usize) -> io::Result<Vec<u8>>,
) -> io::Result<()> {
    let assembly = Assembly::begin(directory)?;
    let mark = filenames::replicated(Path::new(""));
    assembly.own_file(&mark.display().to_string(), head.mark.as_bytes())?;
    let shard = assembly.shard(0, &head.manifest)?;
    for (place, file) in head.files.iter().enumerate() {
        let path = match file.kind {
            CopyFileKind::Checkpoint => shard.checkpoint(file.number),
            CopyFileKind::Segment => shard.segment(file.number),
            CopyFileKind::Log if file.bytes == 0 => continue,
            CopyFileKind::Log => shard.log(),
        };
        let mut made = std::fs::File::create_new(path)?;
        let mut offset = 0;
        while offset < file.bytes {
            let count = (part_bytes as u64).min(file.bytes - offset) as usize;
            let bytes = read(place, offset, count)?;
            if bytes.len() != count {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a part of another length than was asked for",
                ));
            }
            io::Write::write_all(&mut made, &bytes)?;
            offset += count as u64;
        }
        made.sync_all()?;
    }
    shard.complete(head.end, Until::End, &[])?;
    assembly.complete_as(&head.identity, &History::default())
}
