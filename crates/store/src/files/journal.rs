//! The journal of the files layout: which accepted updates may not have reached their `.rrd` files yet.
//!
//! One file per shard and generation; every open and every rotation starts a new generation. A frame is
//! one `write(2)`, so what a `kill -9` leaves is whole frames and at most one torn tail. Replay gives back
//! records in order and touches no `.rrd` file. Layout: `docs/format/journal.md`. Cost: 7 bytes, the
//! name and the words an update record, 8 bytes a frame.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rrd::time::{MICROS, Timestamp};

/// The first bytes of a journal file.
pub const MAGIC: [u8; 8] = *b"ROUNDELJ";
/// The format this release writes.
pub const VERSION: u32 = 1;
/// Bytes before the first frame.
pub const HEADER_BYTES: usize = 32;
/// Bytes before a frame's body: length and checksum.
pub const FRAME_HEADER_BYTES: usize = 8;

/// Largest frame body. A batch that is larger is cut into several frames at record boundaries; on replay a
/// larger length can only be damage. One record needs at most 4,102 + `WORDS_BYTES_MAX` bytes.
pub const FRAME_BYTES_MAX: usize = 4 << 20;
/// Most bytes of words in one update record: the longest line a client may send and then some.
pub const WORDS_BYTES_MAX: usize = 2 << 20;

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
        /// Whose.
        name: &'a [u8],
        /// What they were, as [`super::words`] lays them out. At most [`WORDS_BYTES_MAX`].
        words: &'a [u8],
    },
    /// Everything accepted for the RRD up to this time is in its file.
    Written {
        /// Whose.
        name: &'a [u8],
        /// Time of the newest update written.
        until: Timestamp,
    },
    /// Everything accepted for the RRD so far is void: it was removed or replaced.
    Forgotten {
        /// Whose.
        name: &'a [u8],
    },
}

/// Records on their way into one frame.
#[derive(Debug, Default)]
pub struct Frame {
    bytes: Vec<u8>,
    /// Ends of full frames within `bytes`, each of which gets its own header.
    starts: Vec<usize>,
}

impl Frame {
    /// True when nothing was put.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends a record. Names and words must be within their limits.
    pub fn put(&mut self, record: Record<'_>) {
        let (kind, name) = match record {
            Record::Update { name, .. } => (KIND_UPDATE, name),
            Record::Written { name, .. } => (KIND_WRITTEN, name),
            Record::Forgotten { name } => (KIND_FORGOTTEN, name),
        };
        let time;
        let text: &[u8] = match record {
            Record::Update { words, .. } => words,
            Record::Written { until, .. } => {
                time = time_bytes(until);
                &time
            }
            Record::Forgotten { .. } => &[],
        };
        debug_assert!(text.len() <= WORDS_BYTES_MAX && name.len() <= usize::from(u16::MAX));
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

    /// Completes the frame headers and gives the bytes to write.
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

    /// The body of a frame that is not full.
    #[cfg(test)]
    pub fn body_for_test(&self) -> &[u8] {
        &self.bytes[FRAME_HEADER_BYTES..]
    }

    /// Empties it, keeping its memory unless a rare large batch made it large.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(FRAME_BYTES_MAX);
        self.starts.clear();
    }
}

/// The journal file a shard appends to.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    bytes: u64,
    synced: bool,
}

impl Journal {
    /// Starts the file of a new generation. Its entry in the directory is made durable.
    pub fn create(directory: &Path, generation: u64, shard: u32) -> io::Result<Self> {
        let path = directory.join(file_name(generation, shard));
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        file.write_all(&header(generation, shard))?;
        File::open(directory)?.sync_all()?;
        Ok(Journal { file, path, bytes: HEADER_BYTES as u64, synced: false })
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a frame in one write. On an error the file is as before, so that the next append may succeed
    /// (a full disk gets room again).
    pub fn append(&mut self, frame: &mut Frame) -> io::Result<()> {
        let bytes = frame.seal();
        self.synced = false;
        if let Err(error) = self.file.write_all(bytes) {
            // A torn frame in the middle would end replay there: it must go before anything follows it.
            self.file.set_len(self.bytes)?;
            self.file.seek(SeekFrom::Start(self.bytes))?;
            return Err(error);
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Drops all frames.
    pub fn empty(&mut self) -> io::Result<()> {
        self.file.set_len(HEADER_BYTES as u64)?;
        self.file.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
        self.bytes = HEADER_BYTES as u64;
        self.synced = false;
        Ok(())
    }

    /// Makes everything appended durable. True when there was anything to do.
    pub fn sync(&mut self) -> io::Result<bool> {
        if self.synced {
            return Ok(false);
        }
        self.file.sync_data()?;
        self.synced = true;
        Ok(true)
    }

    /// A second handle to sync without holding up appends.
    pub fn sync_handle(&mut self) -> io::Result<Option<File>> {
        if self.synced {
            return Ok(None);
        }
        // What is appended while the sync runs is marked unsynced again by the append itself.
        self.synced = true;
        self.file.try_clone().map(Some)
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Damage met on replay; what was good around it was replayed.
#[derive(Debug)]
pub struct Damage {
    /// In which file.
    pub path: PathBuf,
    /// Where, in bytes.
    pub offset: u64,
    /// What was found.
    pub what: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "journal {} at byte {}: {}", self.path.display(), self.offset, self.what)
    }
}

/// The journal files of a directory, oldest generation first.
pub fn files(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if let Some(generation) = entry.file_name().to_str().and_then(generation_of) {
            found.push((generation, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Reads one journal file, record by record. Damage is reported and skipped as far as frames can still be
/// told apart; a torn tail, which every kill may leave, is not damage.
pub fn replay(path: &Path, mut take: impl FnMut(Record<'_>)) -> io::Result<Vec<Damage>> {
    let mut file = File::open(path)?;
    let mut damages = Vec::new();
    let mut damage = |offset: u64, what: String| {
        damages.push(Damage { path: path.to_path_buf(), offset, what });
    };
    let mut start = [0; HEADER_BYTES];
    let length = file.metadata()?.len();
    if length < HEADER_BYTES as u64 {
        // Killed while the file was being made: nothing was acknowledged from it.
        return Ok(damages);
    }
    file.read_exact(&mut start)?;
    if let Err(what) = check_header(&start) {
        damage(0, what);
        return Ok(damages);
    }
    let mut offset = HEADER_BYTES as u64;
    let mut input = io::BufReader::with_capacity(1 << 20, file);
    let mut body = Vec::new();
    while length - offset >= FRAME_HEADER_BYTES as u64 {
        let mut head = [0; FRAME_HEADER_BYTES];
        input.read_exact(&mut head)?;
        let field = [head[0], head[1], head[2], head[3]];
        let body_bytes = u32::from_le_bytes(field) as usize;
        let rest = length - offset - FRAME_HEADER_BYTES as u64;
        if body_bytes == 0 || body_bytes > FRAME_BYTES_MAX {
            damage(
                offset,
                format!("frame of {body_bytes} bytes cannot be; the rest of the file is not read"),
            );
            break;
        }
        if body_bytes as u64 > rest {
            break;
        }
        body.resize(body_bytes, 0);
        input.read_exact(&mut body)?;
        let checksum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if checksum != frame_checksum(field, &body) {
            // The last frame may be torn by a power loss; only one with something behind it is damage.
            if (body_bytes as u64) < rest {
                damage(offset, "checksum does not match; this frame is skipped".to_string());
            }
        } else if let Err(what) = records(&body, &mut take) {
            damage(offset, what);
        }
        offset += (FRAME_HEADER_BYTES + body_bytes) as u64;
    }
    Ok(damages)
}

/// Calls `take` for every record of a frame's body.
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
            (KIND_UPDATE, 1..=WORDS_BYTES_MAX) => Record::Update { name, words: text },
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
