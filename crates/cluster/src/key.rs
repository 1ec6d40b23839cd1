//! Which partition a name belongs to: the hash of its directory, so that what one device has stays together.
//!
//! `docs/cluster.md`, "Names and partitions", is the reference. A pure function of the name and the number of partitions, the same in every
//! release: other nodes, and partitions written years ago, depend on it.

use store::name::RrdName;
use xxhash_rust::xxh3::xxh3_64;

/// The partition of a name; `partition_count` is at least 1.
pub fn partition_of(name: &[u8], partition_count: u32) -> u32 {
    // A hidden name belongs to the name that it hides, wherever that is.
    match RrdName::revealed(name) {
        Some((_, revealed)) => of_directory(directory_of(revealed.as_bytes()), partition_count),
        None => of_directory(directory_of(name), partition_count),
    }
}

/// The partition of the names that are immediately in a directory, given without a slash at its end.
pub fn of_directory(directory: &[u8], partition_count: u32) -> u32 {
    (xxh3_64(directory) % u64::from(partition_count.max(1))) as u32
}

/// The directory part of a name; empty at the top.
pub fn directory_of(name: &[u8]) -> &[u8] {
    name.iter().rposition(|&byte| byte == b'/').map_or(&[], |slash| &name[..slash])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_in_one_partition_for_ever() {
        // Fixed: an existing cluster depends on them.
        let check = |name: &[u8], want: u32| assert_eq!(partition_of(name, 32), want, "{name:?}");
        check(b"a.rrd", 2);
        check(b"router-1/eth0.rrd", 3);
        check(b"router-1/eth1.rrd", 3);
        check(b"site/router-1/eth1.rrd", 11);
        let name = RrdName::new(b"router-1/eth0.rrd").unwrap();
        assert_eq!(partition_of(name.hidden("trash").as_bytes(), 32), partition_of(name.as_bytes(), 32));
    }

    #[test]
    fn many_directories_are_spread_evenly() {
        let mut counts = [0u32; 16];
        for number in 0..16_000 {
            counts[partition_of(format!("host-{number}/cpu.rrd").as_bytes(), 16) as usize] += 1;
        }
        // 1000 each, with a deviation of 31.
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
