//! A copy of a store for a follower that has none, or none of use: sent as frames, made of frames.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use protocol::frames::replication::{Ending, FileKind, FromPrimary};
use store::assemble::{Assembly, Until};
use store::capture::{Capture, CapturedFile, CapturedShard};
use store::engine::StoreError;
use store::replication::{History, Position, Role};

use super::sending::{End, LogSender};
use super::{store_position, wire_position};

/// Bytes of a file in a frame.
const DATA_BYTES: u64 = 1 << 20;
/// How often progress is logged.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Sends the store as it is now; returns where its logs end.
pub(super) fn send_copy(sender: &LogSender) -> Result<Vec<Position>, End> {
    let failed = |error: &dyn std::fmt::Display| End::Told(Ending::Other, error.to_string());
    let capture: Capture = sender.engine.capture().map_err(|error: StoreError| failed(&error))?;
    sender.send(&FromPrimary::Copy(capture.identity.text().as_bytes()))?;
    let history = sender.engine.replica().map(|replica| replica.history().encode()).unwrap_or_default();
    sender.send(&FromPrimary::Welcome(history.as_bytes()))?;
    for (index, shard) in capture.shards.iter().enumerate() {
        let (from, end) = (wire_position(shard.log_from()), wire_position(shard.log_end()));
        let manifest = shard.manifest();
        sender.send(&FromPrimary::Shard { shard: index as u16, from, end, manifest: manifest.as_bytes() })?;
        if let Some(file) = shard.checkpoint().map_err(|error| failed(&error))? {
            send_file(sender, shard, FileKind::Checkpoint, &file)?;
        }
        for file in shard.segments() {
            send_file(sender, shard, FileKind::Segment, &file)?;
        }
        let bytes = shard.log_end().offset.saturating_sub(shard.log_from().offset);
        sender.send(&FromPrimary::File { kind: FileKind::Log, number: 0, bytes })?;
        send_data(sender, bytes, &mut |offset, count| shard.read_log(shard.log_from().plus(offset), count))?;
    }
    sender.send(&FromPrimary::Copied)?;
    Ok(capture.shards.iter().map(CapturedShard::log_end).collect())
}

fn send_file(
    sender: &LogSender,
    shard: &CapturedShard,
    kind: FileKind,
    file: &CapturedFile,
) -> Result<(), End> {
    sender.send(&FromPrimary::File { kind, number: file.number, bytes: file.bytes })?;
    send_data(sender, file.bytes, &mut |offset, count| shard.read_file(file, offset, count))
}

/// Reads a part: from where on, and how many bytes.
type ReadPart<'a> = &'a mut dyn FnMut(u64, usize) -> io::Result<Vec<u8>>;

fn send_data(sender: &LogSender, bytes: u64, read: ReadPart<'_>) -> Result<(), End> {
    let mut offset = 0;
    while offset < bytes {
        let count = DATA_BYTES.min(bytes - offset);
        let data =
            read(offset, count as usize).map_err(|error| End::Told(Ending::Other, error.to_string()))?;
        sender.send(&FromPrimary::Data(&data))?;
        offset += count;
    }
    Ok(())
}

/// A copy that is being made.
pub(super) struct Copying {
    assembly: Assembly,
    identity: String,
    history: History,
    shards: Vec<CopiedShard>,
    file: Option<(File, u64)>,
    bytes: u64,
    told: Instant,
}

struct CopiedShard {
    index: u32,
    manifest: String,
    end: Position,
}

impl Copying {
    /// Begins it in a directory, which is empty or not there.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn begin(directory: &Path, identity: &[u8]) -> io::Result<Copying> {
        let assembly = Assembly::begin(directory)?;
        let identity = String::from_utf8_lossy(identity).into_owned();
        let (history, shards, file) = Default::default();
        Ok(Copying { assembly, identity, history, shards, file, bytes: 0, told: Instant::now() })
    }

    /// Takes a frame; whether the copy is complete with it.
    ///
    /// # Errors
    /// When the frame does not belong to a copy; the system's.
    pub(super) fn take(&mut self, frame: &FromPrimary<'_>) -> io::Result<bool> {
        match frame {
            FromPrimary::Welcome(text) => {
                let history = History::decode(&String::from_utf8_lossy(text));
                self.history = history.map_err(|error| invalid(&error.to_string()))?;
            }
            FromPrimary::Shard { shard, end, manifest, .. } => {
                self.end_file()?;
                let manifest = String::from_utf8_lossy(manifest).into_owned();
                // Its directory.
                self.assembly.shard(u32::from(*shard), &manifest)?;
                self.shards.push(CopiedShard {
                    index: u32::from(*shard),
                    manifest,
                    end: store_position(*end),
                });
            }
            FromPrimary::File { kind, number, bytes } => {
                self.end_file()?;
                self.begin_file(*kind, *number, *bytes)?;
            }
            FromPrimary::Data(data) => self.take_data(data)?,
            FromPrimary::Copied => {
                self.end_file()?;
                return Ok(true);
            }
            _ => return Err(invalid("a frame in the middle of a copy that is no part of it")),
        }
        Ok(false)
    }

    fn begin_file(&mut self, kind: FileKind, number: u64, bytes: u64) -> io::Result<()> {
        let last = self.shards.last().ok_or_else(|| invalid("a file before its shard"))?;
        let shard = self.assembly.shard(last.index, &last.manifest)?;
        let path = match kind {
            FileKind::Checkpoint => shard.checkpoint(number),
            FileKind::Segment => shard.segment(number),
            FileKind::Log if bytes == 0 => return Ok(()),
            FileKind::Log => shard.log(),
        };
        self.file = Some((File::create_new(path)?, bytes));
        Ok(())
    }

    fn take_data(&mut self, data: &[u8]) -> io::Result<()> {
        let Some((file, left)) = &mut self.file else { return Err(invalid("bytes of no file")) };
        *left = left
            .checked_sub(data.len() as u64)
            .ok_or_else(|| invalid("a file that is longer than it was said"))?;
        file.write_all(data)?;
        self.bytes += data.len() as u64;
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            tracing::info!(megabytes = self.bytes / 1_000_000, "copying the primary's store");
        }
        Ok(())
    }

    fn end_file(&mut self) -> io::Result<()> {
        match self.file.take() {
            Some((file, 0)) => file.sync_all(),
            Some(_) => Err(invalid("a file that is shorter than it was said")),
            None => Ok(()),
        }
    }

    /// Completes the store; returns how many bytes it has.
    ///
    /// # Errors
    /// The system's; when the primary sent no store.
    pub(super) fn complete(self) -> io::Result<u64> {
        for CopiedShard { index, manifest, end } in &self.shards {
            self.assembly.shard(*index, manifest)?.complete(*end, Until::End, &[])?;
        }
        // From the first moment it is that of a follower.
        let history = History { role: Role::Follower, ..self.history };
        self.assembly.complete_as(&self.identity, &history)?;
        Ok(self.bytes)
    }

    /// Removes what was made.
    pub(super) fn discard(self) {
        self.assembly.discard();
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the primary sent {what}"))
}
