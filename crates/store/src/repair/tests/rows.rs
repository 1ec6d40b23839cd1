//! Rows of a backup whose files are not the same.

use super::*;

pub(super) fn run_with(directory: &Path, backup: &Path, apply: bool, accept_loss: bool) -> (Outcome, String) {
    let backup = RealDisk::open(backup).unwrap();
    let mut out = Vec::new();
    let options = Options { apply, accept_loss, backup: Some(&backup) };
    let outcome = repair(directory, options, &mut out).unwrap();
    (outcome, String::from_utf8(out).unwrap())
}

/// Damages the only block of a segment.
pub(super) fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[60] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// A store, its content, and a backup that has the same rows in other segments.
fn store_and_backup() -> (tempfile::TempDir, String, tempfile::TempDir) {
    let directory = created();
    let backup = copy(directory.path());
    let other = open(backup.path()).unwrap();
    for numbers in [1..30, 30..31, 31..110, 110..150] {
        update(&other, numbers);
        other.checkpoint().unwrap();
    }
    other.stop().unwrap();
    let store = open(directory.path()).unwrap();
    update(&store, 1..100);
    store.checkpoint().unwrap();
    update(&store, 100..120);
    let content = content(&store);
    store.stop().unwrap();
    drop(store);
    (directory, content, backup)
}

fn check(directory: &Path, want: &str) {
    let store = open(directory).unwrap();
    assert_eq!(content(&store), want);
    update(&store, 120..130);
    store.checkpoint().unwrap();
    store.stop().unwrap();
    drop(store);
    assert_eq!(run(directory, false, false).0, Outcome::default());
}

#[test]
fn rows_of_lost_blocks_come_from_a_backup_with_other_segments() {
    let (directory, want, backup) = store_and_backup();
    for path in segment_files(directory.path()) {
        flip(&path);
    }
    let (outcome, text) = run_with(directory.path(), backup.path(), true, false);
    assert_eq!((outcome.steps, outcome.refused), (0, 2), "{text}");
    assert!(text.contains("rows of") && text.contains("RRDs from the backup"), "{text}");
    let (outcome, text) = run_with(directory.path(), backup.path(), true, true);
    assert_eq!((outcome.steps, outcome.refused, outcome.hopeless), (2, 0, 0), "{text}");
    check(directory.path(), &want);
}

#[test]
fn a_missing_segment_is_made_again_of_the_rows_of_a_backup() {
    let (directory, want, backup) = store_and_backup();
    for path in segment_files(directory.path()) {
        fs::remove_file(path).unwrap();
    }
    let (outcome, text) = run_with(directory.path(), backup.path(), true, true);
    assert_eq!((outcome.steps, outcome.refused, outcome.hopeless), (2, 0, 0), "{text}");
    check(directory.path(), &want);
}

#[test]
fn rows_of_another_store_are_not_taken() {
    let (directory, _, _) = store_and_backup();
    let (other, _, _) = store_and_backup();
    let [path, _] = &segment_files(directory.path())[..] else { panic!("one in each shard") };
    flip(path);
    let (outcome, text) = run_with(directory.path(), other.path(), true, false);
    assert_eq!((outcome.steps, outcome.refused), (0, 1), "{text}");
    assert!(text.contains("not one of this shard") && !text.contains("RRDs from the backup"), "{text}");
}
