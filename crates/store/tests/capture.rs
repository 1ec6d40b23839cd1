//! Copies of a running store: each is the store at one moment, whatever its threads do meanwhile.

#![allow(clippy::unwrap_used, reason = "a failure here is the test's")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, mpsc};

use roundel_store::assemble::Assembly;
use roundel_store::assemble::Until;
use roundel_store::capture::Capture;
use roundel_store::disk::RealDisk;
use roundel_store::engine::{CreateRequest, Engine, UpdateBatch};
use roundel_store::stripes::{Options, ShardOptions, Stripes};
use roundel_store::{snapshot, verify};
use rrd::content::Rrd;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::time::Timestamp;
use rrd::when::Step;
use rrd_file::name::RrdName;

const START: i64 = 1_700_000_000;
const RRDS: u32 = 40;

fn name(number: u32) -> RrdName {
    RrdName::new(format!("host-{number}.rrd").as_bytes()).unwrap()
}

/// The store in `dir`; its clock shows the time of the last update, of which `now` counts.
fn open(dir: &Path, now: &Arc<AtomicI64>) -> Stripes {
    let now = Arc::clone(now);
    let options = Options {
        shard_count: 3,
        shard: ShardOptions { merge_count: 2, ..ShardOptions::default() },
        clock: Arc::new(move || Timestamp::new(now.load(Ordering::Relaxed), 0)),
        ..Options::default()
    };
    Stripes::open(Arc::new(RealDisk::create(dir).unwrap()), &options).unwrap()
}

fn create_all(store: &Stripes) {
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
    let definition =
        parse_create(&options, &["DS:v:GAUGE:1000:U:U", "RRA:LAST:0.5:1:500", "RRA:AVERAGE:0.5:5:100"])
            .unwrap();
    for number in 0..RRDS {
        let request = CreateRequest { definition: definition.clone(), start: START - 10, no_overwrite: true };
        let (sender, receiver) = mpsc::channel();
        store.create(name(number), request, Box::new(move |result| sender.send(result).unwrap()));
        receiver.recv().unwrap().unwrap();
    }
}

/// One update of every RRD, at `START + 10 * step`.
fn update_all(store: &Stripes, step: i64) {
    let mut batch = UpdateBatch::default();
    for number in 0..RRDS {
        let values = format!("{}:{}", START + 10 * step, i64::from(number) + 3 * step);
        batch.push(name(number).as_bytes(), values.as_bytes());
    }
    let (sender, receiver) = mpsc::channel();
    store.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
    let failures = receiver.recv().unwrap();
    assert!(failures.is_empty(), "{failures:?}");
}

fn all(store: &Stripes) -> Vec<Rrd> {
    (0..RRDS).map(|number| store.read(&name(number)).unwrap()).collect()
}

/// All of a store that nothing has open, after its checksums were checked.
fn all_in(dir: &Path) -> Vec<Rrd> {
    struct Nothing;
    impl verify::Watch for Nothing {
        fn checked(&mut self, _: u64) -> bool {
            true
        }
        fn found(&mut self, finding: verify::Finding) {
            panic!("{finding}");
        }
    }
    verify::path(dir, &mut Nothing).unwrap();
    let store = open(dir, &Arc::new(AtomicI64::new(START)));
    let all = all(&store);
    store.stop().unwrap();
    all
}

fn assert_same(one: &[Rrd], other: &[Rrd]) {
    for (number, (one, other)) in one.iter().zip(other).enumerate() {
        assert_eq!(format!("{one:?}"), format!("{other:?}"), "host-{number}.rrd");
    }
}

#[test]
fn a_copy_is_the_store_at_its_moment_although_all_files_were_replaced_since() {
    let dir = tempfile::tempdir().unwrap();
    let now = Arc::new(AtomicI64::new(START));
    let store = open(&dir.path().join("store"), &now);
    create_all(&store);
    for step in 0..20 {
        update_all(&store, step);
        if step % 7 == 6 {
            store.checkpoint().unwrap();
        }
    }
    let want = all(&store);
    let capture = store.capture().unwrap();
    for step in 20..60 {
        update_all(&store, step);
        if step % 5 == 4 {
            store.checkpoint().unwrap();
        }
    }
    // Merges run by themselves: until all captured files have gone, or are kept for the capture alone.
    let files = |capture: &Capture| {
        capture.shards.iter().flat_map(|shard| shard.segments().collect::<Vec<_>>()).count()
    };
    let begun = std::time::Instant::now();
    while files(&store.capture().unwrap()) > 12 && begun.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let copy = dir.path().join("copy");
    let copied = snapshot::write(&capture, &copy).unwrap();
    assert!(copied.linked > 0 && copied.copied > 0, "{copied:?}");
    drop(capture);
    let later = all(&store);
    store.stop().unwrap();
    drop(store);
    assert_same(&all_in(&copy), &want);
    assert_same(&all_in(&dir.path().join("store")), &later);
    assert!(snapshot::write(&open(&copy, &now).capture().unwrap(), &dir.path().join("store")).is_err());
}

#[test]
fn files_kept_for_a_capture_go_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), &Arc::new(AtomicI64::new(START)));
    create_all(&store);
    update_all(&store, 0);
    store.checkpoint().unwrap();
    let capture = store.capture().unwrap();
    let path = dir.path().join(capture.shards[0].checkpoint().unwrap().unwrap().path);
    update_all(&store, 1);
    store.checkpoint().unwrap();
    assert!(path.exists());
    let hold = capture.into_log_hold();
    assert!(!path.exists());
    drop(hold);
}

#[test]
fn the_log_is_kept_from_one_capture_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), &Arc::new(AtomicI64::new(START)));
    create_all(&store);
    update_all(&store, 0);
    let capture = store.capture().unwrap();
    let ends: Vec<_> = capture.shards.iter().map(|shard| shard.log_end()).collect();
    let hold = capture.into_log_hold();
    for step in 1..4 {
        update_all(&store, step);
        store.checkpoint().unwrap();
    }
    let next = store.capture().unwrap();
    drop(hold);
    for (shard, end) in next.shards.iter().zip(ends) {
        assert!(shard.log_from() > end);
        let bytes = (shard.log_end().offset - end.offset) as usize;
        assert!(shard.read_log(end, bytes).unwrap().starts_with(b"RLG"));
    }
}

#[test]
fn copies_of_a_busy_store_hold_what_was_answered_and_whole_updates() {
    let dir = tempfile::tempdir().unwrap();
    let now = Arc::new(AtomicI64::new(START));
    let store = open(&dir.path().join("store"), &now);
    create_all(&store);
    let (answered, stop) = (AtomicI64::new(-1), AtomicBool::new(false));
    let mut copies = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for step in 0..480 {
                update_all(&store, step);
                std::thread::sleep(std::time::Duration::from_millis(1));
                answered.store(step, Ordering::SeqCst);
            }
            stop.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                store.checkpoint().unwrap();
            }
        });
        while !stop.load(Ordering::SeqCst) {
            let copy = dir.path().join(format!("copy-{}", copies.len()));
            let before = answered.load(Ordering::SeqCst);
            let capture = store.capture().unwrap();
            let after = answered.load(Ordering::SeqCst) + 1;
            snapshot::write(&capture, &copy).unwrap();
            copies.push((copy, before, after));
        }
    });
    store.stop().unwrap();
    assert!(copies.len() > 2, "{}", copies.len());
    for (copy, before, after) in copies.iter().rev().take(8) {
        for (number, rrd) in all_in(copy).iter().enumerate() {
            let last = (rrd.live.words[0] as i64 - START) / 10;
            assert!((*before..=*after).contains(&last), "{last} of {before} to {after}");
            for step in 0..=last {
                let value = rrd.archives[0][(500 - 1 - (last - step)) as usize];
                assert_eq!(value, (number as i64 + 3 * step) as f64, "row {step} of {last} of {number}");
            }
        }
    }
}

#[test]
fn a_copy_ends_at_a_time_or_position() {
    let dir = tempfile::tempdir().unwrap();
    let now = Arc::new(AtomicI64::new(START));
    let store = open(&dir.path().join("store"), &now);
    create_all(&store);
    let mut at = Vec::new();
    for step in 0..10 {
        now.store(START + 10 * step, Ordering::Relaxed);
        update_all(&store, step);
        at.push((
            all(&store),
            store.capture().unwrap().shards.iter().map(|shard| shard.log_end()).collect::<Vec<_>>(),
        ));
    }
    let capture = store.capture().unwrap();
    let make = |name: &str, until: &dyn Fn(usize) -> Until| {
        let copy = dir.path().join(name);
        let assembly = Assembly::begin(&copy).unwrap();
        for (index, shard) in capture.shards.iter().enumerate() {
            let to = assembly.shard(index as u32, &shard.manifest()).unwrap();
            let bytes = (shard.log_end().offset - shard.log_from().offset) as usize;
            std::fs::write(to.log(), shard.read_log(shard.log_from(), bytes).unwrap()).unwrap();
            to.complete(shard.log_end(), until(index), &[]).unwrap();
        }
        let ends: Vec<_> = capture.shards.iter().map(|shard| shard.log_end()).collect();
        assembly.complete_as(&capture.identity.text(), &capture.history.of_copy(&ends, 0)).unwrap();
        all_in(&copy)
    };
    let by_time = make("time", &|_| Until::Time((START + 45) * 1000));
    assert_same(&by_time, &at[4].0);
    let by_position = make("position", &|shard| Until::Position(at[6].1[shard].plus(1)));
    assert_same(&by_position, &at[6].0);
}

#[test]
fn a_store_at_rest_is_copied_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (from, copy) = (dir.path().join("store"), dir.path().join("copy"));
    let store = open(&from, &Arc::new(AtomicI64::new(START)));
    create_all(&store);
    for step in 0..10 {
        update_all(&store, step);
        if step == 4 {
            store.checkpoint().unwrap();
        }
    }
    let want = all(&store);
    assert!(snapshot::write_at_rest(&from, &copy).unwrap_err().to_string().contains("roundel snapshot"));
    store.stop().unwrap();
    drop(store);
    snapshot::write_at_rest(&from, &copy).unwrap();
    assert_same(&all_in(&copy), &want);
    assert_same(&all_in(&from), &want);
    assert!(snapshot::write_at_rest(&from, &copy).is_err());
}
