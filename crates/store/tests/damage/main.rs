//! Damaged stores: files flipped, cut, zeroed, shifted, extended, deleted, duplicated, exchanged, one to three at once.
//!
//! Whatever is damaged: the start refuses the store and names a damaged file, or it opens; then each RRD is as it was, or
//! the log or the failing read names a damaged file. Nothing panics.
#![allow(clippy::unwrap_used, reason = "tests")]

mod reports;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use oracle::random::{Random, each_seed};
use roundel_store::disk::sim::SimDisk;
use roundel_store::disk::{Disk, Mode};
use roundel_store::engine::{CreateRequest, Engine, UpdateBatch};
use roundel_store::name::RrdName;
use roundel_store::stripes::{Options, ShardOptions, Stripes};
use rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};
use rrd::time::Timestamp;

const START: i64 = 1_700_000_000;
const SHARDS: u32 = 2;

fn options(random: &mut Random) -> Options {
    Options {
        shard_count: SHARDS,
        shard: ShardOptions {
            sync_always: random.once_in(2),
            sync_interval: Duration::from_secs(3600),
            open_bytes_min: 256 << random.below(8),
            log_bytes_max: 4096 << random.below(8),
            merge_count: 2,
            ..ShardOptions::default()
        },
        placeholder_tree: None,
        adopt_tree: None,
        clock: Arc::new(|| Timestamp::whole(START)),
    }
}

fn definition() -> Definition {
    let kind = DsKind::Fed { ds_type: DsType::Gauge, heartbeat: 60, min: f64::NAN, max: f64::NAN };
    let rra = |cf, pdp_per_row, row_count| Rra {
        cf: Consolidation::Plain { cf, xff: 0.5 },
        pdp_per_row,
        row_count,
    };
    Definition {
        version: 3,
        units_per_second: 1,
        step: 10,
        ds: vec![Ds { name: "a".into(), kind }],
        rra: vec![rra(PlainCf::Average, 1, 200), rra(PlainCf::Max, 5, 50)],
    }
}

fn rrd_name(number: u64) -> RrdName {
    RrdName::new(format!("{number}.rrd").as_bytes()).unwrap()
}

fn create(store: &Stripes, number: u64) {
    let (sender, receiver) = mpsc::channel();
    let request = CreateRequest { definition: definition(), start: START, no_overwrite: true };
    store.create(rrd_name(number), request, Box::new(move |done| sender.send(done).unwrap()));
    receiver.recv().unwrap().unwrap();
}

/// One reading of each of the first `count` RRDs.
fn update(store: &Stripes, random: &mut Random, count: u64, time: i64) {
    let mut batch = UpdateBatch::default();
    for number in 0..count {
        batch.push(rrd_name(number).as_bytes(), format!("{time}:{}", random.below(1000)).as_bytes());
    }
    let (sender, receiver) = mpsc::channel();
    store.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
    assert!(receiver.recv().unwrap().is_empty());
}

/// A store that was stopped, and what each RRD held.
struct Stopped {
    disk: SimDisk,
    options: Options,
    content: Vec<(RrdName, String)>,
}

fn content(store: &Stripes, name: &RrdName) -> Result<String, String> {
    store.read(name).map(|rrd| format!("{rrd:?}")).map_err(|error| error.to_string())
}

fn stopped(random: &mut Random) -> Stopped {
    let options = options(random);
    let disk = SimDisk::new(random.next());
    let store = Stripes::open(disk.handle(), &options).unwrap();
    let mut count = 0;
    for step in 1..40 + random.below(60) as i64 {
        if count == 0 || (count < 8 && random.once_in(6)) {
            create(&store, count);
            count += 1;
        }
        update(&store, random, count, START + step * 10);
        match random.below(25) {
            0 => store.checkpoint().unwrap(),
            1..3 => store.flush(None).unwrap(),
            _ => {}
        }
    }
    let content = (0..count).map(|number| (rrd_name(number), content(&store, &rrd_name(number)).unwrap()));
    let content = content.collect();
    store.stop().unwrap();
    drop(store);
    Stopped { disk: disk.kill(), options, content }
}

fn bytes_of(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    // A log has more space reserved.
    let mut bytes = vec![0; 1 << 20];
    let count = disk.open(path, Mode::Read).unwrap().read_at(&mut bytes, 0).unwrap();
    bytes.truncate(count);
    if path.to_string_lossy().contains("/log-") {
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(used);
    }
    bytes
}

fn put(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    if disk.exists(path).unwrap() {
        disk.remove(path).unwrap();
    }
    disk.create(path).unwrap().write_at(bytes, 0).unwrap();
}

/// Files of a store, but for its lock.
fn files(disk: &dyn Disk) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("STORE")];
    found.retain(|path| disk.exists(path).unwrap());
    for shard in 0..SHARDS {
        let dir = PathBuf::from(format!("shard-{shard:03}"));
        found.extend(disk.list(&dir).unwrap().iter().map(|name| dir.join(name)));
    }
    found
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The kind of a file, by the start of its name.
fn kind(path: &Path) -> String {
    name_of(path).split('-').next().unwrap_or_default().to_owned()
}

/// One damage; returns what was done, and the files it changed.
fn damage(random: &mut Random, disk: &dyn Disk, other: &dyn Disk) -> (String, Vec<PathBuf>) {
    let all = files(disk);
    let path = all[random.below(all.len() as u64) as usize].clone();
    let bytes = bytes_of(disk, &path);
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let count = (1 + random.below(200) as usize).min(bytes.len() - at);
    let alike = |files: Vec<PathBuf>| {
        files.into_iter().filter(|other| kind(other) == kind(&path)).collect::<Vec<_>>()
    };
    let change = |what: &str, bytes: &[u8]| {
        put(disk, &path, bytes);
        (format!("{what} {} at {at}, {count} bytes", path.display()), vec![path.clone()])
    };
    match random.below(10) {
        0 => {
            disk.remove(&path).unwrap();
            (format!("deleted {}", path.display()), vec![path])
        }
        1 => change("cut", &bytes[..at]),
        2 => change("emptied", b""),
        3 => change("removed from", &[&bytes[..at], &bytes[at + count..]].concat()),
        4 => change("inserted into", &[&bytes[..at], &vec![7; count], &bytes[at..]].concat()),
        5 => change("extended", &[&bytes[..], &vec![9; 1 + count]].concat()),
        6 => change("zeroed", &[&bytes[..at], &vec![0; count], &bytes[at + count..]].concat()),
        7 if !bytes.is_empty() => {
            let mut bytes = bytes.clone();
            let bit = random.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            change("flipped a bit of", &bytes)
        }
        8 => {
            let mut others = alike(files(other));
            others.push("STORE".into());
            let from = &others[random.below(others.len() as u64) as usize];
            put(disk, &path, &bytes_of(other, from));
            (format!("another store's {} to {}", from.display(), path.display()), vec![path])
        }
        _ => {
            let others = alike(all);
            let with = others[random.below(others.len() as u64) as usize].clone();
            let of_with = bytes_of(disk, &with);
            put(disk, &path, &of_with);
            let duplicated = random.once_in(2);
            if !duplicated {
                put(disk, &with, &bytes);
            }
            (
                format!("exchanged {} and {} (duplicated: {duplicated})", path.display(), with.display()),
                vec![path, with],
            )
        }
    }
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let Stopped { disk, options, content: want } = stopped(&mut random);
    let other = stopped(&mut random);
    let (handle, other) = (disk.handle(), other.disk.handle());
    let (mut what, mut hit) = (Vec::new(), BTreeSet::new());
    for _ in 0..1 + random.below(3) {
        let (done, paths) = damage(&mut random, &*handle, &*other);
        what.push(done);
        hit.extend(paths);
    }
    reports::start();
    let is_named = |text: &str| hit.iter().any(|path| text.contains(&name_of(path)));
    let store = match Stripes::open(disk.handle(), &options) {
        Ok(store) => store,
        Err(error) => {
            assert!(is_named(&error.to_string()), "{what:?}: the error names no damaged file: {error}");
            return;
        }
    };
    for (name, want) in &want {
        let got = content(&store, name);
        let said = format!("{} {}", reports::said(), got.as_ref().err().map_or("", String::as_str));
        assert!(got.as_ref() == Ok(want) || is_named(&said), "{what:?}: {name} differs in silence: {said}");
    }
    let known: BTreeSet<Vec<u8>> = want.iter().map(|(name, _)| name.as_bytes().to_vec()).collect();
    for name in store.list(b"", true).unwrap() {
        assert!(known.contains(&name), "{what:?}: an RRD that never was: {name:?}");
    }
}

#[test]
fn nothing_vanishes_in_silence() {
    each_seed(1000, run);
}
