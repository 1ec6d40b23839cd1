//! What a machine needs for so many RRDs, by the model: `docs/capacity.md` derives each figure.

use crate::MODEL_PAGE_BYTES;
use crate::geometry::Geometry;
use crate::simulate::WRITTEN_SECONDS;

/// Kernel memory of a file that is in use, besides its pages: inode, directory entry, tree of its pages. Measured with ext4 on Linux 6.18 by
/// `lab/staircase.py`: 2.4 to 3.1 kB.
pub const KERNEL_BYTES_PER_FILE: u64 = 2_400;
/// CPU seconds of an update by librrd, page cache warm (`bench/RESULTS.md`: 42 us).
const LIBRRD_SECONDS: f64 = 42e-6;
/// CPU seconds of accepting a value in a daemon that buffers (`bench/RESULTS.md`, rrdcached: 0.7 to 1.1 us).
const ACCEPT_SECONDS: f64 = 1e-6;
/// Bytes of memory that rrdcached keeps for an update that waits (measured with 1,000 RRDs and 360 updates of each).
const HELD_BYTES: u64 = 45;
/// Bytes of journal that rrdcached writes for a value: text (measured: 43 to 92).
const JOURNAL_BYTES: f64 = 60.0;
/// CPU seconds of a value in Roundel's files layout (`bench/RESULTS.md`).
const ROUNDEL_FILES_SECONDS: f64 = 1.53e-6;
/// CPU seconds of a value in Roundel's stripes (`bench/RESULTS.md`: 0.41 and 0.47 us).
const STRIPES_SECONDS: f64 = 0.47e-6;
/// Bytes that the log takes for a value of a data source (`bench/RESULTS.md`, short runs: 3.56 for one, 8.03 for two).
const LOG_BYTES_PER_DS: f64 = 4.0;
/// Bytes of segments and checkpoints for a byte of rows: the rest of the 12.3 bytes per update of W1, which has 28 bytes of rows
/// (`bench/RESULTS.md`, written to the device in the long run).
const SEGMENT_BYTES_PER_ROW_BYTE: f64 = 0.31;
/// Write requests per second of a striped store at work (`bench/RESULTS.md`: 3.1), whatever is updated.
const STRIPES_REQUESTS: f64 = 3.1;
/// Bytes that a striped store keeps in memory for a byte of live head (`bench/RESULTS.md`: 1.04 kB for W2's 1,584 bytes).
pub(crate) const STRIPES_HEAD_SHARE: f64 = 0.66;
/// Bytes of rows that a shard has in memory until they are written together: the default of `[stripes] open_bytes`.
pub(crate) const STRIPES_OPEN_BYTES: f64 = 64e6;
/// RRDs in the largest answer to "how many fit".
const RRDS_MAX: u64 = 1 << 40;

/// How RRDs are kept, and who writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Files; each fault reads one page.
    Plain,
    /// Files; each fault reads pages around it, as before librrd gave advice.
    Readahead {
        /// Pages that a fault reads.
        pages: u64,
    },
    /// Files mapped with advice RANDOM, as librrd does since 1.3.
    Advice,
    /// Files; a program gathers updates before it calls librrd.
    Buffering {
        /// Updates that are written together.
        batch: u64,
    },
    /// Files written by rrdcached: `-w`.
    Rrdcached {
        /// Updates that are written together: the seconds of -w by the step.
        batch: u64,
    },
    /// Roundel's files layout.
    RoundelFiles {
        /// Updates that are written together.
        batch: u64,
    },
    /// Roundel's stripes.
    RoundelStripes,
}

impl Layout {
    /// Updates of an RRD that are written together.
    pub fn batch(self) -> u64 {
        match self {
            Layout::Buffering { batch } | Layout::Rrdcached { batch } | Layout::RoundelFiles { batch } => {
                batch.max(1)
            }
            _ => 1,
        }
    }

    /// The model that [`Machine::load`] takes for its page cache.
    pub fn model(self) -> &'static str {
        match self {
            // librrd's advice has the kernel not look at touches.
            Layout::Advice | Layout::Rrdcached { .. } => "Linux' two lists under advice RANDOM",
            Layout::Plain | Layout::Buffering { .. } | Layout::RoundelFiles { .. } => "an LRU cache",
            Layout::Readahead { .. } => "files that stay whole or not at all",
            Layout::RoundelStripes => "stripes, which read nothing for an update",
        }
    }

    /// What it is called.
    pub fn name(self) -> String {
        match self {
            Layout::Plain => "files".to_string(),
            Layout::Readahead { pages } => format!("files, readahead of {pages} pages"),
            Layout::Advice => "files, advice RANDOM".to_string(),
            Layout::Buffering { batch } => format!("files, buffering {batch} updates"),
            Layout::Rrdcached { batch } => format!("rrdcached, {batch} updates a write"),
            Layout::RoundelFiles { batch } => format!("Roundel, files, {batch} updates a write"),
            Layout::RoundelStripes => "Roundel, stripes".to_string(),
        }
    }
}

/// A disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskRates {
    /// Random requests of a page per second.
    pub iops: f64,
    /// Megabytes per second, in sequence.
    pub megabytes: f64,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The RRDs.
    pub geometry: Geometry,
    /// How many.
    pub rrds: u64,
    /// Bytes for the page cache, or of a store.
    pub memory: u64,
    /// The disk.
    pub disk: DiskRates,
    /// How they are kept.
    pub layout: Layout,
}

/// What one step of the staircase needs and gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// What is touched again within so many updates stays.
    pub updates: u64,
    /// Pages per RRD.
    pub pages_per_rrd: u64,
    /// Bytes of memory for the pages of all RRDs.
    pub memory: u64,
    /// Page faults per update.
    pub faults: f64,
    /// Reads per second.
    pub reads: f64,
}

/// What it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Updates per second.
    pub updates: f64,
    /// Pages of each RRD that the memory has room for, after the kernel's own.
    pub cache_pages_per_rrd: f64,
    /// Page faults per update: requests that read.
    pub faults: f64,
    /// Pages written per update.
    pub writes: f64,
    /// Reads per second.
    pub reads_per_second: f64,
    /// Write requests per second.
    pub writes_per_second: f64,
    /// Bytes written per update, journal or log included.
    pub bytes_per_update: f64,
    /// Share of the disk that is busy: over 1 it does not keep up.
    pub disk_busy: f64,
    /// Seconds until all RRDs are updated once, on one core.
    pub pass_seconds: f64,
    /// Bytes of memory that the layout cannot do without.
    pub memory_needed: u64,
    /// Whether it keeps up.
    pub fits: bool,
}

/// Something to buy.
#[derive(Clone, Debug, PartialEq)]
pub struct Purchase {
    /// What.
    pub what: String,
    /// The load then.
    pub load: Load,
    /// The most RRDs then.
    pub rrds_max: u64,
}

impl Machine {
    /// The staircase; empty for a layout whose updates read nothing.
    pub fn rungs(&self) -> Vec<Rung> {
        let rung = |updates, pages_per_rrd: u64, faults: f64| Rung {
            updates,
            pages_per_rrd,
            memory: (pages_per_rrd * MODEL_PAGE_BYTES).saturating_mul(self.rrds),
            faults,
            reads: faults * self.updates_per_second(),
        };
        match self.layout {
            Layout::RoundelStripes => Vec::new(),
            Layout::Readahead { pages } => {
                let whole = self.geometry.file_pages();
                vec![rung(0, 0, self.faults_with_readahead(pages)), rung(u64::MAX, whole, 0.0)]
            }
            layout => {
                let levels = self.geometry.staircase(layout.batch()).into_iter();
                levels.map(|level| rung(level.updates, level.pages_per_rrd, level.faults)).collect()
            }
        }
    }

    /// Bytes of memory that files take besides their pages: the kernel's, and what rrdcached keeps of updates that wait.
    pub fn bytes_besides_pages(&self) -> u64 {
        let held = match self.layout {
            Layout::Rrdcached { batch } => batch.saturating_mul(HELD_BYTES),
            _ => 0,
        };
        self.rrds.saturating_mul(held.saturating_add(KERNEL_BYTES_PER_FILE))
    }

    fn updates_per_second(&self) -> f64 {
        self.rrds as f64 / self.geometry.step
    }

    /// Requests per update when a fault reads `pages` pages around it, and nothing stays: neighbours come with one request.
    fn faults_with_readahead(&self, pages: u64) -> f64 {
        let windows = self.geometry.file_pages().div_ceil(pages.max(1)) as f64;
        self.geometry.faults_cold().min(windows)
    }

    /// The load, by the model of an LRU cache, or of Linux' two lists where librrd's advice is given.
    pub fn load(&self) -> Load {
        let batch = self.layout.batch() as f64;
        let besides = self.bytes_besides_pages();
        let pages = self.memory.saturating_sub(besides) as f64 / MODEL_PAGE_BYTES as f64;
        let cache_pages_per_rrd = pages / self.rrds.max(1) as f64;
        let geometry = &self.geometry;
        let held = (WRITTEN_SECONDS / geometry.step) as u64;
        let pages_written = geometry.writes_held(self.layout.batch(), held, cache_pages_per_rrd);
        let page_bytes = MODEL_PAGE_BYTES as f64;
        let (faults, pages_read, writes, extra_bytes, cpu) = match self.layout {
            Layout::RoundelStripes => return self.load_of_stripes(),
            Layout::Readahead { pages } => {
                let stays = cache_pages_per_rrd >= geometry.file_pages() as f64;
                let faults = if stays { 0.0 } else { self.faults_with_readahead(pages) };
                let read = faults * pages.min(geometry.file_pages()) as f64;
                (faults, read, pages_written, 0.0, LIBRRD_SECONDS)
            }
            layout => {
                let faults = match layout {
                    // librrd's advice has the kernel not look at touches.
                    Layout::Advice | Layout::Rrdcached { .. } => {
                        geometry.faults_in_lists(cache_pages_per_rrd, layout.batch())
                    }
                    _ => geometry.faults_in_lru(cache_pages_per_rrd, layout.batch()),
                };
                let (bytes, cpu) = match layout {
                    Layout::Plain | Layout::Advice => (0.0, LIBRRD_SECONDS),
                    Layout::Buffering { .. } => (0.0, LIBRRD_SECONDS / batch + ACCEPT_SECONDS),
                    Layout::Rrdcached { .. } => (JOURNAL_BYTES, LIBRRD_SECONDS / batch + ACCEPT_SECONDS),
                    _ => (LOG_BYTES_PER_DS * geometry.ds_count as f64, ROUNDEL_FILES_SECONDS),
                };
                (faults, faults, pages_written, bytes, cpu)
            }
        };
        let bytes_per_update = writes * page_bytes + extra_bytes;
        let traffic = pages_read * page_bytes + bytes_per_update;
        let disk_seconds = ((faults + writes) / self.disk.iops).max(traffic / (self.disk.megabytes * 1e6));
        self.finish(Load {
            updates: self.updates_per_second(),
            cache_pages_per_rrd,
            faults,
            writes,
            reads_per_second: faults * self.updates_per_second(),
            writes_per_second: writes * self.updates_per_second(),
            bytes_per_update,
            disk_busy: disk_seconds * self.updates_per_second(),
            pass_seconds: self.rrds as f64 * disk_seconds.max(cpu),
            memory_needed: besides,
            fits: false,
        })
    }

    /// Stripes write in sequence and read nothing for an update; what updates change must be in memory.
    fn load_of_stripes(&self) -> Load {
        let geometry = &self.geometry;
        let log = LOG_BYTES_PER_DS * geometry.ds_count as f64;
        let bytes_per_update = log + SEGMENT_BYTES_PER_ROW_BYTE * geometry.row_bytes_per_update();
        let updates = self.updates_per_second();
        let disk_seconds = bytes_per_update / (self.disk.megabytes * 1e6);
        let heads = STRIPES_HEAD_SHARE * geometry.live_bytes() as f64 * self.rrds as f64;
        self.finish(Load {
            updates,
            cache_pages_per_rrd: 0.0,
            faults: 0.0,
            writes: bytes_per_update / MODEL_PAGE_BYTES as f64,
            reads_per_second: 0.0,
            writes_per_second: STRIPES_REQUESTS,
            bytes_per_update,
            disk_busy: disk_seconds * updates + STRIPES_REQUESTS / self.disk.iops,
            pass_seconds: self.rrds as f64 * disk_seconds.max(STRIPES_SECONDS),
            memory_needed: (heads + STRIPES_OPEN_BYTES) as u64,
            fits: false,
        })
    }

    fn finish(&self, mut load: Load) -> Load {
        load.fits = load.disk_busy <= 1.0
            && load.pass_seconds <= self.geometry.step
            && load.memory_needed <= self.memory;
        load
    }

    /// The most RRDs that this machine keeps up with; 0 if it does not with one.
    pub fn rrds_max(&self) -> u64 {
        let fits = |rrds| Machine { rrds, ..self.clone() }.load().fits;
        if !fits(1) {
            return 0;
        }
        let (mut low, mut high) = (1, RRDS_MAX);
        while high - low > low / 1_000 {
            let middle = low + (high - low).div_ceil(2);
            if middle == high {
                break;
            }
            if fits(middle) { low = middle } else { high = middle }
        }
        low
    }

    /// What could be bought next, cheapest first, of what helps: memory for each rung that is not reached, faster disks, another layout.
    /// Nothing if it keeps up.
    pub fn purchases(&self, layouts: &[Layout]) -> Vec<Purchase> {
        let now = self.load();
        if now.fits {
            return Vec::new();
        }
        let mut all = self.memories(&now);
        for times in [4.0, 20.0] {
            let disk = DiskRates { iops: self.disk.iops * times, megabytes: self.disk.megabytes * times };
            let what = format!("disk: {:.0} requests/s, {:.0} MB/s", disk.iops, disk.megabytes);
            all.push((what, Machine { disk, ..self.clone() }));
        }
        for layout in layouts.iter().filter(|layout| **layout != self.layout) {
            all.push((format!("layout: {}", layout.name()), Machine { layout: *layout, ..self.clone() }));
        }
        let most = self.rrds_max();
        let bought = all.into_iter().map(|(what, machine)| Purchase {
            what,
            load: machine.load(),
            rrds_max: machine.rrds_max(),
        });
        bought.filter(|purchase| purchase.rrds_max > most).collect()
    }

    /// Machines with more memory.
    fn memories(&self, now: &Load) -> Vec<(String, Machine)> {
        let besides = self.bytes_besides_pages();
        // Room for what waits for its eviction: as much as two archives more, but no more than there is.
        let of_rung = |rung: Rung| {
            let pages = (rung.pages_per_rrd + 2).min(self.geometry.file_pages());
            (pages * MODEL_PAGE_BYTES).saturating_mul(self.rrds).saturating_add(besides)
        };
        let mut sizes: Vec<u64> =
            self.rungs().into_iter().filter(|rung| rung.pages_per_rrd > 0).map(of_rung).collect();
        sizes.push(now.memory_needed);
        sizes.retain(|memory| *memory > self.memory);
        sizes.sort_unstable();
        sizes.dedup();
        let machine = |memory: u64| {
            // Rounded up, so that who buys what is printed has enough.
            let shown = (memory as f64 / 1e8).ceil() / 10.0;
            (format!("memory: {shown:.1} GB"), Machine { memory: (shown * 1e9) as u64, ..self.clone() })
        };
        sizes.into_iter().map(machine).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Preset;

    /// Wisconsin, 2007: 320,000 RRDs every five minutes.
    fn wisconsin(layout: Layout, gigabytes: f64) -> Machine {
        Machine {
            geometry: Preset::Mrtg.geometry(),
            rrds: 320_000,
            memory: (gigabytes * 1e9) as u64,
            disk: DiskRates { iops: 1_000.0, megabytes: 100.0 },
            layout,
        }
    }

    #[test]
    fn the_table_of_320_000_rrds() {
        let rungs = wisconsin(Layout::Advice, 8.0).rungs();
        let want = [(0, 0.0, 3_545.0), (3, 3.9, 453.0), (5, 6.6, 105.5), (7, 9.2, 18.3), (9, 11.8, 11.0)];
        for (rung, (pages, gigabytes, reads)) in rungs.iter().zip(want) {
            assert_eq!(rung.pages_per_rrd, pages);
            assert!((rung.memory as f64 / 1e9 - gigabytes).abs() < 0.06, "{rung:?}");
            assert!((rung.reads / reads - 1.0).abs() < 0.05, "{rung:?}");
        }
        let readahead = wisconsin(Layout::Readahead { pages: 32 }, 8.0).rungs();
        // 33.7 GB in the report's files of 26 pages and a rounding.
        assert!((readahead[1].memory as f64 / 1e9 - 34.1).abs() < 0.5, "{readahead:?}");
    }

    #[test]
    fn advice_triples_what_fits() {
        let most = |layout| wisconsin(layout, 8.0).rrds_max();
        let (readahead, advice) = (most(Layout::Readahead { pages: 32 }), most(Layout::Advice));
        let (buffered, stripes) = (most(Layout::Rrdcached { batch: 12 }), most(Layout::RoundelStripes));
        assert!(
            readahead < advice && advice < buffered && buffered < stripes,
            "{readahead} {advice} {buffered} {stripes}"
        );
    }

    #[test]
    fn no_number_is_too_large() {
        for layout in
            [Layout::Advice, Layout::Readahead { pages: u64::MAX }, Layout::Buffering { batch: 1_000_000 }]
        {
            let machine = Machine { rrds: u64::MAX, memory: u64::MAX, ..wisconsin(layout, 1.0) };
            assert!(!machine.load().fits && machine.rungs().len() > 1);
            machine.purchases(&[Layout::RoundelStripes]);
        }
    }

    #[test]
    fn what_is_bought_helps() {
        let machine = wisconsin(Layout::Advice, 2.0);
        assert!(!machine.load().fits);
        let most = machine.rrds_max();
        for purchase in machine.purchases(&[Layout::RoundelStripes]) {
            assert!(purchase.rrds_max > most, "{purchase:?}");
        }
        let fits = Machine { rrds: most, ..machine.clone() };
        assert!(fits.load().fits, "{:?}", fits.load());
        assert!(!Machine { rrds: most + most / 100, ..machine }.load().fits);
    }

    #[test]
    fn nothing_is_sold_that_does_not_help() {
        let roomy = Machine { rrds: 1_000, ..wisconsin(Layout::Advice, 8.0) };
        assert!(roomy.load().fits && roomy.purchases(&[Layout::RoundelStripes]).is_empty());
        // Stripes lack only memory.
        let tight = Machine { rrds: 10_000_000, ..wisconsin(Layout::RoundelStripes, 1.0) };
        let offers = tight.purchases(&[]);
        assert!(offers.iter().any(|one| one.what.starts_with("memory") && one.load.fits), "{offers:?}");
        assert!(!offers.iter().any(|one| one.what.starts_with("disk")), "{offers:?}");
    }

    #[test]
    fn rrdcached_keeps_what_waits() {
        let machine = Machine {
            geometry: Preset::Collectd.geometry(),
            rrds: 100_000,
            ..wisconsin(Layout::Rrdcached { batch: 360 }, 4.0)
        };
        // 1.62 GB of updates and 0.24 GB of the kernel's.
        assert_eq!(machine.load().memory_needed, 100_000 * (360 * 45 + 2_400));
    }

    /// Every 10 s, 3 updates of a page are written together: not all 9,231 page writes a second.
    #[test]
    fn short_steps_write_each_page_once_in_30_seconds() {
        let machine =
            Machine { geometry: Preset::Collectd.geometry(), rrds: 20_500, ..wisconsin(Layout::Advice, 8.0) };
        let writes = machine.load().writes_per_second;
        assert!((3_000.0..4_000.0).contains(&writes), "{writes}");
    }

    #[test]
    fn stripes_write_what_was_measured() {
        let machine = |preset: Preset| Machine {
            geometry: preset.geometry(),
            ..wisconsin(Layout::RoundelStripes, 8.0)
        };
        let collectd = machine(Preset::Collectd).load();
        // bench/RESULTS.md: 12.1 and 12.5 bytes per value of W1.
        assert!((collectd.bytes_per_update - 12.3).abs() < 1.0, "{}", collectd.bytes_per_update);
        let million = Machine { rrds: 1_000_000, ..machine(Preset::Cacti) };
        assert!(million.load().memory_needed > 1_000_000_000);
    }
}
