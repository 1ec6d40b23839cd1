//! This machine's own metrics, from `/proc`, as RRDs of 10 seconds with a year of history.
//!
//! [`HostSample`] holds the kernel's numbers of one moment; [`HostCollector`] turns a sample into readings; a disk or
//! interface that appears later joins its inventory then. The `procfs` crate does all parsing. Cost: six small files per
//! sample, about 60 readings on a small machine.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use procfs::net::{DeviceStatus, InterfaceDeviceStatus};
use procfs::prelude::*;
use procfs::{CpuTime, DiskStat, DiskStats, KernelStats, LoadAverage, Meminfo, ProcResult, Uptime};
use rrd::time::Timestamp;

use crate::inventory::{Inventory, RrdSpec};
use crate::reading::{Readings, Value};

/// Seconds between samples, and the step of every RRD made here.
pub const STEP_SECONDS: u64 = 10;

/// Seconds without a reading until a source becomes unknown: one late or lost sample is tolerated.
const HEARTBEAT_SECONDS: u64 = 3 * STEP_SECONDS;

/// Most RRDs of one sample. A container host has hundreds of interfaces; more names are probably short-lived
/// interfaces leaking, and not worth a year of history. Guessed.
pub const HOST_RRDS_MAX: usize = 1_000;

/// A day at 10 s, a week at 1 min, 31 days at 5 min, 366 days at 1 h; the coarse ones with their extremes.
pub(crate) const ARCHIVES: [&str; 10] = [
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

/// Turns samples of this machine into readings.
#[derive(Clone, Debug)]
pub struct HostCollector {
    directory: String,
    inventory: Inventory,
}

impl HostCollector {
    /// A collector whose RRDs are in `directory`, such as `localhost` (escaped to one path component).
    pub fn new(directory: &str) -> Self {
        HostCollector { directory: safe_component(directory), inventory: Inventory::new(HOST_RRDS_MAX) }
    }

    /// The RRDs of the readings so far.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// The readings of `sample`, taken at `now`; of at most [`HOST_RRDS_MAX`] RRDs in all.
    ///
    /// All readings carry the same time. Pass the time the sample was due, not when it was taken: then rates are as
    /// even as the kernel's counters allow.
    pub fn readings(&mut self, now: Timestamp, sample: &HostSample) -> Readings {
        let HostCollector { directory, inventory } = self;
        let mut out = Output { directory, now, inventory, readings: Readings::default() };
        processors(&mut out, &sample.processors);
        let load = &sample.load;
        let [one, five, fifteen] = [load.one, load.five, load.fifteen].map(|load| hundredths(load.into()));
        out.push(
            "load",
            Kind::Gauge,
            &LOAD,
            &[Value::Text(one.as_bytes()), Value::Text(five.as_bytes()), Value::Text(fifteen.as_bytes())],
        );
        memory(&mut out, &sample.memory);
        let uptime = hundredths(sample.uptime.uptime);
        out.push("uptime", Kind::Gauge, &["uptime"], &[Value::Text(uptime.as_bytes())]);
        sample.disks.iter().for_each(|disk| push_disk(&mut out, disk));
        sample.interfaces.iter().for_each(|interface| push_interface(&mut out, interface));
        out.readings
    }

    /// Samples the live `/proc` and returns its readings. A timer in the server calls it every
    /// [`STEP_SECONDS`].
    pub fn collect(&mut self, now: Timestamp) -> ProcResult<Readings> {
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
            Value::Unsigned(time.user_ms() / 10),
            Value::Unsigned(time.nice_ms() / 10),
            Value::Unsigned(time.system_ms() / 10),
            Value::Unsigned(time.idle_ms() / 10),
            Value::of_count(time.iowait_ms().map(|ms| ms / 10)),
            Value::of_count(time.irq_ms().map(|ms| ms / 10)),
            Value::of_count(time.softirq_ms().map(|ms| ms / 10)),
            Value::of_count(time.steal_ms().map(|ms| ms / 10)),
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
            Value::Unsigned(memory.mem_total),
            Value::Unsigned(memory.mem_free),
            Value::of_count(memory.mem_available),
            Value::Unsigned(memory.buffers),
            Value::Unsigned(memory.cached),
            Value::Unsigned(memory.slab),
            Value::Unsigned(memory.dirty),
            Value::Unsigned(memory.writeback),
        ],
    );
    out.push(
        "swap",
        Kind::Gauge,
        &SWAP,
        &[memory.swap_total, memory.swap_free, memory.swap_cached].map(Value::Unsigned),
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
        .map(Value::Unsigned),
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
        .map(Value::Unsigned),
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

/// A load average or an uptime: two decimals; more would only show the conversion from `f32`.
fn hundredths(number: f64) -> String {
    format!("{number:.2}")
}

struct Output<'a> {
    directory: &'a str,
    now: Timestamp,
    inventory: &'a mut Inventory,
    readings: Readings,
}

impl Output<'_> {
    fn push(&mut self, thing: &str, kind: Kind, sources: &[&str], values: &[Value<'_>]) {
        let name = format!("{}/{}.rrd", self.directory, safe_component(thing));
        // A full inventory leaves out what comes later, which is what its limit says.
        if let Ok(rrd) = self.inventory.find_or_add(name.as_bytes(), || Arc::new(spec(kind, sources))) {
            self.readings.push(rrd, self.now, values.iter().copied());
        }
    }
}

fn spec(kind: Kind, sources: &[&str]) -> RrdSpec {
    let limits = match kind {
        Kind::Gauge => format!("GAUGE:{HEARTBEAT_SECONDS}:0:U"),
        Kind::Rate => format!("DERIVE:{HEARTBEAT_SECONDS}:0:U"),
    };
    let sources = sources.iter().map(|source| format!("DS:{source}:{limits}"));
    let args = sources.chain(ARCHIVES.iter().map(|arg| arg.to_string())).collect();
    RrdSpec { step: STEP_SECONDS, starts_before: STEP_SECONDS, args }
}

/// `text` as one path component: letters, digits, `-`, `_` and inner dots stay, everything else becomes `%XX`, so
/// different devices keep different names.
pub fn safe_component(text: &str) -> String {
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
