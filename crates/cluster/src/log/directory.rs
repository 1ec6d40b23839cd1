//! The replicated log in a directory, for several processes of one machine: demonstrations and tests. It survives what kills processes, and
//! nothing that happens to the machine's disk.
//!
//! A file per partition (`docs/format/replicated-log.md`), which writers append to one at a time, under `flock(2)`. The file says itself up to where it
//! has been synced, its *mark*: readers go no further, and a writer that finds more than that finds what a killed one left. An append costs two writes and
//! one fsync; a message that is read, two reads. Offsets are the numbers of the messages, without gaps; nothing is ever removed.

mod about;
mod partition;
mod watch;

use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{LogError, LogReader, MESSAGE_BYTES_MAX, ReplicatedLog, Stored};
use about::About;
use partition::{Appender, Cursor};
use watch::Watch;

/// A log in a directory. Several values, of one or of many processes, may stand for the same one.
#[derive(Debug)]
pub struct DirectoryLog {
    about: About,
    partitions: Vec<Appender>,
    watch: Arc<Watch>,
}

impl DirectoryLog {
    /// Opens the log of a directory, which is made if there is none. Several processes may do that at the same time.
    ///
    /// # Errors
    /// When the directory has a log with another number of partitions, or cannot be read or written.
    pub fn create(directory: &Path, partitions: u32) -> Result<DirectoryLog, LogError> {
        let about = About::create(directory, partitions)?;
        if about.partitions != partitions {
            return Err(LogError::Refused(format!(
                "{} has {} partitions, not {partitions}: their number stays as it was made",
                directory.display(),
                about.partitions
            )));
        }
        Ok(DirectoryLog::of(directory, about))
    }

    /// Opens the log of a directory.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(directory: &Path) -> Result<DirectoryLog, LogError> {
        Ok(DirectoryLog::of(directory, About::read(directory)?))
    }

    fn of(directory: &Path, about: About) -> DirectoryLog {
        let partition = |number| Appender::new(directory, number, about.identity);
        let partitions = (0..about.partitions).map(partition).collect();
        let watch = Arc::new(Watch::start(directory, about.partitions));
        DirectoryLog { about, partitions, watch }
    }

    fn partition(&self, number: u32) -> Result<&Appender, LogError> {
        self.partitions.get(number as usize).ok_or_else(|| {
            LogError::Refused(format!("there is no partition {number} of {}", self.about.partitions))
        })
    }
}

impl ReplicatedLog for DirectoryLog {
    fn partition_count(&self) -> Result<u32, LogError> {
        Ok(self.about.partitions)
    }

    fn identity(&self) -> Result<String, LogError> {
        Ok(format!("directory {:032x}", self.about.identity))
    }

    fn append(&self, partition: u32, message: &[u8]) -> Result<(), LogError> {
        if message.len() > MESSAGE_BYTES_MAX {
            let text = format!("a message of {} bytes: {MESSAGE_BYTES_MAX} are the most", message.len());
            return Err(LogError::Refused(text));
        }
        self.partition(partition)?.append(message)?;
        self.watch.changed(partition);
        Ok(())
    }

    fn bounds(&self, partition: u32) -> Result<Range<u64>, LogError> {
        Ok(0..self.partition(partition)?.count()?)
    }

    fn reader(&self, partition: u32, from: u64) -> Result<Box<dyn LogReader>, LogError> {
        let cursor = self.partition(partition)?.cursor(from);
        Ok(Box::new(DirectoryReader { partition, cursor, watch: self.watch.clone() }))
    }
}

/// Reads one partition.
#[derive(Debug)]
struct DirectoryReader {
    partition: u32,
    cursor: Cursor,
    watch: Arc<Watch>,
}

impl LogReader for DirectoryReader {
    fn next(&mut self, patience: Duration) -> Result<Option<Stored>, LogError> {
        let end = Instant::now() + patience;
        loop {
            // Asked for before the file is looked at: what comes in between ends the wait.
            let seen = self.watch.seen(self.partition);
            if let Some(stored) = self.cursor.next()? {
                return Ok(Some(stored));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.watch.wait(self.partition, seen, left);
        }
    }
}

/// What an operation on a file failed with.
fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    let text = format!("cannot {what} {}", path.display());
    move |error| LogError::Refused(format!("{text}: {error}"))
}

/// Bytes that are not what was written.
fn damaged(path: &Path, offset: u64, why: impl Display) -> LogError {
    LogError::Refused(format!(
        "{} is damaged at byte {offset}: {why}; only another copy of the directory has what was there",
        path.display()
    ))
}

/// The file of a partition.
fn partition_path(directory: &Path, partition: u32) -> PathBuf {
    directory.join(format!("partition-{partition:05}"))
}

#[cfg(test)]
mod tests;
