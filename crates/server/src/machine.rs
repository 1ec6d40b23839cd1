//! What the machine offers this process.

use std::io;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::limits::DESCRIPTORS_MIN;

/// Bytes of memory that this process may use: the machine's, or less where its control group has a limit.
pub fn memory_bytes() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| group_limit(&text));
    // Without /proc, a small machine.
    let machine = machine.unwrap_or(1 << 30);
    group.map_or(machine, |group| group.min(machine))
}

/// Raises the limit of open files to the most that the system allows this process.
///
/// # Errors
/// A text for the operator when there are too few to work with.
pub fn raise_descriptor_limit() -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // What remains is used; it is checked below.
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).ok();
    }
    match descriptors_max() {
        most if most < DESCRIPTORS_MIN => Err(format!(
            "cannot start: the limit of open files is {most}, {DESCRIPTORS_MIN} are needed; raise it (ulimit -n, \
             LimitNOFILE= of systemd)"
        )),
        _ => Ok(()),
    }
}

/// File descriptors that this process may have open.
pub fn descriptors_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// File descriptors that it has open now.
pub fn descriptors_open() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |open| open.count() as u64)
}

/// Makes a write beyond the limit of file sizes an error, as a full disk is, instead of the end of the process.
///
/// # Errors
/// The system's.
pub fn survive_file_size_limit() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _context = runtime.enter();
    // The handler stays when the runtime and its receiver have gone.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The smallest limit of the process's control group (version 2) and those above it.
fn group_limit(cgroup: &str) -> Option<u64> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limit = |group: &Path| {
        let text =
            std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(group).join("memory.max")).ok()?;
        text.trim().parse().ok()
    };
    Path::new(path).ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_machine_is_found() {
        assert_eq!(total("MemTotal:       24000000 kB\nMemFree: 1 kB\n"), Some(24_576_000_000));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(memory_bytes() > 64 << 20, "{}", memory_bytes());
    }
}
