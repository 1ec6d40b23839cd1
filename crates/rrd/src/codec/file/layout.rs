//! Where each part of a `.rrd` file lies. Every offset follows from the definition.

use super::{
    CDP_PREP_BYTES, DS_DEF_BYTES, PDP_PREP_BYTES, RRA_DEF_BYTES, RRA_PTR_BYTES, STAT_HEAD_BYTES,
    VERSION_MICROSECONDS,
};
use crate::definition::{Definition, FormatVersion};

/// Offsets and lengths, in bytes, of the parts of one `.rrd` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLayout {
    /// The last update: 16 bytes, or 8 in versions 1 and 2. The live part starts here.
    pub live_head: usize,
    /// 112 bytes per data source.
    pub pdp_prep: usize,
    /// 80 bytes per archive and data source, archive-major.
    pub cdp_prep: usize,
    /// 8 bytes per archive: the ring position of its newest row.
    pub rra_ptr: usize,
    /// End of the live part and of the header; the first archive starts here.
    pub header_bytes: usize,
    /// The rings, in the order of the archives.
    pub archives: Vec<ArchiveLayout>,
    /// Length of the file.
    pub file_bytes: u64,
}

/// Where one archive's ring lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLayout {
    /// Offset of the row at ring position 0.
    pub offset: u64,
    /// Bytes in a row: 8 per data source.
    pub row_bytes: u64,
    /// Rows in the ring.
    pub row_count: u64,
}

impl FileLayout {
    /// The layout of a file of this definition.
    pub fn of(definition: &Definition) -> Self {
        let rows = definition.rra.iter().map(|rra| rra.row_count);
        FileLayout::new(definition.version, definition.ds.len(), rows)
    }

    /// The layout for `ds_count` data sources and archives with these row counts.
    pub(super) fn new(
        version: FormatVersion,
        ds_count: usize,
        row_counts: impl ExactSizeIterator<Item = u64>,
    ) -> Self {
        let rra_count = row_counts.len();
        let live_head = STAT_HEAD_BYTES + ds_count * DS_DEF_BYTES + rra_count * RRA_DEF_BYTES;
        let pdp_prep = live_head + live_head_bytes(version);
        let cdp_prep = pdp_prep + ds_count * PDP_PREP_BYTES;
        let rra_ptr = cdp_prep + ds_count * rra_count * CDP_PREP_BYTES;
        let header_bytes = rra_ptr + rra_count * RRA_PTR_BYTES;
        let row_bytes = 8 * ds_count as u64;
        let mut offset = header_bytes as u64;
        let archives = row_counts
            .map(|row_count| {
                let archive = ArchiveLayout { offset, row_bytes, row_count };
                offset = offset.saturating_add(row_bytes.saturating_mul(row_count));
                archive
            })
            .collect();
        FileLayout { live_head, pdp_prep, cdp_prep, rra_ptr, header_bytes, archives, file_bytes: offset }
    }

    /// Bytes of the live part: from [`FileLayout::live_head`] to the end of the header.
    pub fn live_bytes(&self) -> usize {
        self.header_bytes - self.live_head
    }
}

impl ArchiveLayout {
    /// Offset of the row at ring position `position`, which must be below `row_count`.
    pub fn row_offset(&self, position: u64) -> u64 {
        self.offset + position * self.row_bytes
    }

    /// Bytes of the ring.
    pub fn ring_bytes(&self) -> u64 {
        self.row_bytes.saturating_mul(self.row_count)
    }
}

/// Bytes of the live head in a file of this version.
pub(super) fn live_head_bytes(version: FormatVersion) -> usize {
    if version < VERSION_MICROSECONDS { 8 } else { 16 }
}
