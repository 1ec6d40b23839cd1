use super::*;

fn store(number: u8) -> StoreIdentity {
    StoreIdentity([number; 16])
}

/// One store has the first tree; the other one's is refused, and the other way round, for as long as the first is open.
fn refused(root: &Path, one: (&str, &str), other: (&str, &str), says: [&str; 2]) {
    let path = |text: &str| root.join(text);
    for (number, first, second) in [(0, one, other), (1, other, one)] {
        let claim = Claim::take(store(1), Some(&path(first.0)), &[&path(first.1)]).unwrap();
        let again = || Claim::take(store(2), Some(&path(second.0)), &[&path(second.1)]);
        let error = again().unwrap_err().to_string();
        assert!(error.contains(says[number]), "{error}");
        assert!(error.contains("01010101") && error.contains("a tree of its own"), "{error}");
        // What it had marked itself hinders no one.
        drop(Claim::take(store(1), Some(&path(first.0)), &[&path(first.1)]).unwrap());
        drop(claim);
        // A process that another test has just forked has the marks until it executes its program.
        testkit::wait_until("the marks to go", || again().is_ok());
    }
}

#[test]
fn trees_that_overlap_are_refused_in_either_order() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for path in ["s1", "s2", "t/deep/er", "u/s2", "linked"] {
        std::fs::create_dir_all(root.join(path)).unwrap();
    }
    std::os::unix::fs::symlink("../t/deep", root.join("linked/to")).unwrap();
    let same = "is that of another store";
    refused(root, ("s1", "t"), ("s2", "t"), [same, same]);
    refused(root, ("s1", "t"), ("s2", "t/deep"), ["lies in that of another", "lies that of another"]);
    refused(root, ("s1", "t/deep/er"), ("s2", "t"), ["lies that of another", "lies in that of another"]);
    refused(root, ("s1", "t"), ("s2", "linked/to"), ["lies in that of another", "lies that of another"]);
    refused(root, ("s1", "linked/to"), ("s2", "t/deep"), [same, same]);
    refused(
        root,
        ("s1", "u"),
        ("u/s2", "t"),
        ["directory lies in the tree of another", "lies the directory of another"],
    );
    // Neither trees side by side, nor a tree beside or below the other's directory.
    let claims = [
        Claim::take(store(1), Some(&root.join("s1")), &[&root.join("t/deep")]),
        Claim::take(store(2), Some(&root.join("s2")), &[&root.join("u"), &root.join("u")]),
        Claim::take(store(3), Some(&root.join("t")), &[&root.join("linked")]),
    ];
    assert!(claims.iter().all(Result::is_ok), "{claims:?}");
    // A store in its own tree, whose tree is named twice.
    drop(claims);
    Claim::take(store(1), Some(&root.join("u/s2")), &[&root.join("u"), &root.join("u")]).unwrap();
}

#[test]
fn the_other_store_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("a/b");
    std::fs::create_dir_all(&tree).unwrap();
    daemon_address::write(&tree, store(0xab), "unix:/run/x.sock").unwrap();
    let _claim = Claim::take(store(0xab), None, &[&tree]).unwrap();
    let error = Claim::take(store(2), None, &[directory.path()]).unwrap_err().to_string();
    for text in [store(0xab).to_string().as_str(), "a/b\"", "unix:/run/x.sock"] {
        assert!(error.contains(text), "{error}");
    }
}
