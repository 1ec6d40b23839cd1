//! The journal of the files layout: the accepted updates that may not be in their `.rrd` files yet.
//!
//! There is one file per shard and generation; every start and every rotation begins a new generation. A
//! frame is one `write(2)`, so a `kill -9` leaves whole frames and at most one torn tail. Replay returns
//! records in order and opens no `.rrd` file. `docs/format/journal.md` describes the bytes. Cost: 7 bytes
//! plus name and updates per update record, 8 bytes per frame.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, DiskFile, Mode, RealDisk};
use rrd::time::{MICROS, Timestamp};

/// The first bytes of a journal file.
pub const MAGIC: [u8; 8] = *b"ROUNDELJ";
/// The version of the format that this release writes.
pub const VERSION: u32 = 1;
/// Bytes before the first frame.
pub const HEADER_BYTES: usize = 32;
/// Bytes before a frame's body: length and checksum.
pub const FRAME_HEADER_BYTES: usize = 8;

/// The largest frame body. A larger batch is split into several frames at record boundaries; in replay, a
/// larger length can only be damage. One record needs at most 4,102 + `UPDATES_BYTES_MAX` bytes.
pub const FRAME_BYTES_MAX: usize = 4 << 20;
/// The most bytes of updates in one record: more than the longest line a client may send.
pub const UPDATES_BYTES_MAX: usize = 2 << 20;

/// Bytes per read in replay.
const READ_BYTES: usize = 1 << 20;
/// Mode of journal files, before the umask.
const FILE_MODE: u32 = 0o666;
/// The file whose lock keeps other daemons off the journal.
const LOCK_NAME: &str = "lock";

const KIND_UPDATE: u8 = 1;
const KIND_WRITTEN: u8 = 2;
const KIND_FORGOTTEN: u8 = 3;

const OFFSET_VERSION: usize = 8;
const OFFSET_SHARD: usize = 12;
const OFFSET_GENERATION: usize = 16;
const OFFSET_RESERVED: usize = 24;
const OFFSET_CHECKSUM: usize = 28;

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
        };
        let time;
        let text: &[u8] = match record {
            Record::Update { updates, .. } => updates,
            Record::Written { until, .. } => {
                time = time_bytes(until);
                &time
            }
            Record::Forgotten { .. } => &[],
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

    /// Completes the frame headers and returns the bytes to write.
    fn seal(&mut self) -> &[u8] {
        for (index, &start) in self.starts.iter().enumerate() {
            let end = self.starts.get(index + 1).copied().unwrap_or(self.bytes.len());
            let length = ((end - start - FRAME_HEADER_BYTES) as u32).to_le_bytes();
            let checksum = frame_checksum(length, &self.bytes[start + FRAME_HEADER_BYTES..end]);
            self.bytes[start..start + 4].copy_from_slice(&length);
            self.bytes[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
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
        let mut found: Vec<_> =
            names.filter_map(|name| Some((generation_of(name.to_str()?)?, name))).collect();
        found.sort_unstable();
        Ok(found)
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
    bytes: u64,
    synced: bool,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

impl Journal {
    /// Creates the file of a new generation and makes its directory entry durable.
    ///
    /// # Errors
    /// When the file cannot be created, written or synced.
    pub fn create(directory: &Directory, generation: u64, shard: u32) -> io::Result<Self> {
        let name = file_name(generation, shard);
        let file = directory.disk.create(Path::new(&name))?;
        file.write_at(&header(generation, shard), 0)?;
        directory.disk.sync_dir(Path::new(""))?;
        Ok(Journal { file, path: directory.path.join(name), bytes: HEADER_BYTES as u64, synced: false })
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
        let bytes = frame.seal();
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
    /// When the file cannot be truncated.
    pub fn empty(&mut self) -> io::Result<()> {
        self.file.truncate(HEADER_BYTES as u64)?;
        self.bytes = HEADER_BYTES as u64;
        self.synced = false;
        Ok(())
    }

    /// Makes everything appended durable. Returns true if there was anything to sync.
    ///
    /// # Errors
    /// When the sync fails.
    pub fn sync(&mut self) -> io::Result<bool> {
        if self.synced {
            return Ok(false);
        }
        self.file.sync()?;
        self.synced = true;
        Ok(true)
    }

    /// The file, to be synced without blocking appends; `None` when nothing was appended since the last sync.
    pub fn sync_handle(&mut self) -> Option<Arc<dyn DiskFile>> {
        if self.synced {
            return None;
        }
        // An append during the sync marks the file as unsynced again.
        self.synced = true;
        Some(Arc::clone(&self.file))
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Damage found in replay; good records around it were replayed.
#[derive(Debug)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Offset in bytes.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// A crash leaves this too: nothing good follows it.
    pub is_tear: bool,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "journal {} at byte {}: {}", self.path.display(), self.offset, self.what)
    }
}

/// Reads one journal file, record by record. Damage is reported and skipped as long as frame boundaries can
/// be found; a torn tail, which any crash may leave, is marked as such.
///
/// # Errors
/// When the file cannot be read.
pub fn replay(
    directory: &Directory,
    name: &OsStr,
    mut take: impl FnMut(Record<'_>),
) -> io::Result<Vec<Damage>> {
    let path = directory.path.join(name);
    let file = directory.disk.open(Path::new(name), Mode::Read)?;
    let mut damages = Vec::new();
    let mut report = |offset: u64, is_tear: bool, what: String| {
        damages.push(Damage { path: path.clone(), offset, what, is_tear });
    };
    let length = file.length()?;
    if length < HEADER_BYTES as u64 {
        let what = format!(
            "{length} bytes, less than its header: a kill while it was being made leaves that; otherwise its updates are lost"
        );
        report(0, true, what);
        return Ok(damages);
    }
    let mut input = io::BufReader::with_capacity(READ_BYTES, Input { file, offset: 0 });
    let mut start = [0; HEADER_BYTES];
    input.read_exact(&mut start)?;
    if let Err(what) = check_header(&start).and_then(|()| check_name(&start, name)) {
        report(0, false, what);
        return Ok(damages);
    }
    let mut offset = HEADER_BYTES as u64;
    let mut body = Vec::new();
    while length - offset >= FRAME_HEADER_BYTES as u64 {
        let mut head = [0; FRAME_HEADER_BYTES];
        input.read_exact(&mut head)?;
        let field = [head[0], head[1], head[2], head[3]];
        let body_bytes = u32::from_le_bytes(field) as usize;
        let rest = length - offset - FRAME_HEADER_BYTES as u64;
        if body_bytes == 0 || body_bytes > FRAME_BYTES_MAX {
            report(
                offset,
                false,
                format!("frame of {body_bytes} bytes cannot be; the rest of the file is not read"),
            );
            break;
        }
        if body_bytes as u64 > rest {
            report(offset, true, format!("the last frame is cut: {rest} of {body_bytes} bytes"));
            return Ok(damages);
        }
        body.resize(body_bytes, 0);
        input.read_exact(&mut body)?;
        let checksum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if checksum != frame_checksum(field, &body) {
            // A power loss may tear the last frame; only one with frames after it is damage.
            let is_last = body_bytes as u64 == rest;
            report(offset, is_last, "checksum does not match; this frame is skipped".to_string());
        } else if let Err(what) = records(&body, &mut take) {
            report(offset, false, what);
        }
        offset += (FRAME_HEADER_BYTES + body_bytes) as u64;
    }
    if length > offset && damages.last().is_none_or(|damage| damage.offset != offset) {
        let what = format!("the last frame is cut: {} bytes of its head", length - offset);
        damages.push(Damage { path, offset, what, is_tear: true });
    }
    Ok(damages)
}

/// A file that is read front to back.
struct Input {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(bytes, self.offset)?;
        self.offset += count as u64;
        Ok(count)
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
            _ => return Err(unknown()),
        });
        rest = behind;
    }
    Ok(())
}

/// `GENERATION-SHARD.journal` with 16 and 4 hexadecimal digits.
fn file_name(generation: u64, shard: u32) -> String {
    format!("{generation:016x}-{shard:04x}.journal")
}

fn generation_of(file_name: &str) -> Option<u64> {
    let (generation, shard) = file_name.strip_suffix(".journal")?.split_once('-')?;
    (generation.len() == 16 && shard.len() == 4).then_some(())?;
    u32::from_str_radix(shard, 16).ok()?;
    u64::from_str_radix(generation, 16).ok()
}

fn header(generation: u64, shard: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    bytes[OFFSET_VERSION..OFFSET_SHARD].copy_from_slice(&VERSION.to_le_bytes());
    bytes[OFFSET_SHARD..OFFSET_GENERATION].copy_from_slice(&shard.to_le_bytes());
    bytes[OFFSET_GENERATION..OFFSET_RESERVED].copy_from_slice(&generation.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..OFFSET_CHECKSUM]);
    bytes[OFFSET_CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn check_header(bytes: &[u8; HEADER_BYTES]) -> Result<(), String> {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if !bytes.starts_with(&MAGIC) {
        return Err("this is no journal of ours; move it away".to_string());
    }
    if word(OFFSET_CHECKSUM) != crc32c::crc32c(&bytes[..OFFSET_CHECKSUM]) {
        return Err("checksum of the header does not match; the file is not read".to_string());
    }
    match word(OFFSET_VERSION) {
        VERSION => Ok(()),
        other => Err(format!("version {other}; this release reads version {VERSION}")),
    }
}

/// Files that were exchanged would give RRDs their updates in another order than they were accepted in.
fn check_name(header: &[u8; HEADER_BYTES], name: &OsStr) -> Result<(), String> {
    let shard = u32::from_le_bytes(header[OFFSET_SHARD..OFFSET_GENERATION].try_into().unwrap_or_default());
    let generation =
        u64::from_le_bytes(header[OFFSET_GENERATION..OFFSET_RESERVED].try_into().unwrap_or_default());
    let own = file_name(generation, shard);
    // A copy for `inspect` may have any name.
    if *own == *name || name.to_str().and_then(generation_of).is_none() {
        return Ok(());
    }
    Err(format!(
        "this is the content of {own}: files were exchanged; it is not read until it has that name again"
    ))
}

fn frame_checksum(length: [u8; 4], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length), body)
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

#[cfg(test)]
mod tests;
