use std::collections::BTreeSet;

use super::*;

fn bytes_of(disk: &SimDisk, path: &str) -> Option<Vec<u8>> {
    let file = disk.open(Path::new(path), Mode::Read).ok()?;
    let mut bytes = vec![0; file.length().unwrap() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    Some(bytes)
}

/// A file `f`: 1,024 durable bytes of 1, then unsynced 2s and 3s over and after them.
fn half_synced(seed: u64) -> (SimDisk, Arc<dyn DiskFile>) {
    let disk = SimDisk::new(seed);
    let file = disk.create(Path::new("f")).unwrap();
    file.write_at(&[1; 1024], 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    file.write_at(&[2; 1024], 512).unwrap();
    file.write_at(&[3; 1024], 1024).unwrap();
    (disk, file)
}

#[test]
fn a_crash_loses_only_unsynced_data_in_many_ways() {
    let mut seen = BTreeSet::new();
    for seed in 0..400 {
        let (disk, file) = half_synced(seed);
        let after = bytes_of(&disk.crash(), "f").expect("its name was synced");
        assert!(after.len() >= 1024 && after[..512] == [1; 512], "seed {seed}");
        assert!(after.iter().all(|byte| *byte <= 3), "seed {seed}");
        assert!(file.write_at(b"x", 0).is_err(), "the power is off");
        seen.insert(after);
    }
    for want in [
        [[1; 512].as_slice(), &[1; 512]].concat(),
        [[1; 512].as_slice(), &[2; 512], &[3; 1024]].concat(),
        // The later write without the earlier one, and the length without its bytes.
        [[1; 512].as_slice(), &[1; 512], &[3; 1024]].concat(),
        [[1; 512].as_slice(), &[2; 512], &[0; 1024]].concat(),
    ] {
        assert!(seen.contains(&want), "never seen: {want:?}");
    }
    assert!(seen.iter().any(|bytes| bytes.len() % 512 != 0), "no write was torn inside a sector");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |seed| bytes_of(&half_synced(seed).0.crash(), "f");
    for seed in 0..50 {
        assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn a_kill_loses_nothing_and_makes_nothing_durable() {
    let mut lost = false;
    for seed in 0..20 {
        let killed = half_synced(seed).0.kill();
        assert_eq!(bytes_of(&killed, "f").unwrap().len(), 2048);
        lost |= bytes_of(&killed.crash(), "f").unwrap().len() < 2048;
    }
    assert!(lost);
}

#[test]
fn names_are_durable_once_their_directory_is_synced() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        let dir = Path::new("d");
        disk.create_dir_all(dir).unwrap();
        for name in ["d/a", "d/b"] {
            disk.create(Path::new(name)).unwrap().sync().unwrap();
        }
        disk.sync_dir(dir).unwrap();
        disk.create(Path::new("d/c")).unwrap();
        disk.rename(Path::new("d/a"), Path::new("d/e")).unwrap();
        disk.remove(Path::new("d/b")).unwrap();
        assert_eq!(disk.list(dir).unwrap(), ["c", "e"]);
        let names = disk.crash().list(dir).unwrap();
        let has = |name: &str| names.iter().any(|found| found == name);
        assert!(has("a") != has("e"), "a rename is one step: {names:?}");
        seen.insert(names);
    }
    assert_eq!(seen.len(), 8, "create, rename and remove, each kept or lost");
}

#[test]
fn planned_failures_occur_as_planned() {
    let disk = SimDisk::new(1);
    let file = disk.create(Path::new("f")).unwrap();
    disk.fail(Operation::Write, 1, io::ErrorKind::Other);
    file.write_at(b"one", 0).unwrap();
    assert_eq!(file.write_at(b"two", 3).unwrap_err().kind(), io::ErrorKind::Other);
    file.write_at(b"two", 3).unwrap();
    assert_eq!(bytes_of(&disk, "f").unwrap(), b"onetwo");
    assert_eq!(disk.counts().bytes_written, 6);

    // After a failed sync the next one succeeds, although the bytes may be lost.
    let mut lost = 0;
    for seed in 0..50 {
        let (disk, file) = half_synced(seed);
        disk.fail(Operation::Sync, 0, io::ErrorKind::Other);
        assert!(file.sync().is_err());
        assert_eq!(bytes_of(&disk, "f").unwrap().len(), 2048);
        file.sync().unwrap();
        lost += usize::from(bytes_of(&disk.crash(), "f").unwrap().len() < 2048);
    }
    assert!(lost > 0);

    disk.power_off_after(1);
    file.write_at(b"!", 6).unwrap();
    assert!(disk.list(Path::new("")).is_err());
    assert!(disk.crash().list(Path::new("")).is_ok());
}

#[test]
fn a_full_disk_writes_what_fits_and_continues_when_there_is_room() {
    let disk = SimDisk::new(1);
    let file = disk.create(Path::new("f")).unwrap();
    disk.set_capacity(10);
    file.write_at(b"12345678", 0).unwrap();
    let full = file.write_at(b"abcd", 8).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    assert_eq!(bytes_of(&disk, "f").unwrap(), b"12345678ab");
    file.write_at(b"over", 0).unwrap();
    assert!(file.allocate(0, 11).is_err());
    assert_eq!(disk.free_bytes().unwrap(), 0);
    file.truncate(4).unwrap();
    assert_eq!((disk.used_bytes(), disk.free_bytes().unwrap()), (4, 6));
    disk.set_capacity(u64::MAX);
    file.allocate(0, 4096).unwrap();
    disk.flip_bit(Path::new("f"), 8).unwrap();
    assert_eq!(bytes_of(&disk, "f").unwrap()[..5], *b"owe\x72\0");
}

#[test]
fn a_lock_ends_with_its_file_or_its_process() {
    let disk = SimDisk::new(1);
    let path = Path::new("lock");
    let first = disk.create(path).unwrap();
    let second = disk.open(path, Mode::Write).unwrap();
    assert!(first.try_lock().unwrap() && first.try_lock().unwrap());
    assert!(!second.try_lock().unwrap());
    drop(first);
    assert!(second.try_lock().unwrap());
    let next = disk.kill();
    assert!(next.open(path, Mode::Write).unwrap().try_lock().unwrap());
}

#[test]
fn a_shortage_fails_what_needs_it_until_it_is_over() {
    let path = Path::new("f");
    for shortage in Shortage::ALL {
        let disk = SimDisk::new(1);
        let file = disk.create(path).unwrap();
        file.write_at(b"before", 0).unwrap();
        disk.set_shortage(Some(shortage));
        let failures = [
            file.write_at(b"BEFORE", 0).err(),
            file.allocate(0, 100).err(),
            disk.create(Path::new("g")).err(),
            disk.open(path, Mode::Read).err(),
        ];
        let failed = failures.each_ref().map(Option::is_some);
        match shortage {
            Shortage::Space | Shortage::Quota => assert_eq!(failed, [true, true, true, false]),
            Shortage::FileSize => assert_eq!(failed, [true, true, false, false]),
            Shortage::Descriptors => assert_eq!(failed, [false, false, true, true]),
            Shortage::Memory => assert_eq!(failed, [true; 4]),
        }
        assert!(failures.iter().flatten().all(|error| Shortage::of(error) == Some(shortage)));
        assert!(file.sync().is_ok() && disk.length(path).is_ok());
        disk.set_shortage(None);
        file.write_at(b"after!", 0).unwrap();
        assert!(bytes_of(&disk, "f").unwrap().starts_with(b"after!"));
    }
}

#[test]
fn a_file_system_that_shuts_down_keeps_what_was_synced() {
    for how in [ShutDown::Everything, ShutDown::Changes] {
        let disk = SimDisk::new(1);
        let file = disk.create(Path::new("f")).unwrap();
        file.write_at(b"before", 0).unwrap();
        file.sync().unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        disk.shut_down_after(1, how);
        disk.create(Path::new("g")).unwrap();
        assert!(file.write_at(b"BEFORE", 0).is_err() && file.sync().is_err());
        assert!(disk.remove(Path::new("f")).is_err());
        assert_eq!(disk.list(Path::new("")).is_ok(), how == ShutDown::Changes);
        assert_eq!(bytes_of(&disk.crash(), "f").unwrap(), b"before");
    }
}

#[test]
fn damage_is_seen_through_open_files() {
    let disk = SimDisk::new(1);
    let file = disk.create(Path::new("f")).unwrap();
    file.write_at(b"before", 0).unwrap();
    disk.replace(Path::new("f"), b"be").unwrap();
    let mut bytes = [0; 6];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 2);
    assert_eq!(bytes_of(&disk.crash(), "f"), None, "its name was not synced");
    assert!(disk.replace(Path::new("g"), b"").is_err());
}
