//! A real store and its damaged relatives, looked at.

use std::sync::{Arc, mpsc};

use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;

use super::*;
use crate::disk::RealDisk;
use crate::engine::{CreateRequest, Engine, UpdateBatch};
use crate::filenames::FileKind;
use crate::files::FilesEngine;
use crate::name::RrdName;
use crate::shard::ShardOptions;
use crate::stripes::{Options as StoreOptions, Stripes};

const START: i64 = 1_700_000_000;

fn name(text: &str) -> RrdName {
    RrdName::new(text.as_bytes()).unwrap()
}

fn request() -> CreateRequest {
    let words = ["DS:a:GAUGE:60:U:U", "DS:b:COUNTER:60:0:U", "RRA:AVERAGE:0.5:1:5000", "RRA:MAX:0.5:6:1000"];
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::STORE, file_name: b"a" };
    let definition = parse_create(&options, &words).unwrap();
    CreateRequest { definition, start: START, no_overwrite: false }
}

fn create(engine: &dyn Engine, of: &str) {
    let (sender, receiver) = mpsc::channel();
    engine.create(name(of), request(), Box::new(move |done| sender.send(done).unwrap()));
    receiver.recv().unwrap().unwrap();
}

fn update(engine: &dyn Engine, of: &str, numbers: std::ops::Range<i64>) {
    for number in numbers {
        let mut batch = UpdateBatch::default();
        batch.push(of.as_bytes(), format!("{}:{number}:{}", START + 10 * number, 7 * number).as_bytes());
        let (sender, receiver) = mpsc::channel();
        engine.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
        assert!(receiver.recv().unwrap().is_empty());
    }
}

/// A store of one shard with segments, a checkpoint, and a log after it.
fn store() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions { shard_count: 1, ..StoreOptions::default() };
    let store = Stripes::open(Arc::new(RealDisk::open(directory.path()).unwrap()), &options).unwrap();
    create(&store, "x.rrd");
    create(&store, "host/y z.rrd");
    update(&store, "x.rrd", 1..200);
    update(&store, "host/y z.rrd", 1..100);
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    update(&store, "x.rrd", 200..230);
    create(&store, "late.rrd");
    store.delete(&name("host/y z.rrd")).unwrap();
    drop(store);
    directory
}

fn look(path: &Path) -> (String, u64) {
    look_with(path, Options { verify: true })
}

fn look_with(path: &Path, options: Options) -> (String, u64) {
    let mut out = Vec::new();
    let found = inspect(path, options, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), found.damage_count)
}

fn file_of(directory: &Path, wanted: impl Fn(FileKind) -> bool) -> PathBuf {
    let entries = fs::read_dir(directory.join("shard-000")).unwrap().map(|entry| entry.unwrap());
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| filenames::kind_of(&entry.file_name()).is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.remove(0)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

/// Every line of `wanted` is a part of some line of `text`.
fn contains(text: &str, wanted: &[&str]) {
    for part in wanted {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// Everything in a directory, as (path, bytes), to see that nothing was written.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn an_intact_store_is_described_and_not_modified() {
    let directory = store();
    let before = files(directory.path());
    let (text, damages) = look(directory.path());
    assert_eq!(damages, 0, "{text}");
    contains(
        &text,
        &[
            "layout 1, 1 shards",
            "manifest: checkpoint ",
            "2 RRDs with 4 DS in 1 definitions and 1 groups",
            "group 0: step 10 s, 2 DS, AVERAGE:1:5000 MAX:6:1000",
            "log file log-00000000-0000000000000000 from position 0:0",
            "32 records: 30 updates, 1 created, 0 imported, 0 deleted, 0 tuned, 1 renamed",
            "segment ",
            " level 0 class mixed, 2023-11-14T22:13:",
            " rows, ",
        ],
    );
    let (quick, _) = look_with(directory.path(), Options::default());
    contains(&quick, &["up to 199 rows an RRD"]);
    let (shard, _) = look(&directory.path().join("shard-000"));
    assert!(text.ends_with(&shard), "{shard}");
    assert_eq!(files(directory.path()), before);
}

#[test]
fn an_open_store_can_be_inspected() {
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        shard_count: 2,
        shard: ShardOptions { open_bytes_min: 1 << 12, ..ShardOptions::default() },
        ..StoreOptions::default()
    };
    let store = Stripes::open(Arc::new(RealDisk::open(directory.path()).unwrap()), &options).unwrap();
    create(&store, "x.rrd");
    update(&store, "x.rrd", 1..5);
    let (text, damages) = look(directory.path());
    assert_eq!(damages, 0, "{text}");
    contains(&text, &["2 shards", "4 updates, 1 created", "shard 1 in "]);
    update(&store, "x.rrd", 5..6);
}

#[test]
fn a_log_file_is_described_by_record_with_offsets_of_damage() {
    let directory = store();
    let log = file_of(directory.path(), |kind| matches!(kind, FileKind::Log(_)));
    let (text, damages) = look(&log);
    assert_eq!(damages, 0, "{text}");
    contains(
        &text,
        &[
            "log file from position 0:0 on",
            "byte 0         position 0:0            create",
            "id 0 \"x.rrd\" with 2 DS, 2 RRA, start 2023-11-14T22:13:20Z",
            "id 1 \"host/y z.rrd\"",
            "1 updates of 1 RRDs, times 1700000010 to 1700000010",
            "rename",
            "3 created, 0 imported, 0 deleted, 0 tuned, 1 renamed",
            "bytes reserved, zero",
        ],
    );
    let second = text.lines().nth(2).unwrap().split_whitespace().nth(1).unwrap().parse::<usize>().unwrap();
    flip(&log, second + 70);
    let (text, damages) = look(&log);
    assert_eq!(damages, 1, "{text}");
    contains(
        &text,
        &[&format!("damaged at byte {second} (position 0:{second}"), "expected checksum", "id 0 \"x.rrd\""],
    );
    assert!(!text.contains("\"host/y z.rrd\" with"), "{text}");
    // A copy under any name says where it stands by its first record.
    let copy = directory.path().join("saved.bin");
    fs::copy(&log, &copy).unwrap();
    contains(&look(&copy).0, &["log file from position 0:0 on", "2 created"]);
    // Torn in the last record: the end, as recovery sees it.
    let bytes = fs::read(&log).unwrap();
    let end: usize = text.rsplit("position 0:").next().unwrap().trim().parse().unwrap();
    fs::write(&copy, &bytes[..end - 3]).unwrap();
    contains(&look(&copy).0, &["is torn, as a crash leaves it, or damaged (Cut)"]);
}

#[test]
fn a_segment_is_described_by_archive_around_damage() {
    let directory = store();
    let segment = file_of(directory.path(), |kind| matches!(kind, FileKind::Segment(_)));
    let (text, damages) = look(&segment);
    assert_eq!(damages, 0, "{text}");
    contains(
        &text,
        &[
            "format 3",
            "group 0 source 0 (2 DS, a row each 10 s): 2023-11-14T22:13:",
            "group 0 source 1 (2 DS, a row each 60 s)",
            " 2 runs, 298 rows readable",
        ],
    );
    flip(&segment, 60);
    let (text, damages) = look(&segment);
    assert!(damages == 1, "{text}");
    contains(&text, &["is damaged at 32: expected checksum"]);
    flip(&segment, 60);
    let length = fs::metadata(&segment).unwrap().len() as usize;
    flip(&segment, length - 10);
    let (text, damages) = look(&segment);
    assert_eq!(damages, 1, "{text}");
    contains(&text, &["without the footer: segment ", " 1 good blocks up to byte ", "2 runs, 298 rows"]);
    fs::write(&segment, b"short").unwrap();
    assert_eq!(look(&segment).1, 2);
    // The rest of the store is still shown.
    let (text, damages) = look(directory.path());
    assert_eq!(damages, 1, "{text}");
    contains(&text, &["2 RRDs with 4 DS", "30 updates"]);
}

#[test]
fn a_checkpoint_is_described_by_page_without_bad_pages() {
    let directory = store();
    let checkpoint = file_of(directory.path(), |kind| matches!(kind, FileKind::Checkpoint(_)));
    let (text, damages) = look(&checkpoint);
    assert_eq!(damages, 0, "{text}");
    contains(
        &text,
        &[
            "byte 8         page",
            "2 RRDs with 4 DS",
            "1 pages, next id 2",
            "newest update 2023-11-14T22:46:30Z",
        ],
    );
    flip(&checkpoint, 60);
    let (text, damages) = look(&checkpoint);
    assert_eq!(damages, 1, "{text}");
    contains(&text, &["is damaged at byte 8: the checksum does not match", "1 groups", "0 RRDs"]);
    let bytes = fs::read(&checkpoint).unwrap();
    fs::write(&checkpoint, &bytes[..bytes.len() - 5]).unwrap();
    contains(&look(&checkpoint).0, &["the frame's head makes no sense", "the end frame is missing"]);
}

#[test]
fn a_store_without_manifest_or_identity_is_described() {
    let directory = store();
    fs::write(directory.path().join("shard-000/manifest"), b"roundel-manifest 1\nrubbish\n").unwrap();
    fs::remove_file(directory.path().join("STORE")).unwrap();
    let (text, damages) = look(directory.path());
    assert_eq!(damages, 2, "{text}");
    contains(
        &text,
        &["the manifest is damaged in line 2", "STORE is missing", "2 RRDs with 4 DS", "class mixed"],
    );
    contains(&look(&directory.path().join("shard-000/manifest")).0, &["DAMAGE"]);
}

#[test]
fn a_journal_is_described_by_buffered_updates() {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let options = crate::files::Options::new(tree, directory.path().join("journal"));
    let engine = FilesEngine::open(options).unwrap();
    create(&engine, "x.rrd");
    update(&engine, "x.rrd", 1..4);
    engine.stop().unwrap();
    let journals = directory.path().join("journal");
    let (text, damages) = look(&journals);
    assert_eq!(damages, 0, "{text}");
    contains(&text, &["\"x.rrd\": 3 updates, the newest 2023-11-14T22:13:50Z, in its file up to none"]);
    let file = crate::files::journal::Directory::open(&journals)
        .unwrap()
        .files()
        .unwrap()
        .into_iter()
        .map(|(_, name)| journals.join(name))
        .find(|path| fs::metadata(path).unwrap().len() > 48)
        .unwrap();
    flip(&file, 60);
    let (text, damages) = look(&journals);
    assert_eq!(damages, 1, "{text}");
    contains(&text, &["at byte 48: ", "bytes of updates are lost"]);
    let rrd = directory.path().join("tree/x.rrd");
    contains(
        &look(&rrd).0,
        &[".rrd file version 0003, step 10 s", "DS b COUNTER", "RRA MAX 6 PDPs a row, 1000 rows, 0"],
    );
    fs::write(&rrd, b"RRD\0hello").unwrap();
    assert_eq!(look(&rrd).1, 1);
}

#[test]
fn unknown_files_are_refused_and_changed_ones_never_panic() {
    let directory = store();
    let other = directory.path().join("notes.txt");
    fs::write(&other, b"hello").unwrap();
    assert!(matches!(
        inspect(&other, Options::default(), &mut Vec::new()),
        Err(InspectError::Unknown { .. })
    ));
    let missing = inspect(Path::new("/does/not/exist"), Options::default(), &mut Vec::new());
    assert!(matches!(missing, Err(InspectError::Read { .. })));
    for wanted in [0, 1, 2] {
        let path = file_of(directory.path(), |kind| match kind {
            FileKind::Log(_) => wanted == 0,
            FileKind::Checkpoint(_) => wanted == 1,
            FileKind::Segment(_) => wanted == 2,
            _ => false,
        });
        let mut good = fs::read(&path).unwrap();
        // The reserved part of a log is all the same.
        good.truncate(64 << 10);
        testkit::shake(&good, 200, |bytes| {
            fs::write(&path, bytes).unwrap();
            let _ = inspect(&path, Options::default(), &mut Vec::new());
            let _ = inspect(directory.path(), Options { verify: true }, &mut Vec::new());
        });
        fs::write(&path, &good).unwrap();
    }
}
