use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::time::Timestamp;
use rrd::when::Step;

use super::*;

const SECONDS: i64 = 1_000_000_000;

/// RRDs of which each has a mark, to see where it went.
#[derive(Default)]
struct FakeRrds {
    all: Mutex<BTreeMap<RrdName, u32>>,
    removed: Mutex<Vec<u32>>,
    changes: AtomicU64,
    /// Changes that were refused because no partition had a leader.
    refused: AtomicU64,
    /// When the tree last asked for the RRDs: at the begin of each of its rounds.
    rounds: Mutex<Vec<Instant>>,
    /// How long each change takes, beside some milliseconds.
    slowness_ms: AtomicU64,
    /// While set, no partition has a leader.
    is_away: AtomicBool,
}

fn name(text: &str) -> RrdName {
    RrdName::new(text.as_bytes()).unwrap()
}

fn definition() -> Arc<Definition> {
    let step = Step { units: 10, units_per_second: 1 };
    let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
    Arc::new(parse_create(&options, &["DS:x:GAUGE:20:0:U", "RRA:AVERAGE:0.5:1:20"]).unwrap())
}

impl FakeRrds {
    /// What every change does first.
    fn change(&self) -> Result<std::sync::MutexGuard<'_, BTreeMap<RrdName, u32>>, StoreError> {
        if self.is_away.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(StoreError::Unavailable("no leader".into()));
        }
        // The log takes its time.
        let millis =
            self.changes.fetch_add(1, Ordering::SeqCst) % 4 + self.slowness_ms.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(millis));
        Ok(lock(&self.all))
    }

    fn discard(&self, mark: Option<u32>) {
        lock(&self.removed).extend(mark);
    }

    fn marks(&self) -> Vec<(String, u32)> {
        lock(&self.all).iter().map(|(name, mark)| (name.to_string(), *mark)).collect()
    }
}

impl Rrds for Arc<FakeRrds> {
    fn name_changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    fn names(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(lock(&self.all).keys().map(|name| name.as_bytes().to_vec()).collect())
    }

    fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        match lock(&self.all).contains_key(name) {
            true => Ok(RrdStatus {
                definition: definition(),
                last_update: Timestamp::new(SECONDS, 0),
                is_updated: true,
            }),
            false => Err(StoreError::NoSuchRrd(name.clone())),
        }
    }

    fn status_here(&self, _name: &RrdName) -> Option<RrdStatus> {
        None
    }

    fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let mut all = self.change()?;
        let mark = all.remove(from).ok_or_else(|| StoreError::NoSuchRrd(from.clone()))?;
        self.discard(all.insert(to.clone(), mark));
        Ok(())
    }

    fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        let mut all = self.change()?;
        let mark = *all.get(from).ok_or_else(|| StoreError::NoSuchRrd(from.clone()))?;
        self.discard(all.insert(to.clone(), mark));
        Ok(())
    }

    fn remove(&self, name: &RrdName) -> Result<(), StoreError> {
        let mark = self.change()?.remove(name);
        self.discard(mark);
        mark.map(|_| ()).ok_or_else(|| StoreError::NoSuchRrd(name.clone()))
    }
}

/// A tree that follows RRDs with the names `a/0` to `a/29`, marked by these numbers.
struct Site {
    rrds: Arc<FakeRrds>,
    tree: Arc<NodeTree>,
    directory: tempfile::TempDir,
}

/// Prints the RRDs and the files of a site if a test fails meanwhile.
struct Report<'s>(&'s Site);

impl Drop for Report<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Site { rrds, tree, .. } = self.0;
            eprintln!(
                "RRDs: {:?}\nfiles: {:?}\nmoved: {:?}",
                rrds.marks(),
                tree.files(),
                lock(&tree.state).moved
            );
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.tree.stop();
    }
}

/// The tree of a node that begins.
fn followed(directory: &Path, rrds: &Arc<FakeRrds>) -> Arc<NodeTree> {
    let tree = Arc::new(NodeTree::open(directory, "test", 0.1).unwrap());
    let found = Arc::clone(rrds);
    let find = move || {
        lock(&found.rounds).push(Instant::now());
        Some(Box::new(Arc::clone(&found)) as Box<dyn Rrds>)
    };
    tree.follow(Box::new(find)).unwrap();
    tree
}

impl Site {
    fn start() -> Site {
        let rrds = Arc::new(FakeRrds::default());
        lock(&rrds.all).extend((0..30).map(|number| (name(&format!("a/{number}")), number)));
        let directory = tempfile::tempdir().unwrap();
        let site = Site { tree: followed(directory.path(), &rrds), rrds, directory };
        site.wait("the first placeholders", |site| site.files().len() == 30);
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Waits until something is so. If that takes too long, prints the RRDs and the files.
    fn wait(&self, what: &str, is: impl Fn(&Site) -> bool) {
        let _report = Report(self);
        testkit::wait_until(what, || is(self));
    }

    /// Waits until the tree has done a whole round in which placeholders that are missing now had been so for long enough.
    fn wait_for_removals(&self) {
        let due = Instant::now() + removals::REST;
        self.wait("rounds of the tree", |site| {
            lock(&site.rrds.rounds).iter().filter(|begun| **begun > due).count() >= 2
        });
    }

    /// The names of placeholders, if each says its own name.
    fn files(&self) -> Vec<String> {
        let names = self.tree.files().unwrap();
        let names = names.iter().map(|name| RrdName::new(name).unwrap());
        let is_right = |name: &RrdName| {
            self.tree.placeholders.read(name).unwrap().is_some_and(|read| read.name == *name)
        };
        names.filter(is_right).map(|name| name.to_string()).collect()
    }

    /// A request about names: it sees what programs did before.
    fn ask(&self, names: &[&str]) {
        let rrds = || Box::new(Arc::clone(&self.rrds)) as Box<dyn Rrds>;
        self.tree.catch_up(rrds, names.iter().map(|name| name.as_bytes()));
    }

    /// The mark of an RRD, as a request sees it.
    fn mark(&self, text: &str) -> Option<u32> {
        self.ask(&[text]);
        lock(&self.rrds.all).get(&name(text)).copied()
    }

    /// Whether files stand for exactly the RRDs there are.
    fn is_settled(&self) -> bool {
        self.files() == self.rrds.marks().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    }
}

#[test]
fn files_stand_for_rrds_whatever_nodes_do_to_them() {
    let site = Site::start();
    let about = fs::metadata(site.path("a/7")).unwrap();
    assert_eq!(about.len(), rrd::codec::file::FileLayout::of(&definition()).file_bytes);
    assert_eq!(about.modified().unwrap(), SystemTime::UNIX_EPOCH + Duration::from_secs(SECONDS as u64));
    {
        let mut all = site.rrds.change().unwrap();
        all.remove(&name("a/3"));
        all.insert(name("b/new"), 77);
    }
    site.wait("the tree to follow", Site::is_settled);
    assert_eq!(site.rrds.marks().len(), 30);
    assert!(lock(&site.rrds.removed).is_empty());
}

#[test]
fn what_programs_do_happens_to_rrds() {
    let site = Site::start();
    fs::rename(site.path("a/1"), site.path("one")).unwrap();
    assert_eq!((site.mark("one"), site.mark("a/1")), (Some(1), None));
    fs::copy(site.path("a/2"), site.path("two")).unwrap();
    assert_eq!((site.mark("two"), site.mark("a/2")), (Some(2), Some(2)));
    fs::remove_file(site.path("a/3")).unwrap();
    assert_eq!(site.mark("a/3"), None);
    assert_eq!(*lock(&site.rrds.removed), [3]);
    // Moved over another one.
    fs::rename(site.path("a/4"), site.path("a/5")).unwrap();
    assert_eq!((site.mark("a/5"), site.mark("a/4")), (Some(4), None));
    // A link is no copy.
    fs::hard_link(site.path("a/6"), site.path("link")).unwrap();
    assert_eq!((site.mark("link"), site.mark("a/6")), (None, Some(6)));
    fs::remove_file(site.path("link")).unwrap();
    site.wait("the tree to follow", Site::is_settled);
    assert_eq!(*lock(&site.rrds.removed), [3, 5]);
}

#[test]
fn a_copy_that_is_seen_half_made_and_moved_on_replaces_the_rrds_of_both_names() {
    let site = Site::start();
    fs::remove_file(site.path("a/9")).unwrap();
    fs::write(site.path("a/9"), b"").unwrap();
    site.ask(&["other"]);
    fs::copy(site.path("a/28"), site.path("a/9")).unwrap();
    fs::rename(site.path("a/9"), site.path("a/20")).unwrap();
    assert_eq!(["a/9", "a/20", "a/28"].map(|name| site.mark(name)), [None, Some(28), Some(28)]);
    site.wait("the tree to follow", Site::is_settled);
    let mut removed = lock(&site.rrds.removed).clone();
    removed.sort_unstable();
    assert_eq!(removed, [9, 20]);
}

#[test]
fn directories_and_circles_are_moved() {
    let site = Site::start();
    fs::rename(site.path("a"), site.path("b")).unwrap();
    assert_eq!((site.mark("b/12"), site.mark("a/12")), (Some(12), None));
    site.wait("all to be moved", |site| {
        site.is_settled() && site.rrds.marks().iter().all(|(name, _)| name.starts_with("b/"))
    });
    for (from, to) in [("b/1", "b/t"), ("b/2", "b/1"), ("b/3", "b/2"), ("b/t", "b/3")] {
        fs::rename(site.path(from), site.path(to)).unwrap();
    }
    assert_eq!(["b/1", "b/2", "b/3"].map(|name| site.mark(name)), [Some(2), Some(3), Some(1)]);
    site.wait("the tree to follow", Site::is_settled);
    assert!(lock(&site.rrds.removed).is_empty());
}

#[test]
fn directories_exchange_their_names_while_the_log_is_slow() {
    let site = Site::start();
    fs::create_dir(site.path("b")).unwrap();
    (15..30).for_each(|number| {
        fs::rename(site.path(&format!("a/{number}")), site.path(&format!("b/{number}"))).unwrap();
    });
    site.wait("half of them to be moved", |site| site.is_settled() && site.mark("b/15") == Some(15));
    site.rrds.slowness_ms.store(600, Ordering::SeqCst);
    for (from, to) in [("a", "t"), ("b", "a"), ("t", "b")] {
        let before = site.rrds.changes.load(Ordering::SeqCst);
        fs::rename(site.path(from), site.path(to)).unwrap();
        // The first renames have begun, and a request sees what was done.
        site.wait("renames", |site| site.rrds.changes.load(Ordering::SeqCst) > before);
        site.ask(&["other"]);
    }
    let place = |number: u32| (format!("{}/{number}", if number < 15 { "b" } else { "a" }), number);
    let mut all: Vec<_> = (0..30).map(place).collect();
    all.sort();
    site.wait("the tree to follow", |site| site.is_settled() && site.rrds.marks() == all);
    assert!(lock(&site.rrds.removed).is_empty());
}

#[test]
fn too_many_removals_at_a_stroke_remove_nothing() {
    let site = Site::start();
    fs::remove_dir_all(site.path("a")).unwrap();
    site.wait("the placeholders to be back", |site| site.files().len() == 30);
    assert_eq!(site.rrds.marks().len(), 30);
    // So many may always go; a request, for one, has the directory watched that was made again.
    site.ask(&["other"]);
    (0..20).for_each(|number| fs::remove_file(site.path(&format!("a/{number}"))).unwrap());
    site.wait("the RRDs to go", |site| site.rrds.marks().len() == 10);
    assert!(site.is_settled());
}

#[test]
fn what_cannot_be_done_at_once_is_done_later() {
    let site = Site::start();
    site.rrds.is_away.store(true, Ordering::SeqCst);
    fs::rename(site.path("a/1"), site.path("a/x")).unwrap();
    fs::rename(site.path("a/2"), site.path("a/1")).unwrap();
    // Each of the two renames, in two rounds.
    site.wait("attempts", |site| site.rrds.refused.load(Ordering::SeqCst) >= 4);
    assert_eq!(site.rrds.marks().len(), 30);
    site.rrds.is_away.store(false, Ordering::SeqCst);
    site.wait("the RRDs to follow", |site| {
        site.is_settled() && site.rrds.marks().contains(&("a/x".into(), 1))
    });
    assert_eq!((site.mark("a/1"), site.mark("a/2")), (Some(2), None));
    assert!(lock(&site.rrds.removed).is_empty());
}

#[test]
fn other_files_stay_and_two_nodes_need_two_trees() {
    let site = Site::start();
    fs::remove_file(site.path("a/1")).unwrap();
    fs::write(site.path("a/1"), b"RRD\0 of another program").unwrap();
    fs::write(site.path("a/notes.txt"), b"not ours").unwrap();
    site.tree.sweep(&site.rrds, &NameSet::of(&site.rrds.names().unwrap()));
    assert_eq!(fs::read(site.path("a/1")).unwrap(), b"RRD\0 of another program");
    assert!(site.path("a/notes.txt").exists());
    assert!(matches!(site.tree.place(&name("a/1"), &definition()), Err(StoreError::Placeholder(_))));
    assert_eq!(site.rrds.marks().len(), 30);
    // When it goes, the RRD has its placeholder again, at this node or one that another node has made.
    site.rrds.change().unwrap().insert(name("a/notes.txt"), 77);
    site.wait("the tree to follow", |site| {
        lock(&site.tree.names).iter().any(|one| one == name("a/notes.txt"))
    });
    site.ask(&["a/notes.txt"]);
    fs::rename(site.path("a/notes.txt"), site.path("a/elsewhere.txt")).unwrap();
    fs::remove_file(site.path("a/1")).unwrap();
    assert_eq!((site.mark("a/notes.txt"), site.mark("a/1")), (Some(77), Some(1)));
    site.wait("the placeholders", |site| site.files().len() == 31);
    site.wait_for_removals();
    assert_eq!(site.rrds.marks().len(), 31);
    fs::remove_file(site.path("a/elsewhere.txt")).unwrap();
    let other = NodeTree::open(site.directory.path(), "test", 0.1);
    assert!(other.is_err_and(|error| error.to_string().contains("another node has this tree")));
}

/// A random number below a limit.
fn below(seed: &mut u64, limit: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize % limit
}

/// What programs do in any order and at any pace, RRDs do like files with their marks in them.
#[test]
fn random_changes_are_followed() {
    for mut seed in 0..6 {
        let site = Site::start();
        let mut model: BTreeMap<String, u32> = site.rrds.marks().into_iter().collect();
        let mut removals = 0;
        for step in 0..60 {
            let names: Vec<String> = model.keys().cloned().collect();
            let from = &names[below(&mut seed, names.len())];
            let to = match below(&mut seed, 3) {
                0 => names[below(&mut seed, names.len())].clone(),
                _ => format!("{}/new-{step}", ["a", "b", "c/d"][below(&mut seed, 3)]),
            };
            fs::create_dir_all(site.path(&to).parent().unwrap()).unwrap();
            match below(&mut seed, 8) {
                0 if removals < 10 => {
                    removals += 1;
                    fs::remove_file(site.path(from)).unwrap();
                    model.remove(from);
                }
                1 | 2 if *from != to => {
                    // As `cp --remove-destination`: what is written over a file may be read half done.
                    let _ = fs::remove_file(site.path(&to));
                    fs::copy(site.path(from), site.path(&to)).unwrap();
                    model.insert(to.clone(), model[from]);
                }
                _ => {
                    fs::rename(site.path(from), site.path(&to)).unwrap();
                    let mark = model.remove(from).unwrap();
                    model.insert(to.clone(), mark);
                }
            }
            if below(&mut seed, 3) == 0 {
                let asked = &names[below(&mut seed, names.len())];
                assert_eq!(site.mark(asked), model.get(asked).copied(), "seed {seed}, step {step}, {asked}");
            }
        }
        let model: Vec<(String, u32)> = model.into_iter().collect();
        site.wait(&format!("the RRDs to follow, seed {seed}: {model:?}"), |site| {
            site.is_settled() && site.rrds.marks() == model
        });
    }
}

#[test]
fn a_tree_that_is_removed_costs_no_rrd() {
    let site = Site::start();
    (0..20).for_each(|number| fs::remove_file(site.path(&format!("a/{number}"))).unwrap());
    fs::remove_dir_all(site.directory.path()).unwrap();
    site.wait_for_removals();
    site.ask(&["a/3"]);
    assert_eq!(site.rrds.marks().len(), 30);
}

#[test]
fn what_was_moved_meanwhile_is_followed_and_what_is_missing_is_written() {
    let mut site = Site::start();
    site.tree.stop();
    fs::create_dir(site.path("b")).unwrap();
    fs::rename(site.path("a/1"), site.path("b/1")).unwrap();
    fs::copy(site.path("a/2"), site.path("b/2")).unwrap();
    fs::remove_file(site.path("a/3")).unwrap();
    {
        let mut all = site.rrds.change().unwrap();
        all.remove(&name("a/4"));
        let mark = all.remove(&name("a/5")).unwrap();
        all.insert(name("elsewhere"), mark);
    }
    // Of an RRD that is gone, whatever its file is called.
    fs::rename(site.path("a/4"), site.path("b/4")).unwrap();
    let Site { rrds, directory, .. } = &site;
    // Another node has the tree until then.
    let path = directory.path().to_owned();
    let rrds = Arc::clone(rrds);
    site.tree = Arc::new(NodeTree::open(tempfile::tempdir().unwrap().path(), "test", 0.1).unwrap());
    site.tree = followed(&path, &rrds);
    site.wait("the tree to follow", |site| site.is_settled() && site.mark("b/2") == Some(2));
    assert_eq!((site.mark("b/1"), site.mark("a/1"), site.mark("a/2")), (Some(1), None, Some(2)));
    assert_eq!((site.mark("a/3"), site.mark("elsewhere"), site.mark("b/4")), (Some(3), Some(5), None));
    assert!(lock(&site.rrds.removed).is_empty());
}
