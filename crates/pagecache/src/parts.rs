//! What the pages of a `.rrd` file are: header, archives, and the pages that the next update of each archive writes to.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rrd::codec::file::{ArchiveLayout, head_bytes};
use rrd_file::geometry::{FileHeader, Geometries, Geometry};
use rustix::fs::Advice;

/// Bytes that say how long a header is.
const PREFIX_BYTES: usize = 128;
/// Longest header that is read, in bytes: a file with 1,000 data sources in 100 archives has 8 MB of them.
const HEADER_BYTES_MAX: usize = 16 << 20;

/// What a page is, for counts and colours. A page that is several things is the first of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Of the header.
    Header,
    /// With the newest row of an archive: the next update is likely to write to it.
    Active,
    /// Of an archive.
    Archive,
    /// Of a file that is no `.rrd` file, or after its end.
    Other,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 4] = [Part::Header, Part::Active, Part::Archive, Part::Other];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Part::Header => "header",
            Part::Active => "active",
            Part::Archive => "archive",
            Part::Other => "other",
        }
    }
}

/// The parts of one `.rrd` file.
#[derive(Debug)]
pub struct Parts {
    header: FileHeader,
    page_bytes: u64,
    /// Of each archive the first and the last page of its newest row.
    active: Vec<(u64, u64)>,
}

impl Parts {
    /// The parts of a file with this header, in pages of that many bytes.
    pub fn new(header: FileHeader, page_bytes: u64) -> Parts {
        let archives = header.geometry.layout.archives.iter().zip(&header.current_rows);
        let pages = |(archive, row): (&ArchiveLayout, &u64)| {
            let from = archive.row_offset(*row);
            (from / page_bytes, (from + archive.row_bytes.max(1) - 1) / page_bytes)
        };
        let active = archives.map(pages).collect();
        Parts { header, page_bytes, active }
    }

    /// What page `page` is.
    pub fn of(&self, page: u64) -> Part {
        let layout = &self.header.geometry.layout;
        if page * self.page_bytes < layout.header_bytes as u64 {
            Part::Header
        } else if self.active.iter().any(|(first, last)| (*first..=*last).contains(&page)) {
            Part::Active
        } else if page * self.page_bytes < layout.file_bytes {
            Part::Archive
        } else {
            Part::Other
        }
    }

    /// Where the pages of the header end, and where those of rows do.
    pub fn spans(&self) -> (u64, u64) {
        let layout = &self.header.geometry.layout;
        let end = |bytes: u64| bytes.div_ceil(self.page_bytes);
        (end(layout.header_bytes as u64), end(layout.file_bytes))
    }

    /// The pages that are [`Part::Active`], ascending.
    pub fn active_pages(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self
            .active
            .iter()
            .flat_map(|(first, last)| *first..=*last)
            .filter(|page| self.of(*page) == Part::Active)
            .collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// How many archives.
    pub fn archive_count(&self) -> usize {
        self.active.len()
    }

    /// An archive as `CF:PDPs`.
    pub fn archive_name(&self, archive: usize) -> String {
        let rra = &self.header.geometry.definition.rra[archive];
        format!("{}:{}", rra.cf.cf().name(), rra.pdp_per_row)
    }

    /// The pages that an archive has rows in: from, and up to but not including.
    pub fn archive_pages(&self, archive: usize) -> (u64, u64) {
        let ring = self.header.geometry.layout.archives[archive];
        let end = ring.offset.saturating_add(ring.ring_bytes());
        (ring.offset / self.page_bytes, end.div_ceil(self.page_bytes))
    }

    /// The page with an archive's newest row, or the first of them if it straddles.
    pub fn active_page(&self, archive: usize) -> u64 {
        self.active[archive].0
    }

    /// The page after those of an archive's newest row.
    pub fn active_end(&self, archive: usize) -> u64 {
        self.active[archive].1 + 1
    }

    /// Its definition and layout, which files share.
    pub fn geometry(&self) -> &Arc<Geometry> {
        &self.header.geometry
    }
}

/// Reads headers of files so that the page cache is left as it was.
#[derive(Debug)]
pub struct HeaderReader {
    known: Geometries,
    last: Option<Arc<Geometry>>,
    buffer: Vec<u8>,
}

impl Default for HeaderReader {
    fn default() -> Self {
        // A tree has a handful of definitions.
        HeaderReader { known: Geometries::new(64), last: None, buffer: Vec::new() }
    }
}

impl HeaderReader {
    /// The parts of a `.rrd` file of `bytes` bytes; `None` for any other file. `cached` says whether its first page is in the page
    /// cache: if it is not, what is read of the file is dropped again.
    pub fn parts(&mut self, file: &File, bytes: u64, cached: bool) -> Option<Parts> {
        if !cached {
            // Without it, reading the header would bring more than the header.
            let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
        }
        let header = self.header(file, bytes);
        if !cached {
            // Only whole pages are dropped.
            let length = (self.buffer.len() as u64).next_multiple_of(crate::kernel::page_bytes());
            let length = std::num::NonZeroU64::new(length);
            let _ = rustix::fs::fadvise(file, 0, length, Advice::DontNeed);
        }
        let header = header?;
        self.last = Some(Arc::clone(&header.geometry));
        Some(Parts::new(header, crate::kernel::page_bytes()))
    }

    fn header(&mut self, file: &File, bytes: u64) -> Option<FileHeader> {
        self.buffer.resize(PREFIX_BYTES.min(bytes as usize), 0);
        file.read_exact_at(&mut self.buffer, 0).ok()?;
        let length = head_bytes(&self.buffer, bytes).ok().filter(|length| *length <= HEADER_BYTES_MAX)?;
        self.buffer.resize(length, 0);
        file.read_exact_at(&mut self.buffer, 0).ok()?;
        self.known.read(&self.buffer, bytes, self.last.as_ref()).ok()
    }
}
