#![allow(clippy::unwrap_used, reason = "tests")]

mod backup;
mod content;
mod rows;
mod version_1;

use std::fs;
use std::sync::mpsc;

use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;

use super::*;
use crate::disk::SimDisk;
use crate::engine::{CreateRequest, Engine, UpdateBatch};
use crate::error::OpenError;
use crate::name::RrdName;
use crate::stripes::{Options as StoreOptions, Stripes};

const START: i64 = 1_700_000_000;

fn open(directory: &Path) -> Result<Stripes, OpenError> {
    let options = StoreOptions { shard_count: 2, ..StoreOptions::default() };
    Stripes::open(Arc::new(RealDisk::open(directory).unwrap()), &options)
}

fn names() -> Vec<RrdName> {
    (0..8).map(|number| RrdName::new(format!("{number}.rrd").as_bytes()).unwrap()).collect()
}

fn update(store: &Stripes, numbers: std::ops::Range<i64>) {
    update_with(store, numbers, &|number| number);
}

/// Updates at the times that `numbers` say, with the values that `value` gives them.
fn update_with(store: &Stripes, numbers: std::ops::Range<i64>, value: &dyn Fn(i64) -> i64) {
    for number in numbers {
        let value = value(number);
        let mut batch = UpdateBatch::default();
        for name in names() {
            batch.push(name.as_bytes(), format!("{}:{value}", START + 10 * number).as_bytes());
        }
        let (sender, receiver) = mpsc::channel();
        store.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
        assert!(receiver.recv().unwrap().is_empty());
    }
}

/// A new store of two shards that both get RRDs. A store draws the seed of its hash at random: once in 128 times,
/// one shard gets all the names.
fn empty() -> (tempfile::TempDir, Stripes) {
    loop {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path()).unwrap();
        let in_first = names().iter().filter(|name| store.shard_index(name.as_bytes()) == 0).count();
        if in_first > 0 && in_first < names().len() {
            return (directory, store);
        }
    }
}

/// A stopped store of two shards with RRDs.
fn created() -> tempfile::TempDir {
    let (directory, store) = empty();
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::STORE, file_name: b"a" };
    let definition = parse_create(&options, &["DS:a:GAUGE:60:U:U", "RRA:AVERAGE:0.5:1:500"]).unwrap();
    for name in names() {
        let request = CreateRequest { definition: definition.clone(), start: START, no_overwrite: true };
        let (sender, receiver) = mpsc::channel();
        store.create(name, request, Box::new(move |done| sender.send(done).unwrap()));
        receiver.recv().unwrap().unwrap();
    }
    store.stop().unwrap();
    directory
}

/// A stopped store of two shards with RRDs, segments, a checkpoint, and a log after it.
fn store() -> tempfile::TempDir {
    let directory = created();
    let store = open(directory.path()).unwrap();
    update(&store, 1..100);
    store.checkpoint().unwrap();
    update(&store, 100..120);
    store.stop().unwrap();
    directory
}

/// A copy of a stopped store.
fn copy(directory: &Path) -> tempfile::TempDir {
    fn all(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let to = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => all(&entry.path(), &to),
                false => drop(fs::copy(entry.path(), to).unwrap()),
            }
        }
    }
    let backup = tempfile::tempdir().unwrap();
    all(directory, backup.path());
    backup
}

/// Every value of every RRD.
fn content(store: &Stripes) -> String {
    names().iter().map(|name| format!("{:?}\n", store.read(name).unwrap())).collect()
}

fn run(directory: &Path, apply: bool, accept_loss: bool) -> (Outcome, String) {
    let mut out = Vec::new();
    let outcome = repair(directory, Options { apply, accept_loss, backup: None }, &mut out).unwrap();
    (outcome, String::from_utf8(out).unwrap())
}

/// Names of all files, and lengths of all but logs (of which the start of another shard gives back what was only reserved), to
/// see that nothing is deleted or made.
fn listing(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(listing(&entry.path())),
            false => {
                let is_log = entry.file_name().to_string_lossy().starts_with("log-");
                let bytes = if is_log { 0 } else { entry.metadata().unwrap().len() };
                found.push(format!("{} {bytes}", entry.path().display()));
            }
        }
    }
    found.sort();
    found
}

/// The start fails, names `file` and the command, and changes nothing.
#[track_caller]
fn refused(directory: &Path, file: &str) {
    let before = listing(directory);
    let error = open(directory).err().expect("a damaged store is refused").to_string();
    assert!(error.contains(file) && error.contains("roundel repair"), "{error}");
    assert_eq!(listing(directory), before, "{error}");
}

fn segment_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for shard in ["shard-000", "shard-001"] {
        for entry in fs::read_dir(directory.join(shard)).unwrap().map(Result::unwrap) {
            if entry.file_name().to_string_lossy().starts_with("segment-") {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_lost_manifest_is_refused_and_restored_from_its_copy() {
    for damaged in [false, true] {
        let directory = store();
        let want = content(&open(directory.path()).unwrap());
        let manifest = directory.path().join("shard-000/manifest");
        match damaged {
            true => fs::write(&manifest, "roundel-manifest 2\nnonsense\n").unwrap(),
            false => fs::remove_file(&manifest).unwrap(),
        }
        refused(directory.path(), "shard-000/manifest");
        let before = listing(directory.path());
        let (outcome, said) = run(directory.path(), false, false);
        assert_eq!(outcome, Outcome { steps: 1, ..Outcome::default() }, "{said}");
        assert!(said.contains("would: restore it from its copy, shard-000/manifest.copy"), "{said}");
        assert_eq!(listing(directory.path()), before);
        assert_eq!(run(directory.path(), true, false).0.steps, 1);
        assert_eq!(directory.path().join("shard-000/damaged-manifest").exists(), damaged);
        assert_eq!(content(&open(directory.path()).unwrap()), want);
        assert_eq!(run(directory.path(), true, false).0, Outcome::default());
    }
}

#[test]
fn a_manifest_without_a_copy_is_made_from_the_files() {
    let directory = store();
    let want = content(&open(directory.path()).unwrap());
    for name in ["manifest", "manifest.copy"] {
        fs::remove_file(directory.path().join("shard-001").join(name)).unwrap();
    }
    refused(directory.path(), "shard-001/manifest");
    let (outcome, said) = run(directory.path(), true, false);
    assert_eq!(outcome, Outcome { refused: 1, ..Outcome::default() }, "{said}");
    assert!(said.contains("only with --accept-loss: make it from the files that are there"), "{said}");
    assert_eq!(run(directory.path(), true, true).0.steps, 1);
    assert_eq!(content(&open(directory.path()).unwrap()), want);
}

#[test]
fn a_lost_copy_is_written_again() {
    let directory = store();
    let copy = directory.path().join("shard-000/manifest.copy");
    fs::remove_file(&copy).unwrap();
    drop(open(directory.path()).unwrap());
    assert_eq!(fs::read(&copy).unwrap(), fs::read(copy.with_file_name("manifest")).unwrap());
}

#[test]
fn a_lost_identity_is_refused_and_written_again() {
    let directory = store();
    let store = open(directory.path()).unwrap();
    let (want, identity) = (content(&store), store.identity());
    drop(store);
    fs::remove_file(directory.path().join("STORE")).unwrap();
    refused(directory.path(), "STORE");
    // One shard's manifest is enough.
    let manifest = directory.path().join("shard-000/manifest");
    fs::rename(&manifest, directory.path().join("kept")).unwrap();
    assert_eq!(run(directory.path(), true, false).0.steps, 2);
    let store = open(directory.path()).unwrap();
    assert_eq!(store.identity(), identity);
    assert_eq!(content(&store), want);
}

#[test]
fn a_lost_shard_is_refused_and_only_given_up_with_consent() {
    let directory = store();
    fs::rename(directory.path().join("shard-001"), directory.path().join("away")).unwrap();
    refused(directory.path(), "shard-001");
    let (outcome, said) = run(directory.path(), true, false);
    assert_eq!(outcome.refused, 1, "{said}");
    refused(directory.path(), "shard-001");
    assert_eq!(run(directory.path(), true, true).0.steps, 1);
    let left = open(directory.path()).unwrap().list(b"", true).unwrap().len();
    assert!(left > 0 && left < names().len(), "{left}");
}

#[test]
fn exchanged_and_lost_segments_are_refused() {
    let directory = store();
    let want = content(&open(directory.path()).unwrap());
    // A busy machine may have made more than one a shard.
    let segments = segment_files(directory.path());
    let (first, second) = (segments.first().unwrap(), segments.last().unwrap());
    let (bytes, other) = (fs::read(first).unwrap(), fs::read(second).unwrap());
    let shown = first.strip_prefix(directory.path()).unwrap().display().to_string();
    fs::write(first, [&other[..], b"x"].concat()).unwrap();
    refused_segment(directory.path(), &shown);
    fs::remove_file(first).unwrap();
    refused_segment(directory.path(), &shown);
    // Which of the two is the wrong one, the start cannot know.
    refused(directory.path(), "shard-000/manifest names");
    assert_eq!(run(directory.path(), true, false).0, Outcome { refused: 1, ..Outcome::default() });
    assert_eq!(run(directory.path(), true, true).0.steps, 1);
    assert_ne!(content(&open(directory.path()).unwrap()), want);
    fs::write(first, bytes).unwrap();
}

#[test]
fn a_damaged_segment_is_taken_from_a_backup_or_written_again() {
    for (at, backup, loses) in [(50, true, false), (50, false, true), (-20, false, false), (3, false, false)]
    {
        let directory = store();
        let want = content(&open(directory.path()).unwrap());
        let path = segment_files(directory.path()).remove(0);
        let copies = tempfile::tempdir().unwrap();
        let copy = copies.path().join(path.strip_prefix(directory.path()).unwrap());
        fs::create_dir(copy.parent().unwrap()).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        fs::write(&copy, &bytes).unwrap();
        let at = if at < 0 { bytes.len() - 20 } else { at as usize };
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        let disk = RealDisk::open(copies.path()).unwrap();
        let mut out = Vec::new();
        let options =
            Options { apply: true, accept_loss: false, backup: backup.then_some(&disk as &dyn Disk) };
        let mut outcome = repair(directory.path(), options, &mut out).unwrap();
        let said = String::from_utf8(out).unwrap();
        assert_eq!(said.contains("from the backup"), backup, "{said}");
        if loses {
            assert_eq!(outcome, Outcome { refused: 1, ..Outcome::default() }, "{said}");
            let store = open(directory.path()).unwrap();
            assert!(names().iter().any(|name| store.read(name).is_err()), "it opens, and says what is lost");
            drop(store);
            outcome = run(directory.path(), true, true).0;
        }
        assert_eq!(outcome, Outcome { steps: 1, ..Outcome::default() }, "{said}");
        let store = open(directory.path()).unwrap();
        assert_eq!(content(&store) == want, !loses, "byte {at}");
        drop(store);
        assert_eq!(run(directory.path(), true, false).0, Outcome::default());
    }
}

/// As [`refused`], for a file that a backup must restore. Other shards may have been opened by then.
#[track_caller]
fn refused_segment(directory: &Path, file: &str) {
    let shard = directory.join(file).with_file_name("");
    let before = listing(&shard);
    let error = open(directory).err().expect("a damaged store is refused").to_string();
    assert!(error.contains(file), "{error}");
    assert_eq!(listing(&shard), before, "{error}");
}

#[test]
fn manifests_of_two_shards_exchanged_are_refused() {
    let directory = store();
    let path = |shard: &str| directory.path().join(shard).join("manifest");
    let (first, second) = (fs::read(path("shard-000")).unwrap(), fs::read(path("shard-001")).unwrap());
    fs::write(path("shard-000"), &second).unwrap();
    fs::write(path("shard-001"), &first).unwrap();
    refused(directory.path(), "/manifest is that of shard ");
    assert_eq!(run(directory.path(), true, false).0.steps, 2);
    open(directory.path()).unwrap();
}

#[test]
fn a_creation_that_was_interrupted_is_completed() {
    let options = StoreOptions { shard_count: 3, ..StoreOptions::default() };
    let count = {
        let disk = SimDisk::new(1);
        drop(Stripes::open(disk.handle(), &options).unwrap());
        disk.counts().changes
    };
    for changes in 0..count {
        for seed in 0..4 {
            let disk = SimDisk::new(seed);
            disk.power_off_after(changes);
            drop(Stripes::open(disk.handle(), &options));
            let disk = if seed % 2 == 0 { disk.crash() } else { disk.kill() };
            let opened = Stripes::open(disk.handle(), &options);
            opened.unwrap_or_else(|error| panic!("after {changes} changes, seed {seed}: {error}"));
        }
    }
}

#[test]
fn a_directory_without_a_store_is_no_store() {
    let directory = tempfile::tempdir().unwrap();
    let error = repair(directory.path(), Options::default(), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("is no store"), "{error}");
}
