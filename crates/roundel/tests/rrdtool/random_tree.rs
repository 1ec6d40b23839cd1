//! Random operations on a tree and updates of several processes, on a store whose daemon is killed again and again, and on a directory of plain files with
//! Debian's rrdtool: in the end, the dumps are the same.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::Running;
use testkit::random::Random;

use super::*;

/// Programs that update one RRD each all the time.
const BUSY: usize = 3;
/// After this time, the store has noted that the placeholder of an RRD was written: one that is then missing was removed.
const NOTED: Duration = Duration::from_millis(2500);

/// An `rrdtool -` that takes commands.
struct Session {
    _process: Running,
    input: ChildStdin,
    answers: BufReader<std::process::ChildStdout>,
    said: String,
}

impl Session {
    fn start(program: &Path, directory: &Path) -> Session {
        let mut command = Command::new(program);
        command.arg("-").current_dir(directory).env("TZ", "UTC").env_remove("RRDCACHED_ADDRESS");
        let (process, input, answers) = Running::piped(command.stderr(Stdio::null()));
        Session { _process: process, input, answers, said: String::new() }
    }

    /// Whether it was done; the answer is kept. The first command after the daemon was killed may fail because its connection is gone: then it is given
    /// again, as nothing was sent to a daemon that lives.
    fn run(&mut self, words: &str) -> bool {
        self.run_once(words) || self.said.contains("socket error") && self.run_once(words)
    }

    fn run_once(&mut self, words: &str) -> bool {
        self.input.write_all(format!("{words}\n").as_bytes()).unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "{words}: the session has ended");
            if line.starts_with("OK ") || line.starts_with("ERROR:") {
                self.said = line;
                return self.said.starts_with("OK ");
            }
        }
    }
}

/// Both trees.
struct World {
    daemon: Daemon,
    tool: Tool,
    plain: PathBuf,
    done: Vec<String>,
    /// When an RRD was last made.
    made_at: Instant,
}

impl World {
    /// Does something in both trees with the shell; it has to go the same way.
    fn sh(&mut self, command: &str) {
        let run = |directory: PathBuf| {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", command])
                .current_dir(directory)
                .stderr(Stdio::null())
                .status()
                .unwrap()
                .success()
        };
        self.done.push(command.to_string());
        assert_eq!(run(self.daemon.base()), run(self.plain.clone()), "{:#?}", self.done);
    }

    /// Every RRD that is there is there in both, with the same content.
    fn check(&self) {
        let (theirs, ours) = (testkit::rrd_files(&self.plain), testkit::rrd_files(&self.daemon.base()));
        let ours: Vec<_> = ours.iter().filter(|name| !name.starts_with("busy")).collect();
        assert_eq!(ours, theirs.iter().collect::<Vec<_>>(), "{:#?}", self.done);
        for name in &theirs {
            let words = format!("dump {}", name.display());
            let dump = |program: &Path, directory: &Path| {
                let mut command = Command::new(program);
                command.args(words.split(' ')).current_dir(directory).env("TZ", "UTC");
                let output = command.env_remove("RRDCACHED_ADDRESS").output().unwrap();
                String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
            };
            let (ours, want) = (
                dump(&self.tool.link, &self.daemon.base()),
                dump(Path::new("/usr/bin/rrdtool"), &self.plain),
            );
            assert!(
                ours == want,
                "{words}\n{ours}\nand of files\n{want}\n{:#?}\n{}",
                self.done,
                self.daemon.log()
            );
        }
        let listed = self
            .tool
            .run(&self.daemon.base(), None, &format!("list -d unix:{} -r /", self.daemon.socket().display()))
            .0;
        let listed = listed.lines().filter(|name| !name.starts_with("busy/")).count();
        assert_eq!(listed, theirs.len(), "{:#?}", self.done);
    }

    /// Kills the daemon, does something or nothing while it is down, and starts it again.
    fn restart(&mut self, command: Option<&str>) {
        if command.is_some() {
            // An RRD that is made just before a kill and removed before the next start is there again.
            std::thread::sleep(NOTED.saturating_sub(self.made_at.elapsed()));
        }
        self.daemon.kill();
        self.done.push("kill -9".into());
        if let Some(command) = command {
            self.sh(command);
        }
        let mut client = self.daemon.start();
        // A copy is one of the moment at which it was found.
        client.ask("LIST RECURSIVE /").unwrap();
    }
}

/// Updates an RRD again and again with Debian's rrdtool, a process each time, until told to stop. Returns what was acknowledged.
fn keep_updating(file: &Path, socket: &Path, is_stopping: &AtomicBool) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for second in 1_000_000_001.. {
        let reading = format!("{second}:{}:{}", second % 97, second % 1009);
        loop {
            if is_stopping.load(Ordering::Relaxed) {
                return acknowledged;
            }
            let mut command = Command::new("/usr/bin/rrdtool");
            let output = command
                .arg("update")
                .arg(file)
                .arg(&reading)
                .env("RRDCACHED_ADDRESS", format!("unix:{}", socket.display()))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            // Killed before it could answer, the daemon has the reading already.
            if output.status.success() || said.contains("illegal attempt to update") {
                break;
            }
        }
        acknowledged.push(reading);
        std::thread::sleep(Duration::from_millis(3));
    }
    acknowledged
}

/// A random operation, in words of the shell.
fn operation(random: &mut Random) -> String {
    let mut pick = || format!("d{}/{}.rrd", random.below(3), random.below(4));
    let (one, other) = (pick(), pick());
    let (from, to) = (random.below(3), random.below(3));
    match random.below(12) {
        0..3 => format!("mv {one} {other}"),
        3 => format!("cp {one} {other}"),
        4 => format!("cp -a {one} {other}"),
        5 => format!("cp -a {one} d{to}/.x.rrd.Ab3 && mv d{to}/.x.rrd.Ab3 {other}"),
        6 => format!("rm {one}"),
        7 => format!("rm -r d{from}"),
        8 => format!("mv d{from} d{to}"),
        9 => format!("mv -T d{from} t && mv -T d{to} d{from} && mv -T t d{to}"),
        _ => format!("cp -aT d{from} d{to}"),
    }
}

fn one(seed: u64) {
    let mut random = Random::new(seed);
    let (directory, daemon, tool) = beside_files(Kind::Stripes);
    let plain = directory.path().join("plain");
    let mut world = World { daemon, tool, plain, done: Vec::new(), made_at: Instant::now() };
    let base = world.daemon.base();
    let busy: Vec<PathBuf> = (0..BUSY).map(|number| base.join(format!("busy/{number}.rrd"))).collect();
    std::fs::create_dir(base.join("busy")).unwrap();
    for file in &busy {
        let words = CREATE.replace("a.rrd", file.to_str().unwrap()).replace("-s 10", "-s 1");
        assert_eq!(world.tool.run(&base, None, &words).1, "");
    }
    let (socket, is_stopping) = (world.daemon.socket(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let updating: Vec<_> =
            busy.iter().map(|file| scope.spawn(|| keep_updating(file, &socket, &is_stopping))).collect();
        let outcome =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| random_steps(&mut random, &mut world)));
        is_stopping.store(true, Ordering::Relaxed);
        let updated: Vec<Vec<String>> = updating.into_iter().map(|thread| thread.join().unwrap()).collect();
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        std::fs::create_dir(world.plain.join("busy")).unwrap();
        for (file, readings) in busy.iter().zip(updated) {
            assert!(!readings.is_empty());
            let name = file.strip_prefix(&base).unwrap().to_str().unwrap();
            let mut theirs = Session::start(Path::new("/usr/bin/rrdtool"), &world.plain);
            assert!(theirs.run(&CREATE.replace("a.rrd", name).replace("-s 10", "-s 1")));
            for some in readings.chunks(50) {
                assert!(theirs.run(&format!("update {name} {}", some.join(" "))));
            }
            let dump = |place: &Path| world.tool.run(place, None, &format!("dump {name}"));
            assert_eq!(dump(&base), dump(&world.plain));
        }
    });
}

fn random_steps(random: &mut Random, world: &mut World) {
    let base = world.daemon.base();
    // Each command of one of them, so that updates come from several processes.
    let theirs = Path::new("/usr/bin/rrdtool");
    let mut ours: Vec<Session> = (0..3).map(|_| Session::start(&world.tool.link, &base)).collect();
    let mut theirs = Session::start(theirs, &world.plain);
    let mut second = 1_000_000_000;
    world.sh("mkdir d0 d1 d2");
    for _ in 0..40 {
        let name = format!("d{}/{}.rrd", random.below(3), random.below(4));
        let session = random.below(3) as usize;
        match random.below(12) {
            0..2 => {
                world.sh(&format!("mkdir -p {}", &name[..2]));
                let words = format!("{} -O", CREATE.replace("a.rrd", &name));
                world.done.push(format!("{session}: {words}"));
                let both = (ours[session].run(&words), theirs.run(&words));
                assert!(both.0 == both.1, "{} {} {:#?}", ours[session].said, theirs.said, world.done);
                world.made_at = Instant::now();
            }
            2..6 => {
                second += random.between(1, 15);
                let words = format!("update {name} {second}:{}:{}", random.below(1000), second * 3);
                world.done.push(format!("{session}: {words}"));
                let both = (ours[session].run(&words), theirs.run(&words));
                assert!(both.0 == both.1, "{} {} {:#?}", ours[session].said, theirs.said, world.done);
            }
            6 if random.once_in(2) => world.restart(None),
            7 if random.once_in(3) => {
                let command = operation(random);
                world.restart(Some(&command));
                world.made_at = Instant::now();
            }
            _ => {
                let command = operation(random);
                world.sh(&command);
                world.made_at = Instant::now();
            }
        }
        if random.once_in(10) {
            world.check();
        }
    }
    world.check();
    world.restart(None);
    world.check();
}

#[test]
fn a_tree_whose_daemon_is_killed_stays_like_files() {
    testkit::random::each_seed(3, one);
}
