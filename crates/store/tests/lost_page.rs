//! A damaged page of a checkpoint costs the RRDs on it, and says so; all others are served.

#![allow(clippy::unwrap_used, reason = "a failure here is the test's")]

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use roundel_store::disk::sim::SimDisk;
use roundel_store::disk::{Disk, Mode};
use roundel_store::engine::{CreateRequest, Engine, StoreError, UpdateBatch, UpdateFailure};
use roundel_store::repair::{self, repair_disk};
use roundel_store::stripes::{Options, ShardOptions, Stripes};
use roundel_store::testing::segments::open_segment;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::definition::{Cf, Definition};
use rrd::fetch::FetchRequest;
use rrd::when::Step;
use rrd_file::name::RrdName;

const START: i64 = 1_700_000_000;
/// Four pages.
const RRDS: u32 = 1000;
const LOST: std::ops::Range<u32> = 256..512;

fn name(number: u32) -> RrdName {
    RrdName::new(format!("host-{number}.rrd").as_bytes()).unwrap()
}

fn definition() -> Definition {
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
    parse_create(&options, &["DS:v:GAUGE:1000:U:U", "RRA:LAST:0.5:1:50"]).unwrap()
}

fn options(tree: &Path) -> Options {
    Options {
        shard_count: 1,
        shard: ShardOptions { merge_count: 2, ..ShardOptions::default() },
        placeholder_tree: Some(tree.to_owned()),
        adopt_tree: Some(tree.to_owned()),
        ..Options::default()
    }
}

fn create(store: &Stripes, name: RrdName, start: i64, no_overwrite: bool) -> Result<(), StoreError> {
    let request = CreateRequest { definition: definition(), start, no_overwrite };
    let (sender, receiver) = mpsc::channel();
    store.create(name, request, Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv().unwrap()
}

fn update(store: &Stripes, numbers: impl Iterator<Item = u32>, step: i64) -> Vec<UpdateFailure> {
    let mut batch = UpdateBatch::default();
    numbers.for_each(|number| {
        batch.push(name(number).as_bytes(), format!("{}:{number}", START + 10 * step).as_bytes());
    });
    let (sender, receiver) = mpsc::channel();
    store.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
    receiver.recv().unwrap()
}

/// Values of an RRD by its rows so far.
fn values(store: &Stripes, number: u32, steps: i64) -> Result<Vec<f64>, StoreError> {
    let request = FetchRequest::new(Cf::Last, START, START + 10 * steps - 10, 10);
    store.fetch(&name(number), request).map(|rows| rows.values)
}

fn is_lost<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    let Err(StoreError::Lost(text)) = &result else { panic!("{result:?}") };
    assert!(text.contains("shard-000/checkpoint-") && text.contains("roundel repair"), "{text}");
}

fn checkpoint(disk: &dyn Disk) -> PathBuf {
    let dir = Path::new("shard-000");
    let names = disk.list(dir).unwrap();
    dir.join(names.iter().find(|name| name.to_string_lossy().starts_with("checkpoint-")).unwrap())
}

/// A stopped store with 20 updates of each RRD, of which the log has the last five.
fn filled(tree: &Path) -> SimDisk {
    let disk = SimDisk::new(1);
    let store = Stripes::open(disk.handle(), &options(tree)).unwrap();
    (0..RRDS).for_each(|number| create(&store, name(number), START, true).unwrap());
    for step in 1..=20 {
        assert!(update(&store, 0..RRDS, step).is_empty());
        if step % 5 == 0 && step < 20 {
            store.checkpoint().unwrap();
        }
    }
    store.stop().unwrap();
    drop(store);
    disk.kill()
}

/// Damages the second page.
fn damage(disk: &SimDisk) {
    let handle = disk.handle();
    let path = checkpoint(&*handle);
    let mut stored = [0; 4];
    handle.open(&path, Mode::Read).unwrap().read_at(&mut stored, 8 + 4).unwrap();
    let second = 8 + 40 + u64::from(u32::from_le_bytes(stored));
    disk.flip_bit(&path, (second + 300) * 8).unwrap();
}

fn repair(disk: &SimDisk, options: repair::Options<'_>) -> (repair::Outcome, String) {
    let mut out = Vec::new();
    let outcome = repair_disk(&*disk.handle(), options, &mut out).unwrap().unwrap();
    (outcome, String::from_utf8(out).unwrap())
}

fn copy(from: &SimDisk, to: &SimDisk, path: &Path) {
    let (from, to) = (from.handle().open(path, Mode::Read).unwrap(), to.handle());
    let mut bytes = vec![0; from.length().unwrap() as usize];
    from.read_at(&mut bytes, 0).unwrap();
    to.create_dir_all(path.parent().unwrap()).unwrap();
    to.create(path).unwrap().write_at(&bytes, 0).unwrap();
}

#[test]
fn a_damaged_page_costs_only_its_rrds_and_every_start_remembers_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut disk = filled(directory.path());
    damage(&disk);
    let mut steps = 20;
    for round in 0..4 {
        let store = Stripes::open(disk.handle(), &options(directory.path())).unwrap();
        let listed = store.list(b"", true).unwrap().len();
        assert_eq!(listed as u32, RRDS + round, "what stands in the tree is listed");
        for number in (0..RRDS).filter(|number| !LOST.contains(number)).step_by(37) {
            let got = values(&store, number, steps).unwrap();
            assert!(got[..20].iter().all(|value| *value == f64::from(number)), "{number}: {got:?}");
        }
        for number in LOST.clone().step_by(51) {
            is_lost(store.status(&name(number)));
            is_lost(values(&store, number, steps));
            is_lost(create(&store, name(number), START, true));
            is_lost(store.delete(&name(number)));
        }
        for _ in 0..3 {
            steps += 1;
            let failures = update(&store, 0..RRDS, steps);
            assert_eq!(failures.len(), LOST.len());
            assert!(failures.iter().all(|one| LOST.contains(&one.line)));
            failures.into_iter().for_each(|one| is_lost(Err::<(), _>(one.error)));
            // From the second round on, only the manifest knows.
            if round > 0 {
                store.checkpoint().unwrap();
            }
        }
        assert_eq!(create(&store, name(RRDS + round), START, true), Ok(()), "a new name is free");
        store.stop().unwrap();
        drop(store);
        disk = disk.kill();
        let names = disk.handle().list(Path::new("shard-000")).unwrap();
        let aside = |kind| names.iter().filter(|name| name.to_string_lossy().starts_with(kind)).count();
        assert_eq!(aside("damaged-checkpoint-"), 1, "{names:?}");
        assert!(aside("damaged-log-") >= 1, "{names:?}");
        let list = disk.handle().open(Path::new("shard-000/damaged-lost-rrds.txt"), Mode::Read).unwrap();
        let mut text = vec![0; list.length().unwrap() as usize];
        list.read_at(&mut text, 0).unwrap();
        let mut listed: Vec<&str> = std::str::from_utf8(&text).unwrap().lines().collect();
        let mut want: Vec<String> = LOST.map(|number| name(number).to_string()).collect();
        listed.sort_unstable();
        want.sort_unstable();
        assert_eq!(listed, want);
    }
    assert_eq!(rows_of_lost(&*disk.handle()), 15 * LOST.len(), "merges have kept what was in segments");
}

fn rows_of_lost(disk: &dyn Disk) -> usize {
    let dir = Path::new("shard-000");
    let (mut rows, mut segments) = (0, 0);
    for name in disk.list(dir).unwrap() {
        if !name.to_string_lossy().starts_with("segment-") {
            continue;
        }
        segments += 1;
        let segment = open_segment(disk, &dir.join(name)).unwrap();
        let mut entries = segment.entries();
        while let Some(entry) = entries.next_entry().unwrap() {
            rows += if LOST.contains(&entry.key.slot) { entry.count } else { 0 };
        }
    }
    assert!(segments < 8, "merges: {segments} segments of 12 checkpoints");
    rows
}

#[test]
fn lost_rrds_are_replaced_by_what_is_imported_or_created_in_their_place() {
    let directory = tempfile::tempdir().unwrap();
    let disk = filled(directory.path());
    let whole = Stripes::open(disk.handle(), &options(directory.path())).unwrap();
    let from_backup = whole.read(&name(300)).unwrap();
    whole.stop().unwrap();
    drop(whole);
    let disk = disk.kill();
    damage(&disk);
    let store = Stripes::open(disk.handle(), &options(directory.path())).unwrap();
    is_lost(store.import(name(300), from_backup.clone(), true));
    assert_eq!(store.import(name(300), from_backup.clone(), false), Ok(()));
    assert_eq!(format!("{:?}", store.read(&name(300)).unwrap()), format!("{from_backup:?}"));
    assert_eq!(create(&store, name(301), START, false), Ok(()), "as it would have replaced it");
    assert!(update(&store, 300..302, 21).is_empty());
    store.checkpoint().unwrap();
    store.stop().unwrap();
    drop(store);
    let disk = disk.kill();
    let plain = repair::Options::default();
    let (outcome, text) = repair(&disk, plain);
    assert_eq!((outcome.steps, outcome.refused, outcome.hopeless), (0, 1, 0), "{text}");
    assert!(text.contains("from 256 to 511") && text.contains("damaged-lost-rrds.txt"), "{text}");
    let (outcome, text) = repair(&disk, repair::Options { apply: true, accept_loss: true, ..plain });
    assert_eq!((outcome.steps, outcome.refused, outcome.hopeless), (1, 0, 0), "{text}");
    let store = Stripes::open(disk.handle(), &options(directory.path())).unwrap();
    assert_eq!(values(&store, 300, 20).unwrap(), vec![300.0; 20]);
    assert_eq!(store.status(&name(302)).unwrap_err(), StoreError::NoSuchRrd(name(302)));
    assert_eq!(create(&store, name(302), START, true), Ok(()));
    store.stop().unwrap();
}

#[test]
fn a_copy_with_the_same_checkpoint_brings_everything_back_before_and_after_a_start() {
    for started in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let disk = filled(directory.path());
        let backup = SimDisk::new(2);
        let path = checkpoint(&*disk.handle());
        copy(&disk, &backup, &path);
        let mut disk = disk;
        damage(&disk);
        let (outcome, text) = repair(&disk, repair::Options::default());
        assert_eq!((outcome.steps, outcome.hopeless), (0, 1), "{text}");
        assert!(text.contains("ids from 256 to 511") && text.contains("--from DIR"), "{text}");
        if started {
            let store = Stripes::open(disk.handle(), &options(directory.path())).unwrap();
            is_lost(store.status(&name(256)));
            store.stop().unwrap();
            drop(store);
            disk = disk.kill();
        }
        let of_backup = backup.handle();
        let from = repair::Options { apply: true, accept_loss: true, backup: Some(&*of_backup) };
        let (outcome, text) = repair(&disk, from);
        assert_eq!((outcome.refused, outcome.hopeless), (0, 0), "{text}");
        let store = Stripes::open(disk.handle(), &options(directory.path())).unwrap();
        for number in 0..RRDS {
            assert_eq!(values(&store, number, 20).unwrap(), vec![f64::from(number); 20]);
        }
        store.stop().unwrap();
    }
}
