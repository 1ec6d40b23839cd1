//! Reads a checkpoint: all of it, in order; several threads check and decompress its pages.
//!
//! A damaged page costs its RRDs and no others. Where the head of a frame is damaged, so that nothing says where the next one
//! begins, the frames after it are searched for.

use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

use super::page::{Loader, decode_end, decode_page};
use super::{
    CheckpointError, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, KIND_END, KIND_PAGE, Label, MAGIC, MAGIC_UNOWNED,
    OWNER_AT, PAGE_IDS,
};
use crate::catalogue::RrdId;
use crate::disk::{Advice, Disk, DiskFile, Mode, Shortage};
use crate::log::Position;

/// The most threads that decompress one checkpoint: four keep up with the one that inserts.
const THREADS_MAX: usize = 4;
/// A thread is started only for at least this many pages.
const PAGES_PER_THREAD: usize = 16;
/// Decompressed pages that each thread may queue: some hundred kilobytes each.
const PAGES_AHEAD: usize = 4;
/// Bytes that a search for frames reads at once.
const WINDOW_BYTES: usize = 1 << 20;

/// Which ids the pages of a checkpoint cover.
#[derive(Debug, Default)]
pub struct Loaded {
    /// For each page in order: one past its last id, and the position it was taken at; for a lost one the first position, so that
    /// what the log holds of its RRDs is applied.
    pub pages: Vec<(RrdId, Position)>,
    /// The next id.
    pub next_id: RrdId,
    /// Which checkpoint it is; zeros in version 1.
    pub label: Label,
    /// Pages that could not be read.
    pub lost: Vec<LostPage>,
}

/// A page that could not be read.
#[derive(Debug)]
pub struct LostPage {
    /// The ids it covered, of which some may be unused.
    pub ids: Range<RrdId>,
    /// Why; with the byte.
    pub error: CheckpointError,
}

/// Reads a checkpoint of the shard `owner`: its groups first, then page after page in order.
///
/// # Errors
/// When the disk fails, or the end frame, which holds the groups, is damaged or missing.
pub fn load(
    disk: &dyn Disk,
    path: &Path,
    owner: u32,
    loader: &mut dyn Loader,
) -> Result<Loaded, CheckpointError> {
    let file = disk.open(path, Mode::Read)?;
    let length = file.length()?;
    file.advise(0, length, Advice::WillNeed);
    let damaged = |offset, what| CheckpointError::Damaged { path: path.to_owned(), offset, what };
    let mut magic = [0; 8];
    if file.read_at(&mut magic, 0)? != 8 || (magic != *MAGIC && magic != *MAGIC_UNOWNED) {
        return Err(damaged(0, "not a checkpoint of this version"));
    }
    let is_end = |frame: &FrameHead| frame.kind == KIND_END;
    let frames = match frames(&*file, length, &damaged) {
        Ok(frames) if frames.last().is_some_and(is_end) => frames,
        Ok(_) | Err(CheckpointError::Damaged { .. }) => search(&*file, length, owner)?,
        Err(error) => return Err(error),
    };
    let Some((end, pages)) = frames.split_last().filter(|(end, _)| is_end(end)) else {
        return Err(damaged(length, "the last frame is missing"));
    };
    loader.page_count(pages.len());
    let body = read_body(&*file, end, &damaged)?;
    decode_end(&body, loader).ok_or_else(|| damaged(end.offset, "the group table is cut"))?;
    let mut found = FoundPages::of(end.next_id);
    thread::scope(|scope| {
        let bodies = Bodies::start(scope, &*file, pages, &damaged);
        for (page, body) in pages.iter().zip(bodies) {
            match body {
                Ok(body) => {
                    decode_page(&body, loader).ok_or_else(|| damaged(page.offset, "the page is cut"))?;
                    found.add(page);
                }
                Err(CheckpointError::Io(error)) if Shortage::of(&error).is_some() => return Err(error.into()),
                Err(error) => found.errors.push(error),
            }
        }
        Ok::<(), CheckpointError>(())
    })?;
    let (pages, lost) = found.finish(&damaged);
    let label = Label { owner: end.owner, number: u64::from(end.first_id) };
    Ok(Loaded { pages, next_id: end.next_id, label, lost })
}

/// The good pages found so far.
struct FoundPages {
    next_id: RrdId,
    /// By page: one past its last id, its position, and where it ends in the file.
    pages: Vec<Option<(RrdId, Position, u64)>>,
    /// What is wrong with the others whose place is known, in order.
    errors: Vec<CheckpointError>,
}

impl FoundPages {
    fn of(next_id: RrdId) -> FoundPages {
        let mut pages = Vec::new();
        pages.resize_with(next_id.div_ceil(PAGE_IDS) as usize, || None);
        FoundPages { next_id, pages, errors: Vec::new() }
    }

    fn add(&mut self, page: &FrameHead) {
        if let Some(place) = self.pages.get_mut((page.first_id / PAGE_IDS) as usize) {
            *place = Some((page.next_id, page.position, page.end()));
        }
    }

    /// Every page, and those of them that are lost.
    fn finish(self, damaged: Damage<'_>) -> (Vec<(RrdId, Position)>, Vec<LostPage>) {
        let missing = self.pages.iter().filter(|page| page.is_none()).count();
        // Otherwise not every page's place is known.
        let mut errors = (self.errors.len() == missing).then(|| self.errors.into_iter());
        let mut end_of_last = MAGIC.len() as u64;
        let (mut pages, mut lost) = (Vec::with_capacity(self.pages.len()), Vec::new());
        for (first_id, page) in (0..self.next_id).step_by(PAGE_IDS as usize).zip(self.pages) {
            if let Some((next_id, position, end)) = page {
                end_of_last = end;
                pages.push((next_id, position));
                continue;
            }
            let ids = first_id..first_id.saturating_add(PAGE_IDS).min(self.next_id);
            let error = errors.as_mut().and_then(Iterator::next);
            let error =
                error.unwrap_or_else(|| damaged(end_of_last, "there is no good page here or after it"));
            pages.push((ids.end, Position::default()));
            lost.push(LostPage { ids, error });
        }
        (pages, lost)
    }
}

/// Finds the good frames wherever they are: those of the shard `owner` with a good checksum.
fn search(file: &dyn DiskFile, length: u64, owner: u32) -> Result<Vec<FrameHead>, CheckpointError> {
    let nowhere = |offset, what| CheckpointError::Damaged { path: Default::default(), offset, what };
    let (mut frames, mut offset) = (Vec::new(), MAGIC.len() as u64);
    let (mut window, mut from) = (Vec::new(), 0);
    while offset + FRAME_HEAD_BYTES as u64 <= length {
        if offset < from || offset + FRAME_HEAD_BYTES as u64 > from + window.len() as u64 {
            from = offset;
            window.clear();
            window.resize(WINDOW_BYTES.min((length - offset) as usize), 0);
            match file.read_at(&mut window, from) {
                Err(error) if Shortage::of(&error).is_some() => return Err(error.into()),
                // What cannot be read holds no frames.
                _ => {}
            }
        }
        let mut head = [0; FRAME_HEAD_BYTES];
        head.copy_from_slice(&window[(offset - from) as usize..][..FRAME_HEAD_BYTES]);
        let frame = FrameHead::decode(head, offset, length)
            .filter(|frame| frame.owner == owner || frame.owner == 0)
            .filter(|frame| read_body(file, frame, &nowhere).is_ok());
        match frame {
            Some(frame) => {
                offset = frame.end();
                frames.push(frame);
            }
            None => offset += 1,
        }
    }
    Ok(frames)
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
        // The receiver is gone if the disk failed or there is a bug.
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
    /// `None` when no frame can begin so at `offset`.
    fn decode(head: [u8; FRAME_HEAD_BYTES], offset: u64, length: u64) -> Option<FrameHead> {
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
        let makes_sense = matches!(frame.kind, KIND_PAGE | KIND_END)
            && frame.end() <= length
            && frame.raw <= FRAME_BYTES_MAX;
        makes_sense.then_some(frame)
    }

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
    FrameHead::decode(head, offset, length).ok_or_else(|| damaged(offset, "the frame's head makes no sense"))
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
