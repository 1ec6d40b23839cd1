//! The real store on a simulated disk: random operations, crashes at random moments, full disks.
//!
//! A crash of the process must lose nothing acknowledged. A loss of power must lose nothing that a sync
//! covered, and what remains must be a prefix of what was acknowledged. Each seed is a separate run:
//! `ROUNDEL_SEED=n` replays one, `ROUNDEL_SEEDS=n` sets how many.

#[path = "simulation/model.rs"]
mod model;
#[path = "simulation/replication.rs"]
mod replication;
#[path = "simulation/streams.rs"]
mod streams;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use model::{Model, ModelRrd, Op, definition};
use roundel_store::disk::sim::{ShutDown, SimDisk};
use roundel_store::disk::{Mode, Shortage};
use roundel_store::engine::{CreateRequest, Engine, StoreError, UpdateBatch, UpdateFailure};
use roundel_store::name::RrdName;
use roundel_store::stripes::ShardOptions;
use roundel_store::stripes::{Options, Stripes};
use rrd::time::Timestamp;
use testkit::random::{Random, each_even_seed, each_odd_seed, each_seed};

const START: i64 = 1_700_000_000;

/// Seconds that a store with a trash keeps what was deleted.
const TRASH: i64 = 3600;

/// A store on a simulated disk, and its expected content.
struct World {
    random: Random,
    disk: SimDisk,
    store: Stripes,
    options: Options,
    clock: Arc<AtomicI64>,
    /// Everything acknowledged, in order.
    ops: Vec<Op>,
    /// How many of them a sync has covered.
    synced: usize,
    /// RRDs with an update that was refused because of a full disk: it may have been applied.
    uncertain: BTreeSet<String>,
    /// RRDs that are not updated for a while.
    silent: BTreeSet<String>,
    model: Model,
}

impl World {
    fn new(seed: u64) -> World {
        World::with(seed, |_| {})
    }

    /// A world with up to four shards, of which a loss of power keeps different prefixes.
    fn sharded(seed: u64) -> World {
        let mut world = World::new(seed);
        world.options.shard_count = 2 + world.random.below(3) as u32;
        world.disk = SimDisk::new(world.random.next());
        world.store = Stripes::open(world.disk.handle(), &world.options).expect("a new store opens");
        world
    }

    /// A world whose options are changed before the store is made.
    fn with(seed: u64, change: impl FnOnce(&mut ShardOptions)) -> World {
        let mut random = Random::new(seed);
        let clock = Arc::new(AtomicI64::new(START));
        let shared_clock = Arc::clone(&clock);
        let mut options = Options {
            shard_count: 1,
            shard: ShardOptions {
                sync_always: random.below(3) == 0,
                // Syncs happen only when the test requests one, so that it knows what they cover.
                sync_interval: Duration::from_secs(3600),
                open_bytes_min: 256 << random.below(6),
                log_bytes_max: 2048 << random.below(6),
                merge_count: 2 + random.below(3) as usize,
                ..ShardOptions::default()
            },
            trash: Duration::from_secs([0, TRASH as u64][random.below(2) as usize]),
            clock: Arc::new(move || Timestamp::whole(shared_clock.load(Ordering::Relaxed))),
            ..Options::default()
        };
        change(&mut options.shard);
        let disk = SimDisk::new(random.next());
        let store = Stripes::open(disk.handle(), &options).expect("a new store opens");
        World {
            random,
            disk,
            store,
            options,
            clock,
            ops: Vec::new(),
            synced: 0,
            uncertain: BTreeSet::new(),
            silent: BTreeSet::new(),
            model: Model::default(),
        }
    }

    fn acknowledge(&mut self, op: Op) {
        self.model.apply(&op);
        self.ops.push(op);
        if self.options.shard.sync_always {
            self.synced = self.ops.len();
        }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..8 => self.create(),
            8..10 => self.delete(),
            10..15 => self.rename(),
            15..17 => self.copy(),
            17..19 => self.restore(),
            19..90 => self.update(),
            90..94 => self.sync(),
            94..96 => {
                self.store.checkpoint().expect("a checkpoint on a good disk");
                self.synced = self.ops.len();
            }
            _ => self.check_one(),
        }
    }

    fn name(&mut self) -> String {
        format!("host-{}/{}.rrd", self.random.below(3), self.random.below(4))
    }

    fn create(&mut self) {
        let name = self.name();
        let definition = definition(self.random.next());
        let start = self.clock.load(Ordering::Relaxed) - 10;
        let request =
            CreateRequest { definition: definition.clone(), start, no_overwrite: self.random.below(2) == 0 };
        let exists = self.model.0.contains_key(&name);
        let (sender, receiver) = mpsc::channel();
        let reply = Box::new(move |result| sender.send(result).expect("the test waits"));
        let refused = exists && request.no_overwrite;
        self.store.create(rrd_name(&name), request, reply);
        match receiver.recv().expect("an answer") {
            Ok(()) => {
                assert!(!refused);
                if exists {
                    self.acknowledge(Op::Replace { name: name.clone() });
                }
                self.acknowledge(Op::Create { name, definition, start });
            }
            Err(error) => assert!(refused && matches!(error, StoreError::Exists(_)), "{error}"),
        }
    }

    fn delete(&mut self) {
        let name = self.name();
        match self.store.delete(&rrd_name(&name)) {
            Ok(()) => self.delete_in_model(name),
            Err(error) => self.expect_unknown(&name, &error),
        }
    }

    fn rename(&mut self) {
        self.change_names(Stripes::rename, |name, to| Op::Rename { name, to });
    }

    fn copy(&mut self) {
        self.change_names(Stripes::copy, |name, to| Op::Copy { name, to });
    }

    fn change_names(
        &mut self,
        change: fn(&Stripes, &RrdName, &RrdName) -> Result<(), StoreError>,
        op: fn(String, String) -> Op,
    ) {
        let (name, to) = (self.name(), self.name());
        match change(&self.store, &rrd_name(&name), &rrd_name(&to)) {
            Ok(()) if name == to => {}
            Ok(()) => {
                self.displace(&to);
                self.acknowledge(op(name, to));
            }
            Err(error) => self.expect_unknown(&name, &error),
        }
    }

    fn restore(&mut self) {
        let (name, to) = (self.name(), self.name());
        let trash = self.store.trash().expect("the trash");
        let Some(last) = trash.iter().rfind(|trashed| trashed.name == rrd_name(&name)) else {
            let deleted = self.model.1.get(&name).and_then(|deleted| deleted.last());
            let is_expired = |at: i64| self.clock.load(Ordering::Relaxed) - at >= TRASH;
            assert!(!self.has_trash() || deleted.is_none_or(|(at, _)| is_expired(*at)), "{name}");
            return;
        };
        match self.store.restore(last, &rrd_name(&to)) {
            Ok(()) => self.acknowledge(Op::Restore { name, to }),
            Err(error) => {
                assert!(self.model.0.contains_key(&to) && matches!(error, StoreError::Exists(_)), "{error}");
            }
        }
    }

    fn has_trash(&self) -> bool {
        !self.options.trash.is_zero()
    }

    /// What a rename or copy has replaced.
    fn displace(&mut self, name: &str) {
        if self.model.0.contains_key(name) {
            self.delete_in_model(name.to_string());
        }
    }

    fn delete_in_model(&mut self, name: String) {
        self.acknowledge(Op::Delete { name, at: self.clock.load(Ordering::Relaxed) });
    }

    fn expect_unknown(&self, name: &str, error: &StoreError) {
        assert!(!self.model.0.contains_key(name) && matches!(error, StoreError::NoSuchRrd(_)), "{error}");
    }

    fn update(&mut self) {
        let (batch, ops) = self.batch();
        let failures = self.send(batch);
        for (index, op) in ops.into_iter().enumerate() {
            if !failures.iter().any(|failure| failure.line == index as u32) {
                self.acknowledge(op);
            }
        }
    }

    /// Updates of some RRDs at a later time, including a few that do not exist.
    fn batch(&mut self) -> (UpdateBatch, Vec<Op>) {
        let passed =
            if self.random.below(30) == 0 { self.random.below(900) } else { 1 + self.random.below(12) };
        let now = self.clock.fetch_add(passed as i64, Ordering::Relaxed) + passed as i64;
        let mut batch = UpdateBatch::default();
        let mut ops = Vec::new();
        for _ in 0..1 + self.random.below(12) {
            let name = self.name();
            if self.silent.contains(&name) {
                continue;
            }
            let ds_count = self.model.0.get(&name).map_or(1, |rrd| rrd.definition.ds.len());
            let value = |random: &mut Random| match random.below(9) {
                0 => "U".to_string(),
                _ => (random.below(1 << 30)).to_string(),
            };
            let values: Vec<String> = (0..ds_count).map(|_| value(&mut self.random)).collect();
            let (values, micros) = (values.join(":"), (self.random.below(4) * 250_000) as u32);
            let word = format!("{now}.{micros:06}:{values}");
            batch.push(name.as_bytes(), word.as_bytes());
            ops.push(Op::Update { name, time: Timestamp::new(now, micros), values });
        }
        (batch, ops)
    }

    fn send(&self, batch: UpdateBatch) -> Vec<UpdateFailure> {
        let (sender, receiver) = mpsc::channel();
        self.store.update(batch, Box::new(move |failures| sender.send(failures).expect("the test waits")));
        receiver.recv().expect("an answer")
    }

    fn sync(&mut self) {
        self.store.flush(None).expect("a sync on a good disk");
        self.synced = self.ops.len();
    }

    fn check_one(&mut self) {
        let name = self.name();
        check_rrd(&self.store, &self.model, &name);
    }

    /// The process dies and starts again.
    fn kill(&mut self) {
        self.reopen(self.disk.kill());
        self.check_all();
    }

    /// The power fails.
    fn crash(&mut self) {
        self.reopen(self.disk.crash());
        let kept = self.kept_prefix();
        self.ops.truncate(kept);
        self.synced = kept;
        self.model = Model::default();
        for op in &self.ops {
            self.model.apply(op);
        }
        self.check_all();
    }

    fn reopen(&mut self, disk: SimDisk) {
        let store = Stripes::open(disk.handle(), &self.options).expect("a crashed store opens");
        self.store = store;
        self.disk = disk;
    }

    /// How much of what was acknowledged remains: the shortest prefix, from the synced one on, that equals
    /// the store.
    fn kept_prefix(&self) -> usize {
        let names = self.store.list(b"", true).expect("a list");
        let head = |name: Vec<u8>| {
            let rrd = RrdName::new(&name).expect("a good name");
            let found = self.store.snapshot(&rrd).expect("a listed RRD");
            (String::from_utf8(name).expect("our names"), found.live.words, format!("{:?}", found.definition))
        };
        let heads: Vec<(String, Vec<u64>, String)> = names.into_iter().map(head).collect();
        let mut model = Model::default();
        self.ops[..self.synced].iter().for_each(|op| model.apply(op));
        for kept in self.synced..=self.ops.len() {
            // The words of an RRD that was deleted and created again may be the same as before.
            let is_like = |(name, rrd): (&String, &ModelRrd), head: &(String, Vec<u64>, String)| {
                (name, &rrd.live.words) == (&head.0, &head.1) && format!("{:?}", rrd.definition) == head.2
            };
            if model.0.len() == heads.len()
                && model.0.iter().zip(&heads).all(|(rrd, head)| is_like(rrd, head))
            {
                return kept;
            }
            if let Some(op) = self.ops.get(kept) {
                model.apply(op);
            }
        }
        panic!("the store holds no prefix of what was acknowledged from {} on", self.synced);
    }

    /// Checks the RRDs whose state is certain.
    fn check_certain(&self) {
        for name in self.model.0.keys().filter(|name| !self.uncertain.contains(*name)) {
            check_rrd(&self.store, &self.model, name);
        }
        for name in &self.uncertain {
            if self.model.0.contains_key(name) {
                self.store.read(&rrd_name(name)).expect("it can be read");
            }
        }
    }

    fn check_all(&self) {
        let names: Vec<Vec<u8>> = self.model.0.keys().map(|name| name.clone().into_bytes()).collect();
        assert_eq!(self.store.list(b"", true).expect("a list"), names);
        for name in self.model.0.keys() {
            check_rrd(&self.store, &self.model, name);
        }
    }
}

fn rrd_name(name: &str) -> RrdName {
    RrdName::new(name.as_bytes()).expect("a good name")
}

fn check_rrd(store: &Stripes, model: &Model, name: &str) {
    match (model.0.get(name), store.read(&rrd_name(name))) {
        (None, Err(StoreError::NoSuchRrd(_))) => {}
        (Some(want), Ok(got)) => {
            // As text: limits may be NaN, which is not equal to itself.
            assert_eq!(format!("{:?}", got.definition), format!("{:?}", want.definition), "{name}");
            assert_eq!(got.live.words, want.live.words, "{name}");
            assert_eq!(format!("{:?}", got.live.seasons), format!("{:?}", want.live.seasons), "{name}");
            let bits = |rows: &Vec<f64>| rows.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            let archives: Vec<Vec<u64>> = got.archives.iter().map(bits).collect();
            for (rra, (got, want)) in archives.iter().zip(&want.archives()).enumerate() {
                if let Some(at) = (0..want.len()).find(|&at| got.get(at) != Some(&want[at])) {
                    let show =
                        |bits: &[u64]| bits.iter().map(|&bits| f64::from_bits(bits)).collect::<Vec<_>>();
                    panic!(
                        "{name} archive {rra} value {at} of {}:\n{:?}\n{:?}",
                        want.len(),
                        show(got),
                        show(want)
                    );
                }
            }
        }
        (want, got) => panic!("{name}: wanted it {}, got {:?}", want.is_some(), got.map(|_| ())),
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..2 + world.random.below(3) {
        for _ in 0..20 + world.random.below(60) {
            world.step();
        }
        match world.random.below(2) {
            0 => world.kill(),
            _ => world.crash(),
        }
    }
    world.store.stop().expect("a clean stop");
}

/// RRDs live through many flushes and merges, some of them without updates for a while: segments of several
/// levels and classes at once, old rows next to new ones in one merge.
fn run_long(seed: u64) {
    let mut world = World::new(seed);
    (0..12).for_each(|_| world.create());
    for _ in 0..12 {
        world.silent = world.model.0.keys().filter(|_| world.random.below(2) == 0).cloned().collect();
        for _ in 0..60 {
            match world.random.below(30) {
                0 => world.sync(),
                1 => world.check_all(),
                _ => world.update(),
            }
        }
        match world.random.below(6) {
            0 => world.kill(),
            1 => world.crash(),
            _ => {}
        }
    }
    world.check_all();
    world.store.stop().expect("a clean stop");
}

// Two tests, so that they run side by side.
#[test]
fn crashes_lose_nothing_acknowledged_with_even_seeds() {
    each_even_seed(2000, run);
}

#[test]
fn crashes_lose_nothing_acknowledged_with_odd_seeds() {
    each_odd_seed(2000, run);
}

/// RRDs are renamed to names that other shards had.
fn run_sharded(seed: u64) {
    let mut world = World::sharded(seed);
    for _ in 0..3 {
        for _ in 0..60 {
            match world.random.below(4) {
                0 => world.rename(),
                1 => world.copy(),
                _ => world.step(),
            }
        }
        world.kill();
    }
    world.store.stop().expect("a clean stop");
}

#[test]
fn renames_between_shards_survive_a_kill() {
    each_seed(300, run_sharded);
}

#[test]
fn flushes_and_merges_lose_no_rows() {
    each_seed(300, run_long);
}

/// A store is stopped while more changes are queued than fit in its memory, and its flush has only just
/// ended.
fn run_stopped_while_busy(seed: u64) {
    let mut world = World::new(seed);
    (0..12).for_each(|_| world.create());
    let (sender, answers) = mpsc::channel();
    let sent = 40 + world.random.below(400);
    for _ in 0..sent {
        let (batch, _) = world.batch();
        let sender = sender.clone();
        world.store.update(batch, Box::new(move |_| sender.send(()).expect("the test waits")));
    }
    drop(sender);
    let (stopped, seen) = mpsc::channel();
    let store = world.store;
    let stopping = std::thread::spawn(move || {
        store.stop().expect("a clean stop");
        stopped.send(()).expect("the test waits");
    });
    seen.recv_timeout(std::time::Duration::from_secs(120)).expect("it stops");
    stopping.join().expect("no panic");
    assert_eq!(answers.iter().count() as u64, sent, "every change is answered");
}

#[test]
fn a_busy_store_stops() {
    each_seed(300, run_stopped_while_busy);
}

/// The outcomes for stores with bit rot.
#[derive(Default)]
struct Rotten {
    all: AtomicU64,
    opened: AtomicU64,
    /// RRDs whose read reported a damaged segment.
    damaged: AtomicU64,
    /// RRDs that were read.
    whole: AtomicU64,
}

static ROTTEN: Rotten = Rotten {
    all: AtomicU64::new(0),
    opened: AtomicU64::new(0),
    damaged: AtomicU64::new(0),
    whole: AtomicU64::new(0),
};

/// Bytes of a file that are in use, and how many of them may rot without preventing the start: all of a log and of a
/// segment, but nothing that locates other data (identity, manifest, checkpoint).
fn bytes_that_may_rot(disk: &SimDisk, path: &Path) -> (u64, u64) {
    let file = front(disk, path);
    let used = file.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let name = path.file_name().expect("a name").to_string_lossy();
    let harmless = match name.split_once('-') {
        Some(("log" | "segment", _)) => used,
        // The start writes it again.
        None if name == "manifest.copy" => used,
        _ => 0,
    };
    (used as u64, harmless as u64)
}

/// True when head and footer of one segment have rotted: then nothing tells which segment it is.
fn is_unknown(disk: &SimDisk, flips: &BTreeSet<(&PathBuf, u64, bool)>) -> bool {
    flips.iter().any(|(path, bit, _)| {
        let used = front(disk, path).len() as u64;
        let ends = |(other, last, _): &(&PathBuf, u64, bool)| other == path && last / 8 + 64 >= used;
        path.to_string_lossy().contains("/segment-") && bit / 8 < 32 && flips.iter().any(ends)
    })
}

/// The first megabyte of a file: everything that these stores write. A log has more space reserved.
fn front(disk: &SimDisk, path: &Path) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    let file = disk.handle().open(path, Mode::Read).expect("a file");
    let length = file.read_at(&mut bytes, 0).expect("its bytes");
    bytes.truncate(length);
    bytes
}

/// Bits rot in files of a stopped store. Rot that does not prevent the start costs only the rows it hits: the
/// store opens, and each RRD is read unchanged or reported as damaged. Any other rot is reported before
/// anything is served. Nothing panics: a panic in a shard would end this process.
fn run_rotten(seed: u64) {
    let mut world = World::new(seed);
    (0..60).for_each(|_| world.step());
    world.store.checkpoint().expect("a checkpoint on a good disk");
    (0..20).for_each(|_| world.step());
    world.store.stop().expect("a clean stop");
    let disk = world.disk.kill();
    let shard = Path::new("shard-000");
    let mut files: Vec<PathBuf> =
        disk.handle().list(shard).expect("a list").iter().map(|name| shard.join(name)).collect();
    files.push("STORE".into());
    let only_harmless = world.random.below(2) == 0;
    let mut flips = BTreeSet::new();
    for _ in 0..1 + world.random.below(4) {
        let path = &files[world.random.below(files.len() as u64) as usize];
        let (used, harmless) = bytes_that_may_rot(&disk, path);
        let bytes = if only_harmless { harmless } else { used };
        if bytes > 0 {
            let bit = world.random.below(bytes * 8);
            flips.insert((path, bit, bit / 8 < harmless));
        }
    }
    for (path, bit, _) in &flips {
        disk.flip_bit(path, *bit).expect("a bit to flip");
    }
    ROTTEN.all.fetch_add(1, Ordering::Relaxed);
    let store = match Stripes::open(disk.handle(), &world.options) {
        Ok(store) => store,
        Err(error) => {
            let may_stop = flips.iter().any(|flip| !flip.2) || is_unknown(&disk, &flips);
            assert!(may_stop, "{flips:?} need not stop the start: {error}");
            return;
        }
    };
    // A damaged page of a checkpoint costs the RRDs on it, here all of a shard (`lost_page.rs`, `damage`).
    let is_checkpoint = |path: &Path| path.to_string_lossy().contains("/checkpoint-");
    assert!(flips.iter().all(|flip| flip.2 || is_checkpoint(flip.0)), "{flips:?}: nothing was said");
    if flips.iter().any(|flip| is_checkpoint(flip.0)) {
        let lost = |name: &String| matches!(store.read(&rrd_name(name)), Err(StoreError::Lost(_)));
        assert!(world.model.0.keys().any(lost), "{flips:?}: nothing was said");
        return;
    }
    ROTTEN.opened.fetch_add(1, Ordering::Relaxed);
    let names = store.list(b"", true).expect("a list");
    let log_is_whole = flips.iter().all(|(path, ..)| !path.to_string_lossy().contains("/log-"));
    if log_is_whole {
        let want: Vec<Vec<u8>> = world.model.0.keys().map(|name| name.clone().into_bytes()).collect();
        assert_eq!(names, want, "{flips:?}");
    }
    for name in names {
        let name = String::from_utf8(name).expect("our names");
        let outcome = match store.read(&rrd_name(&name)) {
            Ok(_) if log_is_whole => {
                check_rrd(&store, &world.model, &name);
                &ROTTEN.whole
            }
            Ok(_) => &ROTTEN.whole,
            Err(StoreError::Segment(_)) => &ROTTEN.damaged,
            Err(error) => panic!("{name}: {error}"),
        };
        outcome.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn bit_rot_is_reported_and_contained() {
    each_seed(500, run_rotten);
    let [all, opened, damaged, whole] = [&ROTTEN.all, &ROTTEN.opened, &ROTTEN.damaged, &ROTTEN.whole]
        .map(|count| count.load(Ordering::Relaxed));
    // Every second seed flips only bits that do not prevent the start. Which files exist depends on the
    // timing of the shard's threads, so the numbers vary from run to run.
    assert!(
        all < 50 || (opened > all / 3 && damaged > 0 && whole > damaged),
        "of {all} rotten stores {opened} opened, with {damaged} damaged and {whole} whole RRDs"
    );
}

/// Updates while the disk is in trouble. What was refused with an error that `may_be_kept` may or may not be there later.
fn update_in_trouble(world: &mut World, may_be_kept: fn(&StoreError) -> bool) -> usize {
    let mut refused = 0;
    for _ in 0..60 {
        let (batch, ops) = world.batch();
        let failures = world.send(batch);
        for (index, op) in ops.into_iter().enumerate() {
            match failures.iter().find(|failure| failure.line == index as u32) {
                None => world.acknowledge(op),
                Some(failure) if may_be_kept(&failure.error) => {
                    refused += 1;
                    world.uncertain.insert(op.name().to_string());
                }
                Some(_) => {}
            }
        }
    }
    refused
}

/// A disk that was short of something is not any more: the store continues by itself, and everything that was acknowledged
/// is there.
fn go_on(world: &mut World, refused: usize) {
    let again = std::time::Instant::now();
    while world.store.flush(None).is_err() || world.store.stats().read_only != 0 {
        assert!(
            again.elapsed() < Duration::from_secs(20),
            "the store does not go on after {refused} refusals"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    world.synced = world.ops.len();
    world.check_certain();
    world.reopen(world.disk.kill());
    world.check_certain();
    world.store.stop().expect("a clean stop");
}

/// The disk fills up under load and has room again later. A change that was refused because of that may or
/// may not be there; everything else is there, and the store continues by itself.
fn run_full(seed: u64) {
    let mut world = World::new(seed);
    (0..20).for_each(|_| world.step());
    world.disk.set_capacity(world.disk.used_bytes() + world.random.below(4096));
    let refused = update_in_trouble(&mut world, |error| matches!(error, StoreError::Short(_)));
    world.disk.set_capacity(u64::MAX);
    go_on(&mut world, refused);
}

/// The same with each of the other shortages.
fn run_short(seed: u64) {
    let mut world = World::new(seed);
    (0..20).for_each(|_| world.step());
    let shortage = Shortage::ALL[seed as usize % Shortage::ALL.len()];
    world.disk.set_shortage(Some(shortage));
    let refused = update_in_trouble(&mut world, |error| matches!(error, StoreError::Short(_)));
    world.disk.set_shortage(None);
    go_on(&mut world, refused);
}

#[test]
fn every_shortage_is_waited_out_and_loses_nothing() {
    each_seed(15, run_short);
}

/// The file system shuts down under load: changes are refused from then on, and once it is mounted again, everything that was
/// acknowledged is there.
fn run_shut_down(seed: u64) {
    let mut world = World::with(seed, |options| options.sync_always = true);
    (0..20 + world.random.below(40)).for_each(|_| world.step());
    let how = if seed.is_multiple_of(2) { ShutDown::Everything } else { ShutDown::Changes };
    world.disk.shut_down_after(world.random.below(60), how);
    let refused = update_in_trouble(&mut world, |error| matches!(error, StoreError::Poisoned(_)));
    if refused > 0 {
        assert_ne!(world.store.stats().read_only, 0, "it says that it takes no updates");
        let _ = world.store.stop();
    }
    world.reopen(world.disk.crash());
    world.check_certain();
    (0..20).for_each(|_| world.update());
    world.check_certain();
    world.store.stop().expect("a clean stop");
}

#[test]
fn a_file_system_that_shuts_down_loses_nothing_acknowledged() {
    each_seed(150, run_shut_down);
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    each_seed(20, run_full);
}
