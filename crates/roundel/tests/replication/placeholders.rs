//! Placeholders of a cluster: programs that know nothing of daemons reach any RRD through them, and what they do to files happens to RRDs.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::{librrd_directory, wait_until};

use super::cluster::{are_well, node};
use super::server::{CREATE, Server};

/// Runs Debian's module `rrdtool` of Python with our C library, without any address in its environment; what it printed.
fn python(libraries: &Path, call: &str) -> String {
    let output = Command::new("/usr/bin/python3")
        .args(["-c", &format!("import rrdtool\nprint(rrdtool.{call})")])
        .env("LD_LIBRARY_PATH", libraries)
        .env_remove("RRDCACHED_ADDRESS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{call}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn last(server: &Server, name: &str) -> String {
    server.say(&format!("LAST {name}"))
}

#[test]
fn programs_reach_a_cluster_through_placeholders() {
    let parent = tempfile::tempdir().unwrap();
    let libraries = tempfile::tempdir().unwrap();
    let libraries = librrd_directory(libraries.path()).unwrap();
    let (mut a, mut b) = (node(parent.path(), "a"), node(parent.path(), "b"));
    a.start();
    b.start();
    wait_until("both to have everything", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));
    for number in 0..16 {
        assert!(a.say(&format!("CREATE host-{number}/x.rrd {CREATE}")).starts_with("0 "));
        assert!(
            a.base().join(format!("host-{number}/x.rrd")).exists(),
            "it stands there before CREATE is answered"
        );
    }
    let (at_a, at_b) = (a.base().join("host-3/x.rrd"), b.base().join("host-3/x.rrd"));
    wait_until("the other node's placeholders", || b.base().join("host-15/x.rrd").exists() && at_b.exists());
    // The file is there a moment before it has its length.
    let length = fs::metadata(&at_a).unwrap().len();
    wait_until("the placeholder's length", || fs::metadata(&at_b).unwrap().len() == length);

    // The C library finds its daemon by the placeholder, whichever node leads the RRD.
    for second in 1..9 {
        for (number, server) in [(3, &a), (3 + second, &b)] {
            let path = server.base().join(format!("host-{number}/x.rrd"));
            python(
                &libraries,
                &format!("update('{}', '{}:{second}')", path.display(), 1_000_000_000 + second),
            );
        }
    }
    let read = python(&libraries, &format!("lastupdate('{}')", at_b.display()));
    assert!(read.contains("'v': 8"), "{read}");

    // What a program does to files: at once through the same node, soon through the other one.
    fs::rename(b.base().join("host-3"), b.base().join("renamed")).unwrap();
    assert_eq!(last(&b, "renamed/x.rrd"), "0 1000000008");
    assert_eq!(last(&a, "renamed/x.rrd"), "0 1000000008");
    fs::copy(b.base().join("renamed/x.rrd"), b.base().join("copy.rrd")).unwrap();
    assert_eq!(last(&b, "copy.rrd"), "0 1000000008");
    assert!(b.say("UPDATE copy.rrd 1000000009:9").starts_with("0 "));
    assert_eq!(last(&b, "renamed/x.rrd"), "0 1000000008");
    fs::remove_file(b.base().join("host-4/x.rrd")).unwrap();
    assert!(last(&b, "host-4/x.rrd").starts_with("-1 "));
    wait_until("the first node's files to follow", || {
        let is_there = |name: &str| a.base().join(name).exists();
        is_there("renamed/x.rrd") && is_there("copy.rrd") && !at_a.exists() && !is_there("host-4/x.rrd")
    });
    // It can be taken back.
    let trash = a.client().ask("TRASH LIST").unwrap();
    let removed = trash.lines.iter().find(|line| line.contains("host-4/x.rrd")).unwrap();
    assert_eq!(a.say(&format!("TRASH RESTORE {removed}")), "0 1 RRDs");
    assert!(a.base().join("host-4/x.rrd").exists());
    assert_eq!(last(&b, "host-4/x.rrd"), "0 1000000001");

    // A tree that is lost costs nothing.
    fs::remove_dir_all(b.base()).unwrap();
    b.kill();
    fs::create_dir(b.base()).unwrap();
    fs::remove_file(a.base().join("host-5/x.rrd")).unwrap();
    assert!(last(&a, "host-5/x.rrd").starts_with("-1 "));
    b.start();
    wait_until("its placeholders to be back", || {
        b.base().join("host-15/x.rrd").exists() && b.base().join("renamed/x.rrd").exists()
    });
    assert!(!b.base().join("host-5/x.rrd").exists());
    let list = a.client().ask("LIST RECURSIVE /").unwrap();
    assert_eq!(list.lines.iter().filter(|line| line.contains("x.rrd")).count(), 15, "{list:?}");
}
