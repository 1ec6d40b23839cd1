//! The spool: blocks on disk until the store has them for good, and for a while longer in case that is restored from a copy.
//!
//! Segment files hold frames as they are sent, appended. Each begins with a block that begins a context, so it can be sent on
//! its own. When the spool is full, its oldest blocks give way to one that says which readings are missing (`gap`).

mod gap;
pub mod order;
mod segment;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use protocol::frames::agent::block::BlockSink;
use rustix::fs::{FlockOperation, flock};

use self::segment::{OpenSegment, Segment};
use crate::durable;

/// What a spool is and may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolOptions {
    /// Its directory; created if missing.
    pub directory: PathBuf,
    /// Bytes that it may take.
    pub bytes_max: u64,
    /// How long blocks are kept that the store has.
    pub keep: Duration,
}

/// Bytes of a segment, at most; a sixteenth of the spool if that is less.
const SEGMENT_BYTES_MAX: u64 = 4 << 20;
/// The file with the spool's number.
const EPOCH_FILE: &str = "epoch";
/// The file with what the store has, for an agent that starts while that is away. It need not be durable: the store knows it.
/// Until a store has welcomed this spool for the first time, there is none.
const ACKNOWLEDGED_FILE: &str = "acknowledged";
const LOCK_FILE: &str = "lock";

/// Where reading goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Everything before this number was read, or need not be.
    next: u64,
    /// The first number of the segment, and the place in it.
    segment: u64,
    is_gap: bool,
    offset: u64,
}

impl Cursor {
    /// The last block that was read, or need not be.
    pub fn before(&self) -> u64 {
        self.next - 1
    }
}

/// Takes the readings of blocks.
pub trait WaitingSink: BlockSink {
    /// What follows is of this block; of one that does not count, only the context matters.
    fn begin_block(&mut self, number: u64, counts: bool);
}

/// The blocks that an agent keeps.
#[derive(Debug)]
pub struct Spool {
    options: SpoolOptions,
    epoch: u64,
    /// Oldest first; the last one may be open.
    segments: VecDeque<Segment>,
    open: Option<OpenSegment>,
    /// The last block.
    last: u64,
    /// The store has all blocks up to here for good.
    acknowledged: u64,
    /// What the file says of that; `None`: there is no file, because no store knows this spool.
    noted: Option<u64>,
    /// Readings that were dropped.
    dropped: u64,
    _lock: File,
}

fn cannot(what: &str, path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("cannot {what} \"{}\": {error}", path.display())
}

/// Makes the names in a directory durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Microseconds since 1970: grows from spool to spool.
fn new_epoch() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_micros() as u64)
}

impl Spool {
    /// Opens a spool, or makes one. What a crash has torn is cut off.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn open(options: SpoolOptions) -> Result<Spool, String> {
        let directory = &options.directory;
        fs::create_dir_all(directory).map_err(cannot("make the spool", directory))?;
        let lock = File::create(directory.join(LOCK_FILE)).map_err(cannot("lock the spool", directory))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(format!("another agent uses the spool \"{}\"", directory.display()));
        }
        let segments = segment::all(directory).map_err(cannot("read the spool", directory))?;
        let epoch = match fs::read_to_string(directory.join(EPOCH_FILE)) {
            Ok(text) => text.trim().parse().map_err(|_| {
                format!("the file \"{}\" holds no number", directory.join(EPOCH_FILE).display())
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let epoch = new_epoch();
                write_epoch(directory, epoch).map_err(cannot("make the spool", directory))?;
                epoch
            }
            Err(error) => return Err(cannot("read the spool", directory)(error)),
        };
        let last = segments.last().map_or(0, |segment| segment.last);
        let noted = fs::read_to_string(directory.join(ACKNOWLEDGED_FILE)).ok();
        let noted = noted.map(|text| text.trim().parse().map_or(0, |number: u64| number.min(last)));
        Ok(Spool {
            options,
            epoch,
            segments: segments.into(),
            open: None,
            last,
            acknowledged: noted.unwrap_or(0),
            noted,
            dropped: 0,
            _lock: lock,
        })
    }

    /// Its number: that of an older spool is lower.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The last block, 0 = none.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The last block that is durable.
    pub fn durable(&self) -> u64 {
        self.open.as_ref().map_or(self.last, |open| open.durable_number)
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Bytes that the store does not have for good, roughly.
    pub fn waiting_bytes(&self) -> u64 {
        let waiting = self.segments.iter().filter(|segment| segment.last > self.acknowledged);
        waiting.map(|segment| segment.bytes).sum()
    }

    /// Readings dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// True when the next block should begin a segment, and so a context.
    pub fn wants_segment(&self) -> bool {
        let bytes_max = SEGMENT_BYTES_MAX.min(self.options.bytes_max / 16);
        match (&self.open, self.segments.back()) {
            (Some(_), Some(segment)) => segment.bytes >= bytes_max,
            _ => true,
        }
    }

    /// Appends a block: a frame with the number after [`Spool::last`]. It begins a segment if that `begins` a context.
    ///
    /// # Errors
    /// When it cannot be written; the spool is as before.
    pub fn append(&mut self, frame: &[u8], begins: bool) -> io::Result<()> {
        let number = self.last + 1;
        if begins {
            self.sync()?;
            self.open = None;
        }
        let open = match &mut self.open {
            Some(open) => open,
            None if !begins => return Err(io::Error::other("a segment begins with a context")),
            None => {
                let segment = Segment::create(&self.options.directory, number)?;
                let open = segment.open_to_append(&self.options.directory)?;
                self.segments.push_back(segment);
                self.open.insert(open)
            }
        };
        let Some(segment) = self.segments.back_mut() else { return Err(io::ErrorKind::NotFound.into()) };
        if let Err(error) = open.append(frame, segment.bytes) {
            if segment.bytes == 0 {
                // An empty segment would hold no context.
                segment.remove(&self.options.directory).ok();
                self.segments.pop_back();
                self.open = None;
            }
            return Err(error);
        }
        segment.bytes += frame.len() as u64;
        segment.last = number;
        self.last = number;
        Ok(())
    }

    /// Makes all blocks durable.
    ///
    /// # Errors
    /// When the sync fails.
    pub fn sync(&mut self) -> io::Result<()> {
        let (last, directory) = (self.last, &self.options.directory);
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.durable_number < last {
            open.sync(directory)?;
            open.durable_number = last;
        }
        Ok(())
    }

    /// The store has all blocks up to this one for good.
    pub fn acknowledge(&mut self, number: u64) {
        self.acknowledged = number;
    }

    /// A new session: the store has all blocks up to `number`, which may be fewer than it once had. Returns where to go on, and
    /// how many blocks before that are gone, because they are no longer kept.
    ///
    /// # Errors
    /// When it cannot be noted that a store knows this spool.
    pub fn resume(&mut self, number: u64) -> io::Result<(Cursor, u64)> {
        self.acknowledged = number;
        if self.noted.is_none() {
            self.note()?;
        }
        let next = number + 1;
        let first = self.segments.iter().find(|segment| segment.last >= next);
        let gone = first.map_or(0, |segment| segment.first.saturating_sub(next));
        let segment = first.map_or(u64::MAX, |segment| segment.first);
        Ok((Cursor { next, segment, is_gap: false, offset: 0 }, gone))
    }

    fn note(&mut self) -> io::Result<()> {
        fs::write(self.options.directory.join(ACKNOWLEDGED_FILE), format!("{}\n", self.acknowledged))?;
        self.noted = Some(self.acknowledged);
        Ok(())
    }

    /// The store knows a spool of this agent with the higher number `later`. If it has never known this one, that other one is older
    /// all the same: this host's clock was set back between them. Then this spool takes a still higher number; otherwise it is
    /// the one that is over.
    ///
    /// # Errors
    /// When the new number cannot be written.
    pub fn overtake(&mut self, later: u64) -> io::Result<bool> {
        if self.noted.is_some() || later < self.epoch {
            return Ok(false);
        }
        self.set_epoch(new_epoch().max(later.saturating_add(1)))?;
        Ok(true)
    }

    /// The store knows more blocks than there are: this spool is an old copy, whose numbers mean something else now. Under a new
    /// epoch all of its blocks are sent again; what the store has of them, it refuses as not new.
    ///
    /// # Errors
    /// When the new number cannot be written.
    pub fn begin_epoch(&mut self) -> io::Result<()> {
        self.set_epoch(new_epoch().max(self.epoch.saturating_add(1)))?;
        self.acknowledged = 0;
        Ok(())
    }

    fn set_epoch(&mut self, epoch: u64) -> io::Result<()> {
        write_epoch(&self.options.directory, epoch)?;
        self.epoch = epoch;
        Ok(())
    }

    /// Appends the next durable blocks, up to about `bytes_max` bytes and none after `last_allowed`, to `out`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(
        &self,
        cursor: &mut Cursor,
        bytes_max: usize,
        last_allowed: u64,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let Some(index) = self.segments.iter().position(|segment| segment.last >= cursor.next) else {
            return Ok(());
        };
        let segment = &self.segments[index];
        // The segment that was being read is gone, or read to its end.
        if segment.first != cursor.segment || segment.is_gap != cursor.is_gap {
            (cursor.segment, cursor.is_gap, cursor.offset) = (segment.first, segment.is_gap, 0);
        }
        let upto = match (&self.open, index + 1 == self.segments.len()) {
            (Some(open), true) => open.durable_bytes,
            _ => segment.bytes,
        };
        let limits = (bytes_max, last_allowed);
        let (last, offset) = segment.read(&self.options.directory, cursor.offset..upto, limits, out)?;
        cursor.offset = offset;
        if let Some(last) = last {
            cursor.next = (last + 1).max(cursor.next);
        }
        Ok(())
    }

    /// Hands all readings that the store does not have for good to `sink`, with the numbers of their blocks.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn for_each_waiting(&self, sink: &mut impl WaitingSink) -> io::Result<()> {
        for segment in self.segments.iter().filter(|segment| segment.last > self.acknowledged) {
            gap::for_each_block(&segment.read_all(&self.options.directory)?, |number, reader, body| {
                sink.begin_block(number, number > self.acknowledged);
                reader.read(body, sink).is_ok()
            });
        }
        Ok(())
    }

    /// The first block that is kept.
    pub fn first(&self) -> u64 {
        self.segments.front().map_or(self.last + 1, |segment| segment.first)
    }

    /// The last block that the store has for good, as far as is known.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.options.directory
    }

    /// Removes what is no longer kept, and makes room when there are more than `bytes_max` bytes: first of blocks that the store has;
    /// if it `may_drop`, then of the oldest that it has not.
    ///
    /// # Errors
    /// When files cannot be written or removed.
    pub fn tidy(&mut self, bytes_max: u64, may_drop: bool) -> io::Result<()> {
        if self.noted.is_some_and(|noted| noted != self.acknowledged) {
            self.note()?;
        }
        while let Some(oldest) = self.segments.front().filter(|_| self.segments.len() > 1) {
            let is_done = oldest.last <= self.acknowledged;
            let is_full = self.bytes() > bytes_max;
            if is_done && (is_full || oldest.age(&self.options.directory) > self.options.keep) {
                oldest.remove(&self.options.directory)?;
                self.segments.pop_front();
            } else if is_full && may_drop && self.segments.len() > 2 {
                self.drop_oldest()?;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Replaces the oldest blocks by one that says what is missing.
    fn drop_oldest(&mut self) -> io::Result<()> {
        // A gap takes the next segment in, so that there is only one.
        let count = if self.segments[0].is_gap { 2 } else { 1 };
        let victims: Vec<Segment> = self.segments.iter().take(count).cloned().collect();
        let directory = &self.options.directory;
        let (segment, dropped) = gap::replace(directory, &victims, self.acknowledged)?;
        self.dropped += dropped;
        self.segments.drain(..count);
        self.segments.push_front(segment);
        for victim in victims {
            victim.remove(directory)?;
        }
        Ok(())
    }
}

fn write_epoch(directory: &Path, epoch: u64) -> io::Result<()> {
    durable::replace(&directory.join(EPOCH_FILE), format!("{epoch}\n").as_bytes())
}

#[cfg(test)]
mod tests;
