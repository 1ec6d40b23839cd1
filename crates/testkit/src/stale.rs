//! Removes what earlier tests have left because they were killed: mounts, networks, shared memory.
//!
//! Each of these has the number of the test's process in its name. Another user's cannot be removed, and a test that runs at the
//! same time may remove the same ones, so errors are ignored.

use std::fs;
use std::path::Path;
use std::process::Command;

const PREFIX: &str = "roundel-test-";

/// A name for what this process makes.
pub(crate) fn mark() -> String {
    format!("{PREFIX}{}", std::process::id())
}

/// True if the name begins with this prefix and the number of a process that has ended.
fn is_stale(name: &str, prefix: &str) -> bool {
    let process = name.strip_prefix(prefix).and_then(|rest| rest.split(['-', 'n']).next());
    process.is_some_and(|process| {
        process.bytes().all(|byte| byte.is_ascii_digit())
            && !process.is_empty()
            && !Path::new("/proc").join(process).exists()
    })
}

/// The names in a directory that are stale.
fn stale_names(directory: &str, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| is_stale(name, prefix)).collect()
}

/// Unmounts the file systems in memory of tests that were killed.
pub(crate) fn remove_mounts() {
    for line in fs::read_to_string("/proc/self/mounts").unwrap_or_default().lines() {
        let mut words = line.split(' ');
        let (Some(source), Some(at)) = (words.next(), words.next()) else { continue };
        if is_stale(source, PREFIX) {
            Command::new("umount").args(["-l", at]).output().ok();
        }
    }
}

/// Removes the shared memory of processes under faketime that were killed: when the system gives the same number again, faketime does
/// not start ("sem_open: File exists").
pub fn remove_clocks() {
    for prefix in ["sem.faketime_sem_", "faketime_shm_"] {
        for name in stale_names("/dev/shm", prefix) {
            fs::remove_file(Path::new("/dev/shm").join(name)).ok();
        }
    }
}

/// Removes the network namespaces and bridges of tests that were killed: namespaces have the name `PREFIX`-process-number, bridges the
/// name `PREFIX`process.
pub fn remove_networks(namespace: &str, bridge: &str) {
    for name in stale_names("/run/netns", namespace) {
        Command::new("ip").args(["netns", "del", &name]).output().ok();
    }
    for name in stale_names("/sys/class/net", bridge) {
        Command::new("ip").args(["link", "del", &name]).output().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_living_processes_are_not_stale() {
        let living = std::process::id();
        assert!(!is_stale(&format!("{PREFIX}{living}"), PREFIX));
        assert!(!is_stale(&format!("rdl{living}n3"), "rdl"));
        // More than the kernel's highest number of a process.
        assert!(is_stale("rdl99999999n3", "rdl") && is_stale("roundel-test-99999999", PREFIX));
        assert!(!is_stale("rdl", "rdl") && !is_stale("rdlx", "rdl") && !is_stale("eth0", "rdl"));
    }
}
