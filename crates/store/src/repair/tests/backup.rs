//! What is taken from a backup beside segments and checkpoints: the log, a manifest, a shard.

use super::*;
use crate::filenames::FileKind;

/// A stopped store, and a backup of it from before its last updates.
fn store_and_backup() -> (tempfile::TempDir, tempfile::TempDir) {
    let directory = store();
    let backup = copy(directory.path());
    let store = open(directory.path()).unwrap();
    update(&store, 120..140);
    store.stop().unwrap();
    (directory, backup)
}

fn run_from(directory: &Path, backup: &Path, accept_loss: bool) -> (Outcome, String) {
    let (mut out, backup) = (Vec::new(), RealDisk::open(backup).unwrap());
    let options = |apply| Options { apply, accept_loss, backup: Some(&backup) };
    let before = listing(directory);
    let would = repair(directory, options(false), &mut out).unwrap();
    assert_eq!(listing(directory), before, "nothing is changed without --apply");
    let looks_again = String::from_utf8_lossy(&out).contains("look again");
    out.clear();
    let did = repair(directory, options(true), &mut out).unwrap();
    assert!(would == did || looks_again, "{would:?}, {did:?}");
    (did, String::from_utf8(out).unwrap())
}

fn logs(directory: &Path, shard: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(directory.join(shard)).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<_> = files
        .filter(|path| matches!(filenames::kind_of(path.file_name().unwrap()), Some(FileKind::Log(_))))
        .collect();
    logs.sort();
    logs
}

/// Where the records of a log file end: only zeros follow.
fn used(path: &Path) -> usize {
    fs::read(path).unwrap().iter().rposition(|&byte| byte != 0).unwrap() + 1
}

/// Writes zeros over a part of a file.
fn wipe(path: &Path, range: std::ops::Range<usize>) {
    let mut bytes = fs::read(path).unwrap();
    bytes[range].fill(0);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_part_of_the_log_is_taken_from_a_backup() {
    type Damage = fn(&Path, usize);
    // After the checkpoint, which makes everything before it unnecessary.
    let damages: [(&str, Damage); 4] = [
        ("zeros in the middle", |log, used| wipe(log, used - 700..used - 500)),
        ("one bit", |log, used| {
            let mut bytes = fs::read(log).unwrap();
            bytes[used - 700] ^= 1;
            fs::write(log, bytes).unwrap();
        }),
        ("bytes that were removed", |log, used| {
            let mut bytes = fs::read(log).unwrap();
            bytes.drain(used - 700..used - 663);
            fs::write(log, bytes).unwrap();
        }),
        ("bytes that were added", |log, used| {
            let mut bytes = fs::read(log).unwrap();
            bytes.splice(used - 700..used - 700, [7; 41]);
            fs::write(log, bytes).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let (directory, backup) = store_and_backup();
        let want = content(&open(directory.path()).unwrap());
        for shard in ["shard-000", "shard-001"] {
            let log = logs(directory.path(), shard).pop().unwrap();
            let of_backup = used(&backup.path().join(log.strip_prefix(directory.path()).unwrap()));
            damage(&log, of_backup);
        }
        let (outcome, said) = run_from(directory.path(), backup.path(), false);
        let steps = if said.contains("look again") { 4 } else { 2 };
        assert_eq!(outcome, Outcome { steps, ..Outcome::default() }, "{what}: {said}");
        assert!(said.contains("lost bytes from the backup"), "{what}: {said}");
        assert_eq!(run_from(directory.path(), backup.path(), false).0, Outcome::default(), "{what}");
        assert_eq!(content(&open(directory.path()).unwrap()), want, "{what}: {said}");
    }
}

#[test]
fn what_a_backup_has_of_a_lost_log_is_taken_and_the_rest_is_named() {
    let (directory, backup) = store_and_backup();
    for shard in ["shard-000", "shard-001"] {
        logs(directory.path(), shard).iter().for_each(|log| fs::remove_file(log).unwrap());
    }
    let (outcome, said) = run(directory.path(), true, true);
    assert_eq!(outcome, Outcome { hopeless: 2, ..Outcome::default() }, "{said}");
    assert!(said.contains("--from DIR"), "{said}");
    let (outcome, said) = run_from(directory.path(), backup.path(), false);
    assert_eq!(outcome, Outcome { steps: 2, hopeless: 2, refused: 0 }, "{said}");
    assert!(said.contains("the rest of it"), "{said}");
    let want = content(&open(backup.path()).unwrap());
    assert_eq!(content(&open(directory.path()).unwrap()), want);
    // None of the RRDs has an update after what is lost, so nothing proves that they lack any.
    let list =
        |shard: &str| fs::read_to_string(directory.path().join(shard).join("damaged-rrds.txt")).unwrap();
    let listed = list("shard-000") + &list("shard-001");
    for name in names() {
        assert!(listed.contains(&format!("{name} may lack updates after {}\n", START + 1190)), "{listed}");
    }
}

#[test]
fn a_copy_that_lived_on_by_itself_is_no_backup_of_the_log() {
    for is_stopped in [false, true] {
        let (directory, other) = store_and_backup();
        let want = content(&open(directory.path()).unwrap());
        let store = open(other.path()).unwrap();
        update(&store, 121..141);
        match is_stopped {
            true => store.stop().unwrap(),
            false => drop(store),
        }
        let log = logs(directory.path(), "shard-000").pop().unwrap();
        let path = other.path().join(log.strip_prefix(directory.path()).unwrap());
        // In the part that only this store wrote, some records before its end.
        let (end, kept) = (used(&log), fs::read(&log).unwrap());
        assert!(used(&path) >= end - 400);
        wipe(&log, end - 800..end - 600);
        let (outcome, said) = run_from(directory.path(), other.path(), false);
        assert_eq!(outcome, Outcome { hopeless: 1, ..Outcome::default() }, "{said}");
        assert!(said.contains("the backup does not have it"), "{said}");
        fs::write(&log, kept).unwrap();
        assert_eq!(content(&open(directory.path()).unwrap()), want);
    }
}

#[test]
fn both_manifests_are_taken_from_a_backup_while_nothing_newer_is_there() {
    let files = |place: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(place.join("shard-001")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    // A store that is open may make a checkpoint or a segment by itself, on a busy machine also while it stops: then again.
    let mut made = std::iter::repeat_with(store_and_backup).take(10);
    let (directory, backup) = made.find(|(now, then)| files(now.path()) == files(then.path())).unwrap();
    let want = content(&open(copy(directory.path()).path()).unwrap());
    let remove = || {
        for name in ["manifest", "manifest.copy"] {
            fs::remove_file(directory.path().join("shard-001").join(name)).unwrap();
        }
    };
    remove();
    let (outcome, said) = run_from(directory.path(), backup.path(), false);
    assert_eq!(outcome, Outcome { steps: 1, ..Outcome::default() }, "{said}");
    assert!(said.contains("take it from the backup"), "{said}");
    let store = open(directory.path()).unwrap();
    assert_eq!(content(&store), want);
    // The next checkpoint makes it one of another time.
    store.checkpoint().unwrap();
    store.stop().unwrap();
    drop(store);
    remove();
    let (outcome, said) = run_from(directory.path(), backup.path(), false);
    assert_eq!(outcome, Outcome { refused: 1, ..Outcome::default() }, "{said}");
    assert!(said.contains("make it from the files that are there"), "{said}");
}

#[test]
fn a_lost_shard_is_taken_from_a_backup_with_consent() {
    let (directory, backup) = store_and_backup();
    let now = open(directory.path()).unwrap();
    let (of_now, of_then) = (content(&now), content(&open(backup.path()).unwrap()));
    drop(now);
    fs::remove_dir_all(directory.path().join("shard-001")).unwrap();
    let (outcome, said) = run_from(directory.path(), backup.path(), false);
    assert_eq!(outcome, Outcome { refused: 1, ..Outcome::default() }, "{said}");
    assert!(said.contains("take the directory from the backup"), "{said}");
    assert!(said.contains("every change of its RRDs since the backup was made"), "{said}");
    refused(directory.path(), "shard-001");
    let (outcome, said) = run_from(directory.path(), backup.path(), true);
    assert_eq!(outcome, Outcome { steps: 1, ..Outcome::default() }, "{said}");
    let got = content(&open(directory.path()).unwrap());
    let old = got.lines().zip(of_then.lines()).filter(|(got, then)| got == then).count();
    let new = got.lines().zip(of_now.lines()).filter(|(got, now)| got == now).count();
    assert!(old > 0 && new > 0 && old + new == names().len(), "{old} as then, {new} as now");
    // A backup that is damaged itself is not taken.
    fs::remove_dir_all(directory.path().join("shard-001")).unwrap();
    let segment = segment_files(backup.path()).pop().unwrap();
    assert!(segment.starts_with(backup.path().join("shard-001")));
    wipe(&segment, 40..80);
    let (outcome, said) = run_from(directory.path(), backup.path(), false);
    assert_eq!(outcome.refused, 1, "{said}");
    assert!(said.contains("damaged, too") && said.contains("make it empty"), "{said}");
}
