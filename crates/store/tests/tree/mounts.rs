//! Trees on file systems that are mounted for the test, in a mount namespace of its own, and stores whose trees overlap.

use std::thread;

use nix::sched::{CloneFlags, unshare};
use testkit::Running;

use super::*;

/// Runs a test in a mount namespace of its own.
///
/// The test cannot remove a directory while something is mounted below it. This thread can, because no mount of the test is in its
/// namespace: the test makes its directories in one that this thread removes.
fn with_mounts(test: impl FnOnce() + Send) {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip("mounting file systems needs root");
    }
    let parent = tempfile::tempdir().unwrap();
    let result = thread::scope(|scope| {
        let test = scope.spawn(|| {
            PARENT.set(Some(parent.path().to_path_buf()));
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            mount(&["--make-rprivate", "/"]);
            test();
        });
        test.join()
    });
    parent.close().unwrap();
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

fn mount(words: &[&str]) {
    let output = Command::new("mount").args(words).output().unwrap();
    assert!(output.status.success(), "mount {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What is done to files by programs on a tree that is prepared by mounting something, live and down.
fn follows(prepare: impl Fn(&Path)) {
    for is_running in [true, false] {
        let mut world = World::on(2, &prepare);
        many(&world);
        if !is_running {
            world.stop();
        }
        world.sh(
            "mv h0 n; mv h1/1.rrd h2/2.rrd; cp -a h3 c; rm h1/5.rrd; ln -s n l; ln h2/6.rrd hard.rrd; mkdir deep; mv n deep/er; ln -s deep/er/0.rrd s.rrd",
        );
        if !is_running {
            world.start();
        }
        for _ in 0..2 {
            let values = ["deep/er/4.rrd", "h2/2.rrd", "c/7.rrd", "c/3.rrd", "h3/3.rrd", "hard.rrd", "s.rrd"]
                .map(|name| world.value(name));
            assert_eq!(values, [Some(4), Some(1), Some(7), Some(3), Some(3), Some(6), Some(0)]);
            let gone = ["h0/4.rrd", "n/4.rrd", "h1/1.rrd", "h1/5.rrd"].map(|name| world.value(name));
            assert_eq!((gone, world.trash().as_str()), ([None; 4], "h1/5.rrd h2/2.rrd"));
            world.stop();
            world.start();
        }
        world.update("deep/er/4.rrd", 5, 50).unwrap();
        world.store().flush(Some(&name("deep/er/4.rrd"))).unwrap();
        let modified = fs::metadata(world.path("deep/er/4.rrd")).unwrap().modified().unwrap();
        assert_eq!(modified, std::time::UNIX_EPOCH + std::time::Duration::from_secs(START as u64 + 5));
        world.stop();
    }
}

#[test]
fn a_tree_on_tmpfs_is_followed() {
    with_mounts(|| follows(|tree| mount(&["-t", "tmpfs", "roundel-test", tree.to_str().unwrap()])));
}

/// A merged directory whose layers lie beside it on a tmpfs, because a layer that is itself an overlay (as in a container) may not be written to.
fn mount_overlay(tree: &Path) {
    let layers = tree.with_file_name("layers");
    fs::create_dir(&layers).unwrap();
    mount(&["-t", "tmpfs", "roundel-test", layers.to_str().unwrap()]);
    for part in ["lower/h9", "upper", "work"] {
        fs::create_dir_all(layers.join(part)).unwrap();
    }
    let at = layers.display();
    let options = format!("lowerdir={at}/lower,upperdir={at}/upper,workdir={at}/work");
    mount(&["-t", "overlay", "roundel-test", "-o", &options, tree.to_str().unwrap()]);
}

#[test]
fn a_tree_on_overlayfs_is_followed() {
    with_mounts(|| follows(mount_overlay));
}

/// Placeholders of a lower layer, as an image with a tree in it has: their directories cannot be renamed, and what is changed gets another inode.
#[test]
fn placeholders_of_a_lower_layer_are_followed() {
    with_mounts(|| {
        let mut world = World::new(2);
        three(&world);
        world.stop();
        let tree = world.path("");
        let layers = world.directory.path().join("layers");
        fs::create_dir(&layers).unwrap();
        mount(&["-t", "tmpfs", "roundel-test", layers.to_str().unwrap()]);
        fs::create_dir(layers.join("upper")).unwrap();
        fs::create_dir(layers.join("work")).unwrap();
        let options =
            format!("lowerdir={},upperdir={}/upper,workdir={1}/work", tree.display(), layers.display());
        mount(&["-t", "overlay", "roundel-test", "-o", &options, tree.to_str().unwrap()]);
        world.start();
        world.update("a/x.rrd", 2, 7).unwrap();
        world.store().flush(None).unwrap();
        world.sh("mv a c; cp c/x.rrd a.rrd; rm b/x.rrd");
        let values = ["c/x.rrd", "c/y.rrd", "a.rrd", "a/x.rrd", "b/x.rrd"].map(|name| world.value(name));
        assert_eq!(values, [Some(7), Some(2), Some(7), None, None]);
        assert_eq!(world.trash(), "b/x.rrd");
        world.stop();
        world.start();
        assert_eq!(world.list(), "a.rrd c/x.rrd c/y.rrd");
        world.stop();
    });
}

/// A directory shown by FUSE at another place, until this is dropped.
struct Shown(
    #[expect(
        dead_code,
        reason = "it ends with this value: its mount namespace would live as long as it does"
    )]
    Running,
);

impl Shown {
    fn at(directory: &Path, place: &Path) -> Self {
        fs::write(directory.join(".there"), "").unwrap();
        let mut bindfs = Command::new("bindfs");
        bindfs
            .args(["-f", "-o", "attr_timeout=0,entry_timeout=0,negative_timeout=0"])
            .args([directory, place]);
        let process = Running::quiet(&mut bindfs);
        testkit::wait_until("a mount by bindfs", || place.join(".there").exists());
        Shown(process)
    }
}

/// Of what others do on a shared file system, no event tells; here the other machine works in the directory that FUSE shows.
#[test]
fn what_other_machines_do_is_seen_when_a_name_is_used() {
    with_mounts(|| {
        let mut shown = None;
        let mut world = World::on(2, |tree| {
            let source = tree.with_file_name("source");
            fs::create_dir(&source).unwrap();
            shown = Some(Shown::at(&source, tree));
        });
        three(&world);
        world.make("c.rrd", 4);
        for command in ["cd ../source; mv a q; cp -a q a; rm b/x.rrd; mv c.rrd b/x.rrd", "true"] {
            world.sh(command);
            world.update("q/x.rrd", 2, 7).unwrap_or(());
            let values = ["q/x.rrd", "a/x.rrd", "a/y.rrd", "b/x.rrd", "c.rrd"].map(|text| world.value(text));
            assert_eq!(values, [Some(7), Some(1), Some(2), Some(4), None]);
            world.stop();
            world.start();
        }
        world.sh("cd ../source; rm q/x.rrd");
        assert!(matches!(world.update("q/x.rrd", 5, 1), Err(StoreError::NoSuchRrd(_))));
        world.stop();
        drop(shown);
    });
}

/// The store `second` cannot be opened while `first` is, and can be afterwards; in both orders.
fn refuse_each_other(worlds: &mut [World; 2]) {
    for _ in 0..2 {
        let [first, second] = worlds;
        first.start();
        let error = second.open().err().expect("trees that overlap");
        assert!(error.contains(&first.identity()) && error.contains("a tree of its own"), "{error}");
        first.stop();
        second.start();
        second.stop();
        worlds.reverse();
    }
}

impl World {
    /// The first digits of the store's id.
    fn identity(&self) -> String {
        self.store().identity().to_string()[..14].to_string()
    }

    fn with_tree(&mut self, tree: &Path) {
        self.options.placeholder_tree = Some(tree.to_path_buf());
        self.options.adopt_tree = Some(tree.to_path_buf());
    }
}

/// Two stores that are not open, in a directory with the trees `t`, `t/in/side` and `other`.
fn two_stores() -> (tempfile::TempDir, [World; 2]) {
    let directory = temporary();
    fs::create_dir_all(directory.path().join("t/in/side")).unwrap();
    fs::create_dir(directory.path().join("other")).unwrap();
    let worlds = [0, 1].map(|_| {
        let mut world = World::new(1);
        world.stop();
        world
    });
    (directory, worlds)
}

#[test]
fn two_stores_cannot_have_overlapping_trees() {
    let (directory, mut worlds) = two_stores();
    let at = |text: &str| directory.path().join(text);
    symlink("../t/in", at("other/link")).unwrap();
    for (one, other) in [("t", "t"), ("t", "t/in/side"), ("other/link", "t"), ("other/link", "t/in/side")] {
        worlds[0].with_tree(&at(one));
        worlds[1].with_tree(&at(other));
        refuse_each_other(&mut worlds);
    }
    // The directory of one store in the other's tree.
    let inside = worlds[0].directory.path().to_path_buf();
    worlds[0].with_tree(&at("other"));
    worlds[1].with_tree(&inside);
    refuse_each_other(&mut worlds);
}

#[test]
fn bind_mounts_do_not_hide_that_trees_overlap() {
    with_mounts(|| {
        let (directory, mut worlds) = two_stores();
        let at = |text: &str| directory.path().join(text);
        let bind = |from: &str, to: &str| {
            fs::create_dir_all(at(to)).unwrap();
            mount(&["--bind", at(from).to_str().unwrap(), at(to).to_str().unwrap()]);
        };
        bind("t", "same");
        bind("t/in", "part");
        bind("t/in/side", "other/mounted");
        for (one, other) in [
            ("t", "same"),
            ("t", "part"),
            ("t", "part/side"),
            ("same", "part"),
            ("t/in/side", "other"),
            ("t", "other"),
        ] {
            worlds[0].with_tree(&at(one));
            worlds[1].with_tree(&at(other));
            refuse_each_other(&mut worlds);
        }
    });
}
