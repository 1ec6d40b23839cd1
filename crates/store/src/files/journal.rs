//! The journal of the files layout: the accepted updates that may not be in their `.rrd` files yet.
//!
//! There is one file per shard and generation; every start and every rotation begins a new generation. A
//! frame is one `write(2)`, so a `kill -9` leaves whole frames and at most one torn tail. [`scan`](fn@scan) returns
//! records in order and opens no `.rrd` file; [`Ends`] notes what should be there. `docs/format/journal.md` describes the bytes.
//! Cost: 7 bytes plus name and updates per update record, 24 bytes per frame.

mod ends;
mod scan;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, DiskFile, Mode, RealDisk};
use rrd::time::{MICROS, Timestamp};

use crate::log::copy_aside;
use crate::streams::StreamPosition;
pub use ends::{Ends, NAME as ENDS_NAME, id_text};
pub use scan::{Damage, Noted, scan};

/// The first bytes of a journal file.
pub const MAGIC: [u8; 8] = *b"ROUNDELJ";
/// The version of the format that this release writes.
pub const VERSION: u32 = 2;
/// Bytes before the first frame.
pub const HEADER_BYTES: usize = 48;
/// Bytes before a frame's body: length, checksum, its own offset, durable mark.
pub const FRAME_HEADER_BYTES: usize = 24;

/// The largest frame body. A larger batch is split into several frames at record boundaries; in replay, a
/// larger length can only be damage. One record needs at most 4,102 + `UPDATES_BYTES_MAX` bytes.
pub const FRAME_BYTES_MAX: usize = 4 << 20;
/// The most bytes of updates in one record: more than the longest line a client may send.
pub const UPDATES_BYTES_MAX: usize = 2 << 20;

/// Mode of journal files, before the umask.
const FILE_MODE: u32 = 0o666;
/// The file whose lock keeps other daemons off the journal.
const LOCK_NAME: &str = "lock";

const KIND_UPDATE: u8 = 1;
const KIND_WRITTEN: u8 = 2;
const KIND_FORGOTTEN: u8 = 3;
const KIND_STREAM: u8 = 4;

const OFFSET_VERSION: usize = 8;
const OFFSET_SHARD: usize = 12;
const OFFSET_GENERATION: usize = 16;
const OFFSET_ID: usize = 24;
const OFFSET_RESERVED: usize = 40;
const OFFSET_CHECKSUM: usize = 44;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record<'a> {
    /// Updates were accepted for the RRD.
    Update {
        /// The RRD.
        name: &'a [u8],
        /// The updates, encoded as in [`super::updates`]; at most [`UPDATES_BYTES_MAX`].
        updates: &'a [u8],
    },
    /// Everything accepted for the RRD up to this time is in its file.
    Written {
        /// The RRD.
        name: &'a [u8],
        /// Time of the newest update written.
        until: Timestamp,
    },
    /// Everything accepted for the RRD so far is void, because it was removed or replaced.
    Forgotten {
        /// The RRD.
        name: &'a [u8],
    },
    /// How far a stream has been applied.
    Stream {
        /// Its name.
        name: &'a [u8],
        /// Everything up to here is durable in the journals of all shards.
        position: StreamPosition,
    },
}

/// Records being collected for one frame.
#[derive(Debug, Default)]
pub struct Frame {
    bytes: Vec<u8>,
    /// Where each frame within `bytes` starts; a full one is followed by another.
    starts: Vec<usize>,
}

impl Frame {
    /// True when it has no records.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends a record. Names and updates must be within their limits.
    pub fn put(&mut self, record: Record<'_>) {
        let (kind, name) = match record {
            Record::Update { name, .. } => (KIND_UPDATE, name),
            Record::Written { name, .. } => (KIND_WRITTEN, name),
            Record::Forgotten { name } => (KIND_FORGOTTEN, name),
            Record::Stream { name, .. } => (KIND_STREAM, name),
        };
        let (time, numbers);
        let text: &[u8] = match record {
            Record::Update { updates, .. } => updates,
            Record::Written { until, .. } => {
                time = time_bytes(until);
                &time
            }
            Record::Forgotten { .. } => &[],
            Record::Stream { position, .. } => {
                numbers = position_bytes(position);
                &numbers
            }
        };
        debug_assert!(text.len() <= UPDATES_BYTES_MAX && name.len() <= usize::from(u16::MAX));
        let needed = 7 + name.len() + text.len();
        let open = self.starts.last().copied();
        if open.is_none_or(|start| self.bytes.len() - start - FRAME_HEADER_BYTES + needed > FRAME_BYTES_MAX) {
            self.starts.push(self.bytes.len());
            self.bytes.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
        }
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(text);
    }

    /// Completes the frame headers and returns the bytes to write at `offset` of a file that is durable up to `durable` and
    /// whose header has this checksum.
    fn seal(&mut self, offset: u64, durable: u64, header_checksum: u32) -> &[u8] {
        for (index, &start) in self.starts.iter().enumerate() {
            let end = self.starts.get(index + 1).copied().unwrap_or(self.bytes.len());
            let (head, body) = self.bytes[start..end].split_at_mut(FRAME_HEADER_BYTES);
            head[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
            head[8..16].copy_from_slice(&(offset + start as u64).to_le_bytes());
            head[16..].copy_from_slice(&durable.to_le_bytes());
            let checksum = frame_checksum(header_checksum, head, body);
            head[4..8].copy_from_slice(&checksum.to_le_bytes());
        }
        &self.bytes
    }

    /// The body of the only frame.
    #[cfg(test)]
    pub fn body_for_test(&self) -> &[u8] {
        &self.bytes[FRAME_HEADER_BYTES..]
    }

    /// Empties it. Keeps its memory unless a rare large batch made it large.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(FRAME_BYTES_MAX);
        self.starts.clear();
    }
}

/// The directory of the journal files.
#[derive(Clone)]
pub struct Directory {
    disk: Arc<dyn Disk>,
    /// Its path, for messages.
    path: PathBuf,
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

impl Directory {
    /// The root of a disk; messages show it as `path`.
    pub fn on_disk(disk: Arc<dyn Disk>, path: &Path) -> Self {
        Directory { disk, path: path.to_path_buf() }
    }

    /// A directory of the operating system.
    ///
    /// # Errors
    /// When the system cannot open it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::on_disk(Arc::new(RealDisk::open(path)?.with_file_mode(FILE_MODE)), path))
    }

    /// As [`Directory::open`], but creates the directory if it is missing.
    ///
    /// # Errors
    /// When the system cannot create or open it.
    pub fn create(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Self::open(path)
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the journal for as long as the returned file lives; `None` when another daemon holds the lock.
    ///
    /// # Errors
    /// When the lock file cannot be opened or locked.
    pub fn lock(&self) -> io::Result<Option<Arc<dyn DiskFile>>> {
        let name = Path::new(LOCK_NAME);
        let file = match self.disk.open(name, Mode::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.disk.create(name)?,
            opened => opened?,
        };
        Ok(file.try_lock()?.then_some(file))
    }

    /// The journal files with their generations, oldest first.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn files(&self) -> io::Result<Vec<(u64, OsString)>> {
        let names = self.disk.list(Path::new(""))?.into_iter();
        let mut found: Vec<_> = names.filter_map(|name| Some((key_of(name.to_str()?)?.0, name))).collect();
        found.sort_unstable();
        Ok(found)
    }

    /// What the file `JOURNAL` says; `None` when there is none. The inner error says what is damaged.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn ends(&self) -> io::Result<Option<Result<Ends, String>>> {
        Ends::load(&*self.disk)
    }

    /// Writes the file `JOURNAL`.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn note_ends(&self, ends: &Ends) -> io::Result<()> {
        ends.store(&*self.disk)
    }

    /// Whether a file says to which journal it belongs, so that there must be a file `JOURNAL` too.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn has_labels(&self, files: &[(u64, OsString)]) -> io::Result<bool> {
        for (_, name) in files {
            let mut bytes = [0; HEADER_BYTES];
            let count = self.disk.open(Path::new(name), Mode::Read)?.read_at(&mut bytes, 0)?;
            if header_of(&bytes[..count.min(HEADER_BYTES)]).is_ok_and(|header| header.id.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes a file durable, of which a process that is gone may have left a part in the page cache.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sync(&self, name: &OsStr) -> io::Result<()> {
        self.disk.open(Path::new(name), Mode::Write)?.sync()
    }

    /// Copies a damaged file to `damaged-NAME`; returns the copy's name unless there is one already.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn put_aside(&self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        copy_aside(&*self.disk, Path::new(name))
    }

    /// Removes a journal file.
    ///
    /// # Errors
    /// When the system cannot remove it.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        self.disk.remove(Path::new(name))
    }
}

/// The journal file to which a shard appends.
pub struct Journal {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    /// Checksum of its header.
    checksum: u32,
    bytes: u64,
    /// It is durable up to this byte.
    durable: u64,
    /// Nothing was appended since a sync began.
    synced: bool,
    /// How often it was emptied.
    emptied: u32,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

/// What is to be synced without blocking appends.
pub struct PendingSync {
    /// The file.
    pub file: Arc<dyn DiskFile>,
    bytes: u64,
    emptied: u32,
}

impl Journal {
    /// Creates the file of a new generation, durable with its name.
    ///
    /// # Errors
    /// When the file cannot be created, written or synced.
    pub fn create(directory: &Directory, id: &[u8; 16], generation: u64, shard: u32) -> io::Result<Self> {
        let name = file_name(generation, shard);
        let file = directory.disk.create(Path::new(&name))?;
        let header = header(id, generation, shard);
        file.write_at(&header, 0)?;
        file.sync()?;
        directory.disk.sync_dir(Path::new(""))?;
        let checksum = word(&header, OFFSET_CHECKSUM);
        let (path, bytes) = (directory.path.join(name), HEADER_BYTES as u64);
        Ok(Journal { file, path, checksum, bytes, durable: bytes, synced: true, emptied: 0 })
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a frame in one write. After an error the file is unchanged, so that a later append may succeed
    /// (when a full disk has room again).
    ///
    /// # Errors
    /// When the frame cannot be written.
    pub fn append(&mut self, frame: &mut Frame) -> io::Result<()> {
        let bytes = frame.seal(self.bytes, self.durable, self.checksum);
        self.synced = false;
        if let Err(error) = self.file.write_at(bytes, self.bytes) {
            // A torn frame in the middle would end replay there, so it must be cut off before anything
            // follows it.
            self.file.truncate(self.bytes)?;
            return Err(error);
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Removes all frames.
    ///
    /// # Errors
    /// When the file cannot be truncated and synced.
    pub fn empty(&mut self) -> io::Result<()> {
        self.file.truncate(HEADER_BYTES as u64)?;
        self.bytes = HEADER_BYTES as u64;
        (self.durable, self.synced) = (self.bytes, false);
        self.emptied += 1;
        // Offsets are used again, so the old frames must be gone for good.
        self.sync().map(drop)
    }

    /// Makes everything appended durable. Returns true if there was anything to sync.
    ///
    /// # Errors
    /// When the sync fails.
    pub fn sync(&mut self) -> io::Result<bool> {
        if self.synced && self.durable == self.bytes {
            return Ok(false);
        }
        self.file.sync()?;
        (self.durable, self.synced) = (self.bytes, true);
        Ok(true)
    }

    /// The file, to be synced without blocking appends; `None` when nothing was appended since the last sync.
    pub fn sync_handle(&mut self) -> Option<PendingSync> {
        if self.synced {
            return None;
        }
        // An append during the sync marks the file as unsynced again.
        self.synced = true;
        Some(PendingSync { file: Arc::clone(&self.file), bytes: self.bytes, emptied: self.emptied })
    }

    /// Notes that the file of a handle was synced.
    pub fn note_synced(&mut self, handle: &PendingSync) {
        if Arc::ptr_eq(&self.file, &handle.file) && self.emptied == handle.emptied {
            self.durable = self.durable.max(handle.bytes);
        }
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Calls `take` for every record of a frame's body.
///
/// # Errors
/// When a record is truncated or unknown.
pub fn records(body: &[u8], take: &mut impl FnMut(Record<'_>)) -> Result<(), String> {
    let mut rest = body;
    while !rest.is_empty() {
        let cut = || format!("record at byte {} of the frame is cut", body.len() - rest.len());
        let (head, behind) = rest.split_at_checked(7).ok_or_else(cut)?;
        let name_bytes = usize::from(u16::from_le_bytes([head[1], head[2]]));
        let text_bytes = u32::from_le_bytes([head[3], head[4], head[5], head[6]]) as usize;
        let (name, behind) = behind.split_at_checked(name_bytes).ok_or_else(cut)?;
        let (text, behind) = behind.split_at_checked(text_bytes).ok_or_else(cut)?;
        let unknown = || format!("record of kind {} and {text_bytes} bytes is none of ours", head[0]);
        take(match (head[0], text_bytes) {
            (KIND_UPDATE, 1..=UPDATES_BYTES_MAX) => Record::Update { name, updates: text },
            (KIND_WRITTEN, 12) => Record::Written { name, until: time_of(text).ok_or_else(unknown)? },
            (KIND_FORGOTTEN, 0) => Record::Forgotten { name },
            (KIND_STREAM, 16) => Record::Stream { name, position: position_of(text).ok_or_else(unknown)? },
            _ => return Err(unknown()),
        });
        rest = behind;
    }
    Ok(())
}

/// `GENERATION-SHARD.journal` with 16 and 4 hexadecimal digits.
pub fn file_name(generation: u64, shard: u32) -> String {
    format!("{generation:016x}-{shard:04x}.journal")
}

/// Generation and shard in the name of a journal file.
pub fn key_of(file_name: &str) -> Option<(u64, u32)> {
    let (generation, shard) = file_name.strip_suffix(".journal")?.split_once('-')?;
    (generation.len() == 16 && shard.len() == 4).then_some(())?;
    Some((u64::from_str_radix(generation, 16).ok()?, u32::from_str_radix(shard, 16).ok()?))
}

fn header(id: &[u8; 16], generation: u64, shard: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    bytes[OFFSET_VERSION..OFFSET_SHARD].copy_from_slice(&VERSION.to_le_bytes());
    bytes[OFFSET_SHARD..OFFSET_GENERATION].copy_from_slice(&shard.to_le_bytes());
    bytes[OFFSET_GENERATION..OFFSET_ID].copy_from_slice(&generation.to_le_bytes());
    bytes[OFFSET_ID..OFFSET_RESERVED].copy_from_slice(id);
    let checksum = crc32c::crc32c(&bytes[..OFFSET_CHECKSUM]);
    bytes[OFFSET_CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// What the header of a file says.
struct Header {
    shard: u32,
    generation: u64,
    /// `None` in version 1.
    id: Option<[u8; 16]>,
    checksum: u32,
}

/// The header at the start of a file, of any version that this release reads.
fn header_of(bytes: &[u8]) -> Result<Header, String> {
    if !bytes.starts_with(&MAGIC) {
        return Err("this is no journal of ours; move it away".to_string());
    }
    let version = word(bytes, OFFSET_VERSION);
    // Version 1 has its checksum where the id is now.
    let checksum_at = if version == 1 { scan::HEADER_BYTES_V1 - 4 } else { OFFSET_CHECKSUM };
    let checksum = bytes.get(checksum_at..checksum_at + 4).map(|_| word(bytes, checksum_at));
    if checksum.is_none_or(|checksum| checksum != crc32c::crc32c(&bytes[..checksum_at])) {
        return Err("checksum of the header does not match; the file is not read".to_string());
    }
    let id = match version {
        1 => None,
        VERSION => bytes[OFFSET_ID..OFFSET_RESERVED].try_into().ok(),
        other => return Err(format!("version {other}; this release reads versions 1 and {VERSION}")),
    };
    let generation =
        u64::from(word(bytes, OFFSET_GENERATION)) | u64::from(word(bytes, OFFSET_GENERATION + 4)) << 32;
    let shard = word(bytes, OFFSET_SHARD);
    Ok(Header { shard, generation, id, checksum: checksum.unwrap_or_default() })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Files that were exchanged would give RRDs their updates in another order than they were accepted in.
fn check_name(header: &Header, name: &OsStr) -> Result<(), String> {
    let own = file_name(header.generation, header.shard);
    // A copy for `inspect` may have any name.
    if *own == *name || name.to_str().and_then(key_of).is_none() {
        return Ok(());
    }
    Err(format!(
        "this is the content of {own}: files were exchanged; it is not read until it has that name again"
    ))
}

/// The checksum of a frame; `head` is its header, and `seed` the checksum of the file's.
fn frame_checksum(seed: u32, head: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c_append(seed, &head[..4]), &head[8..]), body)
}

fn time_bytes(time: Timestamp) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&time.whole.to_le_bytes());
    bytes[8..].copy_from_slice(&time.micros.to_le_bytes());
    bytes
}

fn time_of(bytes: &[u8]) -> Option<Timestamp> {
    let whole = i64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let micros = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?);
    (micros < MICROS).then(|| Timestamp::new(whole, micros))
}

fn position_bytes(position: StreamPosition) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&position.epoch.to_le_bytes());
    bytes[8..].copy_from_slice(&position.sequence.to_le_bytes());
    bytes
}

fn position_of(bytes: &[u8]) -> Option<StreamPosition> {
    let epoch = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let sequence = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
    Some(StreamPosition { epoch, sequence })
}

#[cfg(test)]
mod tests;
