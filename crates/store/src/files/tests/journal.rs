//! Journals that are cut, exchanged or gone: what is left is applied, what is lost is noticed, and a copy is kept.

use super::*;
use crate::files::journal::{Noted, scan};

/// A tree with an RRD, and a journal with three updates for it, after a clean stop.
fn stopped() -> tempfile::TempDir {
    let mut tool = RrdTool::start().unwrap();
    let base = base();
    make(&mut tool, base.path(), "w1.rrd", W1);
    let engine = open(base.path());
    for second in 1..=3 {
        assert_eq!(send(&engine, &[("w1.rrd", &format!("{}:1", START + second))]), []);
    }
    engine.stop().unwrap();
    base
}

/// The journal's file with updates.
fn file(base: &Path) -> std::path::PathBuf {
    let files = Directory::open(&base.join("journal")).unwrap().files().unwrap();
    let paths = files.into_iter().map(|(_, name)| base.join("journal").join(name));
    paths.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap()
}

fn last_update(base: &Path) -> i64 {
    open(base).status(&name("w1.rrd")).unwrap().last_update.whole - START
}

fn copies(base: &Path) -> usize {
    let names = std::fs::read_dir(base.join("journal")).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("damaged-")).count()
}

fn damages(base: &Path) -> u64 {
    let mut text = Vec::new();
    let options = crate::inspect::Options { verify: true };
    crate::inspect::inspect(&base.join("journal"), options, &mut text).unwrap().damage_count
}

#[test]
fn a_journal_cut_between_two_records_is_noticed() {
    let base = stopped();
    assert_eq!((damages(base.path()), copies(base.path())), (0, 0));
    let path = file(base.path());
    let directory = Directory::open(path.parent().unwrap()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut cut = bytes.len();
    // The end of the second record is where a cut leaves no trace in the file.
    while cut == bytes.len() || !scan_is_whole(&directory, &path) {
        cut -= 1;
        std::fs::write(&path, &bytes[..cut]).unwrap();
    }
    assert_eq!(damages(base.path()), 1);
    assert_eq!(last_update(base.path()), 2);
    assert_eq!(copies(base.path()), 1);
}

fn scan_is_whole(directory: &Directory, path: &Path) -> bool {
    scan(directory, path.file_name().unwrap(), &Noted::default(), |_| {}).unwrap().damages.is_empty()
}

#[test]
fn the_journal_of_another_tree_is_not_believed() {
    let (base, other) = (stopped(), stopped());
    // By chance of the same name, with the same RRD in it.
    std::fs::copy(file(other.path()), file(base.path())).unwrap();
    assert_eq!(damages(base.path()), 1);
    assert_eq!(last_update(base.path()), 0);
    assert_eq!(copies(base.path()), 1);
}

#[test]
fn a_journal_file_that_is_gone_is_noticed() {
    let base = stopped();
    std::fs::remove_file(file(base.path())).unwrap();
    assert_eq!(damages(base.path()), 1);
    assert_eq!(last_update(base.path()), 0);
    assert_eq!(damages(base.path()), 0, "the new journal is whole");
}

/// Without the file `JOURNAL` what the journal holds is still applied, and it keeps its id.
#[test]
fn a_lost_or_damaged_list_of_the_journals_files_costs_no_update() {
    for damaged in [true, false] {
        let base = stopped();
        let list = base.path().join("journal/JOURNAL");
        let id = |path: &Path| std::fs::read_to_string(path).unwrap().lines().nth(1).unwrap().to_string();
        let before = id(&list);
        match damaged {
            true => std::fs::write(&list, "roundel-journal 1\nid 00").unwrap(),
            false => std::fs::remove_file(&list).unwrap(),
        }
        assert_eq!(last_update(base.path()), 3);
        assert_eq!(id(&list), before);
        assert_eq!(copies(base.path()), usize::from(damaged));
    }
}

/// What a killed CREATE leaves goes with the next start; what another daemon may be writing stays.
#[test]
fn temporary_files_of_killed_daemons_are_removed_at_the_start() {
    let base = stopped();
    let engine = open(base.path());
    let own = |name: &str| base.path().join("tree").join(name);
    std::fs::create_dir(own("host")).unwrap();
    let left = [engine.shared.maker().name(), format!("host/{}", engine.shared.maker().name())];
    let stays =
        [".roundel-1-1.tmp", "host/.roundel-0123456789abcdef-0000000000000001-1.tmp", ".roundel-daemon"];
    left.iter().map(String::as_str).chain(stays).for_each(|name| std::fs::write(own(name), "x").unwrap());
    drop(engine);
    let _engine = open(base.path());
    let deadline = Instant::now() + DEADLINE;
    while left.iter().any(|name| own(name).exists()) {
        assert!(Instant::now() < deadline, "they are still there");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(stays.iter().all(|name| own(name).exists()));
}

/// A program that may write to the tree cannot stop the daemon that way.
#[test]
fn a_new_file_that_another_program_replaces_is_not_synced_and_stops_nothing() {
    let base = base();
    let options = Options::new(base.path().join("tree"), base.path().join("journal"));
    let engine = FilesEngine::open(Options { sync: SyncMode::Every(DEADLINE), ..options }).unwrap();
    let definition = {
        let step = rrd::when::Step { units: 10, units_per_second: 1 };
        let limits = rrd::definition::text::Limits::FILE;
        let options = rrd::definition::text::CreateOptions { step, limits, file_name: b"x" };
        rrd::definition::text::parse_create(&options, &["DS:v:GAUGE:20:U:U", "RRA:LAST:0.5:1:10"]).unwrap()
    };
    let names = ["out.rrd", "fifo.rrd", "gone/a.rrd", "file/a.rrd"];
    for text in names {
        let (sender, receiver) = channel();
        let request = CreateRequest { definition: definition.clone(), start: START, no_overwrite: false };
        engine.create(name(text), request, Box::new(move |result| sender.send(result).unwrap()));
        receiver.recv().unwrap().unwrap();
    }
    let tree = base.path().join("tree");
    names.iter().for_each(|name| std::fs::remove_file(tree.join(name)).unwrap());
    std::os::unix::fs::symlink("/etc/passwd", tree.join("out.rrd")).unwrap();
    let mode = rustix::fs::Mode::from(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, tree.join("fifo.rrd"), fifo, mode, 0).unwrap();
    ["gone", "file"].iter().for_each(|name| std::fs::remove_dir(tree.join(name)).unwrap());
    std::fs::write(tree.join("file"), "x").unwrap();
    engine.stop().unwrap();
}
