//! Damaged stores: files flipped, cut, zeroed, shifted, extended, deleted, duplicated, exchanged, one to three at once, while
//! the store is stopped or while it runs. Every third store has segments of several levels.
//!
//! Whatever is damaged: the start refuses the store and names a damaged file, or it opens; then each RRD is as it was, or
//! the log or the failing read names a damaged file. Nothing panics.
#![allow(clippy::unwrap_used, reason = "tests")]

mod reports;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use roundel_store::disk::sim::SimDisk;
use roundel_store::disk::{Disk, Mode};
use roundel_store::engine::{CreateRequest, Engine, UpdateBatch};
use roundel_store::name::RrdName;
use roundel_store::stripes::{Options, ShardOptions, Stripes};
use rrd::definition::{Consolidation, Definition, Ds, DsKind, DsType, PlainCf, Rra};
use rrd::time::Timestamp;
use testkit::random::{Random, each_even_seed, each_odd_seed, each_seed};

const START: i64 = 1_700_000_000;
const SHARDS: u32 = 2;

/// `merging`: with limits so small that segments are merged over several levels.
fn options(random: &mut Random, merging: bool) -> Options {
    Options {
        shard_count: SHARDS,
        shard: ShardOptions {
            sync_always: random.once_in(2),
            sync_interval: Duration::from_secs(3600),
            open_bytes_min: 256 << random.below(if merging { 2 } else { 8 }),
            log_bytes_max: 4096 << random.below(8),
            merge_count: 2,
            ..ShardOptions::default()
        },
        clock: Arc::new(|| Timestamp::whole(START)),
        ..Options::default()
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

fn create(store: &Stripes, number: u64, start: i64) {
    let (sender, receiver) = mpsc::channel();
    let request = CreateRequest { definition: definition(), start, no_overwrite: true };
    store.create(rrd_name(number), request, Box::new(move |done| sender.send(done).unwrap()));
    receiver.recv().unwrap().unwrap();
}

/// One reading of each of the first `count` RRDs.
fn update(store: &Stripes, random: &mut Random, count: u64, time: i64) {
    try_update(store, random, count, time).unwrap();
}

/// Updates each RRD; what the store says when it refuses.
fn try_update(store: &Stripes, random: &mut Random, count: u64, time: i64) -> Result<(), String> {
    let mut batch = UpdateBatch::default();
    for number in 0..count {
        batch.push(rrd_name(number).as_bytes(), format!("{time}:{}", random.below(1000)).as_bytes());
    }
    let (sender, receiver) = mpsc::channel();
    store.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
    receiver.recv().unwrap().first().map_or(Ok(()), |failure| Err(failure.error.to_string()))
}

/// A store with some RRDs.
struct Filled {
    disk: SimDisk,
    options: Options,
    store: Stripes,
    /// RRDs; their names are the numbers below.
    count: u64,
    /// Updates of each so far.
    steps: i64,
}

/// What each RRD holds, as text; `None` where it is not known any more.
type Content = Vec<(RrdName, Option<String>)>;

fn content(store: &Stripes, name: &RrdName) -> Result<String, String> {
    store.read(name).map(|rrd| format!("{rrd:?}")).map_err(|error| error.to_string())
}

impl Filled {
    fn new(random: &mut Random) -> Filled {
        let merging = random.once_in(3);
        let options = options(random, merging);
        let disk = SimDisk::new(random.next());
        let store = Stripes::open(disk.handle(), &options).unwrap();
        let mut filled = Filled { disk, options, store, count: 0, steps: 0 };
        let steps = if merging { 150 + random.below(100) } else { 40 + random.below(60) };
        filled.go_on(random, steps, merging);
        if merging {
            filled.rest();
        }
        filled
    }

    fn go_on(&mut self, random: &mut Random, steps: u64, merging: bool) {
        for _ in 0..steps {
            self.steps += 1;
            if self.count == 0 || (self.count < 8 && random.once_in(6)) {
                create(&self.store, self.count, START + (self.steps - 1) * 10);
                self.count += 1;
            }
            update(&self.store, random, self.count, START + self.steps * 10);
            match random.below(25) {
                0 => self.store.checkpoint().unwrap(),
                1..3 => self.store.flush(None).unwrap(),
                3..6 if merging => self.store.checkpoint().unwrap(),
                _ => {}
            }
        }
    }

    /// Waits for merges, which happen in the background.
    fn rest(&self) {
        let written = || self.store.stats().segment_bytes_written;
        let (mut before, mut still) = (written(), 0);
        while still < 3 {
            std::thread::sleep(Duration::from_micros(300));
            still = if written() == before { still + 1 } else { 0 };
            before = written();
        }
    }

    fn content(&self) -> Content {
        let names = (0..self.count).map(rrd_name);
        names.map(|name| (name.clone(), Some(content(&self.store, &name).unwrap()))).collect()
    }

    /// The store is stopped; returns its disk.
    fn stop(self) -> SimDisk {
        self.store.stop().unwrap();
        drop(self.store);
        self.disk.kill()
    }
}

/// The highest level to which segments of a store were merged.
fn highest_level(disk: &dyn Disk) -> u64 {
    let manifests = files(disk).into_iter().filter(|path| name_of(path) == "manifest");
    let levels = manifests.flat_map(|path| {
        let text = String::from_utf8(bytes_of(disk, &path)).unwrap();
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let levels = words.windows(2).filter(|pair| pair[0] == "level");
        levels.map(|pair| pair[1].parse().unwrap()).collect::<Vec<u64>>()
    });
    // Levels from 100 on are not made by merging several segments.
    levels.filter(|level| *level < 100).max().unwrap_or(0)
}

/// Empty if a merge has just removed it.
fn bytes_of(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    // A log has more space reserved.
    let mut bytes = vec![0; 1 << 20];
    let Ok(file) = disk.open(path, Mode::Read) else { return Vec::new() };
    let count = file.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(count);
    if path.to_string_lossy().contains("/log-") {
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(used);
    }
    bytes
}

/// Changes a file, for those too that have it open.
fn put(disk: &SimDisk, path: &Path, bytes: &[u8]) {
    match disk.replace(path, bytes) {
        Ok(()) => {}
        Err(_) => drop(disk.handle().create(path).map(|file| file.write_at(bytes, 0))),
    }
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
fn damage(random: &mut Random, disk: &SimDisk, other: &dyn Disk) -> (String, Vec<PathBuf>) {
    let (sim, disk) = (disk, &*disk.handle());
    let all = files(disk);
    let path = all[random.below(all.len() as u64) as usize].clone();
    let bytes = bytes_of(disk, &path);
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let count = (1 + random.below(200) as usize).min(bytes.len() - at);
    let alike = |files: Vec<PathBuf>| {
        files.into_iter().filter(|other| kind(other) == kind(&path)).collect::<Vec<_>>()
    };
    let change = |what: &str, bytes: &[u8]| {
        put(sim, &path, bytes);
        (format!("{what} {} at {at}, {count} bytes", path.display()), vec![path.clone()])
    };
    match random.below(10) {
        0 => {
            // Unless a merge has just removed it.
            let _ = disk.remove(&path);
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
            put(sim, &path, &bytes_of(other, from));
            (format!("another store's {} to {}", from.display(), path.display()), vec![path])
        }
        _ => {
            let others = alike(all);
            let with = others[random.below(others.len() as u64) as usize].clone();
            let of_with = bytes_of(disk, &with);
            put(sim, &path, &of_with);
            let duplicated = random.once_in(2);
            if !duplicated {
                put(sim, &with, &bytes);
            }
            (
                format!("exchanged {} and {} (duplicated: {duplicated})", path.display(), with.display()),
                vec![path, with],
            )
        }
    }
}

/// What was done to a store.
#[derive(Default)]
struct Damages {
    what: Vec<String>,
    hit: BTreeSet<PathBuf>,
}

impl Damages {
    fn inflict(random: &mut Random, disk: &SimDisk, other: &dyn Disk) -> Damages {
        let mut damages = Damages::default();
        for _ in 0..1 + random.below(3) {
            let (done, paths) = damage(random, disk, other);
            damages.what.push(done);
            damages.hit.extend(paths);
        }
        damages
    }

    fn is_named(&self, text: &str) -> bool {
        self.hit.iter().any(|path| text.contains(&name_of(path)))
    }

    /// Each RRD is as it was, or the store has said what is wrong. What is not as it was is not known any more.
    fn check(&self, store: &Stripes, want: &mut Content) {
        let what = &self.what;
        for (name, want) in want {
            let got = content(store, name);
            let said = format!("{} {}", reports::said(), got.as_ref().err().map_or("", String::as_str));
            let is_same = got.is_ok() && (want.is_none() || got.as_ref().ok() == want.as_ref());
            assert!(is_same || self.is_named(&said), "{what:?}: {name} differs in silence: {said}");
            if !is_same {
                *want = None;
            }
        }
    }

    /// The store opens and has the content it had, or says what is wrong.
    fn check_start(&self, disk: &SimDisk, options: &Options, want: &mut Content) {
        let what = &self.what;
        let store = match Stripes::open(disk.handle(), options) {
            Ok(store) => store,
            Err(error) => {
                let text = error.to_string();
                assert!(self.is_named(&text), "{what:?}: the error names no damaged file: {text}");
                return;
            }
        };
        self.check(&store, want);
        let known: BTreeSet<Vec<u8>> = want.iter().map(|(name, _)| name.as_bytes().to_vec()).collect();
        for name in store.list(b"", true).unwrap() {
            assert!(known.contains(&name), "{what:?}: an RRD that never was: {name:?}");
        }
    }
}

/// Stores whose segments were merged over two or more levels, and all.
static MERGED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let filled = Filled::new(&mut random);
    let (mut want, options) = (filled.content(), filled.options.clone());
    let disk = filled.stop();
    MERGED[0].fetch_add(u64::from(highest_level(&*disk.handle()) >= 2), Ordering::Relaxed);
    MERGED[1].fetch_add(1, Ordering::Relaxed);
    let other = Filled::new(&mut random).stop();
    let damages = Damages::inflict(&mut random, &disk, &*other.handle());
    reports::start();
    damages.check_start(&disk, &options, &mut want);
}

// Two tests, so that they run side by side.
#[test]
fn nothing_vanishes_in_silence_with_even_seeds() {
    run_half(each_even_seed);
}

#[test]
fn nothing_vanishes_in_silence_with_odd_seeds() {
    run_half(each_odd_seed);
}

fn run_half(each: fn(u64, fn(u64))) {
    let _alone = reports::alone();
    // Another test of this process may have counted.
    MERGED.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    each(1600, run);
    let [merged, all] = MERGED.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert!(all < 100 || merged > all / 6, "of {all} stores only {merged} had segments of several levels");
}

/// Seeds that failed once.
#[test]
fn what_was_found_stays_mended() {
    let _alone = reports::alone();
    // STORE and a manifest of one other store: the error named only a file that this manifest names and that never was there.
    run(68_164);
}

/// The store is damaged while it runs, used on, killed and started again.
fn run_running(seed: u64) {
    let mut random = Random::new(seed);
    let other = Filled::new(&mut random).stop();
    let mut filled = Filled::new(&mut random);
    let mut want = filled.content();
    reports::start();
    let damages = Damages::inflict(&mut random, &filled.disk, &*other.handle());
    damages.check(&filled.store, &mut want);
    let mut refuses = false;
    for _ in 0..random.below(30) {
        filled.steps += 1;
        let mut done = try_update(&filled.store, &mut random, filled.count, START + filled.steps * 10);
        if done.is_ok() && random.once_in(10) {
            done = filled.store.checkpoint().map_err(|error| error.to_string());
        }
        // Where a segment is hit that is just being written, its shard refuses updates, and says why.
        if let Err(why) = done {
            assert!(damages.is_named(&why), "{:?}: {why}", damages.what);
            refuses = true;
            break;
        }
    }
    for (name, want) in &mut want {
        // A read that fails is another report; what it would have said is not known.
        match content(&filled.store, name) {
            Ok(now) if want.is_some() => *want = Some(now),
            Ok(_) => {}
            Err(error) => {
                assert!(damages.is_named(&error), "{:?}: {name}: {error}", damages.what);
                *want = None;
            }
        }
    }
    let options = filled.options.clone();
    // After a kill, a log that is gone and was never synced looks as if it had never been, and one that was cut exactly between two
    // records looks like its end (`docs/reliability.md`).
    let is_cut = |done: &String| ["deleted", "cut"].iter().any(|word| done.starts_with(word));
    let is_log_short = damages.what.iter().any(|done| is_cut(done) && done.contains("/log-"));
    let disk = match random.once_in(2) || is_log_short {
        // It cannot complete what it refuses.
        true if refuses => {
            filled.store.stop().ok();
            drop(filled.store);
            filled.disk.kill()
        }
        true => filled.stop(),
        false => filled.disk.kill(),
    };
    damages.check_start(&disk, &options, &mut want);
}

#[test]
fn damage_while_it_runs_is_not_silent() {
    let _alone = reports::alone();
    each_seed(400, run_running);
}
