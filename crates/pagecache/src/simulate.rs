//! A page cache that takes the updates of many RRDs, page by page, and counts what it must read.
//!
//! The sequence is that of a poller: all RRDs in the same order in each pass, each with newest rows at random places, rows that
//! end where the clock says. Nothing is drawn while it runs: an RRD's places are a hash of the seed, so that they take no memory.
//! Memory: 10 or 11 bytes for each page of each file, whether it is cached or not ([`Setup::memory_bytes`]).

mod linux;
mod list;
mod lru;

use crate::MODEL_PAGE_BYTES;
use crate::geometry::Geometry;
use linux::LinuxCache;
use lru::LruCache;

/// Most memory that a simulation takes, in bytes: 5 million RRDs of MRTG take 1.2 GB.
pub const MEMORY_MAX: u64 = 16 << 30;
/// Most updates that are written together: more than any archive has rows that matter.
pub const BATCH_MAX: u64 = 1_000_000;
/// Most passes that count.
pub const PASSES_MAX: u64 = 10_000_000;
/// Passes before the counted ones, besides those in which rows of the longer archives end.
const WARM_PASSES: u64 = 12;
/// After how long the kernel writes what was changed, in seconds: `vm.dirty_expire_centisecs`.
pub(crate) const WRITTEN_SECONDS: f64 = 30.0;
/// Pages of a ring that the passes before the counted ones bring, if there is room for more than is written.
const RING_PAGES_MAX: u64 = 64;
/// Counted passes unless others are given: at most a day of five-minute steps.
const PASSES: (u64, u64) = (24, 288);

/// How a cache chooses what it drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// What was not touched for the longest time.
    Lru,
    /// As Linux does with two lists and refaults; touches of mapped rows do not count under advice RANDOM.
    Linux {
        /// Whether files are mapped with advice RANDOM, as librrd does.
        random_advice: bool,
    },
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// All RRDs are of this geometry.
    pub geometry: Geometry,
    /// How many RRDs.
    pub rrds: u32,
    /// Pages that the cache has room for.
    pub cache_pages: u64,
    /// How it chooses.
    pub policy: Policy,
    /// Pages that a fault reads, itself included: 1 without readahead, 32 by Linux' default.
    pub readahead: u32,
    /// Updates of an RRD that are written together, at most [`BATCH_MAX`].
    pub batch: u64,
    /// Passes that count, at most [`PASSES_MAX`]; 0: chosen by the archives.
    pub passes: u64,
    /// Where newest rows are.
    pub seed: u64,
}

/// What a simulation counted, per update.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Page faults: requests to the disk.
    pub faults: f64,
    /// Pages read, readahead included.
    pub pages_read: f64,
    /// Pages written: what was changed waits for 30 seconds, or until it is dropped.
    pub writes: f64,
    /// Passes that were counted.
    pub passes: u64,
    /// Updates that were counted.
    pub updates: u64,
}

/// A cache of pages, which are numbered from 0.
trait Cache {
    /// Touches a page; whether it was there. `row` says that it was touched through a mapping of rows, not of the header.
    fn touch(&mut self, page: u32, row: bool) -> bool;
    /// Puts a page in that was read ahead; whether it had to be read.
    fn bring(&mut self, page: u32) -> bool;
    /// All that was touched so far is written.
    fn tick(&mut self) {}
}

impl Setup {
    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> u64 {
        self.pages().saturating_mul(if self.policy == Policy::Lru { 10 } else { 11 })
    }

    fn pages(&self) -> u64 {
        u64::from(self.rrds).saturating_mul(self.geometry.file_pages())
    }

    /// Runs it; `progress` is told the share that is done, 0 to 1, and says whether to go on.
    ///
    /// # Errors
    /// When it would take more than [`MEMORY_MAX`] bytes, there is nothing to simulate, or `progress` says no.
    pub fn run(&self, progress: &mut dyn FnMut(f64) -> bool) -> Result<Outcome, String> {
        let pages = self.pages();
        let advice = "simulate fewer RRDs with as much less memory: what counts is memory per RRD";
        if self.memory_bytes() > MEMORY_MAX || pages > u64::from(u32::MAX - 16) {
            return Err(format!(
                "cannot simulate {} RRDs of {} pages: that takes {} MiB of memory; {advice}",
                self.rrds,
                self.geometry.file_pages(),
                self.memory_bytes() >> 20
            ));
        }
        if self.rrds == 0 || self.geometry.archives.is_empty() {
            return Err("cannot simulate no RRDs".to_string());
        }
        let room = self.cache_pages.clamp(1, pages) as u32;
        match self.policy {
            Policy::Lru => self.run_on(&mut LruCache::new(pages as u32, room), progress),
            Policy::Linux { random_advice } => {
                self.run_on(&mut LinuxCache::new(pages as u32, room, random_advice), progress)
            }
        }
    }

    fn run_on<C: Cache>(
        &self,
        cache: &mut C,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Outcome, String> {
        let batch = self.batch.clamp(1, BATCH_MAX);
        let longest = self.geometry.archives.iter().map(|archive| archive.updates_per_row).max().unwrap_or(1);
        let passes = if self.passes == 0 {
            (longest / batch).clamp(PASSES.0, PASSES.1)
        } else {
            self.passes.min(PASSES_MAX)
        };
        let warm = self.warm_passes(longest, batch);
        let start = warm.last().map_or(0, |last| last + 1);
        let all = (warm.len() as u64 + passes) as f64;
        let mut counts = Counts { changed: vec![0; self.pages() as usize], ..Counts::default() };
        for (done, pass) in warm.iter().copied().chain(start..start + passes).enumerate() {
            if pass == start {
                counts = Counts { changed: counts.changed, ..Counts::default() };
            }
            if !progress(done as f64 / all) {
                return Err("the simulation was stopped".to_string());
            }
            self.pass(cache, pass, batch, &mut counts);
        }
        let updates = passes.saturating_mul(batch).saturating_mul(u64::from(self.rrds));
        let per = |count: u64| count as f64 / updates as f64;
        Ok(Outcome {
            faults: per(counts.faults),
            pages_read: per(counts.read),
            writes: per(counts.written),
            passes,
            updates,
        })
    }

    /// The passes before the counted ones that make up what is cached then: what an LRU cache holds is decided by the last touch
    /// of each page, so that of the passes of a day those in which rows end are enough.
    fn warm_passes(&self, longest: u64, batch: u64) -> Vec<u64> {
        let archives = &self.geometry.archives;
        // Far from zero, so that every ring has been full.
        let around =
            archives.iter().map(|archive| archive.rows.saturating_mul(archive.updates_per_row)).max();
        let start = (around.unwrap_or(0) / batch).saturating_add(3 * longest.div_ceil(batch) + WARM_PASSES);
        let mut warm: Vec<u64> = (start - WARM_PASSES..start).collect();
        let rings_may_stay =
            self.cache_pages > self.geometry.pages_kept(u64::MAX, batch) * u64::from(self.rrds);
        for archive in archives {
            let updates = archive.updates_per_row;
            let last = (start * batch / updates).saturating_sub(1);
            let pass_of = |row: u64| ((row + 1) * updates).div_ceil(batch) - 1;
            let rows_per_page = (MODEL_PAGE_BYTES / archive.row_bytes).max(1);
            let pages = if rings_may_stay { archive.pages().min(RING_PAGES_MAX) } else { 0 };
            warm.extend([last.saturating_sub(1), last].map(pass_of));
            warm.extend((1..=pages).map(|page| pass_of(last.saturating_sub(page * rows_per_page))));
        }
        warm.retain(|pass| *pass < start);
        warm.sort_unstable();
        warm.dedup();
        warm
    }

    /// Every RRD once.
    fn pass<C: Cache>(&self, cache: &mut C, pass: u64, batch: u64, counts: &mut Counts) {
        counts.window = (pass as f64 * self.geometry.step * batch as f64 / WRITTEN_SECONDS) as u64 as u8;
        let file_pages = self.geometry.file_pages();
        let header = self.geometry.header_pages();
        let ending = self.ending(pass, batch);
        let ticks = (self.geometry.step * batch as f64 / WRITTEN_SECONDS).max(1.0);
        let rrds_per_tick = ((f64::from(self.rrds) / ticks) as u64).max(1);
        for rrd in 0..u64::from(self.rrds) {
            if rrd.is_multiple_of(rrds_per_tick) {
                cache.tick();
            }
            let first = rrd * file_pages;
            for page in 0..header {
                self.touch(cache, (first, page), false, counts);
            }
            let mut last = header - 1;
            for rows in &ending {
                let archive = &self.geometry.archives[rows.archive];
                let start = place(self.seed, rrd, rows.archive as u64, archive.rows);
                let mut row = rows.first;
                while row < rows.end {
                    let at = (start + row) % archive.rows;
                    let page = archive.page_of_row(at);
                    // On to the first row of the next page, or of the ring.
                    let next = ((page + 1) * MODEL_PAGE_BYTES - archive.offset).div_ceil(archive.row_bytes);
                    let stop = next.min(archive.rows).min(at + rows.end - row);
                    // The last of them may straddle.
                    let end = (archive.offset + stop * archive.row_bytes).div_ceil(MODEL_PAGE_BYTES);
                    for page in (page..end).filter(|page| *page != last) {
                        self.touch(cache, (first, page), true, counts);
                    }
                    last = end - 1;
                    row += stop - at;
                }
            }
        }
    }

    /// The rows that end in a pass.
    fn ending(&self, pass: u64, batch: u64) -> Vec<EndingRows> {
        let rows = |(index, archive): (usize, &crate::geometry::ArchiveShape)| {
            let k = archive.updates_per_row;
            let (first, end) = (pass * batch / k, (pass + 1) * batch / k);
            // More rows than the ring has replace each other.
            let first = first.max(end.saturating_sub(archive.rows));
            (first < end).then_some(EndingRows { archive: index, first, end })
        };
        self.geometry.archives.iter().enumerate().filter_map(rows).collect()
    }

    #[inline]
    fn touch<C: Cache>(&self, cache: &mut C, (first, page): (u64, u64), row: bool, counts: &mut Counts) {
        let hit = cache.touch((first + page) as u32, row);
        let changed = &mut counts.changed[(first + page) as usize];
        // What is dropped was written before.
        counts.written += u64::from(!hit || *changed != counts.window);
        *changed = counts.window;
        if hit {
            return;
        }
        counts.faults += 1;
        counts.read += 1;
        if self.readahead > 1 {
            // As Linux does around a fault in a mapping: half of them before it.
            let from = page.saturating_sub(u64::from(self.readahead) / 2);
            let to = (from + u64::from(self.readahead)).min(self.geometry.file_pages());
            for other in (from..to).filter(|other| *other != page) {
                counts.read += u64::from(cache.bring((first + other) as u32));
            }
        }
    }
}

/// Rows of an archive, counted since time 0.
struct EndingRows {
    archive: usize,
    first: u64,
    end: u64,
}

#[derive(Default)]
struct Counts {
    /// Page writes, each counted at the change that makes it necessary.
    written: u64,
    /// For each page, the 30 seconds in which it was changed the last time, and those of now. A number of 8 bits comes again after two
    /// hours, in which a change may pass for one of the same 30 seconds.
    changed: Vec<u8>,
    window: u8,
    faults: u64,
    read: u64,
}

/// Where the ring of an archive of an RRD begins to be written: the finalizer of splitmix64.
fn place(seed: u64, rrd: u64, archive: u64, rows: u64) -> u64 {
    let mut mixed = seed.wrapping_add((rrd << 12 | archive).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % rows.max(1)
}

#[cfg(test)]
mod tests;
