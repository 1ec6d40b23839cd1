//! A mounted file that programs update while others open, read and close it: the kernel's pages, the mount's bytes and the
//! store's RRD are of one content.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use testkit::{Client, DEADLINE};

use super::mount::{mounted, shell};
use super::*;

const START: u32 = 1_700_000_000;
/// Updates, one for each second.
const UPDATES: u32 = 120;

/// An RRD whose every row will have the number of its second after [`START`].
fn create(directory: &Path, name: &str) {
    let create = format!("rrdtool create {name} -s 1 -b {START} DS:x:GAUGE:1000:U:U RRA:LAST:0:1:2000");
    assert_eq!(shell(directory, &create), "");
}

/// Updates by Debian's rrdtool, in processes of their own, of every `step`th second from the first on. What is refused is tried
/// again.
fn update(directory: &Path, name: &str, first: u32, step: usize) {
    let script = (first..=UPDATES).step_by(step).fold(String::new(), |script, second| {
        let reading = format!("{}:{second}", START + second);
        script + &format!("until rrdtool update {name} {reading} 2>/dev/null; do sleep 0.001; done\n")
    });
    assert_eq!(shell(directory, &script), "");
}

/// The rows that do not have the number of their second, of those up to the last update.
fn wrong_rows(directory: &Path, name: &str) -> Vec<String> {
    let fetch = format!("rrdtool fetch {name} LAST -s {START} -e {}", START + UPDATES - 1);
    let rows = shell(directory, &fetch);
    let rows = rows.lines().filter(|line| line.starts_with("17"));
    let (right, mut wrong) = rows.map(str::to_string).partition::<Vec<_>, _>(|row| {
        let (time, value) = row.split_once(": ").unwrap();
        value.parse() == Ok(f64::from(time.parse::<u32>().unwrap() - START))
    });
    let found = right.len() + wrong.len();
    if found != UPDATES as usize {
        wrong.push(format!("{found} rows, not {UPDATES}"));
    }
    wrong
}

/// Opens the file of a name, and closes it.
type Opener<'a> = &'a (dyn Fn(&str) + Sync);

/// Calls `open` again and again while `work` is done.
fn beside(open: impl Fn() + Sync, work: impl FnOnce()) {
    let is_done = AtomicBool::new(false);
    scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    open();
                    sleep(Duration::from_millis(1));
                }
            });
        }
        // The others end when it fails, too.
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_done.store(true, Ordering::Relaxed);
        worked.unwrap();
    });
}

/// Checks that the rows are right in the mount and in the store.
fn check(daemon: &Daemon, mount: &Path, name: &str, what: &str) {
    // The kernel tells the mount some time later that a program has closed the file. Until then, the mount shows what that program saw.
    let begun = Instant::now();
    loop {
        let wrong = wrong_rows(mount, name);
        if wrong.is_empty() {
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "{what}: {wrong:?}");
        sleep(Duration::from_millis(20));
    }
    let exported = Command::new(env!("CARGO_BIN_EXE_roundel"))
        .args(["export", name, "--to"])
        .arg(daemon.directory().join("out"))
        .args(["--from", &format!("unix:{}", daemon.socket().display())])
        .output()
        .unwrap();
    assert!(exported.status.success(), "{exported:?}");
    assert_eq!(wrong_rows(&daemon.directory().join("out"), name), Vec::<String>::new(), "{what}, exported");
}

#[test]
fn updates_are_right_whatever_opens_the_file_beside_them() {
    let Some((_directory, daemon, mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    let at = &*mount.directory;
    let open =
        |name: &str, writes: bool| OpenOptions::new().read(true).write(writes).open(at.join(name)).unwrap();
    let both = |name: &str| {
        drop(open(name, false));
        drop(open(name, true));
    };
    let read = |name: &str| assert!(!std::fs::read(at.join(name)).unwrap().is_empty());
    // As rrdtool maps the file to read it.
    let map = |name: &str| drop(shell(at, &format!("rrdtool lastupdate {name}; rrdtool info {name}")));
    let openers: [(&str, Opener<'_>); 5] = [
        ("reader.rrd", &|name| drop(open(name, false))),
        ("writer.rrd", &|name| drop(open(name, true))),
        ("both.rrd", &both),
        ("read.rrd", &read),
        ("mapped.rrd", &map),
    ];
    for (name, opener) in openers {
        create(at, name);
        beside(|| opener(name), || update(at, name, 1, 1));
        check(&daemon, at, name, name);
    }
}

#[test]
fn several_writers_and_the_daemon_mix_nothing() {
    let Some((_directory, daemon, mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    let at = &*mount.directory;
    let mut client = Client::connect(&daemon.socket()).unwrap();
    for (name, by_daemon) in [("programs.rrd", false), ("daemon.rrd", true)] {
        create(at, name);
        // A part that the kernel has dropped cannot be read once the daemon has another version.
        let read = || match std::fs::read(at.join(name)) {
            Ok(bytes) => assert!(!bytes.is_empty()),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::StaleNetworkFileHandle),
        };
        beside(read, || {
            for second in 1..=UPDATES {
                let (time, reading) = (START + second, format!("{}:{second}", START + second));
                if by_daemon && second % 3 == 0 {
                    assert_eq!(client.ask(&format!("UPDATE {name} {reading}")).unwrap().status, 0);
                    continue;
                }
                // Two with the same reading: one of them is refused until the other's is there.
                let refused = format!("rrdtool update {name} {reading} 2>/dev/null");
                let is_there = format!("test 0$(rrdtool last {name} 2>/dev/null) -ge {time} 2>/dev/null");
                let until = format!("until {refused} || {is_there}; do :; done");
                scope(|threads| {
                    for _ in 0..2 {
                        threads.spawn(|| assert_eq!(shell(at, &until), ""));
                    }
                });
            }
        });
        check(&daemon, at, name, name);
    }
}

#[test]
fn who_was_refused_reaches_none_of_those_who_open_the_file_then() {
    let Some((_directory, daemon, mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    let at = &*mount.directory;
    create(at, "a.rrd");
    update(at, "a.rrd", 1, 1);
    let open = || OpenOptions::new().read(true).write(true).open(at.join("a.rrd")).unwrap();
    let (refused, old): (File, _) = (open(), std::fs::read(at.join("a.rrd")).unwrap());
    let next = START + UPDATES + 1;
    let mut client = Client::connect(&daemon.socket()).unwrap();
    assert_eq!(client.ask(&format!("UPDATE a.rrd {next}:1")).unwrap().status, 0);
    let write = |at: usize| refused.write_all_at(&[&old[at..at + 8], &[7; 8]].concat(), at as u64);
    write(old.len() - 16).unwrap();
    let stale = Some(rustix::io::Errno::STALE.raw_os_error());
    assert_eq!(refused.sync_all().unwrap_err().raw_os_error(), stale);
    // It keeps the file open and goes on.
    let before = std::fs::read(at.join("a.rrd")).unwrap();
    assert!(before != old, "others are shown what was refused");
    write(old.len() - 4096).unwrap();
    assert!(std::fs::read(at.join("a.rrd")).unwrap() == before);
    assert_eq!(
        shell(at, &format!("rrdtool update a.rrd {}:2; rrdtool last a.rrd", next + 1)),
        format!("{}\n", next + 1)
    );
    write(old.len() - 8192).unwrap();
    assert_eq!(refused.sync_all().unwrap_err().raw_os_error(), stale);
    drop(refused);
    check(&daemon, at, "a.rrd", "after it");
    assert_eq!(shell(at, "rrdtool last a.rrd; ls"), format!("{}\na.rrd\n", next + 1));
}
