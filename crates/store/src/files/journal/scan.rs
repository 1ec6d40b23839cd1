//! Reads a journal file back: records in order, and what is wrong with the file.
//!
//! A frame says where it stands and up to where the file was durable when it was written. So after damage the frames after it
//! are found again, and a hole that a power loss leaves is told from one in what was once on the disk.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use disk::{DiskFile, Mode};

use super::{
    Directory, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, HEADER_BYTES, Header, OFFSET_VERSION, Record, check_name,
    frame_checksum, header_of, records, word,
};

/// Bytes per read.
const READ_BYTES: usize = 1 << 20;
/// How far a frame may lie from the place it says, after bytes were removed or added. A limit keeps most positions of a scan
/// from being taken for the head of a frame.
const SHIFT_MAX: u64 = 1 << 32;

/// Version 1 had neither id, offsets nor durable marks.
pub(super) const HEADER_BYTES_V1: usize = 32;
const FRAME_HEADER_BYTES_V1: usize = 8;

/// What the file `JOURNAL` says of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noted {
    /// The journal it should belong to.
    pub id: Option<[u8; 16]>,
    /// It was durable up to this byte.
    pub durable: u64,
}

/// What was found.
#[derive(Debug)]
pub struct Scan {
    /// Damage; good records around it were read.
    pub damages: Vec<Damage>,
    /// The journal it belongs to, unless it is of version 1.
    pub id: Option<[u8; 16]>,
    /// Where the last good frame ended when it was written.
    pub end: u64,
}

/// Damage found in a file.
#[derive(Debug)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Offset in bytes.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// A crash leaves this too: nothing that was durable is lost.
    pub is_tear: bool,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "journal {} at byte {}: {}", self.path.display(), self.offset, self.what)
    }
}

/// Reads one journal file, record by record.
///
/// # Errors
/// When the file cannot be read.
pub fn scan(
    directory: &Directory,
    name: &OsStr,
    known: &Noted,
    mut take: impl FnMut(Record<'_>),
) -> io::Result<Scan> {
    let path = directory.path.join(name);
    let file = directory.disk.open(name.as_ref(), Mode::Read)?;
    let mut report = Report { path, found: Scan { damages: Vec::new(), id: None, end: 0 } };
    let mut window = Window { length: file.length()?, file, at: 0, bytes: Vec::new() };
    let start = window.get(0, HEADER_BYTES)?.to_vec();
    let header_bytes = match start.len() >= HEADER_BYTES_V1 && word(&start, OFFSET_VERSION) == 1 {
        true => HEADER_BYTES_V1,
        false => HEADER_BYTES,
    };
    if start.len() < header_bytes {
        let what = format!(
            "{} bytes, less than its header: a kill while it was being made leaves that; otherwise its updates are lost",
            start.len()
        );
        report.add(0, known.durable == 0, what);
        return Ok(report.found);
    }
    let header = header_of(&start).and_then(|header| check_name(&header, name).map(|()| header));
    match header {
        Err(what) => report.add(0, false, what),
        Ok(Header { id: None, .. }) => scan_v1(&mut window, known, &mut report, &mut take)?,
        Ok(Header { id: Some(id), .. }) if known.id.is_some_and(|own| own != id) => {
            report.add(0, false, "it belongs to another journal, and is not read".to_string());
        }
        Ok(Header { id, checksum, .. }) => {
            report.found.id = id;
            Frames { window, seed: checksum, mark_max: None }.scan(known, &mut report, &mut take)?;
        }
    }
    Ok(report.found)
}

/// Collects what is found.
struct Report {
    path: PathBuf,
    found: Scan,
}

impl Report {
    fn add(&mut self, offset: u64, is_tear: bool, what: String) {
        self.found.damages.push(Damage { path: self.path.clone(), offset, what, is_tear });
    }
}

/// A file, and a part of it in memory.
struct Window {
    file: Arc<dyn DiskFile>,
    length: u64,
    /// Where `bytes` begin in the file.
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Up to `count` bytes from `offset` on; fewer only at the end.
    fn get(&mut self, offset: u64, count: usize) -> io::Result<&[u8]> {
        let count = count.min(self.length.saturating_sub(offset) as usize);
        let inside =
            offset.checked_sub(self.at).is_some_and(|from| from as usize + count <= self.bytes.len());
        if !inside {
            self.bytes.resize(count.max(READ_BYTES), 0);
            let read = self.file.read_at(&mut self.bytes, offset)?;
            self.bytes.truncate(read);
            self.at = offset;
        }
        let from = ((offset - self.at) as usize).min(self.bytes.len());
        Ok(&self.bytes[from..(from + count).min(self.bytes.len())])
    }
}

/// A good frame.
#[derive(Clone, Copy)]
struct Found {
    /// Where it is.
    at: u64,
    /// Where it was written.
    offset: u64,
    /// Up to where the file was durable then.
    mark: u64,
    body_bytes: usize,
}

impl Found {
    fn bytes(&self) -> u64 {
        (FRAME_HEADER_BYTES + self.body_bytes) as u64
    }
}

/// The frames of a file.
struct Frames {
    window: Window,
    /// The checksum of the header, which that of each frame includes.
    seed: u32,
    /// The durable mark of the last good frame, once it was looked for.
    mark_max: Option<u64>,
}

impl Frames {
    fn scan(
        &mut self,
        known: &Noted,
        report: &mut Report,
        take: &mut impl FnMut(Record<'_>),
    ) -> io::Result<()> {
        let (mut at, mut expected) = (HEADER_BYTES as u64, HEADER_BYTES as u64);
        loop {
            let found = match self.frame(at, expected)? {
                Some(found) => Some(found),
                None => self.find(at + 1, expected)?,
            };
            let Some(found) = found else { break };
            if found.offset > expected {
                if expected >= known.durable && self.mark_max(found)? <= expected {
                    let what = "the end: what follows was written after the last sync, and frames before it are missing";
                    report.add(at, true, what.to_string());
                    report.found.end = expected;
                    return Ok(());
                }
                let lost = found.offset - expected;
                report.add(
                    at,
                    false,
                    format!("{lost} bytes of updates are lost here; reading goes on after them"),
                );
            } else if found.at > at {
                let added = found.at - at;
                report.add(at, false, format!("{added} bytes do not belong here and are skipped"));
            }
            let body = self.window.get(found.at + FRAME_HEADER_BYTES as u64, found.body_bytes)?;
            if let Err(what) = records(body, take) {
                report.add(found.at, false, what);
            }
            at = found.at + found.bytes();
            expected = found.offset + found.bytes();
        }
        report.found.end = expected;
        if expected < known.durable {
            let lost = known.durable - expected;
            report.add(at, false, format!("the last {lost} bytes of updates are lost"));
        } else if self.window.length > at {
            let rest = self.window.length - at;
            report.add(at, true, format!("the last frame is cut or torn: {rest} bytes are no frame"));
        }
        Ok(())
    }

    /// The good frame at `at`, unless it was written before `expected`: then it was read already.
    fn frame(&mut self, at: u64, expected: u64) -> io::Result<Option<Found>> {
        let head = self.window.get(at, FRAME_HEADER_BYTES)?;
        let Some(head) = head.first_chunk::<FRAME_HEADER_BYTES>().copied() else { return Ok(None) };
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let found = Found { at, offset: long(8), mark: long(16), body_bytes: word(0) as usize };
        let fits =
            (1..=FRAME_BYTES_MAX).contains(&found.body_bytes) && at + found.bytes() <= self.window.length;
        if !fits || found.offset < expected || found.offset > at.saturating_add(SHIFT_MAX) {
            return Ok(None);
        }
        let body = self.window.get(at + FRAME_HEADER_BYTES as u64, found.body_bytes)?;
        Ok((frame_checksum(self.seed, &head, body) == word(4)).then_some(found))
    }

    /// The next good frame from `at` on.
    fn find(&mut self, at: u64, expected: u64) -> io::Result<Option<Found>> {
        for at in at..self.window.length.saturating_sub(FRAME_HEADER_BYTES as u64) {
            if let Some(found) = self.frame(at, expected)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The durable mark of the last good frame; the marks only grow.
    fn mark_max(&mut self, from: Found) -> io::Result<u64> {
        if let Some(mark) = self.mark_max {
            return Ok(mark);
        }
        let mut last = from;
        loop {
            let (next, expected) = (last.at + last.bytes(), last.offset + last.bytes());
            let found = match self.frame(next, expected)? {
                Some(found) => Some(found),
                None => self.find(next + 1, expected)?,
            };
            match found {
                Some(found) => last = found,
                None => break,
            }
        }
        self.mark_max = Some(last.mark);
        Ok(last.mark)
    }
}

/// A file of version 1: a frame is found only after the one before.
fn scan_v1(
    window: &mut Window,
    known: &Noted,
    report: &mut Report,
    take: &mut impl FnMut(Record<'_>),
) -> io::Result<()> {
    let length = window.length;
    let mut at = HEADER_BYTES_V1 as u64;
    report.found.end = at;
    while length - at >= FRAME_HEADER_BYTES_V1 as u64 {
        let head = window.get(at, FRAME_HEADER_BYTES_V1)?;
        let field = [head[0], head[1], head[2], head[3]];
        let checksum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let body_bytes = u32::from_le_bytes(field) as usize;
        let rest = length - at - FRAME_HEADER_BYTES_V1 as u64;
        if body_bytes == 0 || body_bytes > FRAME_BYTES_MAX {
            let what = format!("frame of {body_bytes} bytes cannot be; the rest of the file is not read");
            report.add(at, false, what);
            return Ok(());
        }
        if body_bytes as u64 > rest {
            break;
        }
        let body = window.get(at + FRAME_HEADER_BYTES_V1 as u64, body_bytes)?;
        if checksum != crc32c::crc32c_append(crc32c::crc32c(&field), body) {
            // A power loss may tear the last frame; only one with frames after it is damage.
            let is_last = body_bytes as u64 == rest;
            report.add(at, is_last, "checksum does not match; this frame is skipped".to_string());
        } else if let Err(what) = records(body, take) {
            report.add(at, false, what);
        }
        at += (FRAME_HEADER_BYTES_V1 + body_bytes) as u64;
        report.found.end = at;
    }
    if at < known.durable {
        report.add(at, false, format!("the last {} bytes of updates are lost", known.durable - at));
    } else if length > at {
        report.add(at, true, format!("the last frame is cut: {} bytes are no frame", length - at));
    }
    Ok(())
}
