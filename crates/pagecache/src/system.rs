//! Page cache, pressure and disk of a running system, as counters that only grow.
//!
//! What is parsed are texts of the kernel; a field that is not there is [`None`], because kernels and control groups differ.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Sector of `/sys/block/*/stat`, in bytes, whatever the disk's own are.
const SECTOR_BYTES: u64 = 512;

/// Counters since the system started, or since the control group was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Page faults of all kinds.
    pub faults: Option<u64>,
    /// Page faults that waited for a disk.
    pub major_faults: Option<u64>,
    /// Pages of files that were read again soon after they were dropped: the sign that memory is short.
    pub refaults: Option<u64>,
    /// Pages of files that were dropped for want of memory.
    pub dropped: Option<u64>,
    /// Microseconds in which some task waited for memory.
    pub memory_some: Option<u64>,
    /// Microseconds in which all tasks did.
    pub memory_full: Option<u64>,
    /// Microseconds in which some task waited for a disk.
    pub io_some: Option<u64>,
    /// Microseconds in which all tasks did.
    pub io_full: Option<u64>,
    /// Requests that read from the disk.
    pub reads: Option<u64>,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Requests that wrote.
    pub writes: Option<u64>,
    /// Bytes written.
    pub written_bytes: Option<u64>,
}

/// The names of the counters, in the order of [`Counters::values`]: data sources.
pub const COUNTER_NAMES: [&str; 12] = [
    "faults",
    "major_faults",
    "refaults",
    "dropped",
    "memory_some",
    "memory_full",
    "io_some",
    "io_full",
    "reads",
    "read_bytes",
    "writes",
    "written_bytes",
];

impl Counters {
    /// All counters, in the order of [`COUNTER_NAMES`].
    pub fn values(&self) -> [Option<u64>; 12] {
        [
            self.faults,
            self.major_faults,
            self.refaults,
            self.dropped,
            self.memory_some,
            self.memory_full,
            self.io_some,
            self.io_full,
            self.reads,
            self.read_bytes,
            self.writes,
            self.written_bytes,
        ]
    }

    /// Takes what `/proc/vmstat` or a control group's `memory.stat` says.
    pub fn read_memory(&mut self, text: &str) {
        let field = |names: &[&str]| {
            let found = |line: &str| {
                let (name, value) = line.split_once(' ')?;
                if names.contains(&name) { value.trim().parse().ok() } else { None }
            };
            text.lines().find_map(found)
        };
        self.faults = field(&["pgfault"]);
        self.major_faults = field(&["pgmajfault"]);
        self.refaults = field(&["workingset_refault_file"]);
        // Version 2 of control groups counts only all kinds together.
        self.dropped = field(&["pgsteal_file", "pgsteal"]);
    }

    /// Takes what a file of `/proc/pressure` says; `memory` or else io.
    pub fn read_pressure(&mut self, text: &str, memory: bool) {
        let total = |kind: &str| {
            let line = text.lines().find(|line| line.split(' ').next() == Some(kind))?;
            line.split(' ').find_map(|word| word.strip_prefix("total=")?.parse().ok())
        };
        let (some, full) = (total("some"), total("full"));
        if memory {
            (self.memory_some, self.memory_full) = (some, full);
        } else {
            (self.io_some, self.io_full) = (some, full);
        }
    }

    /// Takes what `/sys/dev/block/*/stat` says.
    pub fn read_disk(&mut self, text: &str) {
        let mut words = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
        let mut field = |skipped: usize| words.nth(skipped).flatten();
        self.reads = field(0);
        self.read_bytes = field(1).map(|sectors| sectors.saturating_mul(SECTOR_BYTES));
        self.writes = field(1);
        self.written_bytes = field(1).map(|sectors| sectors.saturating_mul(SECTOR_BYTES));
    }
}

/// Rates between two moments, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    values: [Option<f64>; 12],
}

impl Rates {
    /// From `before` to `now`, `seconds` later. A counter that went back, as of a device that was replaced, has no rate.
    pub fn between(before: &Counters, now: &Counters, seconds: f64) -> Rates {
        let (before, now) = (before.values(), now.values());
        let rate = |index: usize| Some(now[index]?.checked_sub(before[index]?)? as f64 / seconds);
        Rates { values: std::array::from_fn(rate) }
    }

    /// One of them by its name in [`COUNTER_NAMES`].
    pub fn get(&self, name: &str) -> Option<f64> {
        let index = COUNTER_NAMES.iter().position(|one| *one == name)?;
        self.values[index]
    }

    /// The share of page faults that found their page in memory, 0 to 1; `None` if there were none.
    pub fn hit_rate(&self) -> Option<f64> {
        let (faults, major) = (self.get("faults")?, self.get("major_faults")?);
        (faults > 0.0).then(|| 1.0 - (major / faults).min(1.0))
    }
}

/// Where the counters of a directory's disk and of a control group, or of the whole system, are read.
#[derive(Clone, Debug)]
pub struct Sampler {
    memory: PathBuf,
    pressure: [PathBuf; 2],
    disk: PathBuf,
}

impl Sampler {
    /// Of the disk that holds `directory`, and of a control group's directory if one is given.
    ///
    /// # Errors
    /// When the directory cannot be looked at, or the control group counts no memory.
    pub fn new(directory: &Path, group: Option<&Path>) -> io::Result<Sampler> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("\"{}\": {error}", directory.display()));
        let device = fs::metadata(directory).map_err(named)?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let memory = group.map_or_else(|| PathBuf::from("/proc/vmstat"), |group| group.join("memory.stat"));
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("\"{}\": {error}", memory.display()));
        fs::File::open(&memory).map_err(named)?;
        let pressure = |name: &str| match group {
            Some(group) => group.join(format!("{name}.pressure")),
            None => PathBuf::from("/proc/pressure").join(name),
        };
        Ok(Sampler {
            memory,
            pressure: [pressure("memory"), pressure("io")],
            disk: PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat")),
        })
    }

    /// What this system does not count, as texts.
    pub fn missing(&self) -> Vec<String> {
        let files = [&self.pressure[0], &self.pressure[1], &self.disk];
        let missing = files.into_iter().filter(|path| fs::read_to_string(path).is_err());
        missing.map(|path| path.display().to_string()).collect()
    }

    /// The counters now.
    ///
    /// # Errors
    /// When those of memory cannot be read; others are left out.
    pub fn sample(&self) -> io::Result<Counters> {
        let mut counters = Counters::default();
        counters.read_memory(&fs::read_to_string(&self.memory)?);
        for (path, memory) in self.pressure.iter().zip([true, false]) {
            counters.read_pressure(&fs::read_to_string(path).unwrap_or_default(), memory);
        }
        counters.read_disk(&fs::read_to_string(&self.disk).unwrap_or_default());
        Ok(counters)
    }
}

/// Any text may be given; a panic is a finding.
pub fn fuzz_counters(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut counters = Counters::default();
    counters.read_memory(&text);
    counters.read_pressure(&text, true);
    counters.read_pressure(&text, false);
    counters.read_disk(&text);
    let rates = Rates::between(&Counters::default(), &counters, 10.0);
    assert!(rates.hit_rate().is_none_or(|rate| (0.0..=1.0).contains(&rate)));
}

#[cfg(test)]
mod tests {
    use super::*;

    const VMSTAT: &str =
        "nr_free_pages 7\npgfault 1000\npgmajfault 40\nworkingset_refault_file 9\npgsteal_file 12\n";
    const PRESSURE: &str = "some avg10=0.00 avg60=0.00 avg300=0.00 total=38487365\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9696381\n";
    const DISK: &str = " 100 1 800 5 200 2 1600 7 0 9 9\n";

    #[test]
    fn counters_are_read() {
        let mut counters = Counters::default();
        counters.read_memory(VMSTAT);
        counters.read_pressure(PRESSURE, true);
        counters.read_pressure("some x total=y\n", false);
        counters.read_disk(DISK);
        let all = [1000, 40, 9, 12, 38_487_365, 9_696_381].map(Some).into_iter().chain([None, None]);
        let all: Vec<_> = all.chain([100, 800 * 512, 200, 1600 * 512].map(Some)).collect();
        assert_eq!(counters.values().to_vec(), all);
        let rates = Rates::between(
            &Counters { faults: Some(0), major_faults: Some(20), ..counters },
            &counters,
            10.0,
        );
        assert_eq!((rates.get("major_faults"), rates.hit_rate()), (Some(2.0), Some(0.98)));
        assert_eq!(Rates::between(&counters, &Counters::default(), 10.0).get("reads"), None);
    }

    #[test]
    fn this_system_has_counters() {
        let sampler = Sampler::new(Path::new("."), None).unwrap();
        let counters = sampler.sample().unwrap();
        assert!(counters.faults.is_some() && counters.major_faults.is_some(), "{counters:?}");
        assert!(Sampler::new(Path::new("/none"), None).is_err());
        assert!(Sampler::new(Path::new("."), Some(Path::new("/none"))).is_err());
    }

    #[test]
    fn odd_texts_do_no_harm() {
        for text in [VMSTAT, PRESSURE, DISK] {
            testkit::shake(text.as_bytes(), 5_000, fuzz_counters);
        }
    }
}
