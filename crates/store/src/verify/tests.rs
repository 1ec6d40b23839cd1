#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::mpsc;

use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;

use super::*;
use crate::disk::SimDisk;
use crate::engine::{CreateRequest, Engine, UpdateBatch};
use crate::name::RrdName;
use crate::stripes::{Options, Stripes};

const START: i64 = 1_700_000_000;

#[derive(Default)]
struct Seen {
    findings: Vec<Finding>,
    bytes: u64,
    places: Vec<Place>,
    /// Parts before this one are passed over.
    from: Place,
    /// The pass ends after so many bytes.
    until: Option<u64>,
}

impl Watch for Seen {
    fn begin(&mut self, place: Place) -> bool {
        let wanted = place >= self.from;
        self.places.extend(wanted.then_some(place));
        wanted
    }

    fn checked(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        self.until.is_none_or(|until| self.bytes < until)
    }

    fn found(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

/// An open store of one shard: checkpoint, a segment of several blocks, and a log after it.
fn store() -> (SimDisk, Stripes) {
    let disk = SimDisk::new(1);
    let options = Options { shard_count: 1, ..Options::default() };
    let store = Stripes::open(disk.handle(), &options).unwrap();
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::STORE, file_name: b"a" };
    let definition = parse_create(&options, &["DS:a:GAUGE:60:U:U", "RRA:AVERAGE:0.5:1:500"]).unwrap();
    let name = |number: u64| RrdName::new(format!("{number}.rrd").as_bytes()).unwrap();
    for number in 0..200 {
        let request = CreateRequest { definition: definition.clone(), start: START, no_overwrite: true };
        let (sender, receiver) = mpsc::channel();
        store.create(name(number), request, Box::new(move |done| sender.send(done).unwrap()));
        receiver.recv().unwrap().unwrap();
    }
    for step in 1..61u64 {
        let mut batch = UpdateBatch::default();
        for number in 0..200u64 {
            let value = (number * 1000 + step).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let time = START + 10 * step as i64;
            batch.push(name(number).as_bytes(), format!("{time}:{value}").as_bytes());
        }
        let (sender, receiver) = mpsc::channel();
        store.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
        assert!(receiver.recv().unwrap().is_empty());
        if step == 50 {
            store.checkpoint().unwrap();
        }
    }
    store.flush(None).unwrap();
    (disk, store)
}

fn stopped(disk: &SimDisk) -> Seen {
    let mut seen = Seen::default();
    super::store(&*disk.handle(), &mut seen).unwrap();
    seen
}

fn running(store: &Stripes) -> Seen {
    let mut seen = Seen::default();
    store.verify(&mut seen).unwrap();
    seen
}

fn file(disk: &SimDisk, kind: &str) -> PathBuf {
    let dir = Path::new("shard-000");
    let names = disk.handle().list(dir).unwrap();
    dir.join(names.iter().find(|name| name.to_string_lossy().starts_with(kind)).unwrap())
}

#[test]
fn a_good_store_has_no_findings_running_or_stopped() {
    let (disk, store) = store();
    let seen = running(&store);
    assert_eq!(seen.findings, []);
    let bytes = disk.handle().length(&file(&disk, "segment-")).unwrap();
    assert!(seen.bytes > bytes * 9 / 10, "{} of {bytes}", seen.bytes);
    assert_eq!(seen.places.len(), 2);
    store.stop().unwrap();
    drop(store);
    let disk = disk.kill();
    assert_eq!(stopped(&disk).findings, []);
}

#[test]
fn a_damaged_block_is_reported_with_its_rrds_and_times() {
    let (disk, store) = store();
    let path = file(&disk, "segment-");
    disk.flip_bit(&path, 8 * 20_000).unwrap();
    for seen in [running(&store), {
        store.stop().unwrap();
        stopped(&disk.kill())
    }] {
        let [finding] = &seen.findings[..] else { panic!("{:?}", seen.findings) };
        let lost = finding.lost.as_ref().unwrap();
        assert_eq!(finding.file, path);
        assert!((12_000..20_001).contains(&finding.byte), "{finding}");
        assert!((10..150).contains(&lost.count) && lost.rrds.len() as u64 == lost.count, "{lost:?}");
        assert!((START..START + 20).contains(&lost.from), "{lost:?}");
        assert!((START + 480..START + 520).contains(&lost.to), "{lost:?}");
    }
}

#[test]
fn every_damaged_file_is_named() {
    for kind in ["STORE", "manifest", "manifest.copy", "checkpoint-", "segment-", "log-"] {
        for zeroed in [false, true] {
            let (disk, store) = store();
            store.stop().unwrap();
            drop(store);
            let disk = disk.kill();
            let path = if kind == "STORE" { kind.into() } else { file(&disk, kind) };
            // Of the log only what the checkpoint does not hold.
            let manifest = Manifest::load(&*disk.handle(), Path::new("shard-000")).unwrap().unwrap();
            let at = if kind == "log-" { manifest.position.offset + 20 } else { 20 };
            match zeroed {
                true => disk.replace(&path, &[0; 300]).unwrap(),
                false => disk.flip_bit(&path, 8 * at).unwrap(),
            }
            let seen = stopped(&disk);
            let named = |finding: &Finding| finding.file == path;
            assert!(seen.findings.iter().any(named), "{kind}: {:?}", seen.findings);
            assert!(seen.findings.iter().all(named) || kind == "STORE", "{kind}: {:?}", seen.findings);
        }
    }
}

#[test]
fn files_that_are_replaced_meanwhile_are_no_findings() {
    let (_disk, store) = store();
    let store = Arc::new(store);
    let writer = Arc::clone(&store);
    let writing = std::thread::spawn(move || {
        for step in 61..200i64 {
            let mut batch = UpdateBatch::default();
            for number in 0..200 {
                batch.push(format!("{number}.rrd").as_bytes(), format!("{}:1", START + 10 * step).as_bytes());
            }
            let (sender, receiver) = mpsc::channel();
            writer.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
            receiver.recv().unwrap();
            if step % 4 == 0 {
                writer.checkpoint().unwrap();
            }
        }
    });
    let mut passes = 0;
    while !writing.is_finished() {
        assert_eq!(running(&store).findings, []);
        passes += 1;
    }
    writing.join().unwrap();
    assert!(passes > 0);
}

/// Makes a checkpoint while the one before it is being read.
struct Replacing<'a> {
    store: &'a Stripes,
    seen: Seen,
    is_done: bool,
}

impl Watch for Replacing<'_> {
    fn checked(&mut self, bytes: u64) -> bool {
        if !std::mem::replace(&mut self.is_done, true) {
            self.store.checkpoint().unwrap();
        }
        self.seen.checked(bytes)
    }

    fn found(&mut self, finding: Finding) {
        self.seen.found(finding);
    }
}

#[test]
fn a_checkpoint_that_is_replaced_while_it_is_read_is_no_finding() {
    let (_disk, store) = store();
    let mut watch = Replacing { store: &store, seen: Seen::default(), is_done: false };
    store.verify(&mut watch).unwrap();
    assert!(watch.is_done);
    assert_eq!(watch.seen.findings, []);
}

#[test]
fn a_pass_begins_and_ends_where_it_is_told_to() {
    let (_disk, store) = store();
    let mut seen = Seen { until: Some(1), ..Seen::default() };
    store.verify(&mut seen).unwrap();
    assert_eq!(seen.places, [Place::default()]);
    let mut seen = Seen { from: Place { shard: 0, segment: 1 }, ..Seen::default() };
    store.verify(&mut seen).unwrap();
    assert_eq!(seen.places.len(), 1);
}

#[test]
fn rrd_files_and_journals_are_judged_as_far_as_they_can_be() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("a")).unwrap();
    std::fs::write(directory.path().join("a/bad.rrd"), b"RRD\x000003 and nothing else").unwrap();
    let mut seen = Seen::default();
    assert!(files(directory.path(), None, &mut seen));
    let [finding] = &seen.findings[..] else { panic!("{:?}", seen.findings) };
    assert!(finding.file.ends_with("a/bad.rrd") && !finding.what.is_empty());
    let good = directory.path().join("a/good.rrd");
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::FILE, file_name: b"a" };
    // More than one piece.
    let definition = parse_create(&options, &["DS:a:GAUGE:60:U:U", "RRA:AVERAGE:0.5:1:400000"]).unwrap();
    rrd_file::create(&good, &definition, START, rrd_file::Existing::Refuse).unwrap();
    std::fs::remove_file(directory.path().join("a/bad.rrd")).unwrap();
    let mut seen = Seen::default();
    assert!(files(directory.path(), None, &mut seen));
    assert_eq!((seen.findings, seen.bytes), (vec![], std::fs::metadata(&good).unwrap().len()));
    let shorter = std::fs::metadata(&good).unwrap().len() - 8;
    std::fs::File::options().write(true).open(&good).unwrap().set_len(shorter).unwrap();
    let mut seen = Seen::default();
    files(directory.path(), None, &mut seen);
    assert!(seen.findings.len() == 1 && seen.findings[0].file == good, "{:?}", seen.findings);
    assert!(path(directory.path(), &mut Seen::default()).is_ok());
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(path(empty.path(), &mut Seen::default()), Err(VerifyError::NoStore(_))));
}
