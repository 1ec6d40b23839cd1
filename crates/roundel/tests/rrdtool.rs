//! Our own `rrdtool` on RRDs that a daemon has: named by an option or the environment, or found through the
//! placeholder alone. Every answer is that of the same command on a real file.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "rrdtool/habits.rs"]
mod habits;
#[path = "rrdtool/mount.rs"]
mod mount;
#[path = "rrdtool/mount_openers.rs"]
mod mount_openers;
#[path = "rrdtool/mount_use.rs"]
mod mount_use;
#[path = "wire/mounting.rs"]
mod mounting;
#[path = "rrdtool/random_tree.rs"]
mod random_tree;
#[path = "rrdtool/rights.rs"]
mod rights;
#[path = "rrdtool/scripts.rs"]
mod scripts;
#[path = "rrdtool/takeover.rs"]
mod takeover;
#[path = "rrdtool/tree.rs"]
mod tree;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Daemon, Kind};

const CREATE: &str = "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U DS:y:COUNTER:30:0:U RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:3:9";

/// Our command line.
struct Tool {
    link: PathBuf,
}

impl Tool {
    fn new(directory: &Path) -> Self {
        let link = directory.join("rrdtool");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rrdtool"), &link).unwrap();
        Tool { link }
    }

    /// The output of a command, then its errors.
    fn run(&self, directory: &Path, daemon: Option<&str>, words: &str) -> (String, String) {
        let mut command = Command::new(&self.link);
        command
            .args(words.split(' '))
            .current_dir(directory)
            .env("TZ", "UTC")
            .env_remove("RRDCACHED_ADDRESS");
        if let Some(address) = daemon {
            command.env("RRDCACHED_ADDRESS", address);
        }
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(i32::from(!error.is_empty())), "{words}: {error}");
        (String::from_utf8_lossy(&output.stdout).into_owned(), error)
    }
}

/// A daemon, and a `Tool` with a directory of plain files.
fn beside_files(kind: Kind) -> (tempfile::TempDir, Daemon, Tool) {
    let directory = tempfile::Builder::new().prefix("tool-").tempdir().unwrap();
    let mut daemon = testkit::daemon!(kind, &directory.path().join("daemon"));
    daemon.start();
    let tool = Tool::new(directory.path());
    std::fs::create_dir(directory.path().join("plain")).unwrap();
    (directory, daemon, tool)
}

#[test]
fn verbs_that_write_files_reach_the_store() {
    let (directory, mut daemon, tool) = beside_files(Kind::Stripes);
    let (base, plain) = (daemon.base(), directory.path().join("plain"));
    let address = format!("unix:{}", daemon.socket().display());
    let same = |words: &str| {
        let (ours, want) = (tool.run(&base, None, words), tool.run(&plain, None, words));
        assert_eq!((normal(&ours.0), ours.1), (normal(&want.0), want.1), "{words}");
    };
    let is_placeholder =
        |name: &str| std::fs::read(base.join(name)).unwrap().starts_with(&store::placeholder::MAGIC);
    for words in [
        CREATE,
        "updatev a.rrd 1000000010:1:10 1000000025:2:30 1000000064:U:60",
        // A refused one after an accepted one.
        "updatev a.rrd 1000000072:5:61 1000000072:6:62 1000000080:1:1",
        "updatev -s a.rrd 1000000072:5:61 1000000083:6:62",
        "updatev -t y:x a.rrd 1000000091:70:7",
        "updatev a.rrd 1000000095:7:x",
        "updatev a.rrd x:1:2",
        "updatev nope.rrd 1:2",
        "fetch a.rrd AVERAGE -r 30 -s 1000000000 -e 1000000090",
        "fetch a.rrd MAX -r 7 -s 1000000000 -e 1000000090",
        "xport -s 1000000000 -e 1000000090 --step 30 DEF:v=a.rrd:x:AVERAGE XPORT:v",
        "resize a.rrd 0 GROW 5",
        "resize a.rrd 9 GROW 5",
        "resize a.rrd 0 SHRINK 99",
        "info resize.rrd",
        "dump resize.rrd",
        "dump a.rrd a.xml",
        "restore a.xml b.rrd",
        "restore a.xml b.rrd",
        "update b.rrd 1000000111:9:99",
        "restore -f a.xml b.rrd",
        "info b.rrd",
        "dump b.rrd",
        "create c.rrd -r a.rrd -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20",
        "create d.rrd -t a.rrd",
        "create d.rrd -O -t a.rrd",
        "dump c.rrd",
        "dump d.rrd",
    ] {
        same(words);
    }
    assert!(
        ["a.rrd", "b.rrd", "c.rrd", "d.rrd"].into_iter().all(is_placeholder) && !is_placeholder("resize.rrd")
    );
    // A store that is named, with a name that nothing here has.
    let by_address = |words: &str| tool.run(&plain, None, words);
    let tcp = format!("127.0.0.1:{}", daemon.tcp_port());
    assert_eq!(by_address(&format!("restore -d {tcp} a.xml far.rrd")).1, "");
    let rows = by_address(&format!("updatev -d {tcp} far.rrd 1000000100:1:80"));
    assert_eq!(rows.1, "");
    assert_eq!(rows.0, tool.run(&plain, None, "updatev a.rrd 1000000100:1:80").0);
    let fetch = "fetch far.rrd AVERAGE -r 30 -s 1000000000 -e 1000000090";
    assert_eq!(tool.run(&plain, Some(&tcp), fetch).0, tool.run(&plain, None, &fetch.replace("far", "a")).0);
    // All of it is in the log.
    let dumps = || ["a", "b", "c", "d"].map(|name| tool.run(&base, None, &format!("dump {name}.rrd")));
    let before = dumps();
    daemon.kill();
    daemon.start();
    assert_eq!(dumps(), before);
    assert_eq!(tool.run(&base, Some(&address), "list /").0.lines().count(), 6);
}

#[test]
fn a_query_of_a_store_chooses_its_archives_as_of_files() {
    let (directory, daemon, tool) = beside_files(Kind::Stripes);
    let (base, plain) = (daemon.base(), directory.path().join("plain"));
    let query = |directory: &Path, step: &str| {
        let words = [
            "query",
            "-f",
            "csv",
            "-s",
            "1000000020",
            "-e",
            "1000000110",
            "--step",
            step,
            "DEF:v=*.rrd:x:AVERAGE",
        ];
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
        let output =
            command.args(words).current_dir(directory).env_remove("RRDCACHED_ADDRESS").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for directory in [&base, &plain] {
        // The wider rows know nothing where a part is unknown.
        let create =
            "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:10:U:U RRA:AVERAGE:0.5:1:20 RRA:AVERAGE:0:3:9";
        assert_eq!(tool.run(directory, None, create).1, "");
        let readings: Vec<String> = (1..12)
            .map(|row| {
                format!(
                    "{}:{}",
                    1_000_000_000 + row * 10,
                    if row == 6 { "U".into() } else { row.to_string() }
                )
            })
            .collect();
        assert_eq!(tool.run(directory, None, &format!("update a.rrd {}", readings.join(" "))).1, "");
    }
    for step in ["0", "30"] {
        assert_eq!(query(&base, step), query(&plain, step));
    }
    assert!(query(&plain, "30").contains("1000000080,\n"), "{}", query(&plain, "30"));
}

#[test]
fn a_files_layout_lists_rows_behind_what_waits() {
    let (directory, daemon, tool) = beside_files(Kind::Files);
    let (base, plain) = (daemon.base(), directory.path().join("plain"));
    let address = format!("unix:{}", daemon.socket().display());
    for directory in [&base, &plain] {
        assert_eq!(tool.run(directory, None, CREATE).1, "");
    }
    // This one waits in the daemon's memory.
    assert_eq!(tool.run(&base, Some(&address), "update a.rrd 1000000010:1:10 1000000025:2:30").1, "");
    assert_eq!(tool.run(&plain, None, "update a.rrd 1000000010:1:10 1000000025:2:30").1, "");
    let ours = tool.run(&base, None, &format!("updatev -d {address} a.rrd 1000000064:U:60 1000000072:5:61"));
    assert_eq!(ours, tool.run(&plain, None, "updatev a.rrd 1000000064:U:60 1000000072:5:61"));
    for words in ["update a.rrd 1000000083:6:62", "dump a.rrd"] {
        let ours = tool.run(&base, Some(&address), words);
        assert_eq!(ours, tool.run(&plain, None, words));
    }
}

/// What is random, or shows where the RRD is.
fn normal(text: &str) -> String {
    let drawn = |line: &&str| !line.starts_with("filename = ") && !line.contains(".cur_row = ");
    text.lines().filter(drawn).collect::<Vec<_>>().join("\n")
}

const READS: &[&str] = &[
    "info a.rrd",
    "first a.rrd --rraindex 1",
    "lastupdate a.rrd",
    "fetch a.rrd AVERAGE -s 1000000000 -e 1000000100",
    "fetch a.rrd MAX -s 1000000000 -e 1000000100 --align-start",
    "dump a.rrd",
    "dump -n a.rrd",
    "xport -s 1000000000 -e 1000000090 DEF:v=a.rrd:x:AVERAGE CDEF:w=v,2,* XPORT:v:one XPORT:w:two",
];

#[test]
fn verbs_find_rrds_of_a_store_with_and_without_an_address() {
    let directory = tempfile::Builder::new().prefix("tool-").tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, &directory.path().join("daemon"));
    daemon.start();
    let tool = Tool::new(directory.path());
    let plain = directory.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    let base = daemon.base();
    let address = format!("unix:{}", daemon.socket().display());

    let same = |daemon: Option<&str>, words: &str| {
        let (ours, want) = (tool.run(&base, daemon, words), tool.run(&plain, None, words));
        assert_eq!((normal(&ours.0), ours.1), (normal(&want.0), want.1), "{words} {daemon:?}");
    };
    same(Some(&address), CREATE);
    same(Some(&address), "update a.rrd 1000000010:1:10 1000000025:2:30");
    // From here on also without an address: the placeholder leads to the store.
    same(None, "update a.rrd 1000000034:3:35");
    same(None, "update -t y:x a.rrd 1000000047:50:4");
    same(Some(&address), "update -t x a.rrd 1000000058:5");
    same(None, "update a.rrd 20010909@1:1 -s 1000000071:U:90");
    same(None, "tune a.rrd -h x:40");
    same(Some(&address), "tune a.rrd -i y:1");
    for words in READS {
        same(None, words);
        same(Some(&address), words);
    }
    same(None, "last a.rrd");
    same(None, "last a.rrd --bogus");
    same(None, "fetch a.rrd BOGUS");
    // Errors have the words for a file, too.
    for words in [
        "update a.rrd 1000000071:1:1",
        "update a.rrd 1000000072:1:x",
        "info nope.rrd",
        "first a.rrd --rraindex 7",
    ] {
        same(None, words);
    }
    assert_eq!(tool.run(&base, Some(&address), "list /").0, "a.rrd\n");
    assert_eq!(tool.run(&base, Some(&address), "flushcached a.rrd").1, "");

    daemon.kill();
    let (_, error) = tool.run(&base, None, "last a.rrd");
    assert!(error.contains("its daemon at unix:") && error.contains("does not answer"), "{error}");
}

/// A user who may write a file of another user may not keep its access time unchanged, and need not.
#[test]
fn a_file_of_somebody_else_is_updated() {
    let directory = tempfile::tempdir().unwrap();
    // The build directory may be closed to others.
    let program = directory.path().join("rrdtool");
    // By another process: a child that another test forks while this one writes would keep the file open for writing, and
    // what is open for writing does not start ("Text file busy").
    assert!(
        Command::new("cp")
            .args([env!("CARGO_BIN_EXE_rrdtool").as_ref(), program.as_os_str()])
            .status()
            .unwrap()
            .success()
    );
    let file = directory.path().join("a.rrd");
    let run = |mut command: Command, words: &str| {
        let output = command.args(words.split(' ')).current_dir(&directory).output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(Command::new(&program), CREATE);
    for (path, mode) in [(directory.path(), 0o755), (&file, 0o666)] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    if std::fs::metadata(&file).unwrap().uid() != 0 {
        return testkit::skip("only root can become another user");
    }
    run(other, "update a.rrd 1000000010:1:2");
    assert_eq!(run(Command::new(&program), "last a.rrd"), "1000000010\n");
}

/// A service may start it with the standard streams closed; no file may then take their place.
#[test]
fn closed_streams_are_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let tool = Tool::new(directory.path());
    tool.run(directory.path(), None, CREATE);
    let script = "echo update a.rrd 1000000010:1:2 | ./rrdtool - 1>&- 2>&-";
    let status = Command::new("sh").args(["-c", script]).current_dir(&directory).status().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(tool.run(directory.path(), None, "last a.rrd").0, "1000000010\n");
}

#[test]
fn each_name_does_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let (tool, roundel) = (env!("CARGO_BIN_EXE_rrdtool"), env!("CARGO_BIN_EXE_roundel"));
    let run = |executable: &str, name: &str, words: &str| {
        let link = directory.path().join(name);
        std::os::unix::fs::symlink(executable, &link).unwrap();
        let mut command = Command::new(&link);
        let output =
            command.args(words.split(' ')).current_dir(&directory).env("TZ", "UTC").output().unwrap();
        std::fs::remove_file(link).unwrap();
        assert!(output.status.success(), "{executable} as {name}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(run(tool, "rrdcreate", CREATE.strip_prefix("create ").unwrap()), "");
    assert_eq!(run(tool, "rrdupdate", "a.rrd 1000000010:1:2"), "");
    let want = run(tool, "rrdtool", "info a.rrd");
    assert!(want.contains("last_update = 1000000010\n"), "{want}");
    // The daemon's executable has the verbs, too: `roundel rrdtool`, and links from when there was one executable.
    for (executable, name, words) in [
        (tool, "rrdinfo", "a.rrd"),
        (tool, "ours", "info a.rrd"),
        (roundel, "rrdtool", "info a.rrd"),
        (roundel, "rrdinfo", "a.rrd"),
        (roundel, "roundel", "rrdtool info a.rrd"),
    ] {
        assert_eq!(run(executable, name, words), want, "{executable} as {name}");
    }
}

/// An RRD with a step of a tenth of a second, `a.rrd` in the tree of a store and `far.rrd` there by name over TCP, and
/// beside them a file of whole seconds in which every time is a thousand times as long.
struct Fine {
    daemon: Daemon,
    tool: Tool,
    /// Of the last update, in thousandths of a second.
    last: i64,
    directory: tempfile::TempDir,
}

/// The range of its readings.
const FINE: &str = "-s 1700000000 -e 1700000003";

impl Fine {
    fn new() -> Fine {
        let (directory, daemon, tool) = beside_files(Kind::Stripes);
        let mut fine = Fine { directory, daemon, tool, last: 1_700_000_000_000 };
        let create = |start: &str, step: &str, heartbeat: &str, row: &str| {
            let archive = |cf: &str| format!("RRA:{cf}:0.5:1:200 RRA:{cf}:0.5:{row}:20");
            let archives = ["AVERAGE", "MIN", "MAX", "LAST"].map(archive).join(" ");
            let sources = format!("DS:x:GAUGE:{heartbeat}:U:U DS:c:COUNTER:{heartbeat}:0:U");
            format!("-b {start} -s {step} {sources} {archives}")
        };
        let in_store = create("1700000000", "0.1", "0.3", "1s");
        fine.run(&fine.daemon.base(), &format!("create a.rrd {in_store}"));
        fine.run(&fine.plain(), &format!("create {} {in_store}", fine.far()));
        fine.run(&fine.plain(), &format!("create a.rrd {}", create("1700000000000", "100", "300", "10")));
        // Regular, jitter, a gap beyond the heartbeat, and on.
        for (index, later) in [100, 9, 37, 201, 62, 100, 650, 50, 100, 99, 1, 1100].iter().enumerate() {
            fine.last += later;
            let (time, gauge, count) = (fine.last_text(), index * index % 17, 10 * index + 3);
            fine.run(&fine.daemon.base(), &format!("update a.rrd {time}:{gauge}:{count}"));
            fine.run(&fine.plain(), &format!("update {} {time}:{gauge}:{count}", fine.far()));
            fine.run(&fine.plain(), &format!("update a.rrd {}:{gauge}:{count}000", fine.last));
        }
        fine
    }

    fn plain(&self) -> PathBuf {
        self.directory.path().join("plain")
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.daemon.tcp_port())
    }

    /// The RRD that only the daemon knows, as arguments.
    fn far(&self) -> String {
        format!("-d {} far.rrd", self.address())
    }

    fn last_text(&self) -> String {
        format!("{}.{:03}", self.last / 1000, self.last % 1000)
    }

    fn run(&self, place: &Path, words: &str) -> String {
        let (output, error) = self.tool.run(place, None, words.trim_end());
        assert_eq!(error, "", "{words}");
        output
    }

    /// The same in both RRDs of the store: the one in the tree, and the one that only the daemon knows.
    fn run_both(&self, words: impl Fn(&str) -> String) -> String {
        let in_tree = self.run(&self.daemon.base(), &words("a.rrd"));
        assert_eq!(self.run(&self.plain(), &words(&self.far())), in_tree);
        in_tree
    }

    fn administer(&self, words: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_roundel")).args(words).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }
}

/// The rows of a fetch with their times in thousandths of a second; `scale` follows those that have no decimals.
fn in_thousandths(fetched: &str, scale: &str) -> Vec<String> {
    let row = |line: &str| {
        let (time, values) = line.split_once(": ")?;
        let time = match time.split_once('.') {
            Some((seconds, thousandths)) => format!("{seconds}{thousandths}"),
            None => format!("{time}{scale}"),
        };
        Some(format!("{time}: {values}"))
    };
    fetched.lines().filter_map(row).collect()
}

#[test]
fn rows_below_a_second_are_those_of_whole_seconds() {
    let fine = Fine::new();
    let whole = "-s 1700000000000 -e 1700000003000";
    for cf in ["AVERAGE", "MIN", "MAX", "LAST"] {
        for (resolution, scaled) in [("", ""), ("-r 2", "-r 2000")] {
            let want = fine.run(&fine.plain(), &format!("fetch a.rrd {cf} {whole} {scaled}"));
            let want = in_thousandths(&want, "");
            assert!(want.len() > 3);
            let got = fine.run_both(|name| format!("fetch {name} {cf} {FINE} {resolution}"));
            assert_eq!(in_thousandths(&got, "000"), want, "{cf} {resolution}");
        }
    }
    // Graphs and tables have rows of whole seconds.
    let elements = "DEF:x=a.rrd:x:AVERAGE DEF:m=a.rrd:x:AVERAGE:reduce=MAX DEF:c=a.rrd:c:AVERAGE";
    let rows = |text: &str| {
        text.lines().filter(|line| line.contains("<row>")).map(str::to_string).collect::<Vec<_>>()
    };
    let xport = |head: &str| format!("xport {head} {elements} XPORT:x XPORT:m XPORT:c");
    // Consolidated from the finest rows, as below.
    let of_finest = |words: String| {
        words.replace(":AVERAGE", ":AVERAGE:step=100").replace("c:AVERAGE:step=100:%", "c:AVERAGE:%")
    };
    let want = rows(&fine.run(&fine.plain(), &of_finest(xport(&format!("{whole} --step 1000")))));
    assert_eq!(want.len(), 3);
    assert_eq!(rows(&fine.run(&fine.daemon.base(), &xport(FINE))), want);
    let far = xport(&format!("-d {} {FINE}", fine.address())).replace("a.rrd", "far.rrd");
    assert_eq!(rows(&fine.run(&fine.plain(), &far)), want);
    let graph = |range: &str| {
        format!(
            "graph g.png {range} {elements} VDEF:v=x,MAXIMUM PRINT:v:%.3lf PRINT:c:AVERAGE:%.3lf LINE1:x#f00"
        )
    };
    let want = fine.run(&fine.plain(), &of_finest(graph(&format!("{whole} --step 1000"))));
    assert_eq!(fine.run(&fine.daemon.base(), &graph(FINE)), want);
    let address = fine.address();
    let range = ["query", "-d", &address, "-s", "1700000000", "-e", "1700000003", "-f", "csv"];
    let query = fine.administer(&[&range[..], &["DEF:x=far.rrd:x:AVERAGE", "XPORT:x"]].concat());
    let times: Vec<&str> = query.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!(times, ["1700000001", "1700000002", "1700000003"], "{query}");
}

#[test]
fn times_of_an_rrd_below_a_second_are_shown_with_their_decimals() {
    let mut fine = Fine::new();
    let last = fine.last_text();
    let lastupdate = fine.run_both(|name| format!("lastupdate {name}"));
    assert_eq!(lastupdate, format!(" x c\n\n{last}: 2 113\n"));
    assert_eq!(fine.run_both(|name| format!("first {name}")), "1699999982.600\n");
    let info = fine.run(&fine.daemon.base(), "info a.rrd");
    assert!(info.contains("step = 1.0000000000e-01\n"), "{info}");
    assert!(info.contains(&format!("last_update = {last}\n")), "{info}");
    assert_eq!(fine.run(&fine.daemon.base(), "last a.rrd"), format!("{last}\n"));
    // LAST of a daemon rounds down to the step.
    assert_eq!(fine.run(&fine.plain(), &format!("last {}", fine.far())), "1700000002.500\n");
    let (_, error) = fine.tool.run(&fine.daemon.base(), None, &format!("update a.rrd {last}:1:1"));
    assert!(error.contains(&format!("using time {last}000 when last update time is {last}000")), "{error}");
    // The log has the decimals too.
    let fetch = format!("fetch a.rrd AVERAGE {FINE}");
    let before = fine.run(&fine.daemon.base(), &fetch);
    fine.daemon.kill();
    fine.daemon.start();
    assert_eq!(fine.run(&fine.daemon.base(), &fetch), before);
    assert_eq!(fine.run(&fine.daemon.base(), "last a.rrd"), format!("{last}\n"));
    // Programs of RRDtool read whole numbers.
    let theirs = |words: &str| {
        Command::new("/usr/bin/rrdtool").args(words.split(' ')).current_dir(fine.plain()).output().unwrap()
    };
    let theirs_last = theirs(&format!("last {}", fine.far()));
    assert_eq!(String::from_utf8_lossy(&theirs_last.stdout), "1700000002\n");
    let theirs_fetch = theirs(&format!("fetch {} AVERAGE {FINE}", fine.far()));
    assert!(!theirs_fetch.status.success(), "{theirs_fetch:?}");
}

#[test]
fn a_whole_rrd_below_a_second_stays_in_stores() {
    let fine = Fine::new();
    let base = fine.daemon.base();
    let fetch = |name: &str| fine.run(&base, &format!("fetch {name} AVERAGE {FINE}"));
    fine.run(&base, "dump a.rrd a.xml");
    fine.run(&base, "restore a.xml b.rrd");
    assert_eq!(fetch("b.rrd"), fetch("a.rrd"));
    fine.run(&base, "create c.rrd -t a.rrd");
    let filled = |step: &str, heartbeat: &str| {
        let sources = format!("DS:x:GAUGE:{heartbeat}:U:U DS:c:COUNTER:{heartbeat}:0:U");
        format!("create d.rrd -s {step} -r a.rrd {sources} RRA:AVERAGE:0.5:1:200")
    };
    fine.run(&base, &filled("0.1", "0.3"));
    fine.run(&fine.plain(), &filled("100", "300"));
    let whole = "fetch d.rrd AVERAGE -s 1700000000000 -e 1700000003000";
    assert_eq!(in_thousandths(&fetch("d.rrd"), "000"), in_thousandths(&fine.run(&fine.plain(), whole), ""));
    fine.run(&base, "tune a.rrd -h x:0.25");
    assert!(fine.run(&base, "info a.rrd").contains("ds[x].minimal_heartbeat = 2.5000000000e-01\n"));
    let restore = format!("restore {}/a.xml b.rrd", base.display());
    for (place, words) in [(&base, "resize a.rrd 0 GROW 5"), (&fine.plain(), &restore)] {
        let (_, error) = fine.tool.run(place, None, words);
        assert!(error.contains("counts thousandths of a second (its step is 0.100 s)"), "{words}: {error}");
    }
    let out = fine.directory.path().join("out");
    let exported =
        fine.administer(&["export", "--from", &fine.address(), "--to", out.to_str().unwrap(), "far.rrd"]);
    assert!(
        exported.contains("far.rrd: cannot write") && exported.contains("only a store can hold it"),
        "{exported}"
    );
}
