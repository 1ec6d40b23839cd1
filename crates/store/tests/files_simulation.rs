//! The files layout on simulated disks: random operations, crashes of the process, lost power, failing
//! writes, a full journal.
//!
//! The test checks the promises of `docs/format/journal.md`. A crash of the process loses nothing that was
//! acknowledged. Under `sync = "always"` neither does a loss of power, as long as no file is being written;
//! such a file may be torn, as with RRDtool, but no acknowledged update is missing from it. Under an interval the same holds
//! for what was acknowledged before the last sync. A change that was refused because of the disk may or may not be there. Each seed is a separate run: `ROUNDEL_SEED=n` replays
//! one, `ROUNDEL_SEEDS=n` sets how many.

#[path = "simulation/model.rs"]
mod model;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use disk::sim::Operation;
use disk::{Disk, SimDisk};
use model::{Model, Op, definition};
use roundel_store::engine::{CreateRequest, Engine, StoreError, UpdateBatch, UpdateFailure};
use roundel_store::files::{Directory, FilesEngine, Options, SyncMode};
use rrd::live::HeadShape;
use rrd::time::Timestamp;
use rrd_file::name::RrdName;
use rrd_file::tree::Tree;
use testkit::random::{Random, each_seed};

const START: i64 = 1_700_000_000;
const LONG: Duration = Duration::from_secs(3600);

/// An engine on two simulated disks, and its expected content.
struct World {
    random: Random,
    files: SimDisk,
    journal: SimDisk,
    engine: FilesEngine,
    options: Options,
    now: i64,
    model: Model,
    /// RRDs whose last change was refused because of the disk.
    uncertain: BTreeSet<String>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let options = Options {
            // In half of the runs, every update is written to its file at once.
            write_interval: if random.once_in(2) { LONG } else { Duration::ZERO },
            flush_interval: LONG,
            write_threads: 1 + random.below(2) as usize,
            accept_threads: 1 + random.below(3) as usize,
            sync: if random.once_in(2) { SyncMode::Always } else { SyncMode::Every(LONG) },
            ..Options::new(PathBuf::from("tree"), PathBuf::from("journal"))
        };
        let (files, journal) = (SimDisk::new(random.next()), SimDisk::new(random.next()));
        let engine = open(&options, &files, &journal).expect("a new engine opens");
        let (model, uncertain) = (Model::default(), BTreeSet::new());
        World { random, files, journal, engine, options, now: START, model, uncertain }
    }

    fn name(&mut self) -> String {
        format!("host-{}/{}.rrd", self.random.below(2), self.random.below(4))
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..10 => self.create(),
            10..13 => self.delete(),
            13..16 => self.rename(),
            16..18 => self.copy(),
            18..85 => self.updates(1),
            85..92 => {
                let name = self.name();
                match self.engine.flush(Some(&rrd_name(&name))) {
                    Ok(()) | Err(StoreError::NoSuchRrd(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            92..94 => self.engine.flush(None).expect("a flush on a good disk"),
            _ => {
                let name = self.name();
                self.check_rrd(&name);
            }
        }
    }

    fn create(&mut self) {
        let name = self.name();
        // Without seasons, which may be adapted twice, as with RRDtool.
        let definition = definition(self.random.below(6));
        let (start, no_overwrite) = (self.now - 10, self.random.once_in(2));
        let request = CreateRequest { definition: definition.clone(), start, no_overwrite };
        let refused = no_overwrite && self.model.0.contains_key(&name);
        let (sender, receiver) = mpsc::channel();
        let reply = Box::new(move |result| sender.send(result).expect("the test waits"));
        self.engine.create(rrd_name(&name), request, reply);
        match receiver.recv().expect("an answer") {
            Ok(()) => {
                assert!(!refused, "{name}");
                self.model.apply(&Op::Create { name, definition, start });
            }
            Err(error) => assert!(refused && matches!(error, StoreError::Exists(_)), "{error}"),
        }
    }

    fn delete(&mut self) {
        let name = self.name();
        match self.engine.delete(&rrd_name(&name)) {
            Ok(()) => self.model.apply(&Op::Delete { name, at: 0 }),
            Err(error) => self.expect_unknown(&name, &error),
        }
    }

    fn rename(&mut self) {
        let (name, to) = (self.name(), self.name());
        match self.engine.rename(&rrd_name(&name), &rrd_name(&to)) {
            Ok(()) if name == to => {}
            Ok(()) => self.model.apply(&Op::Rename { name, to }),
            Err(error) => self.expect_unknown(&name, &error),
        }
    }

    fn copy(&mut self) {
        let (name, to) = (self.name(), self.name());
        match self.engine.copy(&rrd_name(&name), &rrd_name(&to)) {
            Ok(()) if name == to => {}
            Ok(()) => self.model.apply(&Op::Copy { name, to }),
            Err(error) => self.expect_unknown(&name, &error),
        }
    }

    fn expect_unknown(&self, name: &str, error: &StoreError) {
        assert!(!self.model.0.contains_key(name) && matches!(error, StoreError::NoSuchRrd(_)), "{error}");
    }

    /// Updates some RRDs. Those refused because of the disk become uncertain; returns how many.
    fn update(&mut self) -> usize {
        let passed = if self.random.once_in(30) { self.random.below(900) } else { self.random.below(12) };
        self.now += 1 + passed as i64;
        let mut batch = UpdateBatch::default();
        let mut ops = Vec::new();
        for _ in 0..1 + self.random.below(8) {
            let name = self.name();
            let ds_count = self.model.0.get(&name).map_or(1, |rrd| rrd.definition.ds.len());
            let values: Vec<String> = (0..ds_count).map(|_| self.random.below(1 << 30).to_string()).collect();
            let (values, micros) = (values.join(":"), (self.random.below(4) * 250_000) as u32);
            batch.push(name.as_bytes(), format!("{}.{micros:06}:{values}", self.now).as_bytes());
            ops.push(Op::Update { name, time: Timestamp::new(self.now, micros), values });
        }
        let failures = self.send(batch);
        let mut refused = 0;
        for (index, op) in ops.into_iter().enumerate() {
            match failures.iter().find(|failure| failure.line == index as u32).map(|failure| &failure.error) {
                None if self.uncertain.contains(op.name()) => {}
                None => self.model.apply(&op),
                Some(StoreError::NoSuchRrd(_)) => {
                    assert!(!self.model.0.contains_key(op.name()), "{} is gone", op.name());
                }
                Some(StoreError::Update(_)) => {}
                Some(_) => {
                    refused += 1;
                    self.uncertain.insert(op.name().to_string());
                }
            }
        }
        refused
    }

    fn updates(&mut self, count: u64) {
        for _ in 0..count {
            self.update();
        }
    }

    fn send(&self, batch: UpdateBatch) -> Vec<UpdateFailure> {
        let (sender, receiver) = mpsc::channel();
        self.engine.update(batch, Box::new(move |failures| sender.send(failures).expect("the test waits")));
        receiver.recv().expect("an answer")
    }

    /// The process dies, and another starts.
    fn kill(&mut self) {
        let (files, journal) = (self.files.kill(), self.journal.kill());
        self.reopen(files, journal);
        self.settle_uncertain();
        self.check_all();
    }

    fn reopen(&mut self, files: SimDisk, journal: SimDisk) {
        self.engine = open(&self.options, &files, &journal).expect("an engine opens again");
        (self.files, self.journal) = (files, journal);
    }

    /// No acknowledged update may be missing from an uncertain RRD, which then starts again.
    fn settle_uncertain(&mut self) {
        for name in std::mem::take(&mut self.uncertain) {
            if self.model.0.contains_key(&name) {
                assert!(self.last_update(&name) >= self.model_last_update(&name), "{name}");
                self.engine.delete(&rrd_name(&name)).expect("it can be deleted");
                self.model.apply(&Op::Delete { name, at: 0 });
            }
        }
    }

    fn last_update(&self, name: &str) -> Timestamp {
        let snapshot = self.engine.snapshot(&rrd_name(name)).expect("it is there");
        HeadShape::of(&snapshot.definition).split(&snapshot.live.words).last_update
    }

    fn model_last_update(&self, name: &str) -> Timestamp {
        let rrd = &self.model.0[name];
        HeadShape::of(&rrd.definition).split(&rrd.live.words).last_update
    }

    fn check_all(&self) {
        let names: Vec<Vec<u8>> = self.model.0.keys().map(|name| name.clone().into_bytes()).collect();
        assert_eq!(self.engine.list(b"", true).expect("a list"), names);
        self.model.0.keys().for_each(|name| self.check_rrd(name));
    }

    fn check_rrd(&self, name: &str) {
        if self.uncertain.contains(name) {
            return;
        }
        match (self.model.0.get(name), self.engine.read(&rrd_name(name))) {
            (None, Err(StoreError::NoSuchRrd(_))) => {}
            (Some(want), Ok(got)) => {
                // As text: limits may be NaN, which is not equal to itself.
                assert_eq!(format!("{:?}", got.definition), format!("{:?}", want.definition), "{name}");
                assert_eq!(got.live.words, want.live.words, "{name}");
                let bits = |rows: &Vec<f64>| rows.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                let archives: Vec<Vec<u64>> = got.archives.iter().map(bits).collect();
                assert_eq!(archives, want.archives(), "{name}");
            }
            (want, got) => panic!("{name}: wanted it {}, got {:?}", want.is_some(), got.map(|_| ())),
        }
    }
}

fn open(options: &Options, files: &SimDisk, journal: &SimDisk) -> Result<FilesEngine, StoreError> {
    let tree = Tree::on_disk(files.handle(), Path::new("tree"));
    let directory = Directory::on_disk(journal.handle(), Path::new("journal"));
    FilesEngine::open_on(options.clone(), tree, Some(directory))
}

fn rrd_name(name: &str) -> RrdName {
    RrdName::new(name.as_bytes()).expect("a good name")
}

/// Kills between operations and in the middle of them.
fn run_kills(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..3 {
        (0..10 + world.random.below(40)).for_each(|_| world.step());
        match world.random.below(3) {
            0 => {}
            1 => world.journal.power_off_after(world.random.below(12)),
            _ => world.files.power_off_after(world.random.below(12)),
        }
        // Only updates: for an interrupted create or delete, either outcome is right.
        let count = world.random.below(10);
        world.updates(count);
        world.kill();
    }
    world.engine.stop().expect("a clean stop");
}

#[test]
fn kills_lose_nothing_acknowledged() {
    each_seed(400, run_kills);
}

/// The process dies while an RRD with buffered updates is replaced or removed. Afterwards it is the old one
/// with everything that was acknowledged, the new one, or removed.
fn run_replaced(seed: u64) {
    let mut world = World::new(seed);
    let name = "host-0/0.rrd".to_string();
    let definition = definition(0);
    let create = |world: &World, start: i64| {
        let request = CreateRequest { definition: definition.clone(), start, no_overwrite: false };
        let (sender, receiver) = mpsc::channel();
        let reply = Box::new(move |result| sender.send(result).expect("the test waits"));
        world.engine.create(rrd_name(&name), request, reply);
        receiver.recv().expect("an answer")
    };
    create(&world, START - 10).expect("a new RRD");
    world.model.apply(&Op::Create { name: name.clone(), definition: definition.clone(), start: START - 10 });
    world.updates(20);
    match world.random.below(2) {
        0 => world.files.power_off_after(world.random.below(12)),
        _ => world.journal.power_off_after(world.random.below(3)),
    }
    let removed = world.random.once_in(2);
    let result = match removed {
        true => world.engine.delete(&rrd_name(&name)),
        false => create(&world, START + 100_000),
    };
    let (files, journal) = (world.files.kill(), world.journal.kill());
    world.reopen(files, journal);
    let new = Timestamp::whole(START + 100_000);
    match world.engine.snapshot(&rrd_name(&name)) {
        Err(StoreError::NoSuchRrd(_)) if removed => {}
        Err(error) => panic!("{error}"),
        Ok(_) if !removed && world.last_update(&name) == new => {}
        Ok(_) => {
            assert!(result.is_err(), "an acknowledged change is there");
            world.check_rrd(&name);
        }
    }
}

#[test]
fn a_kill_while_an_rrd_is_replaced_loses_nothing_acknowledged() {
    each_seed(400, run_replaced);
}

/// Writes of the journal and of files sometimes fail, leaving a part of what they should have written.
fn run_failing(seed: u64) {
    let mut world = World::new(seed);
    (0..30).for_each(|_| world.step());
    for _ in 0..4 {
        let full = ErrorKind::StorageFull;
        world.journal.fail(Operation::Write, world.random.below(4), full);
        world.updates(8);
    }
    // A failed sync stops updates until the next start, and loses none that was acknowledged.
    world.journal.fail(Operation::Sync, 0, ErrorKind::Other);
    world.updates(4);
    world.kill();
    (0..20).for_each(|_| world.step());
    world.kill();
}

#[test]
fn failing_writes_lose_nothing_acknowledged() {
    each_seed(200, run_failing);
}

/// The power fails. Files that are not being written at that moment are intact afterwards.
fn run_crashes(seed: u64) {
    let mut world = World::new(seed);
    world.options.sync = SyncMode::Always;
    world.options.write_interval = LONG;
    let (files, journal) = (world.files.kill(), world.journal.kill());
    world.reopen(files, journal);
    for _ in 0..3 {
        for _ in 0..10 + world.random.below(20) {
            match world.random.below(10) {
                0..3 => world.create(),
                3 => world.delete(),
                _ => world.updates(1),
            }
        }
        if world.random.once_in(3) {
            world.engine.flush(None).expect("a flush on a good disk");
            world.files.sync_all().expect("a sync on a good disk");
            world.updates(10);
        }
        let (files, journal) = (world.files.crash(), world.journal.crash());
        world.reopen(files, journal);
        world.check_all();
    }
}

#[test]
fn lost_power_loses_nothing_acknowledged_under_sync_always() {
    each_seed(400, run_crashes);
}

/// The power fails while files are written: they may be torn, but no update is missing.
fn run_torn(seed: u64) {
    let mut world = World::new(seed);
    world.options.sync = SyncMode::Always;
    world.options.write_interval = Duration::ZERO;
    let (files, journal) = (world.files.kill(), world.journal.kill());
    world.reopen(files, journal);
    (0..6).for_each(|_| world.create());
    let count = 20 + world.random.below(40);
    world.updates(count);
    if world.random.once_in(2) {
        world.engine.flush(None).expect("a flush on a good disk");
    }
    let (files, journal) = (world.files.crash(), world.journal.crash());
    world.reopen(files, journal);
    for name in world.model.0.keys() {
        assert!(world.last_update(name) >= world.model_last_update(name), "{name}");
        world.engine.read(&rrd_name(name)).expect("it can be read");
    }
}

#[test]
fn lost_power_while_files_are_written_loses_no_update() {
    each_seed(400, run_torn);
}

/// The journal's disk fills up and has room again.
fn run_full(seed: u64) {
    let mut world = World::new(seed);
    (0..40).for_each(|_| world.step());
    world.journal.set_capacity(world.journal.used_bytes() + world.random.below(600));
    let mut refused = 0;
    for _ in 0..100 {
        refused += world.update();
        if refused > 0 && world.random.once_in(4) {
            break;
        }
    }
    world.check_all_certain();
    world.journal.set_capacity(u64::MAX);
    world.kill();
    (0..20).for_each(|_| world.step());
    world.kill();
}

impl World {
    fn check_all_certain(&self) {
        self.model.0.keys().for_each(|name| self.check_rrd(name));
    }
}

#[test]
fn a_full_journal_loses_nothing_acknowledged() {
    each_seed(200, run_full);
}

/// The power fails after a sync of the interval: everything that was answered before it is there, new and removed files too.
/// With `wait` it is the daemon's own sync, otherwise that of a clean stop.
fn run_synced_creates(seed: u64, wait: bool) {
    let mut world = World::new(seed);
    world.options.sync = SyncMode::Every(if wait { Duration::from_millis(1) } else { LONG });
    world.options.write_interval = LONG;
    // One journal: its second sync from now on belongs to a round that has begun after now.
    world.options.accept_threads = 1;
    let (files, journal) = (world.files.kill(), world.journal.kill());
    world.reopen(files, journal);
    // Few and many new files are synced in different ways.
    for number in 0..if world.random.once_in(2) { 10 } else { 50 } {
        let (name, definition) = (format!("{}/new-{number}.rrd", number % 3), definition(0));
        let request = CreateRequest { definition: definition.clone(), start: START - 10, no_overwrite: true };
        let (sender, receiver) = mpsc::channel();
        let reply = Box::new(move |result| sender.send(result).expect("the test waits"));
        world.engine.create(rrd_name(&name), request, reply);
        receiver.recv().expect("an answer").expect("a new RRD");
        world.model.apply(&Op::Create { name, definition, start: START - 10 });
    }
    (0..10).for_each(|_| world.create());
    (0..3).for_each(|_| world.delete());
    // The next process does not know which files were new.
    if world.random.once_in(2) {
        let (files, journal) = (world.files.kill(), world.journal.kill());
        world.reopen(files, journal);
    }
    match wait {
        true => (0..2).for_each(|_| world.wait_for_sync()),
        false => world.engine.stop().expect("a clean stop"),
    }
    let (files, journal) = (world.files.crash(), world.journal.crash());
    world.reopen(files, journal);
    world.check_all();
}

impl World {
    /// Waits until an update has been synced to the journal.
    fn wait_for_sync(&mut self) {
        let syncs = self.journal.counts().syncs;
        self.now += 10;
        let name = "0/new-0.rrd".to_string();
        let mut batch = UpdateBatch::default();
        batch.push(name.as_bytes(), format!("{}:1", self.now).as_bytes());
        assert!(self.send(batch).is_empty());
        let (time, values) = (Timestamp::whole(self.now), "1".to_string());
        self.model.apply(&Op::Update { name, time, values });
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.journal.counts().syncs == syncs {
            assert!(Instant::now() < deadline, "no sync");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn new_files_are_durable_after_the_sync_of_an_interval() {
    each_seed(60, |seed| run_synced_creates(seed, seed % 3 == 0));
}
