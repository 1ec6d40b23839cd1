#![allow(clippy::unwrap_used, reason = "a failure here is the test's")]

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::time::Timestamp;
use rrd::when::Step;

use super::*;
use crate::disk::SimDisk;
use crate::engine::{CreateRequest, Engine, UpdateBatch};
use crate::filenames;
use crate::log::writer::log_files;
use crate::name::RrdName;
use crate::stripes::{Options, ShardOptions, Stripes};

const START: i64 = 1_700_000_000;
const PLENTY: u64 = 1 << 30;

fn open(disk: &SimDisk, shard_count: u32) -> Stripes {
    // Nothing becomes durable by itself.
    let shard = ShardOptions { sync_interval: Duration::from_secs(3600), ..ShardOptions::default() };
    let clock = Arc::new(|| Timestamp::new(START, 0));
    Stripes::open(disk.handle(), &Options { shard_count, shard, clock, ..Options::default() }).unwrap()
}

fn name(text: &str) -> RrdName {
    RrdName::new(text.as_bytes()).unwrap()
}

fn create(store: &Stripes, rrd: &str) {
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
    let definition = parse_create(&options, &["DS:v:GAUGE:1000:U:U", "RRA:LAST:0.5:1:500"]).unwrap();
    let request = CreateRequest { definition, start: START - 10, no_overwrite: false };
    let (sender, receiver) = mpsc::channel();
    store.create(name(rrd), request, Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv().unwrap().unwrap();
}

/// One reading `step` steps after the start.
fn update(store: &Stripes, rrd: &str, step: i64) {
    let mut batch = UpdateBatch::default();
    batch.push(rrd.as_bytes(), format!("{}:{step}.5", START + 10 * step).as_bytes());
    let (sender, receiver) = mpsc::channel();
    store.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
    let failures = receiver.recv().unwrap();
    assert!(failures.is_empty(), "{failures:?}");
}

fn shown(change: &LoggedChange<'_>) -> String {
    let text = |bytes: &[u8]| match RrdName::revealed(bytes) {
        Some((purpose, name)) => format!("{}({name})", purpose.split('/').next().unwrap_or_default()),
        None => String::from_utf8(bytes.to_vec()).unwrap(),
    };
    let name = change.name.map_or_else(|| "?".to_owned(), text);
    match &change.what {
        ChangeKind::Update { time, values } => {
            format!("{name} {} {}", (time.whole - START) / 10, text(values))
        }
        ChangeKind::Create { start, .. } => format!("create {name} from {}", start - START),
        ChangeKind::Import(rrd) => format!("import {name} with {}", rrd.definition.ds.len()),
        ChangeKind::Tune(args) => format!("tune {name} {}", args.join(" ")),
        ChangeKind::Delete => format!("delete {name}"),
        ChangeKind::Rename(to) => format!("rename {name} {}", text(to)),
    }
}

/// The changes from where the tail is to the end of all logs, read in pieces of `bytes`.
fn changes(tail: &mut LogTail, bytes: usize) -> Vec<String> {
    let mut all = Vec::new();
    for shard in tail.shards_mut() {
        while let Some(piece) = shard.read(bytes).unwrap() {
            match piece {
                Piece::Records(raw) => shard.decode(&raw, &mut |change| all.push(shown(&change))).unwrap(),
                Piece::Lost { from, to } => all.push(format!("lost {}", to.offset - from.offset)),
            }
        }
        assert_eq!((shard.bytes_left(), shard.position()), (0, shard.end()));
    }
    all
}

fn at_start(store: &Stripes, until: Reach) -> LogTail {
    let mut tail = store.tail(until, PLENTY).unwrap();
    for shard in tail.shards_mut() {
        shard.seek(Position { generation: shard.end().generation, offset: 0 }).unwrap();
    }
    tail
}

/// What becomes of names, and what a tail must say of it.
fn lives(store: &Stripes) -> Vec<&'static str> {
    create(store, "a");
    update(store, "a", 1);
    store.rename(&name("a"), &name("b")).unwrap();
    update(store, "b", 2);
    create(store, "a");
    update(store, "a", 3);
    store.tune(&name("a"), &["--maximum".into(), "v:9".into()]).unwrap();
    create(store, "a");
    update(store, "a", 4);
    store.delete(&name("b")).unwrap();
    create(store, "b");
    update(store, "b", 5);
    vec![
        "create a from -10",
        "a 1 1.5",
        "rename a b",
        "b 2 2.5",
        "create a from -10",
        "a 3 3.5",
        "tune a --maximum v:9",
        "delete a",
        "create a from -10",
        "a 4 4.5",
        "rename b trash(b)",
        "create b from -10",
        "b 5 5.5",
    ]
}

#[test]
fn changes_have_the_names_of_their_time_whatever_follows() {
    for bytes in [1, 300, 1 << 20] {
        let disk = SimDisk::new(1);
        let store = open(&disk, 1);
        let mut along = at_start(&store, Reach::Committed);
        assert_eq!(changes(&mut along, bytes), [""; 0]);
        let want = lives(&store);
        assert_eq!(changes(&mut along, bytes), want, "by {bytes}");
        // From any record on, by a tail that knows nothing yet.
        let mut positions = Vec::new();
        let mut every = at_start(&store, Reach::Committed);
        while let Some(Piece::Records(raw)) = every.shards_mut()[0].read(1).unwrap() {
            positions.push(raw.from);
        }
        assert_eq!(positions.len(), want.len());
        for (index, position) in positions.into_iter().enumerate() {
            let mut tail = store.tail(Reach::Committed, PLENTY).unwrap();
            tail.shards_mut()[0].seek(position).unwrap();
            assert_eq!(changes(&mut tail, bytes), want[index..], "from {index} by {bytes}");
        }
        store.stop().unwrap();
    }
}

#[test]
fn what_is_not_durable_yet_is_not_shown_to_who_wants_that() {
    let disk = SimDisk::new(1);
    let store = open(&disk, 3);
    let mut tail = at_start(&store, Reach::Durable);
    create(&store, "a");
    update(&store, "a", 1);
    assert_eq!(changes(&mut tail, 1 << 20), [""; 0]);
    assert!(!tail.wait(Duration::ZERO));
    store.flush(None).unwrap();
    assert!(tail.wait(Duration::from_secs(60)), "a sync wakes");
    assert_eq!(changes(&mut tail, 1 << 20), ["create a from -10", "a 1 1.5"]);
    let positions: Vec<Position> = tail.shards().iter().map(ShardTail::resume_from).collect();
    update(&store, "a", 2);
    drop((tail, store));
    // What the power failure takes away was not shown, and what follows is.
    let store = open(&disk.crash(), 3);
    let mut tail = store.tail(Reach::Durable, PLENTY).unwrap();
    for (shard, position) in tail.shards_mut().iter_mut().zip(positions) {
        shard.seek(position).unwrap();
    }
    update(&store, "a", 3);
    store.flush(None).unwrap();
    let seen = changes(&mut tail, 1 << 20);
    assert!(seen == ["a 3 3.5"] || seen == ["a 2 2.5", "a 3 3.5"], "{seen:?}");
}

#[test]
fn a_commit_wakes_who_waits_for_it() {
    let store = open(&SimDisk::new(1), 2);
    let mut tail = store.tail(Reach::Committed, PLENTY).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let woken = tail.wait(Duration::from_secs(60));
            (woken, changes(&mut tail, 1 << 20))
        });
        create(&store, "a");
        assert_eq!(waiting.join().unwrap(), (true, vec!["create a from -10".to_owned()]));
    });
}

#[test]
fn a_position_of_another_log_is_refused() {
    let store = open(&SimDisk::new(1), 1);
    create(&store, "a");
    let mut tail = store.tail(Reach::Committed, PLENTY).unwrap();
    let shard = &mut tail.shards_mut()[0];
    let end = shard.end();
    for position in [end.plus(1), Position { generation: end.generation + 1, offset: 0 }] {
        let error = shard.seek(position).unwrap_err();
        assert!(matches!(error, TailError::NoSuchPosition { .. }), "{error}");
    }
    assert_eq!(shard.position(), end);
}

/// An RRD whose rows do not compress, too large for a usual log file: it gets one of its own, which is never used again.
fn import_noise(store: &Stripes, rrd: &str) {
    const ROWS: u64 = 2_200_000;
    let mut content = store.read(&name("a")).unwrap();
    content.definition.rra[0].row_count = ROWS;
    content.archives[0] = (0..ROWS).map(noise).collect();
    store.import(name(rrd), content, false).unwrap();
}

fn noise(row: u64) -> f64 {
    f64::from_bits((row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2)
}

#[test]
fn the_log_is_kept_for_a_reader_up_to_its_limit() {
    let disk = SimDisk::new(1);
    let store = open(&disk, 1);
    create(&store, "a");
    let begin = store.tail(Reach::Committed, PLENTY).unwrap().shards()[0].end();
    let is_there = |position| {
        log_files(&*disk.handle(), &filenames::shard(Path::new(""), 0)).unwrap().contains(&position)
    };
    let held = |bytes_max| {
        let mut tail = store.tail(Reach::Committed, bytes_max).unwrap();
        tail.shards_mut()[0].seek(begin).unwrap();
        tail.shards()[0].keep_from(begin);
        tail
    };
    let (mut patient, mut poor) = (held(PLENTY), held(1 << 20));
    import_noise(&store, "first");
    let second = patient.shards()[0].end();
    import_noise(&store, "second");
    store.checkpoint().unwrap();
    assert!(is_there(begin) && is_there(second), "one reader has not read it yet");
    assert_eq!(changes(&mut patient, 1 << 20), ["import first with 1", "import second with 1"]);
    drop(patient);
    update(&store, "a", 1);
    let last = poor.shards()[0].end();
    store.checkpoint().unwrap();
    update(&store, "a", 2);
    assert!(!is_there(begin), "the limit of the other one is reached");
    let seen = changes(&mut poor, 1 << 20);
    let lost: u64 = seen[0].strip_prefix("lost ").unwrap().parse().unwrap();
    assert!(begin.plus(lost) < last, "{seen:?}");
    assert_eq!(seen[1..], ["a 1 1.5", "a 2 2.5"]);
}

#[test]
fn a_store_that_is_told_to_holds_its_log_until_tails_were_opened() {
    let disk = SimDisk::new(1);
    let store = open(&disk, 1);
    create(&store, "a");
    // Kept open: so much log makes a checkpoint of its own, which would remove it before the kill.
    let open_before = store.tail(Reach::Committed, PLENTY).unwrap();
    let begin = open_before.shards()[0].end();
    import_noise(&store, "first");
    import_noise(&store, "second");
    let killed = disk.kill();
    for (hold_log, lost) in [(true, false), (false, true)] {
        let disk = killed.kill();
        let shard = ShardOptions { hold_log, ..ShardOptions::default() };
        let options = Options { shard_count: 1, shard, ..Options::default() };
        let store = Stripes::open(disk.handle(), &options).unwrap();
        // Two, so that the log before them is not in use any more.
        (0..2).for_each(|_| store.checkpoint().unwrap());
        let mut tail = store.tail(Reach::Committed, PLENTY).unwrap();
        tail.shards_mut()[0].seek(begin).unwrap();
        store.release_log();
        let seen = changes(&mut tail, 1 << 20);
        assert_eq!(seen.first().is_none_or(|first| first.starts_with("lost")), lost, "{seen:?}");
    }
}

#[test]
fn a_damaged_record_costs_itself_alone() {
    let disk = SimDisk::new(1);
    let store = open(&disk, 1);
    create(&store, "a");
    let mut starts = Vec::new();
    for step in 1..6 {
        starts.push(store.tail(Reach::Committed, PLENTY).unwrap().shards()[0].end());
        update(&store, "a", step);
    }
    let dir = filenames::shard(Path::new(""), 0);
    let file = log_files(&*disk.handle(), &dir).unwrap()[0];
    let body = starts[2].offset + 70 - file.offset;
    disk.flip_bit(&filenames::log(&dir, file), body * 8).unwrap();
    for bytes in [1, 150, 1 << 20] {
        let seen = changes(&mut at_start(&store, Reach::Committed), bytes);
        let lost = format!("lost {}", starts[3].offset - starts[2].offset);
        assert_eq!(seen, ["create a from -10", "a 1 1.5", "a 2 2.5", &lost, "a 4 4.5", "a 5 5.5"]);
    }
    // The last one is lost with all of the rest.
    let body = starts[4].offset + 70 - file.offset;
    disk.flip_bit(&filenames::log(&dir, file), body * 8).unwrap();
    let seen = changes(&mut at_start(&store, Reach::Committed), 1 << 20);
    let end = store.tail(Reach::Committed, PLENTY).unwrap().shards()[0].end();
    assert_eq!(seen.last().unwrap(), &format!("lost {}", end.offset - starts[4].offset));
}

#[test]
fn a_large_import_comes_whole_or_again() {
    let store = open(&SimDisk::new(1), 1);
    create(&store, "a");
    let mut content = store.read(&name("a")).unwrap();
    content.definition.rra[0].row_count = 9_000_000;
    // More than one record holds.
    content.archives[0] = (0..9_000_000).map(noise).collect();
    let mut tail = store.tail(Reach::Committed, PLENTY).unwrap();
    let begin = tail.shards()[0].end();
    store.import(name("large"), content, false).unwrap();
    update(&store, "a", 1);
    let shard = &mut tail.shards_mut()[0];
    let Some(Piece::Records(raw)) = shard.read(1).unwrap() else { panic!("nothing") };
    shard.decode(&raw, &mut |_| panic!("it is not complete")).unwrap();
    assert_eq!((shard.resume_from(), shard.position() > begin), (begin, true));
    assert_eq!(changes(&mut tail, 1), ["import large with 1", "a 1 1.5"]);
    assert_eq!(tail.shards()[0].resume_from(), tail.shards()[0].end());
}
