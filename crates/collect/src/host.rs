//! This machine's own metrics, from `/proc`, as RRDs of 10 seconds with a year of history.
//!
//! [`HostSample`] holds the kernel's numbers of one moment; [`HostCollector`] turns a sample into names, `create`
//! arguments and readings. A collector is stateless: names follow from the sample, and a disk or interface that
//! appears later brings its arguments with it. The `procfs` crate does all parsing. Cost: six small files per
//! sample, about 60 readings on a small machine.

use std::fmt::Write as _;
use std::path::Path;

use procfs::net::{DeviceStatus, InterfaceDeviceStatus};
use procfs::prelude::*;
use procfs::{CpuTime, DiskStat, DiskStats, KernelStats, LoadAverage, Meminfo, ProcResult, Uptime};
use rrd::time::Timestamp;

/// Seconds between samples, and the step of every RRD made here.
pub const STEP_SECONDS: u64 = 10;

/// Seconds without a reading until a source becomes unknown: one late or lost sample is tolerated.
const HEARTBEAT_SECONDS: u64 = 3 * STEP_SECONDS;

/// Most RRDs of one sample. A container host has hundreds of interfaces; more names are probably short-lived
/// interfaces leaking, and not worth a year of history. Guessed.
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

/// The kernel counts disk traffic in sectors of 512 bytes, whatever the device's own size (`iostats.rst`).
const SECTOR_BYTES: u64 = 512;

/// The kernel's numbers of one moment.
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

/// One RRD's reading, and what it takes to create that RRD if it does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Name of the RRD, such as `localhost/cpu-0.rrd`.
    pub name: String,
    /// The `DS:` and `RRA:` arguments of `rrdcreate(1)`.
    pub create_args: Vec<String>,
    /// The RRD's step in seconds.
    pub step: u64,
    /// The reading: `time:value:value...`, one value per source in the order of the arguments.
    pub values: String,
}

/// Turns samples of this machine into readings.
#[derive(Clone, Debug)]
pub struct HostCollector {
    directory: String,
}

impl HostCollector {
    /// A collector whose RRDs are in `directory`, such as `localhost` (escaped to one path component).
    pub fn new(directory: &str) -> Self {
        HostCollector { directory: safe_component(directory) }
    }

    /// The readings of `sample`, taken at `now`; at most [`HOST_RRDS_MAX`].
    ///
    /// All readings carry the same time. Pass the time the sample was due, not when it was taken: then rates are as
    /// even as the kernel's counters allow.
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

    /// Samples the live `/proc` and returns its readings. A timer in the server calls it every
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

/// Per cent of one processor, by state: the counters are hundredths of a second, so their rate is per cent.
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
        &[memory.swap_total, memory.swap_free, memory.swap_cached].map(Value::Count),
    );
}

fn push_disk(out: &mut Output<'_>, disk: &DiskStat) {
    // A machine lists a dozen loop and ram devices that were never used; they appear once they are.
    if disk.reads == 0 && disk.writes == 0 {
        return;
    }
    out.push(
        &format!("disk-{}", disk.name),
        Kind::Rate,
        &DISK,
        &[
            disk.sectors_read.wrapping_mul(SECTOR_BYTES),
            disk.sectors_written.wrapping_mul(SECTOR_BYTES),
            disk.reads,
            disk.writes,
            disk.time_in_progress,
        ]
        .map(Value::Count),
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
            interface.recv_bytes,
            interface.sent_bytes,
            interface.recv_packets,
            interface.sent_packets,
            interface.recv_errs,
            interface.sent_errs,
            interface.recv_drop,
            interface.sent_drop,
        ]
        .map(Value::Count),
    );
}

/// How an RRD's sources are to be read.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A level.
    Gauge,
    /// A counter whose rate matters. DERIVE with minimum 0, not COUNTER: counters restart at 0 after a reboot, which
    /// must read as unknown and not as a wrap.
    Rate,
}

/// A value of a reading, before it becomes text.
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
        let create_args = sources
            .iter()
            .map(|source| format!("DS:{source}:{limits}"))
            .chain(ARCHIVES.iter().map(|arg| arg.to_string()))
            .collect();
        self.readings.push(Collected {
            name: format!("{}/{}.rrd", self.directory, safe_component(thing)),
            create_args,
            step: STEP_SECONDS,
            values: reading(self.now, values),
        });
    }
}

/// The `time:value:value...` argument.
fn reading(now: Timestamp, values: &[Value]) -> String {
    let mut reading = now.whole.to_string();
    if now.micros > 0 {
        write!(reading, ".{:06}", now.micros).expect("writing to a String cannot fail");
    }
    for value in values {
        match value {
            Value::Count(count) => write!(reading, ":{count}"),
            // f32 load averages have two decimals; more would only show the conversion.
            Value::Fraction(number) => write!(reading, ":{number:.2}"),
            Value::Unknown => write!(reading, ":U"),
        }
        .expect("writing to a String cannot fail");
    }
    reading
}

/// `text` as one path component: letters, digits, `-`, `_` and inner dots stay, everything else becomes `%XX`, so
/// different devices keep different names.
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
