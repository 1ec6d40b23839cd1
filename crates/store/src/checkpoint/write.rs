//! Writes a checkpoint: frames taken from the state, compressed, and written front to back.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rrd::live::Season;

use super::{FRAME_HEAD_BYTES, KIND_END, KIND_PAGE, MAGIC, PAGE_IDS, RawFrame};
use crate::catalogue::RrdId;
use crate::disk::{Disk, DiskFile};
use crate::group::{Geometry, Group};
use crate::log::Position;
use crate::shard::state::State;

/// zstd level: 1 compresses heads to about a quarter at 400 MB/s, which takes less time than writing the rest
/// to disk.
const ZSTD_LEVEL: i32 = 1;
/// Bytes buffered before a write.
const WRITE_BYTES: usize = 1 << 20;

/// Takes the page of ids `first_id..first_id + PAGE_IDS`, with their state at `position`.
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

/// The end frame: the groups, so that they keep their numbers, and the next id.
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
    // Only the open arena: the frozen one is being written to a segment of the same cycle.
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

impl CheckpointWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn create(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        Ok(CheckpointWriter { file: disk.create(path)?, buffer: MAGIC.to_vec(), written: 0 })
    }

    /// Adds a frame to the buffer; nothing is written yet.
    ///
    /// # Errors
    /// When the frame cannot be compressed.
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

    /// Writes the buffer once it is large enough. May be retried after a failure.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn write_if_large(&mut self) -> io::Result<()> {
        if self.buffer.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the rest and makes the file durable. Returns its length. May be retried after a failed write.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn finish(&mut self) -> io::Result<u64> {
        self.write()?;
        self.file.sync()?;
        Ok(self.written)
    }
}
