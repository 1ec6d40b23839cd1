//! The usage of a process and a disk: CPU, memory, bytes and requests, from /proc and /sys.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use procfs::process::Process;

use crate::Outcome;

/// A unit of `st_blocks` (stat(2)).
const STAT_BLOCK_BYTES: u64 = 512;
/// A sector of /sys/block/*/stat, whatever the device's own size.
const SECTOR_BYTES: u64 = 512;

/// The usage of a process since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessUsage {
    /// User and system time together.
    pub cpu: Duration,
    /// Bytes it caused to be written to a device (`write_bytes` of /proc/PID/io), counted when pages get dirty.
    pub write_bytes: u64,
    /// Calls of write(2) and the like.
    pub write_calls: u64,
    /// Resident memory now.
    pub rss_bytes: u64,
    /// Resident memory at its highest.
    pub rss_max_bytes: u64,
}

impl ProcessUsage {
    /// Of a living process.
    pub fn of(pid: u32) -> Outcome<Self> {
        let process = Process::new(i32::try_from(pid)?)?;
        let stat = process.stat()?;
        let io = process.io()?;
        let status = process.status()?;
        let ticks = stat.utime + stat.stime;
        Ok(ProcessUsage {
            cpu: Duration::from_secs_f64(ticks as f64 / procfs::ticks_per_second() as f64),
            write_bytes: io.write_bytes,
            write_calls: io.syscw,
            rss_bytes: status.vmrss.unwrap_or(0) * 1024,
            rss_max_bytes: status.vmhwm.unwrap_or(0) * 1024,
        })
    }

    /// The usage since `earlier`; memory as it is now.
    pub fn since(&self, earlier: &ProcessUsage) -> ProcessUsage {
        ProcessUsage {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
            write_calls: self.write_calls.saturating_sub(earlier.write_calls),
            ..*self
        }
    }
}

/// The CPU time of the living threads of a process, to the nanosecond.
pub fn busy_time(pid: u32) -> Outcome<Duration> {
    busy_time_of_threads(pid, "")
}

/// CPU time of those threads of a process whose names begin with `name`, so far.
pub fn busy_time_of_threads(pid: u32, name: &str) -> Outcome<Duration> {
    let mut nanoseconds = 0;
    // A thread may have ended since.
    for task in Process::new(i32::try_from(pid)?)?.tasks()?.flatten() {
        if task.stat().is_ok_and(|stat| stat.comm.starts_with(name)) {
            nanoseconds += task.schedstat().map_or(0, |stat| stat.sum_exec_runtime);
        }
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Waits until a process rests, which is less than a tenth of a core for 300 ms. Returns when it last worked, at most 5 ms late.
pub fn wait_until_idle(pid: u32) -> Outcome<Instant> {
    wait_until_below(pid, 0.1)
}

/// Waits until a process uses less than so many cores for 300 ms. Returns when it last used more, at most 5 ms late.
pub fn wait_until_below(pid: u32, cores: f64) -> Outcome<Instant> {
    const LOOK_EVERY: Duration = Duration::from_millis(5);
    const REST: Duration = Duration::from_millis(300);
    const LIMIT: Duration = Duration::from_secs(120);
    let start = Instant::now();
    let (mut worked, mut looked, mut before) = (start, start, busy_time(pid)?);
    while worked.elapsed() < REST {
        if start.elapsed() > LIMIT {
            return Err(format!("process {pid} works for more than {LIMIT:?}").into());
        }
        thread::sleep(LOOK_EVERY);
        let now = busy_time(pid)?;
        if now.saturating_sub(before) > looked.elapsed().mul_f64(cores) {
            worked = Instant::now();
        }
        (looked, before) = (Instant::now(), now);
    }
    Ok(worked)
}

/// The work of a block device since boot.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceUsage {
    /// Write requests completed.
    pub write_requests: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl DeviceUsage {
    /// Of the device that holds `path`, after a sync; `None` where the path is on no block device.
    pub fn holding(path: &Path) -> Outcome<Option<Self>> {
        // Only this file system: others on the machine may write too.
        rustix::fs::syncfs(fs::File::open(path)?)?;
        let device = fs::metadata(path)?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        for disk in procfs::diskstats()? {
            if disk.major == i32::try_from(major)? && disk.minor == i32::try_from(minor)? {
                return Ok(Some(DeviceUsage {
                    write_requests: disk.writes,
                    write_bytes: disk.sectors_written * SECTOR_BYTES,
                }));
            }
        }
        Ok(None)
    }

    /// The work since `earlier`.
    pub fn since(&self, earlier: &DeviceUsage) -> DeviceUsage {
        DeviceUsage {
            write_requests: self.write_requests - earlier.write_requests,
            write_bytes: self.write_bytes - earlier.write_bytes,
        }
    }
}

/// Bytes of disk that a tree uses, as du counts them. Files that vanish meanwhile count as none.
pub fn disk_bytes(path: &Path) -> Outcome<u64> {
    let gone =
        |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(0) } else { Err(error.into()) };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return gone(error),
    };
    let mut bytes = metadata.blocks() * STAT_BLOCK_BYTES;
    if metadata.is_dir() {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => return gone(error),
        };
        for entry in entries {
            bytes += disk_bytes(&entry?.path())?;
        }
    }
    Ok(bytes)
}

/// Writes dirty pages and empties the page cache; an error where that is not allowed.
pub fn drop_page_cache() -> Outcome<()> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3\n")
        .map_err(|error| format!("cannot empty the page cache (needs root): {error}").into())
}
