//! What programs do to placeholders happens to RRDs.

#![allow(clippy::unwrap_used, reason = "a failure here is the test's")]

#[path = "tree/mounts.rs"]
mod mounts;
#[path = "tree/names.rs"]
mod names;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc;

use roundel_store::disk::real::RealDisk;
use roundel_store::engine::{CreateRequest, Engine, StoreError, UpdateBatch};
use roundel_store::memory::{Memory, MemoryLimits};
use roundel_store::stripes::{Options, Stripes};
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::Step;
use rrd_file::Existing;
use rrd_file::name::RrdName;

const START: i64 = 1_700_000_000;

fn name(text: impl AsRef<[u8]>) -> RrdName {
    RrdName::new(text.as_ref()).unwrap()
}

thread_local! {
    /// The parent of the temporary directories that this thread makes, if it is not the usual one.
    static PARENT: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// A new directory below [`PARENT`].
fn temporary() -> tempfile::TempDir {
    let parent = PARENT.with_borrow(Option::clone).unwrap_or_else(std::env::temp_dir);
    tempfile::tempdir_in(parent).unwrap()
}

struct World {
    options: Options,
    store: Option<Stripes>,
    directory: tempfile::TempDir,
}

impl World {
    fn new(shard_count: u32) -> World {
        World::on(shard_count, |_| ())
    }

    /// One whose tree is prepared before the store is opened.
    fn on(shard_count: u32, prepare: impl FnOnce(&Path)) -> World {
        let directory = temporary();
        let tree = directory.path().join("tree");
        fs::create_dir(&tree).unwrap();
        prepare(&tree);
        let options = Options {
            shard_count,
            directory: Some(directory.path().join("store")),
            placeholder_tree: Some(tree.clone()),
            adopt_tree: Some(tree),
            ..Options::default()
        };
        let mut world = World { directory, options, store: None };
        world.start();
        world
    }

    fn start(&mut self) {
        // A process that another test has just forked has the locks until it executes its program.
        let opened = (0..1000).find_map(|_| match self.open() {
            Ok(store) => Some(store),
            Err(error) => {
                assert!(error.contains("another"), "{error}");
                std::thread::sleep(std::time::Duration::from_millis(10));
                None
            }
        });
        self.store = opened;
    }

    fn open(&self) -> Result<Stripes, String> {
        let disk = RealDisk::create(&self.directory.path().join("store")).unwrap();
        Stripes::open(Arc::new(disk), &self.options).map_err(|error| error.to_string())
    }

    fn stop(&mut self) {
        let store = self.store.take().unwrap();
        store.stop().unwrap();
    }

    fn store(&self) -> &Stripes {
        self.store.as_ref().unwrap()
    }

    fn path(&self, text: impl AsRef<[u8]>) -> PathBuf {
        self.directory.path().join("tree").join(OsStr::from_bytes(text.as_ref()))
    }

    /// Runs a command of the shell in the tree.
    fn sh(&self, command: &str) {
        let done = Command::new("sh").args(["-ec", command]).current_dir(self.path("")).status().unwrap();
        assert!(done.success(), "{command}");
    }

    fn create(&self, text: impl AsRef<[u8]>) {
        self.create_as(text, &["DS:v:GAUGE:1000:U:U", "RRA:LAST:0.5:1:100"]);
    }

    fn create_as(&self, text: impl AsRef<[u8]>, words: &[&str]) {
        let step = Step { units: 1, units_per_second: 1 };
        let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
        let definition = parse_create(&options, words).unwrap();
        let (sender, receiver) = mpsc::channel();
        let request = CreateRequest { definition, start: START, no_overwrite: true };
        self.store().create(name(text), request, Box::new(move |result| sender.send(result).unwrap()));
        receiver.recv().unwrap().unwrap();
    }

    fn update(&self, text: impl AsRef<[u8]>, second: i64, value: i64) -> Result<(), StoreError> {
        let mut batch = UpdateBatch::default();
        batch.push(text.as_ref(), format!("{}:{value}", START + second).as_bytes());
        let (sender, receiver) = mpsc::channel();
        self.store().update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
        receiver.recv().unwrap().pop().map_or(Ok(()), |failure| Err(failure.error))
    }

    /// Creates an RRD whose second row is a value that tells it from others.
    fn make(&self, text: impl AsRef<[u8]>, value: i64) {
        self.create(&text);
        self.update(&text, 1, value).unwrap();
    }

    /// The value that an RRD was made with, if there is one.
    fn value(&self, text: impl AsRef<[u8]>) -> Option<i64> {
        match self.store().read(&name(&text)) {
            Ok(rrd) => Some(
                rrd.archives[0].iter().rev().find(|value| !value.is_nan()).map_or(-1, |value| *value as i64),
            ),
            Err(StoreError::NoSuchRrd(_)) => None,
            Err(error) => panic!("{}: {error}", String::from_utf8_lossy(text.as_ref())),
        }
    }

    fn list(&self) -> String {
        let names = self.store().list(b"", true).unwrap();
        names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>().join(" ")
    }

    fn trash(&self) -> String {
        let trash = self.store().trash().unwrap();
        trash.iter().map(|trashed| trashed.name.to_string()).collect::<Vec<_>>().join(" ")
    }
}

/// Each is done to a store that runs and to one that is found so at its next start, of one shard and of several.
fn each_way(prepare: impl Fn(&World), command: &str, check: impl Fn(&World)) {
    for shard_count in [1, 4] {
        for is_running in [true, false] {
            let mut world = World::new(shard_count);
            prepare(&world);
            if is_running {
                world.sh(command);
            } else {
                world.stop();
                world.sh(command);
                world.start();
            }
            check(&world);
            // What was followed once is not followed again.
            world.stop();
            world.start();
            check(&world);
        }
    }
}

fn three(world: &World) {
    world.make("a/x.rrd", 1);
    world.make("a/y.rrd", 2);
    world.make("b/x.rrd", 3);
}

#[test]
fn files_are_removed_moved_and_copied() {
    each_way(three, "rm a/x.rrd", |world| {
        assert_eq!(world.value("a/x.rrd"), None);
        assert_eq!((world.list().as_str(), world.trash().as_str()), ("a/y.rrd b/x.rrd", "a/x.rrd"));
        assert!(matches!(world.update("a/x.rrd", 5, 9), Err(StoreError::NoSuchRrd(_))));
    });
    each_way(three, "mv a/x.rrd c.rrd", |world| {
        assert_eq!((world.value("c.rrd"), world.value("a/x.rrd")), (Some(1), None));
        assert_eq!((world.list().as_str(), world.trash().as_str()), ("a/y.rrd b/x.rrd c.rrd", ""));
    });
    each_way(three, "mv a/x.rrd b/x.rrd", |world| {
        assert_eq!((world.value("b/x.rrd"), world.value("a/x.rrd")), (Some(1), None));
        assert_eq!(world.trash(), "b/x.rrd");
    });
    each_way(three, "cp a/x.rrd b/x.rrd", |world| {
        assert_eq!((world.value("b/x.rrd"), world.value("a/x.rrd")), (Some(1), Some(1)));
        assert_eq!(world.trash(), "b/x.rrd");
    });
    each_way(three, "mv a/x.rrd t; mv b/x.rrd a/x.rrd; mv t b/x.rrd", |world| {
        assert_eq!(
            (world.value("a/x.rrd"), world.value("b/x.rrd"), world.trash().as_str()),
            (Some(3), Some(1), "")
        );
    });
    each_way(three, "mv b/x.rrd c.rrd; mv a/x.rrd b/x.rrd; cp c.rrd a/x.rrd", |world| {
        let values = ["a/x.rrd", "b/x.rrd", "c.rrd"].map(|name| world.value(name));
        assert_eq!((values, world.trash().as_str()), ([Some(3), Some(1), Some(3)], ""));
    });
}

#[test]
fn directories_are_removed_moved_and_copied() {
    each_way(three, "rm -r a", |world| {
        assert_eq!((world.list().as_str(), world.trash().as_str()), ("b/x.rrd", "a/x.rrd a/y.rrd"));
    });
    each_way(three, "mv a deep; mkdir q; mv deep q", |world| {
        assert_eq!((world.value("q/deep/x.rrd"), world.value("q/deep/y.rrd")), (Some(1), Some(2)));
        assert_eq!(
            (world.list().as_str(), world.trash().as_str()),
            ("b/x.rrd q/deep/x.rrd q/deep/y.rrd", "")
        );
        world.sh("mv q/deep a; mv a/y.rrd q; rmdir q || true");
        assert_eq!(world.list(), "a/x.rrd b/x.rrd q/y.rrd");
        world.sh("mv q/y.rrd a; mkdir -p q; mv a q/deep");
        assert_eq!(world.list(), "b/x.rrd q/deep/x.rrd q/deep/y.rrd");
    });
    each_way(three, "cp -a a c", |world| {
        let values = ["a/x.rrd", "c/x.rrd", "c/y.rrd"].map(|name| world.value(name));
        assert_eq!(values, [Some(1), Some(1), Some(2)]);
    });
    each_way(three, "mv a t; mv b a; mv t b", |world| {
        let values = ["a/x.rrd", "a/y.rrd", "b/x.rrd", "b/y.rrd"].map(|name| world.value(name));
        assert_eq!(values, [Some(3), None, Some(1), Some(2)]);
    });
}

#[test]
fn a_placeholder_says_when_its_rrd_was_updated() {
    let world = World::new(2);
    three(&world);
    let modified = |text: &str| fs::metadata(world.path(text)).unwrap().modified().unwrap();
    let at = |second| std::time::UNIX_EPOCH + std::time::Duration::from_secs((START + second) as u64);
    assert!(modified("a/x.rrd") > at(1000), "it was made just now");
    world.store().flush(Some(&name("a/x.rrd"))).unwrap();
    assert_eq!(modified("a/x.rrd"), at(1));
    for second in [50, 60] {
        world.update("a/x.rrd", second, 5).unwrap();
        world.update("a/y.rrd", second, 5).unwrap();
        world.store().flush(None).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while ["a/x.rrd", "a/y.rrd"].iter().any(|name| modified(name) != at(second))
            || modified("b/x.rrd") != at(1)
        {
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

#[test]
fn a_copy_is_independent() {
    let world = World::new(1);
    three(&world);
    world.sh("cp a/x.rrd c.rrd");
    world.update("c.rrd", 2, 7).unwrap();
    world.update("a/x.rrd", 2, 8).unwrap();
    assert_eq!((world.value("c.rrd"), world.value("a/x.rrd")), (Some(7), Some(8)));
    world.sh("rm a/x.rrd");
    assert_eq!((world.value("c.rrd"), world.value("a/x.rrd")), (Some(7), None));
}

#[test]
fn links_are_other_names() {
    let world = World::new(4);
    three(&world);
    symlink("x.rrd", world.path("a/s.rrd")).unwrap();
    symlink("a", world.path("l")).unwrap();
    fs::hard_link(world.path("a/x.rrd"), world.path("h.rrd")).unwrap();
    for (second, alias) in (2..).zip(["a/s.rrd", "l/x.rrd", "h.rrd"]) {
        assert_eq!(world.value(alias), Some(second - 1));
        world.update(alias, second, second).unwrap();
        assert_eq!(world.value("a/x.rrd"), Some(second), "{alias}");
    }
    assert_eq!(world.list(), "a/x.rrd a/y.rrd b/x.rrd h.rrd");
    // A hard link keeps the RRD when its first name goes.
    world.sh("rm a/x.rrd");
    assert_eq!((world.value("h.rrd"), world.value("a/x.rrd"), world.value("a/s.rrd")), (Some(4), None, None));
    // Loops and links that lead out are no RRDs.
    world.sh("ln -s loop.rrd loop.rrd; ln -s /etc/passwd out.rrd");
    assert_eq!((world.value("loop.rrd"), world.value("out.rrd")), (None, None));
}

#[test]
fn what_comes_back_is_taken_out_of_the_trash() {
    let world = World::new(4);
    three(&world);
    let away = world.directory.path().join("away");
    world.sh(&format!("mv a {}", away.display()));
    assert_eq!((world.list().as_str(), world.trash().as_str()), ("b/x.rrd", "a/x.rrd a/y.rrd"));
    world.sh(&format!("mv {} c", away.display()));
    assert_eq!((world.list().as_str(), world.trash().as_str()), ("b/x.rrd c/x.rrd c/y.rrd", ""));
    assert_eq!((world.value("c/x.rrd"), world.value("c/y.rrd")), (Some(1), Some(2)));
}

#[test]
fn hidden_names_of_rsync_and_editors_wait() {
    let world = World::new(1);
    three(&world);
    world.sh("cp a/x.rrd b/.x.rrd.Ab3; mv b/.x.rrd.Ab3 b/x.rrd; mv a/y.rrd a/.y.rrd; mv a/.y.rrd a/z.rrd");
    let values = ["a/x.rrd", "b/x.rrd", "a/z.rrd"].map(|name| world.value(name));
    assert_eq!(values, [Some(1), Some(1), Some(2)]);
}

#[test]
fn a_file_over_a_placeholder_is_taken_in() {
    let world = World::new(1);
    three(&world);
    let step = Step { units: 1, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
    let definition = parse_create(&options, &["DS:other:GAUGE:1000:U:U", "RRA:LAST:0.5:1:10"]).unwrap();
    let outside = world.directory.path().join("real.rrd");
    rrd_file::create(&outside, &definition, START, Existing::Refuse).unwrap();
    world.sh("cp ../real.rrd a/x.rrd; mv ../real.rrd b/x.rrd");
    for text in ["a/x.rrd", "b/x.rrd"] {
        let snapshot = world.store().snapshot(&name(text)).unwrap();
        assert_eq!(snapshot.definition.ds[0].name.as_ref() as &[u8], b"other", "{text}");
    }
    assert_eq!(world.trash(), "a/x.rrd b/x.rrd");
}

#[test]
fn a_placeholder_of_another_store_is_refused_with_both_names() {
    let world = World::new(1);
    let other = World::new(1);
    three(&world);
    other.make("a.rrd", 7);
    fs::copy(other.path("a.rrd"), world.path("a/x.rrd")).unwrap();
    let error = world.store().status(&name("a/x.rrd")).unwrap_err().to_string();
    for store in [&world, &other] {
        assert!(error.contains(&store.store().identity().to_string()), "{error}");
    }
    assert!(world.update("a/x.rrd", 5, 9).unwrap_err().to_string().contains("another store"));
}

#[test]
fn requests_do_the_same_as_programs() {
    for shard_count in [1, 4] {
        let mut world = World::new(shard_count);
        three(&world);
        world.store().rename(&name("a/x.rrd"), &name("new/x.rrd")).unwrap();
        world.store().copy(&name("a/y.rrd"), &name("b/x.rrd")).unwrap();
        world.store().delete(&name("a/y.rrd")).unwrap();
        for _ in 0..2 {
            assert_eq!(
                (world.list().as_str(), world.trash().as_str()),
                ("b/x.rrd new/x.rrd", "a/y.rrd b/x.rrd")
            );
            assert_eq!((world.value("new/x.rrd"), world.value("b/x.rrd")), (Some(1), Some(2)));
            assert!(!world.path("a/x.rrd").exists() && world.path("new/x.rrd").exists());
            world.stop();
            world.start();
        }
        let trash = world.store().trash().unwrap();
        world.store().restore(&trash[0], &name("a/y.rrd")).unwrap();
        assert!(matches!(world.store().restore(&trash[1], &name("b/x.rrd")), Err(StoreError::Exists(_))));
        world.store().restore(&trash[1], &name("c.rrd")).unwrap();
        assert_eq!(
            (world.value("a/y.rrd"), world.value("c.rrd"), world.trash().as_str()),
            (Some(2), Some(3), "")
        );
        assert!(world.path("c.rrd").exists());
        world.stop();
        world.start();
        assert_eq!(world.list(), "a/y.rrd b/x.rrd c.rrd new/x.rrd");
    }
}

#[test]
fn requests_replace_no_files_of_other_programs() {
    let (world, other) = (World::new(2), World::new(1));
    three(&world);
    other.make("a.rrd", 7);
    world.store().delete(&name("a/y.rrd")).unwrap();
    let trashed = &world.store().trash().unwrap()[0];
    fs::copy(other.path("a.rrd"), world.path("foreign.rrd")).unwrap();
    fs::write(world.path("note.rrd"), "a diary").unwrap();
    fs::create_dir(world.path("d.rrd")).unwrap();
    for (text, words) in
        [("foreign.rrd", "another store"), ("note.rrd", "not a placeholder"), ("d.rrd", "not a placeholder")]
    {
        let before = fs::read(world.path(text)).ok();
        let (from, to) = (name("a/x.rrd"), name(text));
        let refused = [
            world.store().rename(&from, &to),
            world.store().copy(&from, &to),
            world.store().restore(trashed, &to),
        ];
        for result in refused {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert_eq!((fs::read(world.path(text)).ok(), world.value("a/x.rrd")), (before, Some(1)), "{text}");
    }
    assert_eq!(world.trash(), "a/y.rrd");
}

/// What cannot be followed is said to who asked for it.
#[test]
fn a_copy_that_has_no_room_is_an_error() {
    let mut world = World::new(1);
    world.stop();
    // Room for one of these, and for small ones.
    let limits = MemoryLimits { store_bytes: 3 << 18, ..MemoryLimits::default() };
    world.options.shard.memory = Memory::new(limits);
    world.start();
    world.create_as("big.rrd", &["DS:v:GAUGE:1000:U:U", "RRA:HWPREDICT:60000:0.1:0.1:30000"]);
    world.make("small.rrd", 3);
    for to in ["new.rrd", "small.rrd"] {
        let error = world.store().copy(&name("big.rrd"), &name(to)).unwrap_err().to_string();
        assert!(error.contains("store_memory"), "{error}");
        assert_eq!((world.list().as_str(), world.value("small.rrd")), ("big.rrd small.rrd", Some(3)));
        assert!(!world.path("new.rrd").exists());
    }
    assert_eq!(world.trash(), "");
}

#[test]
fn an_rrd_that_was_rebuilt_is_known_by_its_new_number() {
    let world = World::new(1);
    three(&world);
    world.store().tune(&name("a/x.rrd"), &["DS:w:GAUGE:10:U:U".to_string()]).unwrap();
    world.sh("mv a/x.rrd c.rrd; cp c.rrd d.rrd");
    assert_eq!(world.list(), "a/y.rrd b/x.rrd c.rrd d.rrd");
    for text in ["c.rrd", "d.rrd"] {
        assert_eq!(world.store().status(&name(text)).unwrap().definition.ds.len(), 2, "{text}");
    }
    assert_eq!(world.trash(), "");
}

/// Without a watch, each name is looked at when it is used.
#[test]
fn an_unwatched_tree_is_followed_name_by_name() {
    let mut world = World::new(2);
    world.stop();
    world.options.watch = false;
    world.start();
    three(&world);
    world.make("c.rrd", 4);
    world.sh("mv a q; cp -a q a; rm b/x.rrd; mv c.rrd b/x.rrd");
    world.update("q/x.rrd", 2, 7).unwrap();
    let values = ["q/x.rrd", "a/x.rrd", "a/y.rrd", "b/x.rrd", "c.rrd"].map(|text| world.value(text));
    assert_eq!(values, [Some(7), Some(1), Some(2), Some(4), None]);
    assert!(matches!(world.update("c.rrd", 5, 1), Err(StoreError::NoSuchRrd(_))));
    world.sh("rm q/x.rrd");
    assert!(matches!(world.update("q/x.rrd", 5, 1), Err(StoreError::NoSuchRrd(_))));
}

#[test]
fn the_trash_is_kept_for_as_long_as_it_is_told() {
    let mut world = World::new(2);
    three(&world);
    world.store().delete(&name("a/x.rrd")).unwrap();
    world.stop();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    for (hours, want) in [(47, "a/x.rrd"), (49, "")] {
        world.options.trash = std::time::Duration::from_hours(48);
        world.options.clock = Arc::new(move || rrd::time::Timestamp::whole(now + hours * 3600));
        world.start();
        let deadline =
            std::time::Instant::now() + std::time::Duration::from_secs(if want.is_empty() { 30 } else { 0 });
        while world.trash() != want {
            assert!(std::time::Instant::now() < deadline, "{hours} hours: {}", world.trash());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(world.value("a/y.rrd"), Some(2));
        world.stop();
    }
}

fn many(world: &World) {
    for number in 0..40 {
        world.make(format!("h{}/{number}.rrd", number % 4), number);
    }
}

#[test]
fn too_many_at_a_stroke_are_kept() {
    each_way(many, "rm -r h0 h1 h2 h3", |world| {
        assert_eq!((world.list().split(' ').count(), world.trash().as_str()), (40, ""));
        assert_eq!(world.value("h1/5.rrd"), Some(5));
        world.update("h1/5.rrd", 1000, 5).unwrap_or(());
    });
    // One after the other, with requests in between: those that went first come back.
    let mut world = World::new(2);
    many(&world);
    for number in 0..40 {
        fs::remove_file(world.path(format!("h{}/{number}.rrd", number % 4))).unwrap();
        world.store().list(b"", true).unwrap();
    }
    assert_eq!((world.list().split(' ').count(), world.trash().as_str()), (40, ""));
    let kept = world.store().stats().missing_count;
    assert_eq!((kept, world.store().missing().len()), (40, 40));
    // The placeholders come back, or are really meant to go.
    assert_eq!(world.store().settle_missing(false), Ok(40));
    assert!(world.path("h1/5.rrd").exists());
    assert_eq!((world.store().missing(), world.value("h1/5.rrd")), (vec![], Some(5)));
    world.sh("rm -r h0 h1 h2 h3");
    assert_eq!(world.value("h1/5.rrd"), Some(5));
    assert_eq!(world.store().settle_missing(true), Ok(40));
    assert_eq!((world.list().as_str(), world.store().stats().trash_count), ("", 40));
    world.stop();
    // The whole tree is gone.
    world.start();
    many(&world);
    world.sh("rm -r ../tree");
    assert_eq!(world.value("h1/5.rrd"), Some(5));
}

#[test]
fn what_is_kept_without_a_placeholder_makes_way_for_a_new_rrd() {
    let world = World::new(2);
    many(&world);
    world.sh("rm -r h0 h1 h2 h3");
    assert_eq!(world.value("h1/5.rrd"), Some(5));
    // As LibreNMS does, with --no-overwrite.
    world.make("h1/5.rrd", 99);
    assert_eq!((world.value("h1/5.rrd"), world.trash().as_str()), (Some(99), "h1/5.rrd"));
    assert_eq!((world.value("h1/9.rrd"), world.store().missing().len()), (Some(9), 39));
}

#[test]
fn a_script_may_remove_one_after_the_other_what_it_has_made() {
    let world = World::new(2);
    for number in 0..60 {
        world.make(format!("{number}.rrd"), number);
        world.sh(&format!("rm {number}.rrd"));
        assert_eq!(world.value(format!("{number}.rrd")), None, "{number}");
    }
    // Those that are made again do not hide the others that are missing.
    let world = World::new(2);
    many(&world);
    for number in 0..40 {
        let text = format!("h{}/{number}.rrd", number % 4);
        world.sh(&format!("rm {text}"));
        if number % 3 == 0 {
            world.make(&text, number);
        }
    }
    assert!(world.store().missing().len() > 5, "{:?}", world.store().missing());
}

#[test]
fn a_tree_that_goes_while_others_are_made_is_kept() {
    let world = World::new(2);
    many(&world);
    for number in 0..40 {
        fs::remove_file(world.path(format!("h{}/{number}.rrd", number % 4))).unwrap();
        world.make(format!("new/{number}.rrd"), number);
    }
    assert_eq!((world.value("h1/5.rrd"), world.store().missing().len()), (Some(5), 40));
    assert_eq!(world.trash(), "");
}

#[test]
fn a_new_rrd_that_is_to_overwrite_nothing_overwrites_no_file() {
    let world = World::new(1);
    three(&world);
    world.sh("rm a/x.rrd; touch a/x.rrd; echo diary > b/x.rrd; mkdir c.rrd");
    let create = |text: &str, no_overwrite| {
        let step = Step { units: 1, units_per_second: 1 };
        let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
        let definition = parse_create(&options, &["DS:v:GAUGE:1000:U:U", "RRA:LAST:0.5:1:100"]).unwrap();
        let (sender, receiver) = mpsc::channel();
        let request = CreateRequest { definition, start: START, no_overwrite };
        world.store().create(name(text), request, Box::new(move |result| sender.send(result).unwrap()));
        receiver.recv().unwrap()
    };
    for text in ["a/x.rrd", "b/x.rrd", "c.rrd"] {
        assert_eq!(create(text, true), Err(StoreError::Exists(name(text))));
    }
    assert_eq!(create("a/x.rrd", false), Ok(()));
    assert_eq!((world.value("a/x.rrd"), world.value("b/x.rrd")), (Some(-1), None));
    assert_eq!(fs::read_to_string(world.path("b/x.rrd")).unwrap(), "diary\n");
}

/// The store has an RRD for each file, and no other. None was made that went to the trash.
fn check_same_files(world: &World) {
    let files = testkit::rrd_files(&world.path(""));
    assert_eq!(world.store().list(b"", true).unwrap().len(), files.len());
    assert_eq!(world.store().stats().rrd_count, files.len() as u64);
    for file in files {
        assert!(world.value(file.to_str().unwrap()).is_some(), "{}", file.display());
    }
    // That one was removed: before or after it was copied, before or after its directory was seen under the new name.
    assert!(["", "a/598.rrd", "c/598.rrd"].contains(&world.trash().as_str()), "{}", world.trash());
}

/// More than are followed while a request waits.
#[test]
fn large_directories_are_followed_in_parts_and_in_order() {
    for shard_count in [1, 3] {
        let mut world = World::new(shard_count);
        let (count, rrd) = (600, |directory: &str, number: i64| format!("{directory}/{number}.rrd"));
        (0..count).for_each(|number| world.make(rrd("a", number), number));
        world.sh("cp -a a b");
        for number in (0..count).step_by(7) {
            // Whichever of the two is asked for first, the copy is of the moment at which it was made.
            world.update(rrd("a", number), 2, 9000 + number).unwrap();
            assert_eq!(world.value(rrd("b", number)), Some(number));
        }
        world.sh("mv a c; cp c/599.rrd a.rrd; rm c/598.rrd; mv b t; cp -a c b; mv c/597.rrd d.rrd");
        world.update("c/599.rrd", 3, 77).unwrap();
        assert_eq!((world.value("a/3.rrd"), world.value("c/598.rrd")), (None, None));
        world.update("d.rrd", 4, 78).unwrap();
        let values = ["a.rrd", "b/7.rrd", "b/599.rrd", "b/597.rrd", "d.rrd", "t/7.rrd"];
        let last = if (count - 1) % 7 == 0 { 9599 } else { 599 };
        assert_eq!(values.map(|text| world.value(text)), [last, 9007, last, 597, 78, 7].map(Some));
        check_same_files(&world);
        // Moved on while it is followed: no copy is made twice.
        world.sh("cp -a t u; mv u v; mv v w; mv t u");
        assert_eq!((world.value("w/5.rrd"), world.value("u/5.rrd")), (Some(5), Some(5)));
        world.stop();
        world.start();
        check_same_files(&world);
    }
}

#[test]
fn rrds_that_never_had_a_placeholder_get_one() {
    let mut world = World::new(2);
    three(&world);
    let rrd = world.store().read(&name("a/x.rrd")).unwrap();
    world.stop();
    let with_tree = world.options.clone();
    world.options = Options { placeholder_tree: None, adopt_tree: None, ..with_tree.clone() };
    world.start();
    world.store().import(name("new/x.rrd"), rrd, true).unwrap();
    world.stop();
    world.options = with_tree;
    world.sh("rm a/y.rrd");
    world.start();
    assert_eq!((world.list().as_str(), world.trash().as_str()), ("a/x.rrd b/x.rrd new/x.rrd", "a/y.rrd"));
    assert!(world.path("new/x.rrd").exists());
    world.sh("rm new/x.rrd");
    assert_eq!(world.value("new/x.rrd"), None);
}

/// Random operations of a shell, on a store and on plain files, whose content is the name of an RRD.
#[test]
fn random_operations_have_the_effect_that_they_have_on_files() {
    testkit::random::each_seed(30, |seed| {
        let mut random = testkit::random::Random::new(seed);
        let mut world = World::new(1 + (seed % 3) as u32);
        let plain = world.directory.path().join("plain");
        fs::create_dir(&plain).unwrap();
        let (mut next, mut done) = (1, Vec::new());
        for _ in 0..30 {
            let mut pick = || format!("d{}/{}.rrd", random.below(3), random.below(3));
            let (one, other) = (pick(), pick());
            let directories = (random.below(3), random.below(3));
            let command = match random.below(12) {
                0..4 => {
                    if !plain.join(&one).exists() {
                        world.make(&one, next);
                        fs::create_dir_all(plain.join(&one).parent().unwrap()).unwrap();
                        fs::write(plain.join(&one), format!("{next}")).unwrap();
                        done.push(format!("create {one} {next}"));
                        next += 1;
                    }
                    continue;
                }
                4..6 => format!("mv {one} {other}"),
                6..8 => format!("cp {one} {other}"),
                8 => format!("rm {one}"),
                9 => format!("mv d{} d{}", directories.0, directories.1),
                10 => {
                    format!("mv -T d{0} t && mv -T d{1} d{0} && mv -T t d{1}", directories.0, directories.1)
                }
                _ => format!("cp -aT d{} d{}", directories.0, directories.1),
            };
            let is_down = random.below(5) == 0;
            if is_down {
                world.stop();
            }
            for place in [world.path(""), plain.clone()] {
                let _ = Command::new("sh")
                    .args(["-c", &format!("{command} 2>/dev/null")])
                    .current_dir(place)
                    .status()
                    .unwrap();
            }
            if is_down {
                world.start();
            }
            done.push(format!("{}{command}", if is_down { "down: " } else { "" }));
            if random.below(3) == 0 {
                check_like(&world, &plain, &done);
                done.push("check".into());
            }
        }
        check_like(&world, &plain, &done);
        world.stop();
        world.start();
        check_like(&world, &plain, &done);
    });
}

/// The store's RRDs are those of the plain files.
fn check_like(world: &World, plain: &Path, done: &[String]) {
    let mut want: Vec<String> = Vec::new();
    let mut directories = vec![plain.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let text = path.strip_prefix(plain).unwrap().to_str().unwrap().to_string();
                let value = fs::read_to_string(&path).unwrap().parse().unwrap();
                assert_eq!(world.value(&text), Some(value), "{text} after {done:#?}");
                want.push(text);
            }
        }
    }
    want.sort();
    assert_eq!(world.list(), want.join(" "), "after {done:#?}");
}
