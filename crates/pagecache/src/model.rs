//! Page faults and page writes per update, as formulas.
//!
//! All of it is ours, derived from the layout of a `.rrd` file in `docs/capacity.md`; report R2 has a model of its own, which is
//! not known here. Symbols as there: N RRDs, P bytes in a page, H pages of header, and for each archive i rows of k_i updates,
//! n_i of them in p_i pages; B updates of an RRD are written together. Results are per update of one RRD. Pages that archives share are
//! counted once ([`crate::sharing`]).
//!
//! Two descriptions of the same cache: [`Geometry::faults`], the staircase (a page survives or does not), and
//! [`Geometry::faults_in_lru`], which says for a cache of any size which pages an LRU cache still has.

use crate::MODEL_PAGE_BYTES;
use crate::geometry::{ArchiveShape, Geometry};

/// Most passes that [`Geometry::faults_in_lru`] looks at: archives with longer rows count as if their phases were these.
const PASSES_MAX: u64 = 20_000;

/// Most passes since a touch: more is for ever, and with [`crate::simulate::BATCH_MAX`] updates each fits in 64 bits.
const SINCE_MAX: u64 = 1 << 40;

/// How much of what waits to be written is written early by a cache that has as much room as that takes: fitted to the points of collectd's and
/// Ganglia's RRDs in `lab/staircase.json`, as is that it falls with the square of the room.
const EARLY: f64 = 0.45;

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
    /// Updates from one touch of the write position's page to the next.
    fn interval(&self, batch: u64) -> u64 {
        self.updates_per_row.max(batch)
    }
}

/// Archives whose newest rows' pages are touched at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kind {
    /// Updates from one touch to the next.
    pub(crate) interval: u64,
    /// Different pages that a touch takes, which neither the header nor archives with shorter intervals are in.
    pub(crate) pages: f64,
}

impl Geometry {
    /// Page faults per update when nothing stays in the cache.
    pub fn faults_cold(&self) -> f64 {
        self.faults(0, 1)
    }

    /// Page faults per update when all that is written stays in the cache: pages that rows enter.
    pub fn faults_hot(&self) -> f64 {
        self.faults(u64::MAX, 1)
    }

    /// Page faults per update when `batch` updates are written together, and pages stay that are touched again within
    /// `updates` updates.
    pub fn faults(&self, updates: u64, batch: u64) -> f64 {
        let batch = batch.max(1);
        let header = if batch <= updates { 0.0 } else { self.header_pages() as f64 / batch as f64 };
        let missed: f64 = self
            .kinds(batch, true)
            .iter()
            .filter(|kind| kind.interval > updates)
            .map(|kind| kind.pages / kind.interval as f64)
            .sum();
        let stays = |archive: usize| self.archives[archive].interval(batch) <= updates;
        let entered = (0..self.archives.len()).filter(|archive| stays(*archive));
        header + missed + entered.map(|archive| self.entered(archive, batch, &stays)).sum::<f64>()
    }

    /// Pages per update that the newest row of an archive enters, and in which nothing is that stays. More than one time around within
    /// a flush is no more than once.
    fn entered(&self, archive: usize, batch: u64, stays: &dyn Fn(usize) -> bool) -> f64 {
        let shape = &self.archives[archive];
        let around = shape.rows.saturating_mul(shape.updates_per_row).max(batch);
        self.sharing.alone(archive, stays) / around as f64
    }

    /// Archives by interval, ascending. `whole`: with all rows of a flush, otherwise with the newest one.
    pub(crate) fn kinds(&self, batch: u64, whole: bool) -> Vec<Kind> {
        let mut intervals: Vec<u64> = self.archives.iter().map(|archive| archive.interval(batch)).collect();
        intervals.sort_unstable();
        intervals.dedup();
        let mut below = self.header_pages() as f64;
        let kind = |interval| {
            let rows = |index: usize| {
                let archive = &self.archives[index];
                match archive.interval(batch) <= interval {
                    true if whole => (batch as f64 / archive.updates_per_row as f64).max(1.0),
                    included => f64::from(u8::from(included)),
                }
            };
            let all = self.sharing.distinct(&rows);
            let pages = (all - below).max(0.0);
            below = all;
            Kind { interval, pages }
        };
        intervals.into_iter().map(kind).collect()
    }

    /// Page writes per update when `batch` updates are written together, and every flush reaches the disk.
    pub fn writes(&self, batch: u64) -> f64 {
        self.faults(0, batch)
    }

    /// Page writes per update when `batch` updates are written together, and what was changed waits in a cache of `pages` pages of
    /// each RRD until `held` updates have come. Where the cache has no room for what waits, it is written early: the share of that
    /// is no derivation but was fitted to what was measured.
    pub fn writes_held(&self, batch: u64, held: u64, pages: f64) -> f64 {
        let (batch, held) = (batch.max(1), held.max(1));
        let at_once = self.writes(batch);
        if held <= batch {
            return at_once;
        }
        let together = self.writes(held);
        let waiting = together * held as f64;
        let early = (EARLY * (waiting / pages).powi(2)).min(1.0);
        together + early * (at_once - together)
    }

    /// Pages per RRD that stay when pages do that are touched again within `updates` updates: the average, rounded up.
    pub fn pages_kept(&self, updates: u64, batch: u64) -> u64 {
        let batch = batch.max(1);
        if updates < batch {
            return 0;
        }
        let kinds = self.kinds(batch, false);
        let kept = kinds.iter().filter(|kind| kind.interval <= updates).map(|kind| kind.pages);
        // Sums of shares are not exact.
        (self.header_pages() as f64 + kept.sum::<f64>() - 1e-6).ceil() as u64
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
        let batch = batch.clamp(1, crate::simulate::BATCH_MAX);
        let longest = self.archives.iter().map(|archive| archive.interval(batch)).max().unwrap_or(batch);
        // In passes of the flusher: each writes `batch` updates.
        let passes = longest.div_ceil(batch).saturating_mul(2).min(PASSES_MAX);
        let owners = self.owners(batch);
        let misses: f64 = (1..=passes).map(|pass| self.missed_in_pass(pass, batch, pages, &owners)).sum();
        misses / (passes * batch) as f64
    }

    /// For each archive, what of its pages is its own.
    fn owners(&self, batch: u64) -> Vec<Owner> {
        let mut order: Vec<usize> = (0..self.archives.len()).collect();
        order.sort_by_key(|index| self.archives[*index].interval(batch));
        let mut rank = vec![0; order.len()];
        for (at, index) in order.iter().enumerate() {
            rank[*index] = at;
        }
        let rows = |index: usize| (batch as f64 / self.archives[index].updates_per_row as f64).max(1.0);
        let up_to =
            |most: usize| self.sharing.distinct(&|index| if rank[index] < most { rows(index) } else { 0.0 });
        let owner = |archive: usize| {
            let ring = self.sharing.ring(archive);
            let own = (up_to(rank[archive] + 1) - up_to(rank[archive])) / ring.span(rows(archive));
            let slower = |other: usize| rank[other] > rank[archive];
            let alone = if ring.left > 0.0 { self.sharing.alone(archive, &slower) / ring.left } else { 1.0 };
            let neighbours =
                self.sharing.neighbours(archive).map(|other| self.archives[other].interval(batch));
            Owner { own: own.clamp(0.0, 1.0), alone: alone.min(1.0), company: neighbours.max().unwrap_or(1) }
        };
        (0..self.archives.len()).map(owner).collect()
    }

    /// Page faults of an RRD in a pass.
    fn missed_in_pass(&self, pass: u64, batch: u64, pages: f64, owners: &[Owner]) -> f64 {
        // Archives have few intervals, and what is gone after each takes the most time here.
        let mut known: Vec<(u64, f64)> = Vec::new();
        let mut gone = |updates: u64| {
            let since = updates.div_ceil(batch).max(1);
            if let Some(one) = known.iter().find(|one| one.0 == since) {
                return one.1;
            }
            known.push((since, self.missed((pass, since), batch, pages)));
            known[known.len() - 1].1
        };
        let mut misses = self.header_pages() as f64 * gone(1);
        for (index, (archive, owner)) in self.archives.iter().zip(owners).enumerate() {
            let k = archive.updates_per_row;
            let rows = (pass * batch / k - (pass - 1) * batch / k) as f64;
            if rows > 0.0 {
                let ring = self.sharing.ring(index);
                let touched = ring.span(rows);
                let entered = (rows * ring.entered_per_row()).min(touched);
                // A page that is entered was left when the ring was there the last time, a page of rows less than a ring ago, unless
                // the newest row of a slower archive is in it.
                let rows_in_page =
                    (archive.rows as f64 / ring.pages).min((MODEL_PAGE_BYTES / archive.row_bytes) as f64);
                let around = gone((archive.rows - rows_in_page as u64).saturating_mul(k));
                let company = if owner.alone < 1.0 { around.min(gone(owner.company)) } else { 0.0 };
                let new = owner.alone * around + (1.0 - owner.alone) * company;
                misses += owner.own * (entered * new + (touched - entered) * gone(archive.interval(batch)));
            }
        }
        misses
    }

    /// The share of RRDs for which a page is gone that was touched `since` passes before `pass`.
    fn missed(&self, (pass, since): (u64, u64), batch: u64, pages: f64) -> f64 {
        // RRDs that come later in a pass were last updated in the pass before.
        let (pass, since) = (pass as i64, since.min(SINCE_MAX) as i64);
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
    fn touched(&self, after: i64, count: i64, batch: u64) -> f64 {
        let batch = batch as i64;
        let rows = |index: usize| {
            let k = self.archives[index].updates_per_row.min(i64::MAX as u64) as i64;
            (((after + count) * batch).div_euclid(k) - (after * batch).div_euclid(k)) as f64
        };
        self.sharing.distinct(&rows)
    }
}

/// What of the pages that an archive touches is its own.
struct Owner {
    /// The share that neither the header nor archives with shorter intervals touch, too.
    own: f64,
    /// Of the pages that it enters, the share in which no slower archive's newest row is.
    alone: f64,
    /// The longest interval of archives with rows in its pages.
    company: u64,
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
        let want = [(0, 0, 3.32), (1, 3, 0.425), (6, 5, 0.099), (24, 7, 0.017), (288, 9, 0.010)];
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
        let want = [(1, 3.32), (3, 1.39), (6, 0.91), (12, 0.50), (24, 0.30), (288, 0.041)];
        for (batch, writes) in want {
            check(mrtg.writes(batch), writes, if writes < 0.1 { 0.000_6 } else { 0.006 });
        }
        check(mrtg.row_bytes_per_update() / 4096.0, 0.0095, 0.000_05);
    }

    /// RRDs whose archives lie within a few pages: counted one by one they would have more pages than the file.
    #[test]
    fn shared_pages_count_once() {
        let small = [
            "DS:sum:GAUGE:120:U:U",
            "RRA:AVERAGE:0.5:1:244",
            "RRA:AVERAGE:0.5:24:244",
            "RRA:AVERAGE:0.5:168:244",
            "RRA:AVERAGE:0.5:672:244",
            "RRA:AVERAGE:0.5:5760:374",
        ];
        let small = Geometry::parse(15, &small).unwrap();
        let simulated = |pages: f64| {
            let policy = crate::simulate::Policy::Lru;
            let cache_pages = (500.0 * pages) as u64;
            let passes = 2_000;
            let setup = crate::simulate::Setup {
                geometry: small.clone(),
                rrds: 500,
                cache_pages,
                policy,
                readahead: 1,
                batch: 1,
                passes,
                seed: 1,
            };
            setup.run(&mut |_| true).unwrap()
        };
        let levels = small.staircase(1);
        assert!(levels.iter().all(|level| level.pages_per_rrd <= small.file_pages()), "{levels:?}");
        check(small.writes_held(1, 2, 3.0), simulated(3.0).writes, 0.15 * simulated(3.0).writes);
        for pages in [0.5, 1.2, 2.2, 3.0] {
            let (got, want) = (small.faults_in_lru(pages, 1), simulated(pages).faults);
            check(got, want, 0.15 * want.max(0.02));
        }
    }

    /// A ring within one page is never left, and rows wider than a page touch several.
    #[test]
    fn what_stays_never_costs_more() {
        let one = ["DS:a:GAUGE:600:U:U", "RRA:LAST:0.5:1:1", "RRA:AVERAGE:0.5:1:600"];
        let one = Geometry::parse(300, &one).unwrap();
        assert!(one.faults_hot() < 0.01, "{}", one.faults_hot());
        testkit::random::each_seed(60, |seed| {
            let random = &mut testkit::random::Random::new(seed);
            let mut words: Vec<String> = Vec::new();
            for index in 0..1 + random.below(3) * random.below(300) {
                words.push(format!("DS:d{index}:GAUGE:600:U:U"));
            }
            for _ in 0..1 + random.below(6) {
                words.push(format!("RRA:LAST:0.5:{}:{}", 1 + random.below(90), 1 + random.below(700)));
            }
            let geometry = Geometry::parse(60, &words).unwrap();
            for batch in [1, 12] {
                let levels = geometry.staircase(batch);
                let falls = |two: &[Level]| {
                    two[1].faults <= two[0].faults + 1e-9 && two[1].pages_per_rrd >= two[0].pages_per_rrd
                };
                assert!(levels.windows(2).all(falls), "{words:?} {batch}: {levels:?}");
                assert!(levels.iter().all(|level| level.pages_per_rrd <= geometry.file_pages()));
            }
        });
    }

    /// `lab/staircase.json`: cache in pages per RRD, pages written per update; changed pages wait 30 s there.
    #[test]
    fn changed_pages_wait_as_measured() {
        let collectd = [
            (1.633, 4.487),
            (2.981, 4.504),
            (3.882, 4.478),
            (5.233, 2.877),
            (6.586, 3.037),
            (8.383, 2.424),
            (10.189, 2.438),
            (11.994, 2.124),
        ];
        let ganglia =
            [(1.463, 2.270), (1.976, 2.080), (2.588, 1.811), (3.176, 1.385), (3.943, 1.373), (4.389, 1.277)];
        for (preset, held, points) in [(Preset::Collectd, 3, &collectd[..]), (Preset::Ganglia, 2, &ganglia)] {
            for &(pages, measured) in points {
                check(preset.geometry().writes_held(1, held, pages), measured, 0.17 * measured);
            }
        }
        let mrtg = Preset::Mrtg.geometry();
        assert_eq!(mrtg.writes_held(12, 3, 2.0), mrtg.writes(12));
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
