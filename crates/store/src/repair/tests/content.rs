//! Files of a copy that has run since: the same names, numbers and lengths, and another content.

use std::collections::BTreeSet;

use super::rows::run_with;
use super::*;
use crate::verify::{self, Finding, Watch};

/// A store, its content, a backup of it, and a copy of an earlier moment that went on with other values of the same length.
struct Histories {
    want: String,
    backup: tempfile::TempDir,
    other: tempfile::TempDir,
    directory: tempfile::TempDir,
}

/// A busy machine may make more files of one than of the other: then both are made once more.
fn histories() -> Histories {
    loop {
        let histories = attempt();
        let names = |place: &tempfile::TempDir| {
            let files = fs::read_dir(place.path().join("shard-000")).unwrap();
            files.map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>()
        };
        if names(&histories.directory) == names(&histories.other) {
            return histories;
        }
    }
}

fn attempt() -> Histories {
    let directory = created();
    let other = copy(directory.path());
    let run = |place: &tempfile::TempDir, value: i64| {
        let store = open(place.path()).unwrap();
        update_with(&store, 1..100, &|number| value + number % 2);
        store.checkpoint().unwrap();
        let content = content(&store);
        store.stop().unwrap();
        content
    };
    let want = run(&directory, 5);
    run(&other, 7);
    let backup = copy(directory.path());
    Histories { directory, want, backup, other }
}

/// Files of the first shard whose names begin so, in both; they differ, segments not in length.
fn alike(histories: &Histories, prefix: &str) -> (PathBuf, PathBuf) {
    let shard = |place: &tempfile::TempDir| place.path().join("shard-000");
    let found = fs::read_dir(shard(&histories.directory)).unwrap().map(|entry| entry.unwrap().file_name());
    let name = found.filter(|name| name.to_string_lossy().starts_with(prefix)).max().unwrap();
    let pair = (shard(&histories.directory).join(&name), shard(&histories.other).join(&name));
    let (ours, theirs) = (fs::read(&pair.0).unwrap(), fs::read(&pair.1).unwrap());
    // The manifest does not say how long a checkpoint is.
    assert!(ours.len() == theirs.len() || prefix == "checkpoint-", "{}", pair.0.display());
    assert_ne!(ours, theirs);
    pair
}

#[test]
fn a_segment_of_a_copy_that_has_run_is_not_taken_for_ours() {
    let histories = histories();
    let (ours, _) = alike(&histories, "segment-");
    rows::flip(&ours);
    let (outcome, said) = run_with(histories.directory.path(), histories.other.path(), true, false);
    assert_eq!((outcome.steps, outcome.refused), (0, 1), "{said}");
    let (outcome, said) = run_with(histories.directory.path(), histories.backup.path(), true, false);
    assert_eq!((outcome.steps, outcome.refused), (1, 0), "{said}");
    assert_eq!(content(&open(histories.directory.path()).unwrap()), histories.want);
}

#[test]
fn files_of_a_copy_that_has_run_are_found_and_replaced() {
    for prefix in ["segment-", "checkpoint-"] {
        let histories = histories();
        let (ours, theirs) = alike(&histories, prefix);
        fs::copy(&theirs, &ours).unwrap();
        let found = findings(histories.directory.path());
        assert_eq!(found.len(), 1, "{prefix}: {found:?}");
        assert!(found[0].what.contains("a copy of the store which has run since"), "{prefix}: {found:?}");
        assert!(ours.ends_with(&found[0].file), "{prefix}: {found:?}");
        let (outcome, said) = run_with(histories.directory.path(), histories.other.path(), true, false);
        assert_eq!(outcome.steps, 0, "{prefix}: {said}");
        let (outcome, said) = run_with(histories.directory.path(), histories.backup.path(), true, false);
        assert_eq!((outcome.steps, outcome.refused, outcome.hopeless), (1, 0, 0), "{prefix}: {said}");
        assert_eq!(findings(histories.directory.path()), []);
        assert_eq!(content(&open(histories.directory.path()).unwrap()), histories.want, "{prefix}");
    }
}

fn findings(directory: &Path) -> Vec<Finding> {
    struct Found(Vec<Finding>);
    impl Watch for Found {
        fn checked(&mut self, _: u64) -> bool {
            true
        }
        fn found(&mut self, finding: Finding) {
            self.0.push(finding);
        }
    }
    let mut found = Found(Vec::new());
    verify::path(directory, &mut found).unwrap();
    found.0
}
