//! The place of Debian's rrdcached is taken: what it had not written is taken from its journal.

use std::collections::BTreeMap;

use testkit::{Client, PidFile, Running, Signal, rrdcached, wait_for, wait_until};

use super::*;

/// Where simulated time starts.
const BEGIN: u64 = 1_700_000_000;
/// Names as a client writes them; the last two are never written by rrdcached, which does not understand such names when it reads its journal.
const NAMES: [&str; 6] = ["a.rrd", "b.rrd", "d/c.rrd", "d/e/f.rrd", "g\\ h.rrd", "i\\\\j.rrd"];

/// A tree of RRDs with an rrdcached that has a journal.
struct Old {
    directory: tempfile::TempDir,
}

impl Old {
    fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("takeover-").tempdir().unwrap();
        std::fs::create_dir(directory.path().join("journal")).unwrap();
        let old = Old { directory };
        let words = ["--step", "10", "DS:x:GAUGE:100:U:U", "RRA:AVERAGE:0.5:1:5000", "RRA:MAX:0.5:6:50"];
        for name in NAMES {
            let path = old.path("rrd").join(unescaped(name));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut create = Command::new("/usr/bin/rrdtool");
            create.arg("create").arg(&path).args(["--start", &BEGIN.to_string()]).args(words);
            assert!(create.status().unwrap().success());
        }
        old
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Starts Debian's daemon on tree and journal.
    fn start(&self) -> Running {
        let journal = self.text("journal");
        let mut command = rrdcached(
            &self.path("rrd"),
            &self.path("sock"),
            &self.path("pid"),
            &["-B", "-R", "-j", &journal],
        );
        let daemon = Running::start(&mut command, self.path("rrdcached.log"));
        wait_until("rrdcached to answer", || self.connect().is_some());
        daemon
    }

    fn connect(&self) -> Option<Client> {
        let mut client = Client::connect(&self.path("sock")).ok()?;
        client.ask("PING").is_ok().then_some(client)
    }

    /// Has rrdcached write everything, and waits for it.
    fn flush_all(&self) {
        let mut client = Client::open(&self.path("sock"));
        for name in NAMES {
            let answer = client.ask(&format!("FLUSH {name}")).unwrap();
            assert_eq!(answer.status, 0, "{name}: {answer:?}");
        }
    }

    /// Three clients send `count` values each for some of the names, side by side.
    fn load(&self, names: &[&str], from: u64, count: u64) {
        std::thread::scope(|scope| {
            for client_number in 0..3 {
                scope.spawn(move || {
                    let mut client = Client::open(&self.path("sock"));
                    for number in 0..count {
                        for name in names.iter().skip(client_number).step_by(3) {
                            let time = BEGIN + from + 10 * number;
                            // Some by their path, some two at a time.
                            let base = if number % 3 == 0 {
                                format!("{}/", self.text("rrd"))
                            } else {
                                String::new()
                            };
                            let line = format!(
                                "UPDATE {base}{name} {}:{number} {time}:{}",
                                time - 5,
                                number * 7 % 13
                            );
                            let answer = client.ask(&line).unwrap();
                            assert_eq!(answer.message, "errors, enqueued 2 value(s).", "{line}");
                        }
                    }
                });
            }
        });
    }

    fn journal_files(&self, prefix: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("journal")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut found: Vec<_> =
            paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix)).collect();
        found.sort();
        found
    }

    /// How many values of the journal are newer than their files.
    fn unwritten(&self) -> usize {
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        let mut count = 0;
        for file in self.journal_files("rrd.journal.") {
            for line in String::from_utf8_lossy(&std::fs::read(file).unwrap()).lines() {
                let Some(rest) = line.strip_prefix("update ") else { continue };
                let Some((name, values)) = rest.split_once(".rrd ") else { continue };
                let name =
                    unescaped(&format!("{}.rrd", name.trim_start_matches(&format!("{}/", self.text("rrd")))));
                let last = last.entry(name.clone()).or_insert_with(|| {
                    let output = Command::new("/usr/bin/rrdtool")
                        .arg("last")
                        .arg(self.path("rrd").join(name))
                        .output()
                        .unwrap();
                    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
                });
                count += values
                    .split(' ')
                    .filter(|value| {
                        value.split(':').next().unwrap().parse::<u64>().is_ok_and(|time| time > *last)
                    })
                    .count();
            }
        }
        count
    }

    /// Copies tree and journal, with the times of their files.
    fn copy(&self, from: &str, to: &str) {
        for part in ["rrd", "journal"] {
            let (from, to) = (self.path(from).join(part), self.path(to).join(part));
            if to.exists() {
                std::fs::remove_dir_all(&to).unwrap();
            }
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
        }
    }

    /// Debian's dump of each RRD in a directory.
    fn dumps(&self, directory: &str) -> BTreeMap<String, String> {
        let dump = |name: &&str| {
            let name = unescaped(name);
            let output = Command::new("/usr/bin/rrdtool")
                .arg("dump")
                .arg(self.path(directory).join(&name))
                .env("TZ", "UTC")
                .output()
                .unwrap();
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            (name, String::from_utf8(output.stdout).unwrap())
        };
        NAMES.iter().map(dump).collect()
    }

    /// Starts ours by `words` on tree and journal.
    fn start_ours(&self, words: &[&str]) -> Running {
        std::fs::remove_file(self.path("sock")).ok();
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
        command
            .args(words)
            .current_dir(self.directory.path())
            .env("TZ", "UTC")
            .env_remove("RRDCACHED_ADDRESS");
        Running::start(command.env_remove("RUST_LOG"), self.path("log"))
    }

    /// Waits until ours answers.
    fn wait_for_ours(&self, daemon: &mut Running) -> Client {
        wait_for("ours to answer", || {
            let ended = daemon.ended();
            assert!(ended.is_none(), "{ended:?}: {}", self.log());
            self.connect()
        })
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The command lines by which ours takes over, in both layouts.
    fn commands(&self) -> Vec<Vec<String>> {
        let options = format!(
            "rrdcached -g -V LOG_INFO -B -R -b {} -l unix:{} -p {} -j {}",
            self.text("rrd"),
            self.text("sock"),
            self.text("pid2"),
            self.text("journal")
        );
        let serve = |name: &str, more: &str| {
            let text = format!(
                "base = '{}'\nstore = '{}'\n{more}\n[[listen]]\naddress = 'unix:{}'\n",
                self.text("rrd"),
                self.text("store"),
                self.text("sock")
            );
            std::fs::write(self.path(name), text).unwrap();
            format!("serve --config {}", self.text(name))
        };
        let files = format!("layout = 'files'\n[files]\njournal = '{}'", self.text("journal"));
        let stripes = format!("rrdcached_journal = '{}'", self.text("journal"));
        [
            options.clone(),
            format!("{options} --layout files"),
            serve("stripes.toml", &stripes),
            serve("files.toml", &files),
        ]
        .iter()
        .map(|line| line.split(' ').map(str::to_string).collect())
        .collect()
    }
}

fn unescaped(name: &str) -> String {
    name.replace("\\ ", " ").replace("\\\\", "\\")
}

/// Exports all RRDs of a daemon of ours.
fn export(old: &Old, to: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_roundel"))
        .args(["export", "--all", "--to", &old.text(to), "--from", &format!("unix:{}", old.text("sock"))])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn takes_over_after(signal: Signal) {
    let old = Old::new();
    let mut daemon = old.start();
    old.load(&NAMES[..4], 10, 40);
    old.flush_all();
    old.load(&NAMES, 410, 60);
    daemon.signal(signal);
    daemon.wait();
    let unwritten = old.unwritten();
    assert!(
        unwritten > 100,
        "the journal holds {unwritten} values that are not in the files: too few to test anything"
    );
    old.copy("", "left");
    // What Debian's makes of them.
    let peer = old.start();
    old.flush_all();
    drop(peer);
    let want = old.dumps("rrd");
    for (number, command) in old.commands().iter().enumerate() {
        let shown = command.join(" ");
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        for part in ["store", "sock"] {
            Command::new("rm").arg("-rf").arg(old.path(part)).status().unwrap();
        }
        old.copy("left", "");
        let before = old.journal_files("rrd.journal.").len();
        // Killed at any moment, it begins again.
        let killed = old.start_ours(&words);
        std::thread::sleep(std::time::Duration::from_millis(20 * number as u64));
        drop(killed);
        let mut ours = old.start_ours(&words);
        old.wait_for_ours(&mut ours);
        assert!(old.journal_files("rrd.journal.").is_empty(), "{shown}: {}", old.log());
        assert_eq!(old.journal_files("applied.rrd.journal.").len(), before, "{shown}");
        let out = format!("out{number}");
        export(&old, &out);
        let got = old.dumps(&out);
        for (name, want) in &want {
            assert_eq!(&got[name], want, "{shown}: {name}\n{}", old.log());
        }
        drop(ours);
        // It is not taken over twice.
        let mut again = old.start_ours(&words);
        let mut client = old.wait_for_ours(&mut again);
        let last = client.ask("LAST d/c.rrd").unwrap().message;
        assert!(want["d/c.rrd"].contains(&format!("<lastupdate>{last}</lastupdate>")), "{shown}: {last}");
    }
}

#[test]
fn the_journal_of_an_rrdcached_that_was_stopped_is_applied() {
    takes_over_after(Signal::TERM);
}

#[test]
fn the_journal_of_an_rrdcached_that_was_killed_is_applied() {
    takes_over_after(Signal::KILL);
}

#[test]
fn the_journal_of_an_rrdcached_that_runs_is_left_alone() {
    let old = Old::new();
    let daemon = old.start();
    old.load(&NAMES, 10, 5);
    std::fs::rename(old.path("sock"), old.path("sock.old")).unwrap();
    for command in old.commands() {
        let mut ours = old.start_ours(&command.iter().map(String::as_str).collect::<Vec<_>>());
        let status = wait_for("ours to refuse", || {
            assert!(old.connect().is_none(), "{command:?} started");
            ours.ended()
        });
        assert!(!status.success());
        let log = old.log();
        let want =
            format!("process {} has rrdcached's journal in \"{}\" open", daemon.id(), old.text("journal"));
        assert!(log.contains(&want), "{command:?}: {log}");
        std::fs::remove_file(old.path("log")).unwrap();
    }
    assert_eq!(old.journal_files("rrd.journal.").len(), 1);
    assert!(old.journal_files("applied.").is_empty());
}

#[test]
fn what_is_wrong_in_a_journal_costs_nothing_else() {
    let old = Old::new();
    let base = old.text("rrd");
    let value = |number: u64, value: u64| format!("{}:{value}", BEGIN + number);
    let first = [
        format!("update a.rrd {} {}\n", value(10, 1), value(20, 2)).into_bytes(),
        b"\x00\xff\x01\x02 binary\n".to_vec(),
        [b"update b.rrd ", &vec![b'1'; 300_000][..], b"\n"].concat(),
        format!("update b.rrd N:5 {} {}:x {}\n", value(10, 3), BEGIN + 15, value(20, 4)).into_bytes(),
        format!("update d/c.rrd {}\nforget {base}/d/c.rrd\nupdate d/c.rrd {}\n", value(10, 9), value(30, 9))
            .into_bytes(),
        format!(
            "update ../out.rrd {}\nupdate /etc/out.rrd {}\nupdate nope.rrd {}\n",
            value(10, 1),
            value(10, 1),
            value(10, 1)
        )
        .into_bytes(),
        format!("update\nupdate \nwrote\nwrote {base}/a.rrd\n\nupdate a.rrd {}:1:2:3\n", BEGIN + 25)
            .into_bytes(),
    ];
    std::fs::write(old.path("journal/rrd.journal.999999999.5"), first.concat()).unwrap();
    // By number it is the later one; its last value was cut.
    let second = format!("update a.rrd {}\nupdate a.rrd {}:12", value(30, 3), BEGIN + 40);
    std::fs::write(old.path("journal/rrd.journal.1700000000.12"), second).unwrap();
    std::fs::write(old.path("journal/rrd.journal.what"), "update a.rrd 1:2\n").unwrap();
    old.copy("", "left");
    for command in old.commands() {
        old.copy("left", "");
        std::fs::remove_dir_all(old.path("store")).ok();
        std::fs::remove_file(old.path("log")).ok();
        let mut ours = old.start_ours(&command.iter().map(String::as_str).collect::<Vec<_>>());
        let mut client = old.wait_for_ours(&mut ours);
        let mut rows = |name: &str| {
            let fetch = format!("FETCH {name} AVERAGE {} {}", BEGIN, BEGIN + 49);
            let lines = client.ask(&fetch).unwrap().lines;
            let value = |line: &String| {
                line.rsplit_once(' ').unwrap().1.parse::<f64>().map_or("-".into(), |value| value.to_string())
            };
            lines.iter().filter(|line| line.starts_with("17")).map(value).collect::<Vec<String>>().join(" ")
        };
        let log = old.log();
        assert_eq!(rows("a.rrd"), "1 2 3 NaN NaN", "{command:?}\n{log}");
        assert_eq!(rows("b.rrd"), "3 4 NaN NaN NaN", "{command:?}\n{log}");
        // What was forgotten does not come back.
        assert_eq!(client_last(&old, "d/c.rrd"), (BEGIN + 30).to_string(), "{command:?}\n{log}");
        for want in [
            "999999999.5, line 2: this is no line of rrdcached's journal",
            "999999999.5, line 3: a line of 300013 bytes",
            "999999999.5, line 4: \"b.rrd\": Cannot find timestamp in 'N:5'!",
            "/../out.rrd\": no RRD of the base directory",
            "line 9: \"/etc/out.rrd\": no RRD",
            "line 10: \"nope.rrd\": No such file",
            "line 11: there is no name",
            "1700000000.12, line 2: the last line is cut off",
            "values and 5 lines of rrdcached's journal were refused",
        ] {
            assert!(log.contains(want), "{command:?}: no {want:?} in {log}");
        }
        assert_eq!(old.journal_files("rrd.journal."), [old.path("journal/rrd.journal.what")]);
    }
}

fn client_last(old: &Old, name: &str) -> String {
    Client::open(&old.path("sock")).ask(&format!("LAST {name}")).unwrap().message
}

#[test]
fn a_journal_of_another_tree_is_not_thrown_away() {
    let old = Old::new();
    std::fs::write(
        old.path("journal/rrd.journal.1700000000.12"),
        format!("update /elsewhere/a.rrd {BEGIN}:1\n"),
    )
    .unwrap();
    let command = &old.commands()[2];
    let mut ours = old.start_ours(&command.iter().map(String::as_str).collect::<Vec<_>>());
    old.wait_for_ours(&mut ours);
    assert!(old.log().contains("start with the base directory that rrdcached had"), "{}", old.log());
    assert_eq!(old.journal_files("rrd.journal.").len(), 1);
    drop(ours);
    std::fs::remove_dir_all(old.path("journal")).unwrap();
    let mut ours = old.start_ours(&command.iter().map(String::as_str).collect::<Vec<_>>());
    old.wait_for_ours(&mut ours);
    assert!(old.log().contains("there is no directory"), "{}", old.log());
}

/// The commands of the page on moving from rrdcached, one a line.
fn commands_of_the_page() -> Vec<String> {
    let page = include_str!("../../../../docs/migrate/rrdcached.md");
    let (_, section) = page.split_once("## To stripes").unwrap();
    let indented = section.lines().skip_while(|line| !line.starts_with("    "));
    indented.take_while(|line| line.starts_with("    ")).map(|line| line.trim().to_string()).collect()
}

/// A client that sends until it is told to end, and connects again when the daemon has gone; the last time and value that were acknowledged for each name.
fn send_until(
    old: &Old,
    end: &std::sync::atomic::AtomicBool,
    names: &[&'static str],
) -> BTreeMap<&'static str, Vec<u64>> {
    let mut acknowledged: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut time = BEGIN;
    while !end.load(std::sync::atomic::Ordering::Relaxed) {
        let Some(mut client) = old.connect() else {
            std::thread::sleep(std::time::Duration::from_millis(2));
            continue;
        };
        'connection: while !end.load(std::sync::atomic::Ordering::Relaxed) {
            time += 10;
            for name in names {
                // Journalled at once, the last buffer too: rrdcached is stopped, not killed.
                match client.ask(&format!("UPDATE {name} {time}:{}", time % 1000)) {
                    Ok(answer) => {
                        assert_eq!(answer.status, 0, "{name}: {answer:?}");
                        acknowledged.entry(*name).or_default().push(time);
                    }
                    Err(_) => break 'connection,
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    acknowledged
}

/// The commands of the page, run in the test's directories instead of the system's.
struct Page<'a> {
    old: &'a Old,
    commands: Vec<String>,
}

impl<'a> Page<'a> {
    fn new(old: &'a Old) -> Self {
        std::fs::create_dir_all(old.path("bin")).unwrap();
        let stop = "#!/bin/sh\n[ \"$*\" = 'stop rrdcached' ] && kill $(cat \"$PID\") && \
                    while [ -e \"$PID\" ]; do sleep 0.01; done\n";
        let systemctl = old.path("bin/systemctl");
        std::fs::write(&systemctl, stop).unwrap();
        std::fs::set_permissions(&systemctl, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_roundel"), old.path("bin/roundel")).unwrap();
        let commands = commands_of_the_page();
        assert_eq!(commands.len(), 5, "{commands:?}");
        Page { old, commands }
    }

    /// Runs the command of this number, from 1, which must succeed; what it prints.
    fn run(&self, number: usize) -> String {
        let old = self.old;
        let here = self.commands[number - 1]
            .replace("/var/lib/rrdcached/journal", &old.text("journal"))
            .replace("/var/lib/roundel", &old.text("store"))
            .replace("/var/lib/rrd", &old.text("rrd"))
            .replace("/run/rrdcached.sock", &old.text("sock"))
            .replace("/run/rrdcached.pid", &old.text("pid2"));
        let path = format!("{}:{}", old.text("bin"), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &here])
            .env("PATH", path)
            .env("PID", old.path("pid"))
            .env_remove("RRDCACHED_ADDRESS");
        // In a file: a daemon in the background would keep a pipe open.
        let said = std::fs::File::create(old.path("said")).unwrap();
        shell.stdin(std::process::Stdio::null()).stderr(said.try_clone().unwrap()).stdout(said);
        let status = shell.status().unwrap();
        let text = std::fs::read_to_string(old.path("said")).unwrap();
        assert!(status.success(), "{here}: {text}");
        text
    }
}

/// Files in the tree that no client names.
fn fill_unused(old: &Old, count: usize) {
    for number in 0..count {
        let path = old.path(&format!("rrd/unused/{number}.rrd"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(old.path("rrd/a.rrd"), &path).unwrap();
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    }
}

#[test]
fn the_five_commands_of_the_page_lose_nothing_under_load() {
    let old = Old::new();
    fill_unused(&old, 50);
    let page = Page::new(&old);
    let mut rrdcached = old.start();
    let end = std::sync::atomic::AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        let _ended = EndOnDrop(&end);
        let senders: Vec<_> =
            NAMES.chunks(2).map(|names| scope.spawn(|| send_until(&old, &end, names))).collect();
        let journalled = || std::fs::metadata(&old.journal_files("rrd.journal.")[0]).unwrap().len();
        wait_until("a journal", || journalled() > 10_000);
        page.run(1);
        wait_until("rrdcached to end", || rrdcached.ended().is_some());
        assert!(old.unwritten() > 100, "{}", old.unwritten());
        page.run(2);
        let _ours = PidFile(old.path("pid2"));
        wait_until("ours to answer", || old.connect().is_some());
        assert!(old.journal_files("rrd.journal.").is_empty());
        wait_until("all files to be taken in", || {
            page.run(3).starts_with("0 files left, 50 taken in, 0 failed")
        });
        let verified = page.run(4);
        assert!(verified.contains("nothing is damaged"), "{verified}");
        page.run(5);
        end.store(true, std::sync::atomic::Ordering::Relaxed);
        let acknowledged: Vec<_> = senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect();
        export(&old, "out");
        acknowledged
    });
    assert_eq!(acknowledged.len(), NAMES.len());
    for (name, times) in acknowledged {
        let rows = rows_of(&old.path("out").join(unescaped(name)), *times.last().unwrap());
        // What is lost would leave the next value in its row. The archive has 5000 rows.
        let oldest = times.last().unwrap() - 49_000;
        let is_wrong = |time: &&u64| rows.get(time) != Some(&((**time % 1000) as f64));
        let wrong: Vec<_> = times.iter().filter(|time| **time > oldest).filter(is_wrong).collect();
        assert!(wrong.is_empty(), "{name}: {} of {} values: {wrong:?}", wrong.len(), times.len());
        assert!(times.len() > 20, "{name}: {}", times.len());
    }
}

/// The rows of a file up to a time.
fn rows_of(path: &Path, until: u64) -> BTreeMap<u64, f64> {
    let (begin, until) = (BEGIN.to_string(), until.to_string());
    let words = ["fetch", path.to_str().unwrap(), "AVERAGE", "-s", &begin, "-e", &until];
    let output = Command::new("/usr/bin/rrdtool").args(words).env("TZ", "UTC").output().unwrap();
    let row = |line: &str| {
        let (time, value) = line.split_once(": ")?;
        Some((time.parse().ok()?, value.parse().ok()?))
    };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(row).collect()
}

/// Has clients end when a test fails.
struct EndOnDrop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn an_import_of_the_tree_itself_archives_its_files_or_leaves_them() {
    let old = Old::new();
    let text = format!(
        "base = '{}'\nstore = '{}'\nadopt = 'keep'\n[[listen]]\naddress = 'unix:{}'\n",
        old.text("rrd"),
        old.text("store"),
        old.text("sock")
    );
    std::fs::write(old.path("keep.toml"), text).unwrap();
    let mut ours = old.start_ours(&["serve", "--config", "keep.toml"]);
    let mut client = old.wait_for_ours(&mut ours);
    let is_file = |name: &str| std::fs::read(old.path("rrd").join(name)).unwrap().starts_with(b"RRD\0");
    let import = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
        command.arg("import").args(words).args(["--to", &format!("unix:{}", old.text("sock"))]);
        let output = command.current_dir(old.directory.path()).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    // As the daemon is told to: they stay.
    assert_eq!(
        import(&["rrd/a.rrd", "--base", "rrd"]),
        (true, "imported 1 RRDs, passed over 0 placeholders, 0 failed\n".into())
    );
    assert!(is_file("a.rrd"));
    assert_eq!(client.ask("LAST a.rrd").unwrap().message, BEGIN.to_string());
    std::fs::write(old.path("rrd/d/broken.rrd"), b"RRD\0and no more").unwrap();
    let (is_good, text) =
        import(&["rrd/d/c.rrd", "rrd/b.rrd", "rrd/d/broken.rrd", "--base", "rrd", "--archive"]);
    assert!(!is_good && text.contains("imported 2 RRDs") && text.contains("rrd/d/broken.rrd: "), "{text}");
    assert!(!is_file("b.rrd") && !is_file("d/c.rrd") && is_file("d/broken.rrd") && is_file("a.rrd"));
    let archives = std::fs::read_dir(old.path("store")).unwrap();
    let names = archives.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("adopted-")).count(), 1);
    // What lies elsewhere stays there.
    std::fs::create_dir(old.path("elsewhere")).unwrap();
    std::fs::copy(old.path("rrd/d/e/f.rrd"), old.path("elsewhere/new.rrd")).unwrap();
    assert!(import(&["elsewhere", "--archive"]).0);
    assert!(std::fs::read(old.path("elsewhere/new.rrd")).unwrap().starts_with(b"RRD\0"));
    assert_eq!(client.ask("LAST new.rrd").unwrap().message, BEGIN.to_string());
    // Here nothing is taken in that is not named.
    let (is_good, text) = import(&["--status"]);
    assert!(!is_good && text.contains("adopt_unused"), "{text}");
}
