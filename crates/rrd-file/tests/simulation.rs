//! Direct updates and placeholders on a simulated disk: random operations, crashes of the process between any
//! two of them, failing writes, full disks, lost power.
//!
//! Unless the power fails, a file is always in the state before or after a call; a placeholder can be written
//! again whatever a loss of power left of it. Each seed is a separate run: `ROUNDEL_SEED=n` replays one,
//! `ROUNDEL_SEEDS=n` sets how many.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::ErrorKind;
use std::path::Path;

use disk::sim::Operation;
use disk::{Disk, SimDisk};
use roundel_rrd_file::name::RrdName;
use roundel_rrd_file::placeholder::{Placeholder, Placeholders, StoreIdentity};
use roundel_rrd_file::tree::Tree;
use roundel_rrd_file::{
    Error, Existing, Locking, ReadFile, UpdateOptions, Volume, WriteFile, create_on, update_on,
};
use rrd::codec::file::FileParts;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use testkit::random::{Random, each_seed};

const START: i64 = 1_700_000_000;
const PATH: &str = "a.rrd";

/// Geometries without seasons, which may be adapted twice when a process dies between season and live part.
const GEOMETRIES: &[&[&str]] = &[
    &["DS:a:GAUGE:25:U:U", "RRA:AVERAGE:0.5:1:7", "RRA:MAX:0.5:3:5"],
    &[
        "DS:a:GAUGE:25:U:U",
        "DS:b:COUNTER:60:U:U",
        "RRA:LAST:0.5:1:100",
        "RRA:MIN:0.5:4:3",
        "RRA:AVERAGE:0.9:2:9",
    ],
    &["DS:a:DERIVE:600:0:U", "RRA:AVERAGE:0.5:30:200"],
];

fn definition(random: &mut Random) -> Definition {
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::STORE, file_name: b"a" };
    let words = GEOMETRIES[random.below(GEOMETRIES.len() as u64) as usize];
    parse_create(&options, words).unwrap()
}

fn volume(disk: &SimDisk) -> Volume {
    Volume::Disk(disk.handle())
}

/// One to four arguments with increasing times.
fn arguments(random: &mut Random, time: &mut i64, ds_count: usize) -> Vec<String> {
    let mut argument = || {
        *time += match random.below(12) {
            0 => 500,
            _ => 1 + random.below(25) as i64,
        };
        let values: Vec<String> = (0..ds_count).map(|_| random.below(1 << 20).to_string()).collect();
        format!("{time}:{}", values.join(":"))
    };
    let first = argument();
    let count = time_of(&first) as u64 % 4;
    std::iter::once(first).chain((0..count).map(|_| argument())).collect()
}

fn time_of(argument: &str) -> i64 {
    argument.split(':').next().unwrap().parse().unwrap()
}

/// The whole content of the file; `None` when there is no file.
fn content(disk: &SimDisk) -> Option<FileParts> {
    match ReadFile::open_on(&volume(disk), Path::new(PATH), Locking::Try) {
        Ok(file) => Some(file.content().unwrap()),
        Err(Error::Open { error, .. }) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    }
}

/// As text: unknown values are NaN, which is not equal to itself.
fn text(parts: &FileParts) -> String {
    format!("{parts:?}")
}

/// The live part only, which determines the valid rows.
fn live(parts: &FileParts) -> String {
    format!("{:?}", parts.rrd.live)
}

/// A file on a disk, and a copy on another disk without faults.
fn run_updates(seed: u64) {
    let mut random = Random::new(seed);
    let (mut disk, good) = (SimDisk::new(random.next()), SimDisk::new(0));
    let definition = definition(&mut random);
    let ds_count = definition.ds.len();
    for disk in [&disk, &good] {
        create_on(&volume(disk), Path::new(PATH), &definition, START, Existing::Refuse).unwrap();
    }
    let mut time = START;
    for _ in 0..40 {
        let words = arguments(&mut random, &mut time, ds_count);
        let before = content(&good).unwrap();
        update_on(&volume(&good), Path::new(PATH), &words, &UpdateOptions::default()).unwrap();
        let after = content(&good).unwrap();
        match random.below(4) {
            0 => disk.power_off_after(random.below(6)),
            1 => disk.fail(Operation::Write, random.below(4), ErrorKind::StorageFull),
            _ => {}
        }
        let updated = update_on(&volume(&disk), Path::new(PATH), &words, &UpdateOptions::default());
        disk = disk.kill();
        let found = content(&disk).unwrap();
        if updated.is_ok() {
            assert_eq!(text(&found), text(&after), "{words:?}");
            continue;
        }
        // A failed write may have left a part of the live part; one that never started has not.
        if live(&found) == live(&before) {
            update_on(&volume(&disk), Path::new(PATH), &words, &UpdateOptions::default()).unwrap();
            assert_eq!(text(&content(&disk).unwrap()), text(&after), "again after a kill: {words:?}");
        } else {
            // The file is written again, because a half-written live part has no defined meaning.
            let bytes = whole(&good);
            disk.remove(Path::new(PATH)).unwrap();
            disk.create(Path::new(PATH)).unwrap().write_at(&bytes, 0).unwrap();
        }
    }
}

fn whole(disk: &SimDisk) -> Vec<u8> {
    let mut bytes = vec![0; disk.length(Path::new(PATH)).unwrap() as usize];
    disk.open(Path::new(PATH), disk::Mode::Read).unwrap().read_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn an_update_is_done_or_can_be_done_again() {
    each_seed(400, run_updates);
}

/// A kill without a failing write: the live part is then never torn.
fn run_kills(seed: u64) {
    let mut random = Random::new(seed);
    let (mut disk, good) = (SimDisk::new(random.next()), SimDisk::new(0));
    let definition = definition(&mut random);
    let ds_count = definition.ds.len();
    for disk in [&disk, &good] {
        create_on(&volume(disk), Path::new(PATH), &definition, START, Existing::Refuse).unwrap();
    }
    let (mut time, mut cut) = (START, 0);
    for _ in 0..40 {
        let words = arguments(&mut random, &mut time, ds_count);
        let before = content(&good).unwrap();
        update_on(&volume(&good), Path::new(PATH), &words, &UpdateOptions::default()).unwrap();
        let after = content(&good).unwrap();
        disk.power_off_after(random.below(5));
        let updated = update_on(&volume(&disk), Path::new(PATH), &words, &UpdateOptions::default());
        disk = disk.kill();
        let found = content(&disk).unwrap();
        match updated {
            Ok(_) => assert_eq!(text(&found), text(&after), "{words:?}"),
            Err(_) => {
                cut += 1;
                assert_eq!(live(&found), live(&before), "{words:?}");
                update_on(&volume(&disk), Path::new(PATH), &words, &UpdateOptions::default()).unwrap();
                assert_eq!(text(&content(&disk).unwrap()), text(&after), "again: {words:?}");
            }
        }
    }
    assert!(cut > 0, "no update was cut short");
}

#[test]
fn a_kill_leaves_the_state_before_the_update() {
    each_seed(400, run_kills);
}

/// Whole files are created and changed while writes fail, the disk is full or the process dies: the old file
/// stays until the new one is complete.
fn run_whole_files(seed: u64) {
    let mut random = Random::new(seed);
    let mut disk = SimDisk::new(random.next());
    let (mut failed, mut done) = (0, 0);
    for round in 0..30 {
        let definition = definition(&mut random);
        let before = content(&disk).map(|parts| text(&parts));
        match random.below(4) {
            0 => disk.power_off_after(random.below(4)),
            1 => disk.fail(Operation::Write, random.below(2), ErrorKind::StorageFull),
            2 => disk.set_capacity(disk.used_bytes() + random.below(4000)),
            _ => {}
        }
        let existing = if random.once_in(2) { Existing::Replace } else { Existing::Refuse };
        let made = match before.is_some() && random.once_in(3) {
            true => WriteFile::open_on(&volume(&disk), Path::new(PATH), Locking::Try)
                .and_then(|file| file.tune(&["DS:new:GAUGE:60:U:U"])),
            false => create_on(&volume(&disk), Path::new(PATH), &definition, START + round, existing),
        };
        disk = disk.kill();
        disk.set_capacity(u64::MAX);
        let after = content(&disk).map(|parts| text(&parts));
        match made {
            Ok(()) => {
                done += 1;
                assert_ne!(after, before);
            }
            Err(_) => {
                failed += 1;
                assert_eq!(after, before);
            }
        }
        for name in disk.list(Path::new("")).unwrap() {
            // A temporary file left by a kill.
            if name != PATH {
                disk.remove(Path::new(&name)).unwrap();
            }
        }
    }
    assert!(failed > 0 && done > 0, "{failed} failed, {done} done");
}

#[test]
fn a_file_is_made_whole_or_not_at_all() {
    each_seed(400, run_whole_files);
}

/// Placeholders are written, removed, torn by power losses and cut by full disks.
fn run_placeholders(seed: u64) {
    let mut random = Random::new(seed);
    let mut disk = SimDisk::new(random.next());
    let store = StoreIdentity([7; 16]);
    let placeholders =
        |disk: &SimDisk| Placeholders::new(Tree::on_disk(disk.handle(), Path::new("tree")).into(), store);
    for _ in 0..30 {
        let name = RrdName::new(format!("d{}/{}.rrd", random.below(2), random.below(3)).as_bytes()).unwrap();
        match random.below(6) {
            0 => disk.fail(Operation::Write, 0, ErrorKind::StorageFull),
            1 => disk.fail(Operation::Truncate, 0, ErrorKind::StorageFull),
            2 => disk.power_off_after(random.below(4)),
            _ => {}
        }
        let written = placeholders(&disk).write(&name, None, 100 + random.below(5000));
        disk = match random.below(3) {
            0 => disk.crash(),
            _ => disk.kill(),
        };
        if let Err(error) = &written {
            // Whatever remains is never mistaken for a file that must not be replaced.
            assert!(matches!(error, roundel_rrd_file::placeholder::PlaceholderError::Io { .. }), "{error}");
        }
        placeholders(&disk).write(&name, None, 1000).unwrap();
        let want = Placeholder { store, name: name.clone(), rrd: None };
        assert_eq!(placeholders(&disk).read(&name).unwrap(), Some(want));
        if random.once_in(4) {
            placeholders(&disk).remove(&name).unwrap();
            assert_eq!(placeholders(&disk).read(&name).unwrap(), None);
        }
    }
}

#[test]
fn a_placeholder_can_be_written_over_whatever_a_power_loss_left() {
    each_seed(1000, run_placeholders);
}
