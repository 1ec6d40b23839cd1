//! Segment files of the spool.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::frames::agent::AGENT_BODY_BYTES_MAX;
use protocol::frames::agent::block::BlockHead;
use protocol::frames::{self, HEADER_BYTES};

use super::sync_directory;

/// Blocks `first` to `last` in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first block; of a gap, the first that is missing.
    pub first: u64,
    /// The last block.
    pub last: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// It stands for blocks that were dropped.
    pub is_gap: bool,
}

/// The segment that is appended to.
#[derive(Debug)]
pub struct OpenSegment {
    file: File,
    bytes: u64,
    /// Bytes that are durable.
    pub durable_bytes: u64,
    /// The last block that is durable.
    pub durable_number: u64,
}

impl OpenSegment {
    /// Appends a frame at the end; the file is as before if that fails.
    pub fn append(&mut self, frame: &[u8], at: u64) -> io::Result<()> {
        if let Err(error) = self.file.write_all_at(frame, at) {
            self.file.set_len(at)?;
            return Err(error);
        }
        self.bytes = at + frame.len() as u64;
        Ok(())
    }

    /// Makes everything durable.
    pub fn sync(&mut self, directory: &Path) -> io::Result<()> {
        self.file.sync_data()?;
        if self.durable_bytes == 0 {
            sync_directory(directory)?;
        }
        self.durable_bytes = self.bytes;
        Ok(())
    }
}

impl Segment {
    fn path(&self, directory: &Path) -> PathBuf {
        let name = match self.is_gap {
            true => format!("gap-{:016x}-{:016x}", self.first, self.last),
            false => format!("segment-{:016x}", self.first),
        };
        directory.join(name)
    }

    /// Creates an empty segment that begins with block `number`.
    pub fn create(directory: &Path, number: u64) -> io::Result<Self> {
        let segment = Segment { first: number, last: number - 1, bytes: 0, is_gap: false };
        File::create(segment.path(directory))?;
        Ok(segment)
    }

    /// Opens an empty segment.
    pub fn open_to_append(&self, directory: &Path) -> io::Result<OpenSegment> {
        let file = OpenOptions::new().write(true).open(self.path(directory))?;
        Ok(OpenSegment { file, bytes: 0, durable_bytes: 0, durable_number: self.last })
    }

    /// Writes a gap: a file that is there whole or not at all.
    pub fn write_gap(directory: &Path, (first, last): (u64, u64), frames: &[u8]) -> io::Result<Self> {
        let segment = Segment { first, last, bytes: frames.len() as u64, is_gap: true };
        let new = directory.join("gap.new");
        let file = File::create(&new)?;
        file.write_all_at(frames, 0)?;
        file.sync_all()?;
        fs::rename(&new, segment.path(directory))?;
        sync_directory(directory)?;
        Ok(segment)
    }

    /// Removes the file.
    pub fn remove(&self, directory: &Path) -> io::Result<()> {
        fs::remove_file(self.path(directory))
    }

    /// How long ago it was written.
    pub fn age(&self, directory: &Path) -> Duration {
        let modified = fs::metadata(self.path(directory)).and_then(|metadata| metadata.modified());
        modified.ok().and_then(|modified| modified.elapsed().ok()).unwrap_or_default()
    }

    /// All of its bytes.
    pub fn read_all(&self, directory: &Path) -> io::Result<Vec<u8>> {
        fs::read(self.path(directory))
    }

    /// Appends whole frames from `range` of the file to `out`: about `bytes_max` bytes, or one frame, and no block after
    /// `last_allowed`. Returns the number of
    /// the last one, and where to go on. After damage, the rest of the segment is left out.
    pub fn read(
        &self,
        directory: &Path,
        range: Range<u64>,
        (bytes_max, last_allowed): (usize, u64),
        out: &mut Vec<u8>,
    ) -> io::Result<(Option<u64>, u64)> {
        if range.is_empty() {
            return Ok((None, range.start));
        }
        let file = File::open(self.path(directory))?;
        let left = (range.end - range.start) as usize;
        let start = out.len();
        for bytes in [bytes_max.max(HEADER_BYTES), HEADER_BYTES + AGENT_BODY_BYTES_MAX] {
            out.resize(start + bytes.min(left), 0);
            file.read_exact_at(&mut out[start..], range.start)?;
            let Frames { last, used, is_allowed } = whole_frames(&out[start..], last_allowed);
            out.truncate(start + used);
            if last.is_some() || !is_allowed {
                return Ok((last, range.start + used as u64));
            }
        }
        tracing::error!(
            file = %self.path(directory).display(),
            byte = range.start,
            "the spool is damaged: the rest of this file is left out"
        );
        Ok((Some(self.last), range.end))
    }
}

/// The good frames at the start of some bytes.
struct Frames {
    /// The number of the last one.
    last: Option<u64>,
    /// Where they end.
    used: usize,
    /// False: the next one is not allowed.
    is_allowed: bool,
}

fn whole_frames(bytes: &[u8], last_allowed: u64) -> Frames {
    let mut found = Frames { last: None, used: 0, is_allowed: true };
    while let Ok(Some((frame, used))) = frames::scan(&bytes[found.used..], AGENT_BODY_BYTES_MAX) {
        let Ok(head) = BlockHead::parse(frame.body) else { break };
        if head.sequence > last_allowed {
            found.is_allowed = false;
            break;
        }
        found.last = Some(head.sequence);
        found.used += used;
    }
    found
}

/// The segments of a directory, oldest first. A torn end is cut off, and files that a gap stands for are removed.
pub fn all(directory: &Path) -> io::Result<Vec<Segment>> {
    let mut found: Vec<Segment> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let Some(segment) = name.to_str().and_then(named) else { continue };
        let path = directory.join(&name);
        let bytes = fs::read(&path)?;
        let Frames { last, used, .. } = whole_frames(&bytes, u64::MAX);
        if used < bytes.len() {
            tracing::warn!(
                file = %path.display(),
                bytes = bytes.len() - used,
                "the end of the spool is cut off, as a crash leaves it"
            );
            let file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(used as u64)?;
        }
        // What a process before this one left in the page cache is sent as durable.
        File::open(&path)?.sync_all()?;
        match last {
            Some(last) => found.push(Segment { last, bytes: used as u64, ..segment }),
            None => fs::remove_file(&path)?,
        }
    }
    sync_directory(directory)?;
    found.sort_by_key(|segment| (segment.first, segment.last));
    let gaps: Vec<Segment> = found.iter().filter(|segment| segment.is_gap).cloned().collect();
    let is_replaced = |segment: &Segment| {
        gaps.iter().any(|gap| gap != segment && gap.first <= segment.first && segment.last <= gap.last)
    };
    let (replaced, kept): (Vec<_>, Vec<_>) = found.into_iter().partition(|segment| is_replaced(segment));
    replaced.iter().try_for_each(|segment| segment.remove(directory))?;
    Ok(kept)
}

/// What the name of a file says; the last block of a segment is not known yet.
fn named(name: &str) -> Option<Segment> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16);
    if let Some(first) = name.strip_prefix("segment-") {
        return Some(Segment { first: number(first)?, last: 0, bytes: 0, is_gap: false });
    }
    let (first, last) = name.strip_prefix("gap-")?.split_once('-')?;
    Some(Segment { first: number(first)?, last: number(last)?, bytes: 0, is_gap: true })
}
