//! Names that are hard to handle, and links that lead in circles or out of the tree.

use super::*;

/// The names of a shell's nightmares; each is a file's, and different from the others.
fn odd_names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "with blank.rrd",
        " blanks around .rrd ",
        "line\nfeed.rrd",
        "carriage\rreturn.rrd",
        "tab\t.rrd",
        "quo'te\".rrd",
        "back\\slash.rrd",
        "-rf",
        "*.rrd",
        "$(rm).rrd",
        "c:o:lon.rrd",
        "gr\u{fc}n/\u{1f600}.rrd",
        "case.rrd",
        "CASE.rrd",
        "no suffix",
        "\u{1}\u{7f}.rrd",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    names.extend([b"\xff\xfe\x80.rrd".to_vec(), b"half\xc3".to_vec()]);
    names.push([&[b'a'; 251][..], b".rrd"].concat());
    names.push([&b"\xff".repeat(255)[..], b"/", &b"b".repeat(255)].concat());
    names.push([b"d/".repeat(60), b"deep.rrd".to_vec()].concat());
    names
}

/// Runs a program with two names below the tree.
fn run(world: &World, program: &str, words: &[&[u8]]) {
    let mut command = Command::new(program);
    command.current_dir(world.path("")).args(words.iter().map(|word| OsStr::from_bytes(word)));
    assert!(command.status().unwrap().success(), "{program} {words:?}");
}

fn below(directory: &str, name: &[u8]) -> Vec<u8> {
    [directory.as_bytes(), b"/", name].concat()
}

fn make_directory(world: &World, name: &[u8]) {
    fs::create_dir_all(world.path(name).parent().unwrap()).unwrap();
}

#[test]
fn odd_names_are_moved_copied_and_removed() {
    let names = odd_names();
    for is_running in [true, false] {
        let mut world = World::new(3);
        world.stop();
        // All copies are removed at a stroke.
        world.options.max_removed = 1.0;
        world.start();
        for (value, name) in (1..).zip(&names) {
            world.make(name, value);
            make_directory(&world, &below("moved", name));
            make_directory(&world, &below("copied", name));
        }
        if !is_running {
            world.stop();
        }
        for name in &names {
            let (moved, copied) = (below("moved", name), below("copied", name));
            run(&world, "mv", &[b"--", name, &moved]);
            run(&world, "cp", &[b"--", &moved, &copied]);
        }
        if !is_running {
            world.start();
        }
        let check = |world: &World| {
            for (value, name) in (1..).zip(&names) {
                let there = [name.clone(), below("moved", name), below("copied", name)];
                assert_eq!(there.map(|name| world.value(name)), [None, Some(value), Some(value)], "{name:?}");
            }
            assert_eq!(world.store().list(b"", true).unwrap().len(), 2 * names.len());
        };
        check(&world);
        world.stop();
        world.start();
        check(&world);
        if !is_running {
            world.stop();
        }
        for name in &names {
            run(&world, "rm", &[b"--", &below("copied", name)]);
            if is_running {
                assert_eq!(world.value(below("copied", name)), None, "{name:?}");
            }
        }
        if !is_running {
            world.start();
        }
        assert_eq!(world.store().list(b"", true).unwrap().len(), names.len());
        // By request, and out of the trash.
        for (value, name) in (1..).zip(&names) {
            world.store().rename(&super::name(below("moved", name)), &super::name(name)).unwrap();
            assert!(world.path(name).exists() && !world.path(below("moved", name)).exists());
            assert_eq!(world.value(name), Some(value), "{name:?}");
        }
        let trash = world.store().trash().unwrap();
        let trashed =
            trash.iter().find(|trashed| trashed.name.as_bytes() == below("copied", &names[0])).unwrap();
        world.store().restore(trashed, &super::name(below("back", &names[0]))).unwrap();
        assert_eq!(world.value(below("back", &names[0])), Some(1));
    }
}

#[test]
fn links_lead_to_odd_names_too() {
    let world = World::new(2);
    for (value, odd) in (1..).zip(odd_names()) {
        world.make(&odd, value);
        let (link, hard) = (below("links", &odd), below("hard", &odd));
        make_directory(&world, &link);
        make_directory(&world, &hard);
        let up = "../".repeat(link.iter().filter(|&&byte| byte == b'/').count());
        symlink(OsStr::from_bytes(&[up.as_bytes(), &odd].concat()), world.path(&link)).unwrap();
        fs::hard_link(world.path(&odd), world.path(&hard)).unwrap();
        world.update(&link, 2, 100 + value).unwrap();
        assert_eq!(world.value(&hard), Some(100 + value), "{odd:?}");
    }
}

#[test]
fn circles_of_links_are_no_rrds_and_harm_none() {
    for is_running in [true, false] {
        let mut world = World::new(2);
        three(&world);
        if !is_running {
            world.stop();
        }
        world.sh("ln -s self.rrd self.rrd; ln -s two one; ln -s one two; ln -s ../a a/up; ln -s . here; \
             ln -s x.rrd a/0.rrd; for i in $(seq 1 60); do ln -s $((i-1)).rrd a/$i.rrd; done");
        if !is_running {
            world.start();
        }
        for circle in ["self.rrd", "one", "one/x.rrd", "two/y/z.rrd"] {
            assert_eq!(world.value(circle), None, "{circle}");
            assert!(world.update(circle, 2, 1).is_err(), "{circle}");
        }
        // Directories that lead back are other ways to the same RRD, as with files; too many links are none.
        for (second, way) in (2..).zip(["a/up/x.rrd", "here/here/a/up/up/x.rrd", "a/0.rrd", "a/20.rrd"]) {
            world.update(way, second, second).unwrap();
            assert_eq!((world.value(way), world.value("a/x.rrd")), (Some(second), Some(second)), "{way}");
        }
        assert_eq!(world.value("a/60.rrd"), None);
        assert_eq!(world.list(), "a/x.rrd a/y.rrd b/x.rrd");
        world.sh("rm a/up here one two self.rrd; mv a c");
        assert_eq!(world.value("c/x.rrd"), Some(5));
    }
}

#[test]
fn nothing_is_done_through_links_that_lead_out() {
    let mut world = World::new(2);
    three(&world);
    let outside = world.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::copy(world.path("a/x.rrd"), outside.join("x.rrd")).unwrap();
    world.sh("ln -s ../outside out; ln -s ../../outside/x.rrd a/out.rrd; ln -s $PWD/a absolute");
    for _ in 0..2 {
        for name in ["out/x.rrd", "a/out.rrd"] {
            assert_eq!(world.value(name), None, "{name}");
            assert!(world.update(name, 9, 1).is_err(), "{name}");
        }
        for to in ["out/new.rrd", "out/x.rrd"] {
            let (from, to) = (name("a/x.rrd"), name(to));
            let results = [world.store().copy(&from, &to), world.store().rename(&from, &to)];
            assert!(results.iter().all(Result::is_err), "{results:?}");
            assert_eq!(world.value("a/x.rrd"), Some(1));
        }
        world.stop();
        world.start();
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    // Moved out through one, it is out of the tree.
    world.sh("mv a/y.rrd out/");
    assert_eq!((world.value("a/y.rrd"), world.trash().as_str()), (None, "a/y.rrd"));
    world.sh("mv out/y.rrd b/");
    assert_eq!((world.value("b/y.rrd"), world.trash().as_str()), (Some(2), ""));
}

/// A store in its own tree, as `roundel serve` has it unless it is told otherwise.
#[test]
fn a_store_may_lie_in_its_own_tree() {
    let mut world = World::new(2);
    world.stop();
    let root = world.directory.path().to_path_buf();
    world.options.placeholder_tree = Some(root.clone());
    world.options.adopt_tree = Some(root.clone());
    world.start();
    world.make("a/x.rrd", 1);
    for _ in 0..2 {
        world.store().checkpoint().unwrap();
        world.sh("cd ..; mv a b; cp -a b a; mv b/x.rrd a/x.rrd; rmdir b");
        assert_eq!((world.list().as_str(), world.value("a/x.rrd")), ("a/x.rrd", Some(1)));
        world.stop();
        world.start();
    }
}

/// Without placeholders, names are not those of files; with them, a new one must be.
#[test]
fn names_may_be_longer_than_those_of_files_where_there_are_none() {
    let mut world = World::new(2);
    let (long, longest) = ("n".repeat(300), "n".repeat(4095));
    world.make("a.rrd", 1);
    for refused in [
        world.store().rename(&name("a.rrd"), &name(&long)),
        world.store().copy(&name("a.rrd"), &name(&long)),
        world.store().import(name(&long), world.store().read(&name("a.rrd")).unwrap(), true),
    ] {
        assert!(refused.unwrap_err().to_string().contains("255 bytes"));
    }
    assert!(matches!(world.update(&long, 2, 1), Err(StoreError::NoSuchRrd(_))));
    assert_eq!((world.list().as_str(), world.value(&long)), ("a.rrd", None));
    world.stop();
    let with_tree = world.options.clone();
    world.options = Options { placeholder_tree: None, ..with_tree.clone() };
    world.start();
    world.make(&long, 2);
    world.make(&longest, 3);
    world.store().rename(&name(&long), &name(format!("d/{long}"))).unwrap();
    world.store().checkpoint().unwrap();
    world.stop();
    // Those that are there stay, without placeholders.
    for (second, options) in (5..).zip([with_tree, world.options.clone()]) {
        world.options = options;
        world.start();
        world.update(&longest, second, 9).unwrap();
        let values = ["a.rrd", &long, &format!("d/{long}"), &longest].map(|name| world.value(name));
        assert_eq!(values, [Some(1), None, Some(2), Some(9)]);
        world.stop();
    }
}
