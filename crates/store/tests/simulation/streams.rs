//! Positions of streams: whatever is lost with the power or a process, the store has what a position says, and a position that
//! was recorded is not lost.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use roundel_store::disk::sim::SimDisk;
use roundel_store::engine::{CreateRequest, Engine, StreamPosition, UpdateBatch};
use roundel_store::files::{self, Directory, FilesEngine, SyncMode};
use roundel_store::name::RrdName;
use roundel_store::stripes::{self, ShardOptions, Stripes};
use roundel_store::tree::Tree;
use rrd::time::Timestamp;
use testkit::random::{Random, each_seed};

use super::model::definition;

const START: i64 = 1_700_000_000;
const RRDS: usize = 5;
const STREAM: &[u8] = b"hall";

fn rrd(index: usize) -> RrdName {
    RrdName::new(format!("r{index}.rrd").as_bytes()).expect("a name")
}

/// Creates the RRDs that are not there; false when the disk is gone.
fn create(engine: &dyn Engine) -> bool {
    (0..RRDS).all(|index| {
        if engine.status(&rrd(index)).is_ok() {
            return true;
        }
        let request = CreateRequest { definition: definition(0), start: START, no_overwrite: true };
        let (sender, receiver) = mpsc::channel();
        let reply =
            Box::new(move |result: Result<(), _>| sender.send(result.is_ok()).expect("the test waits"));
        engine.create(rrd(index), request, reply);
        receiver.recv().unwrap_or(false)
    })
}

/// Applies a block: one update of each RRD, with its number as the time.
fn apply(engine: &dyn Engine, number: u64) {
    let mut batch = UpdateBatch::default();
    let values: Vec<String> = definition(0).ds.iter().map(|_| "1".to_string()).collect();
    let reading = format!("{}:{}", START + number as i64, values.join(":"));
    (0..RRDS).for_each(|index| batch.push(rrd(index).as_bytes(), reading.as_bytes()));
    let (sender, receiver) = mpsc::channel();
    engine.update(batch, Box::new(move |failures| sender.send(failures).expect("the test waits")));
    // Those that were applied before are refused.
    let _ = receiver.recv();
}

/// Sends blocks until the disk is gone, or for some time; returns the last position that was recorded.
fn run(engine: &dyn Engine, random: &mut Random, epoch: u64) -> StreamPosition {
    let mut recorded = engine.stream_position(STREAM).expect("a position").unwrap_or_default();
    if !create(engine) {
        return recorded;
    }
    let first = if recorded.epoch == epoch { recorded.sequence + 1 } else { 1 };
    for sequence in first..first + 5 + random.below(60) {
        apply(engine, sequence);
        if random.once_in(4) {
            let position = StreamPosition { epoch, sequence };
            if engine.set_stream_position(STREAM, position).is_err() {
                break;
            }
            recorded = position;
        }
    }
    recorded
}

/// Checks a store after it was opened again.
fn check(engine: &dyn Engine, recorded: StreamPosition, seed: u64) {
    let position = engine.stream_position(STREAM).expect("a position").unwrap_or_default();
    assert!(position >= recorded, "seed {seed}: {position:?} was {recorded:?}");
    for index in (0..RRDS).filter(|_| position.sequence > 0) {
        let status = engine.status(&rrd(index)).expect("an RRD");
        assert!(status.last_update.whole >= START + position.sequence as i64, "seed {seed}: {status:?}");
    }
}

fn run_stripes(seed: u64) {
    let mut random = Random::new(seed);
    let options = stripes::Options {
        shard_count: 1 + random.below(3) as u32,
        shard: ShardOptions {
            sync_always: random.once_in(3),
            sync_interval: Duration::from_secs(3600),
            open_bytes_min: 256 << random.below(6),
            log_bytes_max: 2048 << random.below(6),
            ..ShardOptions::default()
        },
        clock: Arc::new(|| Timestamp::whole(START)),
        ..stripes::Options::default()
    };
    let mut disk = SimDisk::new(random.next());
    for _ in 0..4 {
        let Ok(store) = Stripes::open(disk.handle(), &options) else { panic!("seed {seed}: cannot open") };
        if random.once_in(2) {
            disk.power_off_after(random.below(200));
        }
        let recorded = run(&store, &mut random, 7);
        match random.below(4) {
            0 => drop(store.stop()),
            1 => drop(store.checkpoint()),
            _ => {}
        }
        disk = if random.once_in(3) { disk.kill() } else { disk.crash() };
        drop(store);
        let store = Stripes::open(disk.handle(), &options).expect("the store opens again");
        check(&store, recorded, seed);
        store.stop().expect("a clean stop");
    }
}

fn run_files(seed: u64) {
    let mut random = Random::new(seed);
    let options = files::Options {
        write_interval: if random.once_in(2) { Duration::ZERO } else { Duration::from_secs(3600) },
        // Every second the next journal begins, and old ones go.
        flush_interval: if random.once_in(2) { Duration::ZERO } else { Duration::from_secs(3600) },
        accept_threads: 1 + random.below(3) as usize,
        sync: if random.once_in(2) { SyncMode::Always } else { SyncMode::Every(Duration::from_secs(3600)) },
        ..files::Options::new(PathBuf::from("tree"), PathBuf::from("journal"))
    };
    let (mut tree, mut journal) = (SimDisk::new(random.next()), SimDisk::new(random.next()));
    let open = |tree: &SimDisk, journal: &SimDisk| {
        let tree = Tree::on_disk(tree.handle(), Path::new("tree"));
        let journal = Directory::on_disk(journal.handle(), Path::new("journal"));
        FilesEngine::open_on(options.clone(), tree, Some(journal)).expect("the engine opens")
    };
    for _ in 0..4 {
        let engine = open(&tree, &journal);
        let recorded = run(&engine, &mut random, 7);
        if random.once_in(4) {
            let _ = engine.stop();
        }
        let is_kill = random.once_in(3);
        (tree, journal) =
            if is_kill { (tree.kill(), journal.kill()) } else { (tree.crash(), journal.crash()) };
        drop(engine);
        let engine = open(&tree, &journal);
        check(&engine, recorded, seed);
        engine.stop().expect("a clean stop");
    }
}

#[test]
fn a_position_says_what_a_striped_store_has() {
    each_seed(150, run_stripes);
}

#[test]
fn a_position_says_what_the_files_layout_has() {
    each_seed(60, run_files);
}

/// The position of another epoch is another numbering's.
#[test]
fn a_later_epoch_begins_at_its_own_number() {
    let disk = SimDisk::new(1);
    let options = stripes::Options { shard_count: 2, ..stripes::Options::default() };
    let store = Stripes::open(disk.handle(), &options).expect("a store");
    assert_eq!(store.stream_position(STREAM), Ok(None));
    for (epoch, sequence, want) in [(5, 9, (5, 9)), (5, 3, (5, 9)), (6, 1, (6, 1)), (5, 99, (6, 1))] {
        store.set_stream_position(STREAM, StreamPosition { epoch, sequence }).expect("a position");
        let (epoch, sequence) = want;
        assert_eq!(store.stream_position(STREAM), Ok(Some(StreamPosition { epoch, sequence })));
    }
    store.stop().expect("a clean stop");
}
