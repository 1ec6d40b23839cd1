//! Page faults and page writes per update, as formulas.
//!
//! All of it is ours, derived from the layout of a `.rrd` file in `docs/capacity.md`; report R2 has a model of its own, which is
//! not known here. Symbols as there: N RRDs, P bytes in a page, H pages of header, and for each archive i rows of k_i updates,
//! n_i of them in p_i pages; B updates of an RRD are written together. Results are per update of one RRD.
//!
//! Two descriptions of the same cache: [`Geometry::faults`], the staircase (a page survives or does not), and
//! [`Geometry::faults_in_lru`], which says for a cache of any size which pages an LRU cache still has.

use crate::MODEL_PAGE_BYTES;
use crate::geometry::{ArchiveShape, Geometry};

/// Most passes that [`Geometry::faults_in_lru`] looks at: archives with longer rows count as if their phases were these.
const PASSES_MAX: u64 = 20_000;

/// What stays in the page cache, as a step of the staircase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Pages that are touched again within this many updates stay; 0: nothing stays.
    pub updates: u64,
    /// Pages of each RRD that must fit in the cache.
    pub pages_per_rrd: u64,
    /// Page faults per update: each reads a page.
    pub faults: f64,
}

impl ArchiveShape {
    fn k(&self) -> f64 {
        self.updates_per_row as f64
    }

    /// Rows in a page: rho.
    fn rows_per_page(&self) -> f64 {
        MODEL_PAGE_BYTES as f64 / self.row_bytes as f64
    }

    /// Pages of the ring, with one for its straddling of page boundaries: p.
    fn straddled_pages(&self) -> f64 {
        (self.rows * self.row_bytes) as f64 / MODEL_PAGE_BYTES as f64 + 1.0
    }

    /// Pages that the ring's write position enters per update, if the page it leaves is not needed again: p / (n k).
    fn new_pages(&self) -> f64 {
        self.straddled_pages() / (self.rows as f64 * self.k())
    }

    /// Pages of the ring that a flush of `batch` updates touches.
    fn pages_per_flush(&self, batch: f64) -> f64 {
        let rows = batch / self.k();
        rows.min(1.0) + (rows - 1.0).max(0.0) / self.rows_per_page()
    }

    /// Updates from one touch of the write position's page to the next.
    fn interval(&self, batch: u64) -> u64 {
        self.updates_per_row.max(batch)
    }
}

impl Geometry {
    /// Page faults per update when nothing stays in the cache: H + sum of 1/k.
    pub fn faults_cold(&self) -> f64 {
        self.faults(0, 1)
    }

    /// Page faults per update when all that is written stays in the cache: sum of p / (n k).
    pub fn faults_hot(&self) -> f64 {
        self.archives.iter().map(ArchiveShape::new_pages).sum()
    }

    /// Page faults per update when `batch` updates are written together, and pages stay that are touched again within
    /// `updates` updates.
    pub fn faults(&self, updates: u64, batch: u64) -> f64 {
        let batch = batch.max(1);
        let b = batch as f64;
        let header = if batch <= updates { 0.0 } else { self.header_pages() as f64 / b };
        let archive = |archive: &ArchiveShape| {
            if archive.interval(batch) <= updates {
                archive.new_pages()
            } else {
                archive.pages_per_flush(b) / b
            }
        };
        header + self.archives.iter().map(archive).sum::<f64>()
    }

    /// Page writes per update when `batch` updates are written together, and every flush reaches the disk.
    pub fn writes(&self, batch: u64) -> f64 {
        self.faults(0, batch)
    }

    /// Pages per RRD that stay when pages do that are touched again within `updates` updates.
    pub fn pages_kept(&self, updates: u64, batch: u64) -> u64 {
        let batch = batch.max(1);
        let header = if batch <= updates { self.header_pages() } else { 0 };
        let kept = self.archives.iter().filter(|archive| archive.interval(batch) <= updates);
        header + kept.count() as u64
    }

    /// The steps of the staircase, from nothing in the cache to all that is written.
    pub fn staircase(&self, batch: u64) -> Vec<Level> {
        let batch = batch.max(1);
        let mut steps: Vec<u64> = self.archives.iter().map(|archive| archive.interval(batch)).collect();
        steps.extend([0, batch]);
        steps.sort_unstable();
        steps.dedup();
        let level = |updates| Level {
            updates,
            pages_per_rrd: self.pages_kept(updates, batch),
            faults: self.faults(updates, batch),
        };
        steps.into_iter().map(level).collect()
    }

    /// Page faults per update in a cache that has room for `pages` pages of each RRD and drops the page that was not touched
    /// for the longest time, when all RRDs are updated in the same order in each pass, `batch` updates at once.
    ///
    /// A page is still there if fewer different pages were touched since than fit. Since all RRDs do the same at the same time,
    /// that number follows from the boundaries of rows that lie in between: from those of this pass for RRDs that come earlier
    /// in it, and of the pass of the last touch for those that come later.
    pub fn faults_in_lru(&self, pages: f64, batch: u64) -> f64 {
        let batch = batch.max(1);
        let longest = self.archives.iter().map(|archive| archive.interval(batch)).max().unwrap_or(batch);
        // In passes of the flusher: each writes `batch` updates.
        let passes = longest.div_ceil(batch).saturating_mul(2).min(PASSES_MAX);
        let misses: f64 = (1..=passes).map(|pass| self.missed_in_pass(pass, batch, pages)).sum();
        misses / (passes * batch) as f64
    }

    /// Page faults of an RRD in a pass.
    fn missed_in_pass(&self, pass: u64, batch: u64, pages: f64) -> f64 {
        let mut misses = self.header_pages() as f64 * self.missed((pass, 1), batch, pages);
        let mut before = true;
        for archive in &self.archives {
            let k = archive.updates_per_row;
            let rows = pass * batch / k - (pass - 1) * batch / k;
            if rows > 0 {
                let more = (rows - 1) as f64 / archive.rows_per_page();
                // Its first page was touched before, unless its first row is the one that is written.
                let entered = archive.new_pages() * (rows * k) as f64 - more;
                let entered = entered.clamp(0.0, 1.0);
                let own = if before { 1.0 - archive.shared } else { 1.0 };
                let gone = self.missed((pass, archive.interval(batch).div_ceil(batch)), batch, pages);
                // A page that is entered was left when the ring was there the last time, a page of rows less than a ring ago.
                let rows_since = archive.rows - (archive.rows_per_page() as u64).min(archive.rows - 1);
                let around = rows_since.saturating_mul(k).div_ceil(batch).max(1);
                let forgotten = self.missed((pass, around), batch, pages);
                misses += (more + own * entered) * forgotten + own * (1.0 - entered) * gone;
            }
            before = rows > 0;
        }
        misses
    }

    /// The share of RRDs for which a page is gone that was touched `since` passes before `pass`.
    fn missed(&self, (pass, since): (u64, u64), batch: u64, pages: f64) -> f64 {
        // RRDs that come later in a pass were last updated in the pass before.
        let (pass, since) = (i128::from(pass), i128::from(since));
        let later = self.touched(pass - 1 - since, since, batch);
        let earlier = self.touched(pass - since, since, batch);
        let (low, high) = if later < earlier { (later, earlier) } else { (earlier, later) };
        if pages >= high {
            0.0
        } else if pages < low {
            1.0
        } else {
            (high - pages) / (high - low)
        }
    }

    /// Different pages of an RRD that `count` passes touch which follow the pass `after`.
    fn touched(&self, after: i128, count: i128, batch: u64) -> f64 {
        let batch = i128::from(batch);
        let (mut pages, mut before) = (self.header_pages() as f64, true);
        for archive in &self.archives {
            let k = i128::from(archive.updates_per_row);
            let rows = ((after + count) * batch).div_euclid(k) - (after * batch).div_euclid(k);
            if rows > 0 {
                let shared = if before { archive.shared } else { 0.0 };
                let spanned = 1.0 + (rows - 1) as f64 / archive.rows_per_page();
                pages += spanned.min(archive.straddled_pages()) - shared;
            }
            before = rows > 0;
        }
        pages
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::presets::Preset;

    fn check(got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance, "{got} and not {want}");
    }

    #[test]
    fn the_staircase_of_mrtg() {
        let levels = Preset::Mrtg.geometry().staircase(1);
        let want = [(0, 0, 3.42), (1, 3, 0.434), (6, 5, 0.102), (24, 7, 0.019), (288, 9, 0.012)];
        assert_eq!(levels.len(), want.len());
        for (level, (updates, pages, faults)) in levels.iter().zip(want) {
            assert_eq!((level.updates, level.pages_per_rrd), (updates, pages));
            check(level.faults, faults, if faults > 1.0 { 0.005 } else { 0.000_6 });
        }
        let mrtg = Preset::Mrtg.geometry();
        assert_eq!((mrtg.faults_cold(), mrtg.faults_hot()), (levels[0].faults, levels[4].faults));
    }

    #[test]
    fn batching_saves_writes() {
        let mrtg = Preset::Mrtg.geometry();
        let want = [(1, 3.42), (3, 1.43), (6, 0.93), (12, 0.52), (24, 0.31), (288, 0.041)];
        for (batch, writes) in want {
            check(mrtg.writes(batch), writes, if writes < 0.1 { 0.000_6 } else { 0.006 });
        }
        check(mrtg.row_bytes_per_update() / 4096.0, 0.0095, 0.000_05);
    }

    #[test]
    fn an_lru_cache_has_softer_edges() {
        let mrtg = Preset::Mrtg.geometry();
        let want =
            [(0.5, 3.32, 0.04), (4.2, 0.83, 0.02), (5.2, 0.34, 0.1), (7.2, 0.041, 0.1), (9.5, 0.017, 0.4)];
        for (pages, faults, tolerance) in want {
            check(mrtg.faults_in_lru(pages, 1), faults, tolerance * faults);
        }
    }

    /// With more memory there are never more faults than `slack` times those before, and without any as many as when nothing stays.
    pub(crate) fn check_falls(faults: impl Fn(&Geometry, f64, u64) -> f64, slack: f64, cold: f64) {
        for preset in Preset::ALL {
            let geometry = preset.geometry();
            for batch in [1, 6, 30] {
                let faults: Vec<f64> =
                    (0..120).map(|half| faults(&geometry, f64::from(half) / 2.0, batch)).collect();
                assert!(
                    faults.windows(2).all(|two| two[0] * slack >= two[1]),
                    "{preset:?} {batch}: {faults:?}"
                );
                check(faults[0], geometry.faults(0, batch), cold * faults[0]);
            }
        }
    }

    #[test]
    fn more_memory_never_costs() {
        check_falls(Geometry::faults_in_lru, 1.0, 0.1);
    }
}
