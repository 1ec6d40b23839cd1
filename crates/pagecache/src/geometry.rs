//! What the model needs to know of an RRD: where its parts lie in pages, and how often an update touches each.

use std::collections::BTreeMap;

use rrd::codec::file::{ArchiveLayout, FileLayout};
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::definition::{Definition, Rra};
use rrd::when::Step;

use crate::MODEL_PAGE_BYTES;
use crate::sharing::Sharing;

/// An RRD as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Seconds from one update to the next.
    pub step: f64,
    /// Data sources.
    pub ds_count: u64,
    /// Bytes before the first archive.
    pub header_bytes: u64,
    /// The archives, in the order of the file.
    pub archives: Vec<ArchiveShape>,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Which of its pages are shared.
    pub(crate) sharing: Sharing,
}

/// One archive as the model sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArchiveShape {
    /// Updates until a row is complete: k.
    pub updates_per_row: u64,
    /// Rows in the ring: n.
    pub rows: u64,
    /// Bytes of a row: 8 per data source.
    pub row_bytes: u64,
    /// Where the ring begins in the file.
    pub offset: u64,
}

impl ArchiveShape {
    /// The page of the file that has row `row` of the ring; a row that straddles counts to the page of its first byte.
    pub fn page_of_row(&self, row: u64) -> u64 {
        (self.offset + row * self.row_bytes) / MODEL_PAGE_BYTES
    }

    /// How many of its rows touch page `page` of the file.
    pub fn rows_in_page(&self, page: u64) -> u64 {
        let (from, to) = (page * MODEL_PAGE_BYTES, (page + 1) * MODEL_PAGE_BYTES);
        let first = from.saturating_sub(self.offset) / self.row_bytes;
        let end = to.saturating_sub(self.offset).div_ceil(self.row_bytes).min(self.rows);
        end.saturating_sub(first)
    }

    /// Pages that the ring has bytes in.
    pub fn pages(&self) -> u64 {
        let end = self.offset + self.rows * self.row_bytes;
        end.div_ceil(MODEL_PAGE_BYTES) - self.offset / MODEL_PAGE_BYTES
    }
}

fn header_pages(bytes: u64) -> u64 {
    bytes.div_ceil(MODEL_PAGE_BYTES).max(1)
}

impl Geometry {
    /// The geometry of a definition.
    pub fn of(definition: &Definition) -> Geometry {
        let layout = FileLayout::of(definition);
        let shape = |(rra, archive): (&Rra, &ArchiveLayout)| ArchiveShape {
            updates_per_row: rra.pdp_per_row,
            rows: rra.row_count,
            row_bytes: archive.row_bytes,
            offset: archive.offset,
        };
        let archives: Vec<ArchiveShape> = definition.rra.iter().zip(&layout.archives).map(shape).collect();
        let header_bytes = layout.header_bytes as u64;
        Geometry {
            step: definition.step as f64 / f64::from(definition.units_per_second),
            ds_count: definition.ds.len() as u64,
            header_bytes,
            sharing: Sharing::of(header_pages(header_bytes), &archives),
            archives,
            file_bytes: layout.file_bytes,
        }
    }

    /// The geometry of an RRD that `rrdtool create` makes of these words (`DS:...`, `RRA:...`) with this step in seconds.
    ///
    /// # Errors
    /// A text that names the first bad word.
    pub fn parse<A: AsRef<str>>(step: u64, words: &[A]) -> Result<Geometry, String> {
        let options = CreateOptions {
            step: Step { units: step, units_per_second: 1 },
            limits: Limits::FILE,
            file_name: b"",
        };
        parse_create(&options, words)
            .map(|definition| Geometry::of(&definition))
            .map_err(|error| format!("no RRD can be made of these data sources and archives: {error}"))
    }

    /// Pages of the file: P in the formulas is [`MODEL_PAGE_BYTES`].
    pub fn file_pages(&self) -> u64 {
        self.file_bytes.div_ceil(MODEL_PAGE_BYTES)
    }

    /// Pages of the header: H.
    pub fn header_pages(&self) -> u64 {
        header_pages(self.header_bytes)
    }

    /// Numbers of archives by how many updates a row takes, ascending: the steps of the staircase.
    pub fn levels(&self) -> Vec<(u64, u64)> {
        let mut counts = BTreeMap::new();
        for archive in &self.archives {
            *counts.entry(archive.updates_per_row).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    /// Bytes of the part that updates change, as a store keeps it in memory: last update, PDP and CDP scratch, row pointers.
    pub fn live_bytes(&self) -> u64 {
        let archives = self.archives.len() as u64;
        16 + 112 * self.ds_count + 80 * archives * self.ds_count + 8 * archives
    }

    /// Bytes of rows that an update adds on average, over all archives.
    pub fn row_bytes_per_update(&self) -> f64 {
        self.archives.iter().map(|archive| archive.row_bytes as f64 / archive.updates_per_row as f64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Preset;

    #[test]
    fn mrtg_has_the_known_sizes() {
        let mrtg = Preset::Mrtg.geometry();
        assert_eq!((mrtg.header_bytes, mrtg.file_bytes, mrtg.file_pages()), (2_912, 105_312, 26));
        assert_eq!(mrtg.header_pages(), 1);
        assert_eq!(mrtg.levels(), [(1, 2), (6, 2), (24, 2), (288, 2)]);
        assert_eq!(mrtg.live_bytes(), 1_584);
        // 39 bytes, or 0.0095 pages.
        let rows = mrtg.row_bytes_per_update();
        assert!((rows - 38.78).abs() < 0.01, "{rows}");
    }

    #[test]
    fn rows_lie_in_pages() {
        let mrtg = Preset::Mrtg.geometry();
        let first = mrtg.archives[0];
        assert_eq!((first.page_of_row(0), first.page_of_row(73), first.page_of_row(74)), (0, 0, 1));
        assert_eq!(first.page_of_row(799), 3);
        assert_eq!(first.pages(), 4);
        let last = mrtg.archives[7];
        assert_eq!(last.page_of_row(799), 25);
    }

    #[test]
    fn bad_words_are_named() {
        let error = Geometry::parse(300, &["DS:a:GAUGE:600:U:U", "RRA:AVERAGE:0.5:0:5"]).unwrap_err();
        assert!(error.starts_with("no RRD can be made"), "{error}");
        assert!(Geometry::parse(0, &["DS:a:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:5"]).is_err());
    }
}
