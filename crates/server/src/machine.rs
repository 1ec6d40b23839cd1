//! What the machine offers this process.

use std::path::Path;

/// Bytes of memory that this process may use: the machine's, or less where its control group has a limit.
pub fn memory_bytes() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| group_limit(&text));
    // Without /proc, a small machine.
    let machine = machine.unwrap_or(1 << 30);
    group.map_or(machine, |group| group.min(machine))
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
