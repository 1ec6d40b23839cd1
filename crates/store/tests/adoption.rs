//! Adoption in the striped store: clients that send on without waiting, and names that only a file has.

#![allow(clippy::unwrap_used, reason = "a failure here is the test's")]

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use roundel_store::disk::real::RealDisk;
use roundel_store::engine::{Adoption, CreateRequest, Engine, StoreError, UpdateBatch, UpdateFailure};
use roundel_store::stripes::{Adopted, Options, Stripes};
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use rrd_file::Existing;
use rrd_file::name::RrdName;

const START: i64 = 1_700_000_000;
const CONNECTIONS: usize = 4;
const FILES: usize = 24;

fn name(number: usize) -> RrdName {
    RrdName::new(format!("host-{number}.rrd").as_bytes()).unwrap()
}

fn definition() -> Definition {
    let step = Step { units: 1, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
    parse_create(&options, &["DS:v:GAUGE:1000:U:U", "RRA:LAST:0.5:1:2000"]).unwrap()
}

/// A store whose tree has files that no one has used yet.
fn store(directory: &Path, shard_count: u32) -> Stripes {
    let tree = directory.join("tree");
    std::fs::create_dir(&tree).unwrap();
    for number in 0..FILES {
        let path = tree.join(name(number).to_string());
        rrd_file::create(&path, &definition(), START, Existing::Refuse).unwrap();
    }
    let disk = Arc::new(RealDisk::create(&directory.join("store")).unwrap());
    let options = Options {
        shard_count,
        placeholder_tree: Some(tree.clone()),
        adopt_tree: Some(tree),
        ..Options::default()
    };
    Stripes::open(disk, &options).unwrap()
}

fn send(store: &Stripes, batch: UpdateBatch) -> Receiver<Vec<UpdateFailure>> {
    let (sender, receiver) = mpsc::channel();
    store.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
    receiver
}

#[test]
fn a_store_that_is_dropped_while_it_adopts_is_closed_then() {
    for round in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path(), 1 + round % 2);
        let mut batch = UpdateBatch::default();
        (0..FILES)
            .for_each(|number| batch.push(name(number).as_bytes(), format!("{}:1", START + 1).as_bytes()));
        let _answers = send(&store, batch);
        drop(store);
        let disk = RealDisk::create(&directory.path().join("store")).unwrap();
        let reopened = Stripes::open(Arc::new(disk), &Options::default());
        assert!(reopened.is_ok(), "round {round}: {:?}", reopened.err());
    }
}

/// Each connection has files of its own, and sends batch after batch for them without waiting for an answer.
#[test]
fn updates_that_are_sent_on_during_an_adoption_keep_their_order() {
    for round in 0..6 {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path(), 1 + round % 2);
        std::thread::scope(|scope| {
            for connection in 0..CONNECTIONS {
                let store = &store;
                scope.spawn(move || {
                    let files = (connection..FILES).step_by(CONNECTIONS);
                    let answers: Vec<_> = (1..400i64)
                        .map(|second| {
                            let mut batch = UpdateBatch::default();
                            // Later batches meet new names beside those that are being adopted.
                            for number in files.clone().take(1 + second as usize / 40) {
                                let values = format!("{}:{second}", START + second);
                                batch.push(name(number).as_bytes(), values.as_bytes());
                            }
                            send(store, batch)
                        })
                        .collect();
                    for answer in answers {
                        let failures = answer.recv().unwrap();
                        assert!(failures.is_empty(), "{:?}", failures[0].error);
                    }
                });
            }
        });
        for number in 0..FILES {
            assert_eq!(store.status(&name(number)).unwrap().last_update.whole, START + 399);
        }
        store.stop().unwrap();
    }
}

/// A query may adopt a file while its first updates are on their way.
#[test]
fn queries_that_adopt_do_not_reorder_updates_either() {
    for _ in 0..4 {
        queries_meet_updates();
    }
}

fn queries_meet_updates() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path(), 1);
    let store = &store;
    std::thread::scope(|scope| {
        for number in 0..FILES {
            scope.spawn(move || drop(store.status(&name(number)).unwrap()));
            let answers: Vec<_> = (1..300i64)
                .map(|second| {
                    let mut batch = UpdateBatch::default();
                    let values = format!("{}:{second}", START + second);
                    batch.push(name(number).as_bytes(), values.as_bytes());
                    send(store, batch)
                })
                .collect();
            assert!(answers.into_iter().all(|answer| answer.recv().unwrap().is_empty()), "{number}");
        }
    });
    store.stop().unwrap();
}

#[test]
fn a_name_that_only_a_file_has_exists() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path(), 1);
    let create = |name: RrdName| {
        let request = CreateRequest { definition: definition(), start: START + 5000, no_overwrite: true };
        let (sender, receiver) = mpsc::channel();
        store.create(name, request, Box::new(move |result| sender.send(result).unwrap()));
        receiver.recv().unwrap()
    };
    assert_eq!(create(name(0)), Err(StoreError::Exists(name(0))));
    assert_eq!(create(RrdName::new(b"new.rrd").unwrap()), Ok(()));
    let rrd = store.read(&RrdName::new(b"new.rrd").unwrap()).unwrap();
    assert_eq!(store.import(name(1), rrd.clone(), true), Err(StoreError::Exists(name(1))));
    assert_eq!(store.status(&name(1)).unwrap().last_update.whole, START, "it is the file's");
    // Without -O it is replaced, as a file would be.
    assert_eq!(store.import(name(2), rrd, false), Ok(()));
    assert_eq!(store.status(&name(2)).unwrap().last_update.whole, START + 5000);
    store.stop().unwrap();
}

fn create(store: &Stripes, name: RrdName, start: i64, no_overwrite: bool) -> Result<(), StoreError> {
    let request = CreateRequest { definition: definition(), start, no_overwrite };
    let (sender, receiver) = mpsc::channel();
    store.create(name, request, Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv().unwrap()
}

fn last_update(store: &Stripes, number: usize) -> Result<i64, StoreError> {
    store.status(&name(number)).map(|status| status.last_update.whole)
}

/// As in rrdcached, where the file is the RRD.
#[test]
fn a_deleted_rrd_takes_its_file_along() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path(), 2);
    let path = |number| directory.path().join("tree").join(name(number).to_string());
    assert_eq!(last_update(&store, 0), Ok(START), "adopted");
    // The second one is not adopted yet.
    for number in [0, 1] {
        assert!(path(number).exists());
        assert_eq!(store.delete(&name(number)), Ok(()));
        assert!(!path(number).exists());
        assert_eq!(last_update(&store, number), Err(StoreError::NoSuchRrd(name(number))));
        assert_eq!(store.delete(&name(number)), Err(StoreError::NoSuchRrd(name(number))));
        assert_eq!(create(&store, name(number), START + 7, true), Ok(()));
        assert_eq!(last_update(&store, number), Ok(START + 7));
    }
    store.stop().unwrap();
}

#[test]
fn a_plain_create_replaces_a_file_whether_it_is_adopted_or_not() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path(), 2);
    let path = |number| directory.path().join("tree").join(name(number).to_string());
    assert_eq!(last_update(&store, 0), Ok(START), "adopted");
    for number in [0, 1] {
        assert_eq!(create(&store, name(number), START + 7, true), Err(StoreError::Exists(name(number))));
        let front = [&b"ROUNDELP"[..], b"RRD\0"][number];
        assert!(std::fs::read(path(number)).unwrap().starts_with(front), "nothing has happened");
        assert_eq!(create(&store, name(number), START + 7, false), Ok(()));
        assert_eq!(last_update(&store, number), Ok(START + 7));
        assert!(std::fs::read(path(number)).unwrap().starts_with(b"ROUNDELP"), "what it was is not believed");
        assert_eq!(store.delete(&name(number)), Ok(()));
        assert!(!path(number).exists());
    }
    // What cannot be created replaces nothing.
    let request = CreateRequest {
        definition: Definition { rra: vec![definition().rra[0].clone(); 5000], ..definition() },
        start: START,
        no_overwrite: false,
    };
    let (sender, receiver) = mpsc::channel();
    store.create(name(2), request, Box::new(move |result| sender.send(result).unwrap()));
    assert!(matches!(receiver.recv().unwrap(), Err(StoreError::TooLarge(_))));
    assert_eq!(last_update(&store, 2), Ok(START));
    store.stop().unwrap();
}

/// The answers come from the files or from the new RRDs, and nothing is lost between them.
#[test]
fn creations_race_with_the_adoption_of_what_they_replace() {
    for round in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path(), 1 + round % 2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..FILES {
                    let mut batch = UpdateBatch::default();
                    batch.push(name(number).as_bytes(), format!("{}:1", START + 1000).as_bytes());
                    let failures = send(&store, batch).recv().unwrap();
                    assert!(failures.is_empty(), "{:?}", failures[0].error);
                }
            });
            scope.spawn(|| {
                for number in (0..FILES).rev() {
                    assert_eq!(create(&store, name(number), START + 500, false), Ok(()));
                }
            });
        });
        for number in 0..FILES {
            let last = last_update(&store, number).unwrap();
            assert!(last == START + 500 || last == START + 1000, "{last}");
            let file = std::fs::read(directory.path().join("tree").join(name(number).to_string())).unwrap();
            assert!(file.starts_with(b"ROUNDELP"), "{number}");
        }
        store.stop().unwrap();
    }
}

/// A store over a tree that has one file more or less, as [`store`] has it.
fn open(directory: &Path, change: impl FnOnce(&mut Options)) -> Stripes {
    let tree = directory.join("tree");
    let mut options = Options {
        shard_count: 2,
        placeholder_tree: Some(tree.clone()),
        adopt_tree: Some(tree),
        ..Options::default()
    };
    change(&mut options);
    let disk = Arc::new(RealDisk::create(&directory.join("store")).unwrap());
    // A process that another test has just forked has the lock until it executes its program.
    let opened = (0..100).find_map(|_| match Stripes::open(Arc::clone(&disk) as _, &options) {
        Ok(store) => Some(store),
        Err(error) => {
            assert!(error.to_string().contains("another daemon"), "{error}");
            std::thread::sleep(std::time::Duration::from_millis(10));
            None
        }
    });
    opened.expect("the store opens")
}

/// The archives of a store.
fn archives(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory.join("store")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().ends_with(".tar.zst")).collect()
}

/// What `tar` takes out of the archives, by name.
fn archived(directory: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for archive in archives(directory) {
        let bytes = zstd::stream::decode_all(std::fs::File::open(archive).unwrap()).unwrap();
        let out = tempfile::tempdir().unwrap();
        std::fs::write(out.path().join("a.tar"), bytes).unwrap();
        let tar =
            std::process::Command::new("tar").args(["-xf", "a.tar"]).current_dir(&out).output().unwrap();
        assert!(tar.status.success() && tar.stderr.is_empty(), "{tar:?}");
        for entry in std::fs::read_dir(out.path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name != "a.tar" {
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

fn update(store: &Stripes, number: usize, second: i64) {
    let mut batch = UpdateBatch::default();
    batch.push(name(number).as_bytes(), format!("{}:7", START + second).as_bytes());
    let failures = send(store, batch).recv().unwrap();
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn a_file_that_was_taken_in_is_in_the_archive_and_a_placeholder_has_its_place() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = |number: usize| directory.path().join("tree").join(name(number).to_string());
    let first = store(directory.path(), 2);
    let mut want = std::collections::BTreeMap::new();
    std::fs::set_permissions(path(1), std::fs::Permissions::from_mode(0o640)).unwrap();
    for number in [0, 1] {
        want.insert(name(number).to_string(), std::fs::read(path(number)).unwrap());
        update(&first, number, 50);
        assert!(std::fs::read(path(number)).unwrap().starts_with(b"ROUNDELP"));
    }
    assert!(archived(directory.path()) == want, "byte for byte");
    let mode = std::fs::metadata(path(1)).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
    assert!(std::fs::read(path(2)).unwrap().starts_with(b"RRD\0"), "no one has used it");
    first.stop().unwrap();
    drop(first);
    // It is kept for as long as it is told.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    for (days, is_kept) in [(1, true), (3, false)] {
        let store = open(directory.path(), |options| {
            options.adopted = Adopted::Archived(std::time::Duration::from_hours(48));
            options.clock = Arc::new(move || rrd::time::Timestamp::whole(now + days * 86_400));
        });
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !is_kept && !archives(directory.path()).is_empty() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(last_update(&store, 1), Ok(START + 50));
        assert_eq!(!archives(directory.path()).is_empty(), is_kept, "after {days} days");
        store.stop().unwrap();
    }
}

/// Setting the time of a placeholder must not touch the file that still stands in its place: it would look like another one, which replaces the RRD.
#[test]
fn the_time_of_a_file_that_is_taken_in_stays_its_own() {
    for adopted in [Adopted::Stays, Adopted::Archived(std::time::Duration::from_hours(1))] {
        let directory = tempfile::tempdir().unwrap();
        store(directory.path(), 1).stop().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let store = open(directory.path(), |options| {
            options.adopted = adopted;
            // As during the scan at the start: each name is looked at when it is used.
            options.watch = false;
        });
        // While some are taken in, the times of all are set again and again.
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    for number in 0..FILES {
                        store.flush(Some(&name(number))).ok();
                    }
                }
            });
            for second in 1..20 {
                for number in 0..FILES {
                    update(&store, number, second);
                }
                store.list(b"", true).unwrap();
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        // What happened to them is followed by the background and by the next use of each.
        testkit::wait_until("the background", || store.adoption().is_none_or(|adoption| adoption.left == 0));
        store.list(b"", true).unwrap();
        for number in 0..FILES {
            assert_eq!(last_update(&store, number), Ok(START + 19), "{adopted:?} {number}");
        }
        assert_eq!(store.trash().unwrap(), [], "{adopted:?}");
        store.stop().unwrap();
    }
}

#[test]
fn a_file_that_is_to_stay_stays_and_goes_once_it_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tree").join(name(0).to_string());
    store(directory.path(), 2).stop().unwrap();
    let content = std::fs::read(&path).unwrap();
    // A file that has changed within the last ticks of the kernel's clock may have been put there since the start.
    std::thread::sleep(std::time::Duration::from_millis(50));
    for second in [50, 60] {
        let keeping = open(directory.path(), |options| options.adopted = Adopted::Stays);
        update(&keeping, 0, second);
        // What stays is not taken for a file that was put there.
        assert_eq!(keeping.list(b"", true).unwrap().len(), FILES);
        assert_eq!(last_update(&keeping, 0), Ok(START + second));
        assert!(std::fs::read(&path).unwrap() == content, "it has changed");
        assert_eq!(keeping.trash().unwrap(), []);
        keeping.stop().unwrap();
    }
    assert!(archives(directory.path()).is_empty());
    // As after an earlier release, which left all files.
    let store = open(directory.path(), |_| {});
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while std::fs::read(&path).unwrap() == content {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(archived(directory.path()) == [(name(0).to_string(), content)].into(), "byte for byte");
    assert_eq!((last_update(&store, 0), store.trash().unwrap()), (Ok(START + 60), vec![]));
    store.stop().unwrap();
}

/// Waits until the background has done what it can; what it says then.
fn wait_for_adoption(store: &Stripes, handled: u64) -> Adoption {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let adoption = store.adoption().unwrap();
        if adoption.taken + adoption.failed >= handled && adoption.left == 0 {
            return adoption;
        }
        assert!(std::time::Instant::now() < deadline, "{adoption:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn files_that_no_one_names_are_taken_in_beside_everything_else() {
    let directory = tempfile::tempdir().unwrap();
    store(directory.path(), 2).stop().unwrap();
    let tree = directory.path().join("tree");
    std::fs::create_dir_all(tree.join("d/e")).unwrap();
    std::fs::rename(tree.join(name(3).to_string()), tree.join("d/e/far.rrd")).unwrap();
    std::fs::write(tree.join("broken.rrd"), b"RRD\x000003, and no more").unwrap();
    std::fs::write(tree.join("note.rrd"), b"no RRD").unwrap();
    std::fs::write(tree.join("state"), b"RRD\0").unwrap();
    let in_background = |options: &mut Options| options.adopt_unused = Some(std::time::Duration::ZERO);
    let taking = open(directory.path(), in_background);
    // A name that is used meanwhile does not wait for the others.
    update(&taking, 20, 50);
    let adoption = wait_for_adoption(&taking, FILES as u64);
    assert_eq!(adoption.failed, 1, "{adoption:?}");
    let (failed, why) = &adoption.failures[0];
    assert_eq!(failed.to_string(), "broken.rrd");
    assert!(why.contains("EOF"), "{why}");
    assert_eq!(last_update(&taking, 20), Ok(START + 50));
    for number in (0..FILES).filter(|number| *number != 3) {
        let file = std::fs::read(tree.join(name(number).to_string())).unwrap();
        assert!(file.starts_with(b"ROUNDELP"), "{number}");
    }
    assert!(std::fs::read(tree.join("d/e/far.rrd")).unwrap().starts_with(b"ROUNDELP"));
    assert_eq!(std::fs::read(tree.join("note.rrd")).unwrap(), b"no RRD");
    taking.stop().unwrap();
    drop(taking);
    // A restart finds only what is left, and says it again.
    let again = open(directory.path(), in_background);
    let adoption = wait_for_adoption(&again, 1);
    assert_eq!((adoption.taken, adoption.failed), (0, 1), "{adoption:?}");
    again.stop().unwrap();
    drop(again);
    // What is to stay is taken in only when it is named.
    let keeping = open(directory.path(), |options| {
        in_background(options);
        options.adopted = Adopted::Stays;
    });
    assert_eq!(keeping.adoption(), None);
    keeping.stop().unwrap();
}

#[test]
fn a_file_that_was_changed_lately_is_left_to_its_writer() {
    let directory = tempfile::tempdir().unwrap();
    store(directory.path(), 1).stop().unwrap();
    let path = |number: usize| directory.path().join("tree").join(name(number).to_string());
    let old = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
    for number in 1..FILES {
        std::fs::File::options().write(true).open(path(number)).unwrap().set_modified(old).unwrap();
    }
    let taking = open(directory.path(), |options| {
        options.adopt_unused = Some(std::time::Duration::from_hours(1));
    });
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while taking.adoption().unwrap().taken < FILES as u64 - 1 {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(std::fs::read(path(0)).unwrap().starts_with(b"RRD\0"));
    update(&taking, 0, 50);
    assert!(std::fs::read(path(0)).unwrap().starts_with(b"ROUNDELP"));
    taking.stop().unwrap();
}
