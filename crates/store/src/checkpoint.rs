//! The checkpoint of a shard: names, definitions, heads and the still open rows of every RRD.
//!
//! Written while updates go on, a page of RRDs at a time: each page carries the log position it was taken
//! at, and replay passes over what a page already holds. So no update waits for a checkpoint, and nothing
//! is copied but the page at hand. `docs/format/store.md` describes the bytes.
//!
//! What holds: the file ends in an END frame or it is not a checkpoint; every frame has a checksum; a
//! manifest names the file only after it is synced.

pub mod survey;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rrd::definition::Cf;
use rrd::live::{HeadShape, Live, Season};

use crate::catalogue::RrdId;
use crate::disk::{Disk, DiskFile, Mode};
use crate::group::{ArchiveGeometry, Geometry, Group};
use crate::log::Position;
use crate::log::catalogue::decode_definition;
use crate::shard::state::State;

/// First bytes of the file: name and format version.
pub const MAGIC: &[u8; 8] = b"RNDLCKP\x01";
/// RRDs in a page: one page is about a quarter of a millisecond of the shard's time.
pub const PAGE_IDS: u32 = 256;
/// Bytes of a frame's head.
pub const FRAME_HEAD_BYTES: usize = 40;
/// A frame larger than this is damage: a page of 256 RRDs with a season of a year at a second each.
const FRAME_BYTES_MAX: u32 = 1 << 31;
/// zstd level: 1 packs heads to about a quarter at 400 MB/s, which is less than the disk would take.
const ZSTD_LEVEL: i32 = 1;

const KIND_PAGE: u32 = 1;
const KIND_END: u32 = 2;

/// A page or the end, as bytes not yet compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFrame {
    kind: u32,
    /// First id covered.
    first_id: RrdId,
    /// One past the last id covered.
    next_id: RrdId,
    /// Everything up to here is in it.
    position: Position,
    body: Vec<u8>,
}

/// Takes the page of ids `first_id..first_id + PAGE_IDS` as they are at `position`.
pub fn take_page(state: &State, first_id: RrdId, position: Position) -> RawFrame {
    let next_id = first_id.saturating_add(PAGE_IDS).min(state.catalogue.next_id());
    let mut definitions: Vec<u32> = Vec::new();
    let mut entries = Vec::new();
    let mut count = 0u32;
    for id in first_id..next_id {
        let Some(entry) = state.catalogue.get(id) else { continue };
        let known = definitions.iter().rposition(|&index| index == entry.definition);
        let definition = known.unwrap_or_else(|| {
            definitions.push(entry.definition);
            definitions.len() - 1
        });
        count += 1;
        let name = state.catalogue.name(id);
        put_u32(&mut entries, id);
        put_u32(&mut entries, definition as u32);
        put_u32(&mut entries, entry.group);
        put_u32(&mut entries, name.len() as u32);
        entries.extend_from_slice(name);
        let group = &state.groups()[entry.group as usize];
        entries.extend_from_slice(bytemuck::cast_slice(group.heads.get(entry.head)));
        put_seasons(&mut entries, state.seasons(id));
        put_open_rows(&mut entries, state, id, &group.group);
    }
    let mut body = Vec::with_capacity(entries.len() + 1024);
    put_u32(&mut body, definitions.len() as u32);
    for index in definitions {
        let key = state.catalogue.definition_key(index);
        put_u32(&mut body, key.len() as u32);
        body.extend_from_slice(key);
    }
    put_u32(&mut body, count);
    body.extend_from_slice(&entries);
    RawFrame { kind: KIND_PAGE, first_id, next_id, position, body }
}

/// The closing frame: the groups, so that their numbers stay the same, and the next id.
pub fn take_end(state: &State, position: Position) -> RawFrame {
    let mut body = Vec::new();
    put_u32(&mut body, state.groups().len() as u32);
    for group in state.groups() {
        let Geometry { units_per_second, step, ds_count, archives } = &group.group.geometry;
        put_u32(&mut body, *units_per_second);
        put_u64(&mut body, *step);
        put_u32(&mut body, *ds_count as u32);
        put_u32(&mut body, archives.len() as u32);
        for archive in archives {
            put_u32(&mut body, archive.cf as u32);
            put_u64(&mut body, archive.pdp_per_row);
            put_u64(&mut body, archive.row_count);
        }
    }
    RawFrame { kind: KIND_END, first_id: 0, next_id: state.catalogue.next_id(), position, body }
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_seasons(out: &mut Vec<u8>, seasons: &[Season]) {
    put_u32(out, seasons.len() as u32);
    for season in seasons {
        put_u32(out, season.rra as u32);
        put_u64(out, season.current_row);
        put_u32(out, season.values.len() as u32);
        out.extend_from_slice(bytemuck::cast_slice(&season.values));
    }
}

fn put_open_rows(out: &mut Vec<u8>, state: &State, id: RrdId, group: &Group) {
    let count_at = out.len();
    put_u32(out, 0);
    let mut count = 0u32;
    // Only the open arena: the frozen one is on its way to a segment of the same cycle.
    if let Some((rows, chain)) = state.open_chain_of(id) {
        for run in rows.runs(chain, group) {
            put_u32(out, u32::from(run.source));
            put_u64(out, run.first_row as u64);
            put_u64(out, run.count);
            put_u32(out, run.values.len() as u32);
            out.extend_from_slice(bytemuck::cast_slice(run.values));
            count += 1;
        }
    }
    out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
}

/// Writes frames to a new file.
pub struct CheckpointWriter {
    file: Arc<dyn DiskFile>,
    buffer: Vec<u8>,
    written: u64,
}

/// Bytes gathered before a write.
const WRITE_BYTES: usize = 1 << 20;

impl CheckpointWriter {
    /// Starts the file.
    pub fn create(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        Ok(CheckpointWriter { file: disk.create(path)?, buffer: MAGIC.to_vec(), written: 0 })
    }

    /// Adds a frame; nothing is written yet.
    pub fn push(&mut self, frame: &RawFrame) -> io::Result<()> {
        let stored = zstd::bulk::compress(&frame.body, ZSTD_LEVEL)?;
        let mut head = Vec::with_capacity(FRAME_HEAD_BYTES);
        for value in [
            frame.kind,
            stored.len() as u32,
            frame.body.len() as u32,
            frame.first_id,
            frame.next_id,
            frame.position.generation,
        ] {
            put_u32(&mut head, value);
        }
        put_u64(&mut head, frame.position.offset);
        put_u32(&mut head, 0);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head), &stored);
        put_u32(&mut head, crc);
        self.buffer.extend_from_slice(&head);
        self.buffer.extend_from_slice(&stored);
        Ok(())
    }

    /// Writes what was gathered once it is worth a write. May be tried again after a failure.
    pub fn write_if_large(&mut self) -> io::Result<()> {
        if self.buffer.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes what is left and makes the file durable. Returns its length. May be tried again after a
    /// failed write.
    pub fn finish(&mut self) -> io::Result<u64> {
        self.write()?;
        self.file.sync()?;
        Ok(self.written)
    }
}

/// One RRD of a checkpoint.
pub struct LoadedRrd<'a> {
    /// Its id.
    pub id: RrdId,
    /// Its name.
    pub name: &'a [u8],
    /// Its definition.
    pub definition: rrd::definition::Definition,
    /// Its head.
    pub live: Live,
    /// Its open rows, oldest first: source, first row, rows, and either one row's values or all of them.
    pub open: Vec<(u16, i64, u64, Vec<f64>)>,
}

/// What a checkpoint's end says.
#[derive(Debug, Default)]
pub struct Loaded {
    /// For each page in order: one past its last id, and the position it was taken at.
    pub pages: Vec<(RrdId, Position)>,
    /// The next id.
    pub next_id: RrdId,
}

/// Why a checkpoint could not be read.
#[derive(Debug)]
pub enum CheckpointError {
    /// The disk said no.
    Io(io::Error),
    /// Not what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the frame starts.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
}

impl std::fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CheckpointError::Io(error) => write!(f, "cannot read the checkpoint: {error}"),
            CheckpointError::Damaged { path, offset, what } => write!(
                f,
                "checkpoint {} is damaged at byte {offset}: {what}; restore the shard from a backup",
                path.display()
            ),
        }
    }
}

impl From<io::Error> for CheckpointError {
    fn from(error: io::Error) -> Self {
        CheckpointError::Io(error)
    }
}

/// Reads a checkpoint. `groups` is called once, before any RRD, with the groups in order.
pub fn load(
    disk: &dyn Disk,
    path: &Path,
    groups: &mut dyn FnMut(Geometry),
    each: &mut dyn FnMut(LoadedRrd<'_>),
) -> Result<Loaded, CheckpointError> {
    let file = disk.open(path, Mode::Read)?;
    let length = file.length()?;
    let damaged = |offset, what| CheckpointError::Damaged { path: path.to_owned(), offset, what };
    let mut magic = [0; 8];
    if file.read_at(&mut magic, 0)? != 8 || magic != *MAGIC {
        return Err(damaged(0, "not a checkpoint of this version"));
    }
    let frames = frames(&*file, length, &damaged)?;
    let Some((end, pages)) = frames.split_last().filter(|(end, _)| end.kind == KIND_END) else {
        return Err(damaged(length, "the last frame is missing"));
    };
    let mut loaded = Loaded { pages: Vec::with_capacity(pages.len()), next_id: end.next_id };
    let body = read_body(&*file, end, &damaged)?;
    decode_end(&mut Cursor(&body), groups).ok_or_else(|| damaged(end.offset, "the group table is cut"))?;
    for page in pages {
        let body = read_body(&*file, page, &damaged)?;
        decode_page(&mut Cursor(&body), each).ok_or_else(|| damaged(page.offset, "the page is cut"))?;
        loaded.pages.push((page.next_id, page.position));
    }
    Ok(loaded)
}

struct FrameHead {
    offset: u64,
    kind: u32,
    stored: u32,
    raw: u32,
    next_id: RrdId,
    position: Position,
    head: [u8; FRAME_HEAD_BYTES],
}

impl FrameHead {
    fn end(&self) -> u64 {
        self.offset + (FRAME_HEAD_BYTES as u64) + u64::from(self.stored)
    }
}

type Damage<'a> = &'a dyn Fn(u64, &'static str) -> CheckpointError;

fn frames(file: &dyn DiskFile, length: u64, damaged: Damage<'_>) -> Result<Vec<FrameHead>, CheckpointError> {
    let mut frames = Vec::new();
    let mut offset = MAGIC.len() as u64;
    while offset < length {
        let frame = read_head(file, offset, length, damaged)?;
        offset = frame.end();
        frames.push(frame);
    }
    Ok(frames)
}

fn read_head(
    file: &dyn DiskFile,
    offset: u64,
    length: u64,
    damaged: Damage<'_>,
) -> Result<FrameHead, CheckpointError> {
    let mut head = [0; FRAME_HEAD_BYTES];
    if file.read_at(&mut head, offset)? != FRAME_HEAD_BYTES {
        return Err(damaged(offset, "the frame is cut"));
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let frame = FrameHead {
        offset,
        kind: word(0),
        stored: word(4),
        raw: word(8),
        next_id: word(16),
        position: Position {
            generation: word(20),
            offset: u64::from(word(24)) | (u64::from(word(28)) << 32),
        },
        head,
    };
    if !matches!(frame.kind, KIND_PAGE | KIND_END) || frame.end() > length || frame.raw > FRAME_BYTES_MAX {
        return Err(damaged(offset, "the frame's head makes no sense"));
    }
    Ok(frame)
}

fn read_body(
    file: &dyn DiskFile,
    frame: &FrameHead,
    damaged: Damage<'_>,
) -> Result<Vec<u8>, CheckpointError> {
    let mut stored = vec![0; frame.stored as usize];
    if file.read_at(&mut stored, frame.offset + FRAME_HEAD_BYTES as u64)? != stored.len() {
        return Err(damaged(frame.offset, "the frame is cut"));
    }
    let (covered, want) = frame.head.split_at(FRAME_HEAD_BYTES - 4);
    let crc = crc32c::crc32c_append(crc32c::crc32c(covered), &stored);
    if crc.to_le_bytes() != *want {
        return Err(damaged(frame.offset, "the checksum does not match"));
    }
    zstd::bulk::decompress(&stored, frame.raw as usize)
        .ok()
        .filter(|body| body.len() == frame.raw as usize)
        .ok_or_else(|| damaged(frame.offset, "the frame does not decompress"))
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes(4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes(8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
    }

    fn words<T: bytemuck::Pod>(&mut self, count: usize) -> Option<Vec<T>> {
        Some(bytemuck::pod_collect_to_vec(self.bytes(count.checked_mul(8)?)?))
    }
}

fn decode_end(cursor: &mut Cursor<'_>, groups: &mut dyn FnMut(Geometry)) -> Option<()> {
    for _ in 0..cursor.u32()? {
        let units_per_second = cursor.u32()?;
        let step = cursor.u64()?;
        let ds_count = cursor.u32()? as usize;
        let count = cursor.u32()?;
        let archives: Option<Vec<_>> = (0..count)
            .map(|_| {
                let cf = *Cf::ALL.get(cursor.u32()? as usize)?;
                Some(ArchiveGeometry { cf, pdp_per_row: cursor.u64()?, row_count: cursor.u64()? })
            })
            .collect();
        groups(Geometry { units_per_second, step, ds_count, archives: archives? });
    }
    Some(())
}

fn decode_page(cursor: &mut Cursor<'_>, each: &mut dyn FnMut(LoadedRrd<'_>)) -> Option<()> {
    let mut definitions = Vec::new();
    for _ in 0..cursor.u32()? {
        let length = cursor.u32()? as usize;
        let definition = decode_definition(cursor.bytes(length)?).ok()?;
        let words = HeadShape::of(&definition).word_count();
        definitions.push((definition, words));
    }
    for _ in 0..cursor.u32()? {
        let id = cursor.u32()?;
        let (definition, words) = definitions.get(cursor.u32()? as usize)?;
        cursor.u32()?;
        let name_length = cursor.u32()? as usize;
        let name = cursor.bytes(name_length)?;
        let words = cursor.words(*words)?;
        let seasons: Option<Vec<Season>> = (0..cursor.u32()?)
            .map(|_| {
                let rra = cursor.u32()? as usize;
                let current_row = cursor.u64()?;
                let count = cursor.u32()? as usize;
                Some(Season { rra, current_row, values: cursor.words(count)? })
            })
            .collect();
        let open: Option<Vec<_>> = (0..cursor.u32()?)
            .map(|_| {
                let source = cursor.u32()? as u16;
                let first_row = cursor.u64()? as i64;
                let rows = cursor.u64()?;
                let count = cursor.u32()? as usize;
                Some((source, first_row, rows, cursor.words(count)?))
            })
            .collect();
        let mut open = open?;
        open.reverse();
        each(LoadedRrd {
            id,
            name,
            definition: definition.clone(),
            live: Live { words, seasons: seasons? },
            open,
        });
    }
    cursor.0.is_empty().then_some(())
}
