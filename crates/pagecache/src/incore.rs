//! Which pages of a file are in the page cache.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::kernel::{self, CacheCounts};
use crate::parts::{HeaderReader, Part, Parts};

/// What is asked about a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// What the pages of `.rrd` files are, not only how many.
    pub parts: bool,
    /// Which pages they are.
    pub pages: bool,
}

/// Pages in the cache, of how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// In the page cache.
    pub cached: u64,
    /// In all.
    pub pages: u64,
}

impl Share {
    /// Adds another.
    pub fn add(&mut self, other: Share) {
        self.cached += other.cached;
        self.pages += other.pages;
    }
}

/// The pages of one file.
#[derive(Debug, Default)]
pub struct FilePages {
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether the kernel told what is in the cache: it tells nothing true to who neither owns a file nor may write to it. Otherwise
    /// only the number of pages is known.
    pub is_known: bool,
    /// Device and inode of a file with several names.
    pub links: Option<(u64, u64)>,
    /// Its pages.
    pub share: Share,
    /// Of those in the cache, changed and not yet written; `None` where the kernel does not say (before Linux 6.5).
    pub dirty: Option<u64>,
    /// By what they are, in the order of [`Part::ALL`]: only asked for `.rrd` files, else all are [`Part::Other`].
    pub by_part: [Share; 4],
    /// Ranges of pages in the cache, ascending: from, and up to but not including. Only if asked for.
    pub ranges: Vec<(u64, u64)>,
    /// The parts of a `.rrd` file, if asked for.
    pub parts: Option<Parts>,
}

impl FilePages {
    /// Pages of `from..to` that are in the cache, by [`FilePages::ranges`].
    pub fn cached_in(&self, from: u64, to: u64) -> u64 {
        let within = |range: &(u64, u64)| range.1.min(to).saturating_sub(range.0.max(from));
        self.ranges.iter().map(within).sum()
    }
}

/// Opens a file for a look: without waiting for the other end of a FIFO, and without a new access time if that is permitted.
///
/// # Errors
/// When it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty())
        .or_else(|_| rustix::fs::open(path, flags, Mode::empty()))?;
    Ok(File::from(file))
}

/// Looks at a file.
///
/// # Errors
/// When it cannot be opened, is no regular file, or the kernel does not answer for it.
pub fn look(path: &Path, question: Question, headers: &mut HeaderReader) -> io::Result<FilePages> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut found = look_at(&file, metadata.len(), question, headers)?;
    found.links = (metadata.nlink() > 1).then(|| (metadata.dev(), metadata.ino()));
    Ok(found)
}

/// Looks at an open file of `bytes` bytes.
///
/// # Errors
/// When the kernel does not answer for it.
pub fn look_at(
    file: &File,
    bytes: u64,
    question: Question,
    headers: &mut HeaderReader,
) -> io::Result<FilePages> {
    let counts = kernel::cachestat(file).ok();
    let pages = bytes.div_ceil(kernel::page_bytes());
    let mut found = FilePages { bytes, dirty: dirty(counts.as_ref()), ..FilePages::default() };
    found.share.pages = pages;
    // Older kernels count for everybody, but show pages only to these users.
    let is_counted = counts.is_some() && !question.parts && !question.pages;
    found.is_known = is_counted || kernel::answers(file);
    if !found.is_known {
        found.dirty = None;
        return Ok(found);
    }
    match counts {
        // More than the file has: pages after its end that a write is about to use.
        Some(counts) if !question.parts && !question.pages => found.share.cached = counts.cached.min(pages),
        Some(CacheCounts { cached: 0, .. }) => {}
        _ => {
            kernel::mincore(file, bytes, &mut |first, answer| push_ranges(&mut found.ranges, first, answer))?;
            found.share.cached = found.ranges.iter().map(|range| range.1 - range.0).sum();
        }
    }
    if question.parts {
        let first_cached = found.ranges.first().is_some_and(|range| range.0 == 0);
        found.parts = headers.parts(file, bytes, first_cached);
    }
    count_parts(&mut found);
    if !question.pages && found.parts.is_none() {
        found.ranges = Vec::new();
    }
    Ok(found)
}

fn dirty(counts: Option<&CacheCounts>) -> Option<u64> {
    counts.map(|counts| counts.dirty + counts.writeback)
}

/// Adds the pages of a window to ranges; neighbours become one.
fn push_ranges(ranges: &mut Vec<(u64, u64)>, first: u64, answer: &[u8]) {
    for (page, byte) in (first..).zip(answer) {
        if byte & 1 == 0 {
            continue;
        }
        match ranges.last_mut() {
            Some(last) if last.1 == page => last.1 += 1,
            _ => ranges.push((page, page + 1)),
        }
    }
}

fn count_parts(found: &mut FilePages) {
    let Some(parts) = &found.parts else {
        found.by_part[Part::Other as usize] = found.share;
        return;
    };
    // Only pages of headers and newest rows are looked at one by one: the others are what remains.
    let (header_end, rows_end) = parts.spans();
    let mut by_part = [Share::default(); 4];
    let share = |from: u64, to: u64| Share { cached: found.cached_in(from, to), pages: to - from };
    by_part[Part::Header as usize] = share(0, header_end);
    for page in parts.active_pages() {
        by_part[Part::Active as usize].add(share(page, page + 1));
    }
    let mut rows = share(header_end, rows_end);
    let active = by_part[Part::Active as usize];
    rows.cached -= active.cached;
    rows.pages -= active.pages;
    by_part[Part::Archive as usize] = rows;
    by_part[Part::Other as usize] = share(rows_end, found.share.pages);
    found.by_part = by_part;
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::Advice;

    use super::*;

    const CREATE: &str =
        "-b 1000000000 -s 300 DS:a:GAUGE:600:U:U DS:b:GAUGE:600:U:U RRA:AVERAGE:0.5:1:800 RRA:MAX:0.5:6:800";

    #[test]
    fn pages_of_an_rrd_are_told_apart() {
        let mut tool = testkit::RrdTool::start().unwrap();
        tool.run(&format!("create x.rrd {CREATE}")).unwrap();
        let path = tool.path("x.rrd");
        let all = Question { parts: true, pages: true };
        let mut headers = HeaderReader::default();
        let file = open(&path).unwrap();
        rustix::fs::fsync(&file).unwrap();
        let found = look(&path, all, &mut headers).unwrap();
        assert_eq!(found.share, Share { cached: 7, pages: 7 }, "just written: {found:?}");
        let pages = |found: &FilePages| found.by_part.map(|share| (share.cached, share.pages));
        let parts = found.parts.as_ref().unwrap();
        let active: Vec<u64> =
            (0..2).map(|archive| parts.active_page(archive)).filter(|page| *page > 0).collect();
        let active = active.len() as u64 - u64::from(active.len() == 2 && active[0] == active[1]);
        assert_eq!(pages(&found), [(1, 1), (active, active), (6 - active, 6 - active), (0, 0)]);
        assert_eq!((parts.archive_name(0), parts.archive_pages(0)), ("AVERAGE:1".to_string(), (0, 4)));
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        if kernel::cachestat(&file).is_ok_and(|counts| counts.cached > 0) {
            return testkit::skip("the file system of TMPDIR keeps all pages (tmpfs)");
        }
        // The header is read, and the cache is as empty as before.
        for _ in 0..2 {
            let found = look(&path, all, &mut headers).unwrap();
            assert_eq!(pages(&found), [(0, 1), (0, active), (0, 6 - active), (0, 0)]);
        }
    }

    /// A row of 600 data sources has 4,800 bytes, more than a page.
    #[test]
    fn wide_rows_have_several_pages() {
        let mut tool = testkit::RrdTool::start().unwrap();
        let sources: Vec<String> = (0..600).map(|index| format!("DS:d{index}:GAUGE:600:U:U")).collect();
        tool.run(&format!("create x.rrd -s 300 {} RRA:LAST:0.5:1:40", sources.join(" "))).unwrap();
        let all = Question { parts: true, pages: true };
        let found = look(&tool.path("x.rrd"), all, &mut HeaderReader::default()).unwrap();
        let parts = found.parts.as_ref().unwrap();
        let (first, end) = (parts.active_page(0), parts.active_end(0));
        assert!(end - first >= 2, "{first} {end}");
        assert!((first..end).all(|page| matches!(parts.of(page), Part::Active | Part::Header)));
        let (header_end, _) = parts.spans();
        let active = (first..end).filter(|page| *page >= header_end).count() as u64;
        assert_eq!(found.by_part[Part::Active as usize].pages, active);
    }

    #[test]
    fn other_files_have_other_pages() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, vec![b'R'; 9_000]).unwrap();
        let found = look(&path, Question { parts: true, pages: true }, &mut HeaderReader::default()).unwrap();
        assert_eq!((found.ranges.clone(), found.by_part[3]), (vec![(0, 3)], Share { cached: 3, pages: 3 }));
        fs::write(&path, "").unwrap();
        let found = look(&path, Question::default(), &mut HeaderReader::default()).unwrap();
        assert_eq!(found.share, Share::default());
        assert!(look(directory.path(), Question::default(), &mut HeaderReader::default()).is_err());
    }
}
