//! Programs that update and read through the C library and a daemon: they get the same answers as with
//! Debian's library, and nothing acknowledged is lost when the daemon is killed.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cli::daemon::Link;
use cli::{Environment, Tool};
use client::Daemons;
use testkit::{Client, Daemon, Kind, Running, librrd_directory, thread_sanitized, wait_until};

/// Where simulated time starts.
const BEGIN: i64 = 1_700_000_000;
/// Threads of a program, and files of each.
const THREADS: usize = 8;
const FILES: usize = 3;
/// Seconds after its last change from which on the library remembers a placeholder.
const SETTLED_SECONDS: i64 = 3;

/// Builds a C program of `tests/direct`.
fn build(place: &Path, name: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/direct").join(format!("{name}.c"));
    let program = place.join(name);
    let made = Command::new("cc")
        .args(["-O1", "-g"])
        .args(options)
        .arg("-o")
        .args([&program, &source])
        .args(["-lrrd", "-lpthread"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    program
}

fn command(program: &Path, address: &str) -> Command {
    dressed(Command::new(program), address)
}

fn dressed(mut command: Command, address: &str) -> Command {
    command.env("RRDCACHED_ADDRESS", address).env("TZ", "UTC").env("LC_ALL", "C");
    command
}

#[test]
fn answers_are_those_of_debians_library_whoever_listens() {
    let place = tempfile::tempdir().unwrap();
    let program = build(place.path(), "answers", &[]);
    let ours = librrd_directory(place.path()).unwrap();
    let run = |name: &str, kind: Kind, library: Option<&Path>| {
        let mut daemon = testkit::daemon!(kind, &place.path().join(name));
        let mut client = daemon.start();
        let base = daemon.base().canonicalize().unwrap();
        let definition = "-b 1000000000 -s 10 DS:x:GAUGE:20:U:U RRA:AVERAGE:0.5:1:100";
        assert_eq!(client.ask(&format!("CREATE a.rrd {definition}")).unwrap().status, 0);
        let address = format!("unix:{}", daemon.socket().display());
        let mut command = command(&program, &address);
        command.arg(&base);
        if let Some(library) = library {
            command.env("LD_LIBRARY_PATH", library);
        }
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{name}\n{text}{}", String::from_utf8_lossy(&output.stderr));
        text.replace(&*daemon.directory().to_string_lossy(), "DIR")
    };
    let want = run("theirs", Kind::Rrdcached, None);
    assert!(want.lines().count() > 35, "{want}");
    assert_eq!(run("text", Kind::Rrdcached, Some(&ours)), want, "our library, their daemon");
    assert_eq!(run("frames", Kind::Stripes, Some(&ours)), want, "our library, our daemon");
    assert_eq!(run("old", Kind::Stripes, None), want, "their library, our daemon");
}

/// A program that executes its standard input, line by line.
struct Caller {
    _process: Running,
    input: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Caller {
    fn start(place: &Path, address: Option<&str>) -> Self {
        let mut command = command(&build(place, "lines", &[]), address.unwrap_or_default());
        let (process, input, answers) =
            Running::piped(command.env("LD_LIBRARY_PATH", librrd_directory(place).unwrap()));
        Caller { _process: process, input, answers }
    }

    fn say(&mut self, line: String) -> String {
        writeln!(self.input, "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_string()
    }
}

const DEFINITION: &str =
    "-b 1000000000 -s 10 DS:x:GAUGE:20:U:U DS:y:GAUGE:20:U:U RRA:AVERAGE:0.5:1:50 RRA:AVERAGE:0.5:3:50";

#[test]
fn a_file_or_placeholder_takes_precedence_over_the_environments_daemon() {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, &place.path().join("daemon"));
    let mut client = daemon.start();
    for name in ["a.rrd", "b.rrd"] {
        assert_eq!(client.ask(&format!("CREATE {name} {DEFINITION}")).unwrap().status, 0);
    }
    let base = daemon.base().display().to_string();
    let last = |client: &mut Client, name: &str| client.ask(&format!("LAST {name}")).unwrap().message;
    let rrdtool = |words: &str| {
        let done = Command::new("/usr/bin/rrdtool").args(words.split(' ')).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    // A placeholder leads to its store, regardless of the environment.
    for (address, time) in [(None, 10), (Some("unix:/nonexistent"), 20)] {
        let mut caller = Caller::start(place.path(), address);
        let time = 1_000_000_000 + time;
        assert_eq!(caller.say(format!("u {base}/a.rrd - {time}:1:2")), "0 ''", "{address:?}");
        assert_eq!(last(&mut client, "a.rrd"), time.to_string());
        // The second time.
        assert_eq!(caller.say(format!("u {base}/a.rrd y:x {}:5:6", time + 5)), "0 ''");
        let template = caller.say(format!("u {base}/a.rrd z {}:5", time + 6));
        assert!(template.starts_with("-1 'rrd_map_template_to_values: there are fields"), "{template}");
        let missing = caller.say(format!("u {base}/none.rrd - {time}:1:2"));
        match address {
            None => assert_eq!(missing, format!("-1 'opening '{base}/none.rrd': No such file or directory'")),
            Some(_) => assert_eq!(missing, "-1 'Unable to connect to rrdcached: No such file or directory'"),
        }
    }
    // With the daemon's address, and a name without a file.
    let mut caller = Caller::start(place.path(), Some(&format!("127.0.0.1:{}", daemon.tcp_port())));
    assert_eq!(caller.say("u b.rrd - 1000000010:1:2".to_string()), "0 ''");
    assert_eq!(last(&mut client, "b.rrd"), "1000000010");
    // A file is updated without the daemon.
    let file = place.path().join("c.rrd").display().to_string();
    rrdtool(&format!("create {file} {DEFINITION}"));
    assert_eq!(caller.say(format!("u {file} - 1000000010:1:2")), "0 ''");
    assert_eq!(rrdtool(&format!("last {file}")), "1000000010\n");
    // Rows are those of a file, including the resolution, from either.
    let mut of = |name: &str| caller.say(format!("f {name} AVERAGE 1000000000 1000000020 30"));
    let rows = of(&format!("{base}/b.rrd"));
    assert_eq!(rows, of(&file));
    assert!(rows.starts_with("999999990 1000000050 30 "), "{rows}");
    // A file that replaces a placeholder is used from then on.
    let changed = std::fs::metadata(format!("{base}/b.rrd")).unwrap().ctime();
    wait_until("the placeholder to be old enough to be kept", || {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64 > changed + SETTLED_SECONDS
    });
    assert_eq!(caller.say(format!("u {base}/b.rrd - 1000000020:1:2")), "0 ''");
    std::fs::rename(&file, format!("{base}/b.rrd")).unwrap();
    assert_eq!(caller.say(format!("u {base}/b.rrd - 1000000040:1:2")), "0 ''");
    assert_eq!(rrdtool(&format!("last {base}/b.rrd")), "1000000040\n");
    // The store takes it in, so that both have the same rows.
    assert_eq!(last(&mut client, "b.rrd"), "1000000040");
}

/// The C interface counts whole seconds, so it gives no rows that are shorter.
#[test]
fn rows_below_a_second_are_refused_and_coarser_ones_are_given() {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, &place.path().join("daemon"));
    let mut client = daemon.start();
    let start = "-s 0.5 -b 1700000000 DS:x:GAUGE:2:0:U";
    for (name, archives) in
        [("fine.rrd", "RRA:AVERAGE:0.5:1:50"), ("both.rrd", "RRA:AVERAGE:0.5:1:50 RRA:AVERAGE:0.5:2:50")]
    {
        assert_eq!(client.ask(&format!("CREATE {name} {start} {archives}")).unwrap().status, 0);
        for half in 1..=8 {
            let update = format!("UPDATE {name} {}.{}:{half}", BEGIN + half / 2, half % 2 * 5);
            assert_eq!(client.ask(&update).unwrap().status, 0);
        }
    }
    let address = format!("unix:{}", daemon.socket().display());
    let base = daemon.base().display().to_string();
    let refused = "cannot give rows of 0.500 s through this function, which counts whole seconds; ask for the \
        resolution of an archive with rows of whole seconds, or use rrd_xport";
    let mut caller = Caller::start(place.path(), Some(&address));
    for call in ["f", "d"] {
        let answer = caller.say(format!("{call} {base}/fine.rrd AVERAGE {BEGIN} {} 1", BEGIN + 2));
        assert_eq!(answer, format!("-1 '{refused}'"), "{call}");
    }
    // Rows of a second: 1 and 2, 3 and 4, the first of the next two.
    let rows = caller.say(format!("f {base}/both.rrd AVERAGE {BEGIN} {} 2", BEGIN + 2));
    assert_eq!(rows, format!("{BEGIN} {} 1 1.5 3.5 5.5", BEGIN + 3));
    // By argc and argv.
    let mut fetch = dressed(Command::new("/usr/bin/rrdtool"), &address);
    fetch.env("LD_LIBRARY_PATH", librrd_directory(place.path()).unwrap());
    let output = fetch
        .current_dir(&base)
        .args(["fetch", "fine.rrd", "AVERAGE", "-s", "1700000000", "-e", "1700000002"])
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr).trim(), format!("ERROR: {refused}"));
}

/// The program's final report.
struct Told {
    /// Times by file.
    acknowledged: BTreeMap<usize, Vec<i64>>,
    errors: BTreeSet<String>,
}

impl Told {
    fn read(text: &str) -> Self {
        let mut told = Told { acknowledged: BTreeMap::new(), errors: BTreeSet::new() };
        for line in text.lines() {
            let (file, time) = line.split_once(' ').unwrap();
            if file == "error" {
                told.errors.insert(time.to_string());
            } else {
                told.acknowledged.entry(file.parse().unwrap()).or_default().push(time.parse().unwrap());
            }
        }
        told
    }
}

/// Rows of a file by their times.
fn rows(client: &mut Client, file: usize, until: i64) -> BTreeMap<i64, f64> {
    let answer = client.ask(&format!("FETCH {file}.rrd AVERAGE {BEGIN} {until}")).unwrap();
    let row = |line: &String| {
        let (time, value) = line.split_once(": ")?;
        Some((time.trim().parse().ok()?, value.parse().ok()?))
    };
    answer.lines.iter().skip(6).filter_map(row).collect()
}

/// A store with the files of the threads.
fn filled(place: &Path) -> (Daemon, Client) {
    let mut daemon = testkit::daemon!(Kind::Stripes, &place.join("daemon"));
    let mut client = daemon.start();
    for file in 0..THREADS * FILES {
        // However long the daemon is away, the row of an update has its value.
        let definition = format!("-b {BEGIN} -s 1 DS:x:GAUGE:1000000:U:U RRA:AVERAGE:0:1:500000");
        assert_eq!(client.ask(&format!("CREATE {file}.rrd {definition}")).unwrap().status, 0);
    }
    (daemon, client)
}

/// Threads that update until its standard input ends.
fn stream(place: &Path, program: Command, address: &str, directory: &str, first: i64) -> Child {
    dressed(program, address)
        .arg(directory)
        .args([THREADS.to_string(), FILES.to_string(), first.to_string()])
        .env("LD_LIBRARY_PATH", librrd_directory(place).unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a program that has ended has said of its errors.
fn rest(running: &mut Child) -> String {
    let mut text = String::new();
    running.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// ThreadSanitizer does not know our library's locks: see `crates/librrd/src/sanitizer.rs`.
#[test]
fn thread_sanitizer_finds_nothing() {
    let place = tempfile::tempdir().unwrap();
    let program = build(place.path(), "stream", &["-fsanitize=thread"]);
    let (mut daemon, mut client) = filled(place.path());
    let directory = daemon.base().display().to_string();
    // Through the environment, and through placeholders.
    let address = format!("unix:{}", daemon.socket().display());
    for (address, first) in [(&*address, BEGIN + 1), ("", BEGIN + 400_000)] {
        let mut running = stream(place.path(), thread_sanitized(&program), address, &directory, first);
        for file in 0..THREADS * FILES {
            let last = |client: &mut Client| client.ask(&format!("LAST {file}.rrd")).unwrap().message;
            wait_until("an update of each file", || {
                assert!(running.try_wait().unwrap().is_none(), "{}", rest(&mut running));
                last(&mut client).parse::<i64>().unwrap() >= first
            });
        }
        drop(running.stdin.take());
        let output = running.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told = Told::read(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(told.acknowledged.len(), THREADS * FILES);
    }
    daemon.kill();
}

fn killed_under_load(address: impl Fn(&Daemon) -> String, directory: impl Fn(&Daemon) -> String) {
    let place = tempfile::tempdir().unwrap();
    let program = build(place.path(), "stream", &[]);
    let (mut daemon, mut client) = filled(place.path());
    let mut running =
        stream(place.path(), Command::new(&program), &address(&daemon), &directory(&daemon), BEGIN + 1);
    for kill in 0..4 {
        std::thread::sleep(Duration::from_millis(80 + 60 * kill));
        daemon.kill();
        client = daemon.start();
    }
    // So that there is something after the last start.
    let newest = |client: &mut Client| {
        let last =
            |file| client.ask(&format!("LAST {file}.rrd")).unwrap().message.trim().parse::<i64>().unwrap();
        (0..THREADS * FILES).map(last).min().unwrap()
    };
    let then = newest(&mut client);
    wait_until("the program to come back to a daemon that was started again", || {
        newest(&mut client) >= then + 3
    });
    drop(running.stdin.take());
    let output = running.wait_with_output().unwrap();
    assert!(output.status.success());
    let told = Told::read(&String::from_utf8(output.stdout).unwrap());
    for error in &told.errors {
        let lost = error == "request: socket error (-1) while talking to rrdcached";
        // Placeholders, with what is there before it.
        let unreachable = error.contains("Unable to connect to rrdcached: ");
        assert!(lost || unreachable, "{error}");
    }
    assert!(!told.errors.is_empty(), "nothing was noticed of four kills");
    assert_eq!(told.acknowledged.len(), THREADS * FILES);
    for (&file, times) in &told.acknowledged {
        assert!(times.is_sorted(), "file {file}");
        let rows = rows(&mut client, file, times[times.len() - 1]);
        for time in times {
            let want = (time * 7 + file as i64) % 1000;
            assert_eq!(rows.get(time).copied(), Some(want as f64), "file {file}, {time} was acknowledged");
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_daemon_dies_under_threads() {
    killed_under_load(
        |daemon| format!("unix:{}", daemon.socket().display()),
        |daemon| daemon.base().display().to_string(),
    );
}

#[test]
fn nothing_acknowledged_is_lost_over_tcp() {
    killed_under_load(|daemon| format!("127.0.0.1:{}", daemon.tcp_port()), |_| ".".to_string());
}

/// The parts of a restored file must stay together, even if other threads use the same connections.
#[test]
fn threads_can_restore_at_the_same_time() {
    let place = tempfile::tempdir().unwrap();
    let mut daemon = testkit::daemon!(Kind::Stripes, &place.path().join("daemon"));
    let mut client = daemon.start();
    let big = place.path().join("big.rrd").display().to_string();
    let xml = format!("{big}.xml");
    // Three parts.
    let create =
        ["create", &big, "-b", "1000000000", "-s", "10", "DS:x:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:30000"];
    for words in [&create[..], &["dump", &big, &xml]] {
        assert!(Command::new("/usr/bin/rrdtool").args(words).status().unwrap().success());
    }
    let daemons: &'static Daemons = Box::leak(Box::default());
    let base = daemon.base();
    let target =
        |thread: usize, index: usize| base.join(format!("{thread}-{index}.rrd")).display().to_string();
    let tool = || {
        let mut tool = Tool::new(Environment::of_process());
        tool.link = Link::sharing(daemons);
        tool
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let restore = |thread: usize| {
            let mut tool = tool();
            for index in 0..FILES {
                let target = target(thread, index);
                tool.run(b"restore", &[xml.as_bytes(), target.as_bytes()], &mut Vec::new()).unwrap();
            }
        };
        let ask = || {
            let mut tool = tool();
            while !done.load(Ordering::Relaxed) {
                // It may not exist yet.
                tool.run(b"last", &[target(0, 0).as_bytes()], &mut Vec::new()).ok();
            }
        };
        for _ in 0..2 {
            scope.spawn(ask);
        }
        let restoring: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || restore(thread))).collect();
        let ended: Vec<_> = restoring.into_iter().map(ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    for (thread, index) in (0..THREADS).flat_map(|thread| (0..FILES).map(move |index| (thread, index))) {
        assert_eq!(client.ask(&format!("LAST {thread}-{index}.rrd")).unwrap().message, "1000000000");
    }
}
