//! Reads a checkpoint: all of it, in order; several threads check and decompress its pages.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

use super::page::{Loader, decode_end, decode_page};
use super::{
    CheckpointError, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, KIND_END, KIND_PAGE, Label, MAGIC, MAGIC_UNOWNED,
    OWNER_AT,
};
use crate::catalogue::RrdId;
use crate::disk::{Advice, Disk, DiskFile, Mode};
use crate::log::Position;

/// The most threads that decompress one checkpoint: four keep up with the one that inserts.
const THREADS_MAX: usize = 4;
/// A thread is started only for at least this many pages.
const PAGES_PER_THREAD: usize = 16;
/// Decompressed pages that each thread may queue: some hundred kilobytes each.
const PAGES_AHEAD: usize = 4;

/// Which ids the pages of a checkpoint cover.
#[derive(Debug, Default)]
pub struct Loaded {
    /// For each page in order: one past its last id, and the position it was taken at.
    pub pages: Vec<(RrdId, Position)>,
    /// The next id.
    pub next_id: RrdId,
    /// Which checkpoint it is; zeros in version 1.
    pub label: Label,
}

/// Reads a checkpoint: its groups first, then page after page in order.
///
/// # Errors
/// When the disk fails or a frame is damaged. `loader` has then received the frames before it.
pub fn load(disk: &dyn Disk, path: &Path, loader: &mut dyn Loader) -> Result<Loaded, CheckpointError> {
    let file = disk.open(path, Mode::Read)?;
    let length = file.length()?;
    file.advise(0, length, Advice::WillNeed);
    let damaged = |offset, what| CheckpointError::Damaged { path: path.to_owned(), offset, what };
    let mut magic = [0; 8];
    if file.read_at(&mut magic, 0)? != 8 || (magic != *MAGIC && magic != *MAGIC_UNOWNED) {
        return Err(damaged(0, "not a checkpoint of this version"));
    }
    let frames = frames(&*file, length, &damaged)?;
    let Some((end, pages)) = frames.split_last().filter(|(end, _)| end.kind == KIND_END) else {
        return Err(damaged(length, "the last frame is missing"));
    };
    loader.page_count(pages.len());
    let body = read_body(&*file, end, &damaged)?;
    decode_end(&body, loader).ok_or_else(|| damaged(end.offset, "the group table is cut"))?;
    thread::scope(|scope| {
        let bodies = Bodies::start(scope, &*file, pages, &damaged);
        for (page, body) in pages.iter().zip(bodies) {
            decode_page(&body?, loader).ok_or_else(|| damaged(page.offset, "the page is cut"))?;
        }
        Ok(())
    })
    .map(|()| Loaded {
        pages: pages.iter().map(|page| (page.next_id, page.position)).collect(),
        next_id: end.next_id,
        label: Label { owner: end.owner, number: u64::from(end.first_id) },
    })
}

type Body = Result<Vec<u8>, CheckpointError>;

/// The bodies of pages, in order. With many pages, threads read and decompress ahead: thread `n` of `m`
/// handles every `m`-th page from the `n`-th on.
struct Bodies<'a> {
    file: &'a dyn DiskFile,
    pages: &'a [FrameHead],
    damaged: Damage<'a>,
    threads: Vec<Receiver<Body>>,
    next: usize,
}

impl<'a> Bodies<'a> {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        file: &'a dyn DiskFile,
        pages: &'a [FrameHead],
        damaged: Damage<'a>,
    ) -> Self
    where
        'a: 'scope,
    {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = cores.min(THREADS_MAX).min(pages.len() / PAGES_PER_THREAD);
        let threads = (0..count)
            .map(|first| {
                let (sender, receiver) = sync_channel(PAGES_AHEAD);
                let mine = pages[first..].iter().step_by(count);
                scope.spawn(move || send_bodies(file, mine, damaged, &sender));
                receiver
            })
            .collect();
        Bodies { file, pages, damaged, threads, next: 0 }
    }
}

impl Iterator for Bodies<'_> {
    type Item = Body;

    fn next(&mut self) -> Option<Body> {
        let index = self.next;
        let page = self.pages.get(index)?;
        self.next += 1;
        match self.threads.len() {
            0 => Some(read_body(self.file, page, self.damaged)),
            // A thread ends early only by a panic, which the scope propagates.
            count => self.threads[index % count].recv().ok(),
        }
    }
}

fn send_bodies<'a>(
    file: &dyn DiskFile,
    pages: impl Iterator<Item = &'a FrameHead>,
    damaged: Damage<'_>,
    sender: &SyncSender<Body>,
) {
    for page in pages {
        // The receiver is gone if an earlier page was damaged.
        if sender.send(read_body(file, page, damaged)).is_err() {
            return;
        }
    }
}

pub(super) struct FrameHead {
    pub(super) offset: u64,
    pub(super) kind: u32,
    stored: u32,
    raw: u32,
    /// In the end frame the low bits of the checkpoint's number.
    pub(super) first_id: u32,
    pub(super) next_id: RrdId,
    /// The tag of the shard.
    pub(super) owner: u32,
    pub(super) position: Position,
    head: [u8; FRAME_HEAD_BYTES],
}

impl FrameHead {
    pub(super) fn end(&self) -> u64 {
        self.offset + (FRAME_HEAD_BYTES as u64) + u64::from(self.stored)
    }
}

/// Creates the error for damage at an offset.
pub(super) type Damage<'a> = &'a (dyn Fn(u64, &'static str) -> CheckpointError + Sync);

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

pub(super) fn read_head(
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
        first_id: word(12),
        next_id: word(16),
        owner: word(OWNER_AT),
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

pub(super) fn read_body(
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
