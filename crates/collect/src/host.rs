//! This machine's own metrics, from `/proc`, as RRDs of 10 seconds with a year of history.
//!
//! [`HostSample`] holds what the kernel said at one moment; [`HostCollector`] turns a sample into names,
//! creation words and readings. A collector needs no state to be right: names follow from the sample, so
//! a disk or interface that appears later simply brings its words with it. All parsing is the `procfs`
//! crate's. Cost: six small files read a sample, about 60 readings on a small machine.

use std::fmt::Write as _;
use std::path::Path;

use procfs::net::{DeviceStatus, InterfaceDeviceStatus};
use procfs::prelude::*;
use procfs::{CpuTime, DiskStat, DiskStats, KernelStats, LoadAverage, Meminfo, ProcResult, Uptime};
use rrd::time::Timestamp;

/// Seconds between samples, and the step of every RRD made here (issue 2: "every 10 s").
pub const STEP_SECONDS: u64 = 10;

/// Seconds without a reading after which a source is unknown: one late or lost sample is forgiven.
const HEARTBEAT_SECONDS: u64 = 3 * STEP_SECONDS;

/// Most RRDs one sample may make. A container host has hundreds of interfaces; beyond this, names are
/// more likely to be a leak of short-lived interfaces than something to keep a year of. Guessed.
pub const HOST_RRDS_MAX: usize = 1_000;

/// A day at 10 s, a week at 1 min, 31 days at 5 min, 366 days at 1 h; the coarse ones with their extremes.
const ARCHIVES: [&str; 10] = [
    "RRA:AVERAGE:0.5:1:8640",
    "RRA:AVERAGE:0.5:6:10080",
    "RRA:MIN:0.5:6:10080",
    "RRA:MAX:0.5:6:10080",
    "RRA:AVERAGE:0.5:30:8928",
    "RRA:MIN:0.5:30:8928",
    "RRA:MAX:0.5:30:8928",
    "RRA:AVERAGE:0.5:360:8784",
    "RRA:MIN:0.5:360:8784",
    "RRA:MAX:0.5:360:8784",
];

/// The kernel counts disk traffic in sectors of 512 bytes whatever the device's own are (`iostats.rst`).
const SECTOR_BYTES: u64 = 512;

/// What the kernel said at one moment.
#[derive(Debug)]
pub struct HostSample {
    processors: KernelStats,
    load: LoadAverage,
    memory: Meminfo,
    disks: Vec<DiskStat>,
    interfaces: Vec<DeviceStatus>,
    uptime: Uptime,
}

impl HostSample {
    /// Reads the live `/proc`. Errors name the file.
    pub fn read() -> ProcResult<Self> {
        Self::read_from(Path::new("/proc"))
    }

    /// Reads a directory laid out as `/proc`: `stat`, `loadavg`, `meminfo`, `diskstats`, `net/dev`, `uptime`.
    pub fn read_from(proc: &Path) -> ProcResult<Self> {
        let mut interfaces: Vec<DeviceStatus> =
            <InterfaceDeviceStatus as FromRead>::from_file(proc.join("net/dev"))?.0.into_values().collect();
        interfaces.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(HostSample {
            processors: KernelStats::from_file(proc.join("stat"), procfs::current_system_info())?,
            load: <LoadAverage as FromRead>::from_file(proc.join("loadavg"))?,
            memory: <Meminfo as FromRead>::from_file(proc.join("meminfo"))?,
            disks: <DiskStats as FromRead>::from_file(proc.join("diskstats"))?.0,
            interfaces,
            uptime: <Uptime as FromRead>::from_file(proc.join("uptime"))?,
        })
    }
}

/// One RRD's reading, with what it takes to create that RRD should it not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Name of the RRD, such as `localhost/cpu-0.rrd`.
    pub name: String,
    /// `DS:` and `RRA:` words of `rrdcreate(1)`.
    pub create_words: Vec<String>,
    /// The RRD's step in seconds.
    pub step: u64,
    /// The reading: `time:value:value...`, one value a source in the order of the words.
    pub values: String,
}

/// Turns samples of this machine into readings.
#[derive(Clone, Debug)]
pub struct HostCollector {
    directory: String,
}

impl HostCollector {
    /// A collector whose RRDs stand under `directory`, such as `localhost` (kept safe as one path component).
    pub fn new(directory: &str) -> Self {
        HostCollector { directory: safe_component(directory) }
    }

    /// The readings of `sample`, taken at `now`; at most [`HOST_RRDS_MAX`].
    ///
    /// Every reading carries the same time. Hand in the time the sample was due rather than when it was
    /// taken, and rates are as even as the kernel's counters allow.
    pub fn readings(&self, now: Timestamp, sample: &HostSample) -> Vec<Collected> {
        let mut out = Output { directory: &self.directory, now, readings: Vec::new() };
        processors(&mut out, &sample.processors);
        out.push(
            "load",
            Kind::Gauge,
            &LOAD,
            &[
                Value::Fraction(sample.load.one.into()),
                Value::Fraction(sample.load.five.into()),
                Value::Fraction(sample.load.fifteen.into()),
            ],
        );
        memory(&mut out, &sample.memory);
        out.push("uptime", Kind::Gauge, &["uptime"], &[Value::Fraction(sample.uptime.uptime)]);
        sample.disks.iter().for_each(|disk| push_disk(&mut out, disk));
        sample.interfaces.iter().for_each(|interface| push_interface(&mut out, interface));
        out.readings
    }

    /// Samples the live `/proc` and returns its readings; what a timer in the server calls every
    /// [`STEP_SECONDS`].
    pub fn collect(&self, now: Timestamp) -> ProcResult<Vec<Collected>> {
        Ok(self.readings(now, &HostSample::read()?))
    }
}

const LOAD: [&str; 3] = ["one", "five", "fifteen"];
const PROCESSOR: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
const MEMORY: [&str; 8] = ["total", "free", "available", "buffers", "cached", "slab", "dirty", "writeback"];
const SWAP: [&str; 3] = ["total", "free", "cached"];
const DISK: [&str; 5] = ["read_bytes", "write_bytes", "read_ops", "write_ops", "busy_ms"];
const INTERFACE: [&str; 8] = [
    "receive_bytes",
    "transmit_bytes",
    "receive_packets",
    "transmit_packets",
    "receive_errors",
    "transmit_errors",
    "receive_drops",
    "transmit_drops",
];

/// Per cent of one processor, by state: hundredths of a second are counted, so their rate is per cent.
fn processors(out: &mut Output<'_>, stats: &KernelStats) {
    let states = |time: &CpuTime| {
        [
            Value::Count(time.user_ms() / 10),
            Value::Count(time.nice_ms() / 10),
            Value::Count(time.system_ms() / 10),
            Value::Count(time.idle_ms() / 10),
            Value::optional(time.iowait_ms().map(|ms| ms / 10)),
            Value::optional(time.irq_ms().map(|ms| ms / 10)),
            Value::optional(time.softirq_ms().map(|ms| ms / 10)),
            Value::optional(time.steal_ms().map(|ms| ms / 10)),
        ]
    };
    out.push("cpu", Kind::Rate, &PROCESSOR, &states(&stats.total));
    for (index, core) in stats.cpu_time.iter().enumerate() {
        out.push(&format!("cpu-{index}"), Kind::Rate, &PROCESSOR, &states(core));
    }
}

/// Bytes of memory and of swap, by use.
fn memory(out: &mut Output<'_>, memory: &Meminfo) {
    out.push(
        "memory",
        Kind::Gauge,
        &MEMORY,
        &[
            Value::Count(memory.mem_total),
            Value::Count(memory.mem_free),
            Value::optional(memory.mem_available),
            Value::Count(memory.buffers),
            Value::Count(memory.cached),
            Value::Count(memory.slab),
            Value::Count(memory.dirty),
            Value::Count(memory.writeback),
        ],
    );
    out.push(
        "swap",
        Kind::Gauge,
        &SWAP,
        &[Value::Count(memory.swap_total), Value::Count(memory.swap_free), Value::Count(memory.swap_cached)],
    );
}

fn push_disk(out: &mut Output<'_>, disk: &DiskStat) {
    // A machine lists a dozen loop and ram devices that never did anything; they appear once they do.
    if disk.reads == 0 && disk.writes == 0 {
        return;
    }
    out.push(
        &format!("disk-{}", disk.name),
        Kind::Rate,
        &DISK,
        &[
            Value::Count(disk.sectors_read.wrapping_mul(SECTOR_BYTES)),
            Value::Count(disk.sectors_written.wrapping_mul(SECTOR_BYTES)),
            Value::Count(disk.reads),
            Value::Count(disk.writes),
            Value::Count(disk.time_in_progress),
        ],
    );
}

fn push_interface(out: &mut Output<'_>, interface: &DeviceStatus) {
    if interface.recv_packets == 0 && interface.sent_packets == 0 {
        return;
    }
    out.push(
        &format!("interface-{}", interface.name),
        Kind::Rate,
        &INTERFACE,
        &[
            Value::Count(interface.recv_bytes),
            Value::Count(interface.sent_bytes),
            Value::Count(interface.recv_packets),
            Value::Count(interface.sent_packets),
            Value::Count(interface.recv_errs),
            Value::Count(interface.sent_errs),
            Value::Count(interface.recv_drop),
            Value::Count(interface.sent_drop),
        ],
    );
}

/// What kind of number an RRD's sources are.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A level.
    Gauge,
    /// A count whose rate is wanted. DERIVE with minimum 0, not COUNTER: after a reboot counters start
    /// again at 0, which must read as unknown and not as a wrap.
    Rate,
}

/// A reading's value before it is text.
enum Value {
    Count(u64),
    Fraction(f64),
    Unknown,
}

impl Value {
    fn optional(count: Option<u64>) -> Self {
        count.map_or(Value::Unknown, Value::Count)
    }
}

struct Output<'a> {
    directory: &'a str,
    now: Timestamp,
    readings: Vec<Collected>,
}

impl Output<'_> {
    fn push(&mut self, thing: &str, kind: Kind, sources: &[&str], values: &[Value]) {
        if self.readings.len() == HOST_RRDS_MAX {
            return;
        }
        let limits = match kind {
            Kind::Gauge => format!("GAUGE:{HEARTBEAT_SECONDS}:0:U"),
            Kind::Rate => format!("DERIVE:{HEARTBEAT_SECONDS}:0:U"),
        };
        let create_words = sources
            .iter()
            .map(|source| format!("DS:{source}:{limits}"))
            .chain(ARCHIVES.iter().map(|word| word.to_string()))
            .collect();
        self.readings.push(Collected {
            name: format!("{}/{}.rrd", self.directory, safe_component(thing)),
            create_words,
            step: STEP_SECONDS,
            values: reading(self.now, values),
        });
    }
}

/// The `time:value:value...` word.
fn reading(now: Timestamp, values: &[Value]) -> String {
    let mut word = now.whole.to_string();
    if now.micros > 0 {
        write!(word, ".{:06}", now.micros).expect("writing to a String cannot fail");
    }
    for value in values {
        match value {
            Value::Count(count) => write!(word, ":{count}"),
            // f32 load averages have two decimals; more would only show the conversion.
            Value::Fraction(number) => write!(word, ":{number:.2}"),
            Value::Unknown => write!(word, ":U"),
        }
        .expect("writing to a String cannot fail");
    }
    word
}

/// `text` as one path component: letters, digits, `-`, `_` and inner dots stay, all else becomes `%XX`, so
/// that different devices keep different names.
fn safe_component(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            b'.' if index > 0 => name.push('.'),
            _ => write!(name, "%{byte:02X}").expect("writing to a String cannot fail"),
        }
    }
    name
}

#[cfg(test)]
mod tests;
