//! The file of a partition: a head with the mark, then a frame per message.
//!
//! What a crash can leave: a head that is not whole (no frame follows it: it is written again), frames after the mark, whole ones or a torn
//! one (the next writer keeps the whole ones and cuts the rest), a mark older than the frames that were synced (the same). A mark is never newer.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::{damaged, failed, partition_path};
use crate::lock::lock;
use crate::log::{LogError, MESSAGE_BYTES_MAX, Stored};

/// The first bytes of the file.
const MAGIC: &[u8; 8] = b"ROUNDELQ";
/// Version of the file.
const VERSION: u32 = 1;
const OFFSET_VERSION: usize = 8;
const OFFSET_PARTITION: usize = 12;
const OFFSET_IDENTITY: usize = 16;
/// CRC32C of the bytes before it.
const OFFSET_CHECKSUM: usize = 32;
/// Where the mark begins.
const OFFSET_MARK: usize = 40;
const MARK_BYTES: usize = 24;
/// Head and mark: where the first frame begins.
const HEAD_BYTES: usize = OFFSET_MARK + MARK_BYTES;
/// Bytes of a frame before the message: length, CRC32C, number.
const FRAME_HEAD_BYTES: usize = 16;
/// How long an append waits for others: one that holds the lock for longer was stopped.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// How often it asks for the lock meanwhile; guessed, and only of interest where several processes write one partition.
const LOCK_INTERVAL: Duration = Duration::from_micros(500);
/// How often a mark is read again that is not whole, in steps of a millisecond: a write of 24 bytes lasts less than one.
const MARK_TRIES: u32 = 100;
/// A place is remembered every so many messages, for readers that begin in the middle.
const INDEX_INTERVAL: u64 = 1024;

/// Up to where a partition's file has been synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// Where its frames end, in bytes.
    end: u64,
    /// How many there are.
    count: u64,
}

impl Mark {
    const EMPTY: Mark = Mark { end: HEAD_BYTES as u64, count: 0 };

    fn encode(self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..8].copy_from_slice(&self.end.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.count.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..16]);
        bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; MARK_BYTES]) -> Option<Mark> {
        let mark = Mark { end: u64_at(bytes, 0), count: u64_at(bytes, 8) };
        (mark.encode() == *bytes && mark.end >= HEAD_BYTES as u64).then_some(mark)
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default())
}

/// Which file it is: a frame of another one is none here.
#[derive(Clone, Debug)]
struct Whose {
    path: PathBuf,
    head: [u8; OFFSET_MARK],
}

impl Whose {
    fn new(path: PathBuf, partition: u32, identity: u128) -> Whose {
        let mut head = [0; OFFSET_MARK];
        head[..OFFSET_VERSION].copy_from_slice(MAGIC);
        head[OFFSET_VERSION..OFFSET_PARTITION].copy_from_slice(&VERSION.to_le_bytes());
        head[OFFSET_PARTITION..OFFSET_IDENTITY].copy_from_slice(&partition.to_le_bytes());
        head[OFFSET_IDENTITY..OFFSET_CHECKSUM].copy_from_slice(&identity.to_le_bytes());
        let crc = crc32c::crc32c(&head[..OFFSET_CHECKSUM]);
        head[OFFSET_CHECKSUM..OFFSET_CHECKSUM + 4].copy_from_slice(&crc.to_le_bytes());
        Whose { path, head }
    }

    /// The checksum of a frame, which continues that of the file's head.
    fn checksum(&self, number: u64, message: &[u8]) -> u32 {
        let head = u32_at(&self.head, OFFSET_CHECKSUM);
        let crc = crc32c::crc32c_append(head, &(message.len() as u32).to_le_bytes());
        crc32c::crc32c_append(crc32c::crc32c_append(crc, &number.to_le_bytes()), message)
    }

    fn frame(&self, number: u64, message: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(FRAME_HEAD_BYTES + message.len());
        frame.extend_from_slice(&(message.len() as u32).to_le_bytes());
        frame.extend_from_slice(&self.checksum(number, message).to_le_bytes());
        frame.extend_from_slice(&number.to_le_bytes());
        frame.extend_from_slice(message);
        frame
    }

    /// The message of the frame at a place, of which the number is known; `None` when there is none.
    fn message(&self, file: &File, at: u64, number: u64) -> io::Result<Option<Vec<u8>>> {
        let mut head = [0; FRAME_HEAD_BYTES];
        if !read_whole(file, &mut head, at)? {
            return Ok(None);
        }
        let bytes = u32_at(&head, 0) as usize;
        if bytes > MESSAGE_BYTES_MAX || u64_at(&head, 8) != number {
            return Ok(None);
        }
        let mut message = vec![0; bytes];
        let whole = read_whole(file, &mut message, at + FRAME_HEAD_BYTES as u64)?;
        Ok((whole && self.checksum(number, &message) == u32_at(&head, 4)).then_some(message))
    }

    /// The mark; `None` when a crash left a head that is not whole.
    fn mark(&self, file: &File) -> Result<Option<Mark>, LogError> {
        let mut head = [0; HEAD_BYTES];
        for _ in 0..MARK_TRIES {
            if !read_whole(file, &mut head, 0).map_err(failed("read", &self.path))? {
                return Ok(None);
            }
            if head[..OFFSET_MARK] != self.head {
                return self.other_head(&head);
            }
            let mark: &[u8; MARK_BYTES] = head[OFFSET_MARK..].try_into().expect("the mark ends the head");
            if let Some(mark) = Mark::decode(mark) {
                return Ok(Some(mark));
            }
            // Another process may be writing it.
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(damaged(&self.path, OFFSET_MARK as u64, "the mark's checksum does not fit"))
    }

    fn other_head(&self, head: &[u8; HEAD_BYTES]) -> Result<Option<Mark>, LogError> {
        if head.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        Err(damaged(&self.path, 0, "this is not the head of this partition of this log"))
    }
}

/// Fills a buffer from a place of a file; false when the file ends before.
fn read_whole(file: &File, buffer: &mut [u8], at: u64) -> io::Result<bool> {
    match file.read_exact_at(buffer, at) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Appends to a partition, for all threads of a process.
#[derive(Debug)]
pub(super) struct Appender {
    directory: PathBuf,
    whose: Whose,
    /// Open once something was appended.
    file: Mutex<Option<File>>,
    index: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Appender {
    pub(super) fn new(directory: &Path, partition: u32, identity: u128) -> Appender {
        let whose = Whose::new(partition_path(directory, partition), partition, identity);
        Appender { directory: directory.to_path_buf(), whose, file: Mutex::default(), index: Arc::default() }
    }

    /// Appends a message, and syncs.
    pub(super) fn append(&self, message: &[u8]) -> Result<(), LogError> {
        let mut open = lock(&self.file);
        if open.is_none() {
            *open = Some(self.open()?);
        }
        let file = open.as_ref().expect("it was opened just now");
        let _locked = Locked::take(file, &self.whose.path)?;
        let mark = self.ready(file)?;
        let frame = self.whose.frame(mark.count, message);
        let written = file.write_all_at(&frame, mark.end).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // What was written and could not be synced may be lost although it can be read now: none may find it.
            let _ = file.set_len(mark.end);
            return Err(failed("append to", &self.whose.path)(error));
        }
        let mark = Mark { end: mark.end + frame.len() as u64, count: mark.count + 1 };
        self.write_mark(file, mark).map_err(failed("append to", &self.whose.path))
    }

    fn open(&self) -> Result<File, LogError> {
        let path = &self.whose.path;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).open(path).map_err(failed("open", path))
    }

    fn write_mark(&self, file: &File, mark: Mark) -> io::Result<()> {
        file.write_all_at(&mark.encode(), OFFSET_MARK as u64)
    }

    /// Where to append, after repairs of what a killed writer or the machine's crash left. The lock is held.
    fn ready(&self, file: &File) -> Result<Mark, LogError> {
        let path = &self.whose.path;
        let Some(mark) = self.whose.mark(file)? else {
            self.write_head(file).map_err(failed("write the head of", path))?;
            return Ok(Mark::EMPTY);
        };
        let bytes = file.metadata().map_err(failed("look at", path))?.len();
        if bytes == mark.end {
            return Ok(mark);
        }
        if bytes < mark.end {
            let why = format!("the file ends there, and had been synced up to {}", mark.end);
            return Err(damaged(path, bytes, why));
        }
        self.keep_whole_frames(file, mark).map_err(failed("repair", path))
    }

    fn write_head(&self, file: &File) -> io::Result<()> {
        let mut head = self.whose.head.to_vec();
        head.extend_from_slice(&Mark::EMPTY.encode());
        file.set_len(0)?;
        file.write_all_at(&head, 0)?;
        file.sync_all()?;
        File::open(&self.directory)?.sync_all()
    }

    fn keep_whole_frames(&self, file: &File, mut mark: Mark) -> io::Result<Mark> {
        while let Some(message) = self.whose.message(file, mark.end, mark.count)? {
            mark.end += (FRAME_HEAD_BYTES + message.len()) as u64;
            mark.count += 1;
        }
        file.set_len(mark.end)?;
        file.sync_all()?;
        self.write_mark(file, mark)?;
        Ok(mark)
    }

    /// Writes messages as a writer does that is killed before it moves the mark.
    #[cfg(test)]
    pub(super) fn append_unmarked(&self, messages: impl Iterator<Item = Vec<u8>>) {
        let file = self.open().expect("the file opens");
        let mut mark = self.ready(&file).expect("the file is whole");
        for message in messages {
            let frame = self.whose.frame(mark.count, &message);
            file.write_all_at(&frame, mark.end).expect("a write");
            mark = Mark { end: mark.end + frame.len() as u64, count: mark.count + 1 };
        }
    }

    /// How many messages there are.
    pub(super) fn count(&self) -> Result<u64, LogError> {
        let mut cursor = self.cursor(0);
        Ok(cursor.mark()?.count)
    }

    /// Reads from a message on.
    pub(super) fn cursor(&self, from: u64) -> Cursor {
        Cursor {
            whose: self.whose.clone(),
            file: None,
            index: self.index.clone(),
            number: from,
            at: None,
            mark: Mark::EMPTY,
        }
    }
}

/// The lock of a partition's file, held. `flock(2)` belongs to the open file, so that the threads of a process need the mutex besides.
struct Locked<'f>(&'f File);

impl Locked<'_> {
    fn take<'f>(file: &'f File, path: &Path) -> Result<Locked<'f>, LogError> {
        let end = Instant::now() + LOCK_PATIENCE;
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Locked(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < end => {
                    std::thread::sleep(LOCK_INTERVAL)
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let text =
                        format!("another process has kept {} locked for {LOCK_PATIENCE:?}", path.display());
                    return Err(LogError::Unreachable(text));
                }
                Err(error) => return Err(failed("lock", path)(error.into())),
            }
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// A place in a partition, from which it is read on.
#[derive(Debug)]
pub(super) struct Cursor {
    whose: Whose,
    file: Option<File>,
    index: Arc<Mutex<Vec<(u64, u64)>>>,
    /// The number of the next message.
    number: u64,
    /// Where its frame begins, once that has been looked for.
    at: Option<u64>,
    /// As it was last read.
    mark: Mark,
}

impl Cursor {
    /// The next message; `None` while there is none.
    pub(super) fn next(&mut self) -> Result<Option<Stored>, LogError> {
        if self.number >= self.mark.count && self.number >= self.mark()?.count {
            return match self.number > self.mark.count {
                true => Err(LogError::Refused(format!(
                    "{} ends with {} messages, before message {}: something was taken away from it",
                    self.whose.path.display(),
                    self.mark.count,
                    self.number
                ))),
                false => Ok(None),
            };
        }
        let at = match self.at {
            Some(at) => at,
            None => self.find()?,
        };
        let file = self.file.as_ref().expect("it has a mark");
        let read = self.whose.message(file, at, self.number).map_err(failed("read", &self.whose.path))?;
        let why = format!("no whole message {}", self.number);
        let bytes = read.ok_or_else(|| damaged(&self.whose.path, at, why))?;
        self.at = Some(at + (FRAME_HEAD_BYTES + bytes.len()) as u64);
        let stored = Stored { offset: self.number, bytes };
        self.number += 1;
        Ok(Some(stored))
    }

    fn mark(&mut self) -> Result<Mark, LogError> {
        if self.file.is_none() {
            match File::open(&self.whose.path) {
                Ok(file) => self.file = Some(file),
                // Nothing has been appended yet.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Mark::EMPTY),
                Err(error) => return Err(failed("open", &self.whose.path)(error)),
            }
        }
        let file = self.file.as_ref().expect("it was opened just now");
        self.mark = self.whose.mark(file)?.unwrap_or(Mark::EMPTY);
        Ok(self.mark)
    }

    /// Where the frame of the next message begins: from the nearest place that is known, from frame to frame.
    fn find(&mut self) -> Result<u64, LogError> {
        let file = self.file.as_ref().expect("it has a mark");
        let mut index = lock(&self.index);
        let known = index.partition_point(|(number, _)| *number <= self.number);
        let (mut number, mut at) =
            known.checked_sub(1).map_or((0, HEAD_BYTES as u64), |before| index[before]);
        while number < self.number {
            let mut head = [0; FRAME_HEAD_BYTES];
            let whole = read_whole(file, &mut head, at).map_err(failed("read", &self.whose.path))?;
            if !whole || u64_at(&head, 8) != number {
                return Err(damaged(&self.whose.path, at, format!("message {number} does not begin here")));
            }
            at += FRAME_HEAD_BYTES as u64 + u64::from(u32_at(&head, 0));
            number += 1;
            if number % INDEX_INTERVAL == 0 && index.last().is_none_or(|(last, _)| *last < number) {
                index.push((number, at));
            }
        }
        Ok(at)
    }
}
