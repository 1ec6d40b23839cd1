//! Agents and a store as processes that are killed at random: every reading is counted exactly once.
//!
//! The readings are ABSOLUTE, one a second, with a value of their own: a reading that is lost, counted twice or in a wrong
//! second shows in the rows. The agent's process is this program: its spool and sender are those of `roundel agent`.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "agents/clocks.rs"]
mod clocks;
#[path = "agents/mrtg.rs"]
mod mrtg;
#[path = "agents/network.rs"]
mod network;
#[path = "agents/profiles.rs"]
mod profiles;
#[path = "agents/reload.rs"]
mod reload;
#[path = "wire/snmpd.rs"]
mod snmpd;
#[path = "agents/work.rs"]
mod work;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use collect::inventory::{Inventory, RrdSpec};
use collect::reading::{Readings, Value};
use protocol::frames::agent::block::{BlockValue, BlockWriter};
use protocol::frames::agent::session::{FromStore, Hello, push_hello};
use protocol::frames::scan;
use rrd::time::Timestamp;
use server::agent::spool::SpoolOptions;
use server::agent::{AgentLink, AgentSettings};
use testkit::random::{Random, seeds};
use testkit::{Client, DEADLINE, Daemon, Kind, Running};

const START: i64 = 1_700_000_000;
const RRDS: usize = 4;
const DIRECTORY: &str = "ROUNDEL_AGENT_DIRECTORY";
const STORE: &str = "ROUNDEL_AGENT_STORE";
/// The numbers of the first and last readings.
const FROM: &str = "ROUNDEL_AGENT_FROM";
const TO: &str = "ROUNDEL_AGENT_TO";
const SPOOL_BYTES: &str = "ROUNDEL_AGENT_SPOOL_BYTES";
const PAUSE: &str = "ROUNDEL_AGENT_PAUSE_MS";
const BURST: &str = "ROUNDEL_AGENT_BURST";

/// The value of an RRD's reading.
fn value(rrd: usize, number: i64) -> u64 {
    (rrd as u64 + 1) * 1_000_000 + number as u64
}

/// Not a test: the agent, which says what is in its spool and at last that the store has everything. It prints a line whenever it makes
/// progress.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<i64>().unwrap();
    let link = AgentLink::open(AgentSettings {
        name: "hall-2".to_string(),
        tags: Vec::new(),
        identity: Default::default(),
        store: std::env::var(STORE).unwrap(),
        spool: SpoolOptions {
            directory: directory.into(),
            bytes_max: number(SPOOL_BYTES) as u64,
            keep: Duration::from_secs(3600),
        },
    })
    .unwrap();
    let mut inventory = Inventory::new(RRDS);
    let args = ["DS:v:ABSOLUTE:10:0:U", "RRA:LAST:0.5:1:100000"].map(str::to_string).to_vec();
    let spec = Arc::new(RrdSpec { step: 1, starts_before: 1, args });
    let all: Vec<_> = (0..RRDS)
        .map(|rrd| inventory.find_or_add(format!("hall/{rrd}.rrd").as_bytes(), || Arc::clone(&spec)).unwrap())
        .collect();
    let (mut known, mut output) = (Default::default(), std::io::stdout());
    let mut spool = |rrds: &[usize], second: i64| {
        let mut readings = Readings::default();
        for &rrd in rrds {
            let values = [Value::Unsigned(value(rrd, second))];
            readings.push(all[rrd], Timestamp::whole(START + second), values);
        }
        link.feed.take(&inventory, &readings, &mut known);
        link.feed.flush();
        writeln!(std::io::stdout(), "flushed {second}").unwrap();
        std::thread::sleep(Duration::from_millis(number(PAUSE) as u64));
    };
    let (mut from, to, burst) = (number(FROM), number(TO), number(BURST));
    while from <= to {
        let last = (from + burst - 1).min(to);
        match burst {
            1 => spool(&[0, 1, 2, 3], from),
            // One RRD after the other.
            _ => (0..RRDS).for_each(|rrd| (from..=last).for_each(|second| spool(&[rrd], second))),
        }
        writeln!(output, "spooled {last}").unwrap();
        from = last + 1;
    }
    let mut waiting = link.feed.counts().waiting;
    while link.feed.waits() {
        let before = std::mem::replace(&mut waiting, link.feed.counts().waiting);
        if waiting < before {
            writeln!(output, "{waiting} readings wait").unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // As every second: so that it is known after a restart without the store.
    link.feed.flush();
    writeln!(output, "done").unwrap();
    // Until it is killed.
    std::thread::sleep(DEADLINE);
}

/// An agent and a store.
struct World {
    port: u16,
    daemon: Daemon,
    agent: Option<Child>,
    /// Where the agent believes the store to be.
    agent_port: u16,
    /// How far the agent's clock is off, as `FAKETIME` says it.
    clock: Option<&'static str>,
    lines: Option<Receiver<String>>,
    /// The last reading that is in the spool.
    spooled: i64,
    spool_bytes: u64,
    pause: u64,
    /// Readings of an RRD before the next RRD has its; 1: those of one second all at once.
    burst: i64,
    directory: tempfile::TempDir,
}

impl World {
    fn new(kind: Kind) -> World {
        let directory = tempfile::tempdir().unwrap();
        let port = testkit::free_port();
        let mut daemon = testkit::daemon!(kind, &directory.path().join("store"));
        // Each record of the log counts: the position must be in the checkpoints, too.
        let more = if kind == Kind::Stripes { "[stripes]\nshards = 3\nlog_bytes = 32768\n" } else { "" };
        daemon.configure(&format!("[agents]\nlisten = [\"127.0.0.1:{port}\"]\n{more}"));
        World {
            directory,
            port,
            daemon,
            agent: None,
            agent_port: port,
            clock: None,
            lines: None,
            spooled: 0,
            spool_bytes: 1 << 30,
            pause: 1,
            burst: 1,
        }
    }

    /// Starts the agent, which goes on after what is known to be in its spool.
    fn start_agent(&mut self, to: i64) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        if let Some(clock) = self.clock {
            clocks::set(&mut command, clock);
        }
        let mut child = command
            .args(["child", "--exact", "--nocapture"])
            .env(DIRECTORY, self.directory.path().join("spool"))
            .env(STORE, format!("127.0.0.1:{}", self.agent_port))
            .env(FROM, (self.spooled + 1).to_string())
            .env(TO, to.to_string())
            .env(SPOOL_BYTES, self.spool_bytes.to_string())
            .env(PAUSE, self.pause.to_string())
            .env(BURST, self.burst.to_string())
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, receiver) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        (self.agent, self.lines) = (Some(child), Some(receiver));
    }

    /// The configuration of an agent of the program that collects this host.
    fn host_agent_toml(&self, name: &str) -> PathBuf {
        let config = self.directory.path().join("agent.toml");
        let (port, spool) = (self.port, self.directory.path().join("spool"));
        let text = format!(
            "[agent]\nname = '{name}'\nstore = '127.0.0.1:{port}'\nspool = '{}'\n[collect]\nhost = true\ndirectory = '{name}'\n",
            spool.display()
        );
        std::fs::write(&config, text).unwrap();
        config
    }

    fn note(&mut self, line: &str) -> bool {
        if let Some((_, number)) = line.split_once("spooled ") {
            self.spooled = number.parse().unwrap();
        }
        line.contains("done")
    }

    fn kill_agent(&mut self) {
        if let Some(mut child) = self.agent.take() {
            child.kill().ok();
            child.wait().ok();
        }
        let lines = self.lines.take();
        for line in lines.iter().flatten() {
            self.note(&line);
        }
    }

    /// Waits until the agent says that the store has everything. Each line of the agent begins the wait again.
    fn wait_until_done(&mut self) {
        loop {
            let lines = self.lines.take().unwrap();
            let line =
                lines.recv_timeout(DEADLINE).unwrap_or_else(|error| panic!("{error}: {}", self.daemon.log()));
            self.lines = Some(lines);
            if self.note(&line) {
                return;
            }
        }
    }

    /// The values of the store's rows, by RRD and second.
    fn rows(&mut self, to: i64) -> Vec<Vec<Option<f64>>> {
        let mut client = Client::open(&self.daemon.socket());
        let fetch = |rrd: usize| {
            let answer = client.ask(&format!("FETCH hall/{rrd}.rrd LAST {START} {}", START + to)).unwrap();
            let rows = answer.lines.iter().filter_map(|line| line.split_once(": "));
            let rows = rows.filter_map(|(time, value)| {
                Some((time.parse::<i64>().ok()?, value.trim().parse::<f64>().ok()?))
            });
            let mut found = vec![None; to as usize + 1];
            for (time, value) in rows.filter(|(_, value)| !value.is_nan()) {
                if let Some(place) = found.get_mut((time - START) as usize) {
                    *place = Some(value);
                }
            }
            found
        };
        (0..RRDS).map(fetch).collect()
    }

    /// Checks that every reading from `first` to `to` was counted exactly once.
    fn check(&mut self, first: i64, to: i64, what: &str) {
        for (rrd, rows) in self.rows(to).iter().enumerate() {
            for second in first..=to {
                let want = Some(value(rrd, second) as f64);
                assert_eq!(
                    rows[second as usize],
                    want,
                    "{what}: second {second} of RRD {rrd}: {}",
                    self.daemon.log()
                );
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill_agent();
    }
}

/// With bursts, RRDs change their lane.
fn run_kills(kind: Kind, burst: i64, seed: u64) {
    const LAST: i64 = 1_500;
    let mut random = Random::new(seed);
    let mut world = World::new(kind);
    world.burst = burst;
    world.daemon.start();
    world.start_agent(LAST);
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(random.below(if burst > 1 { 600 } else { 150 })));
        let (agent, store) = (random.once_in(2), random.once_in(2));
        if agent {
            world.kill_agent();
        }
        if store || !agent {
            world.daemon.kill();
            std::thread::sleep(Duration::from_millis(random.below(60)));
            world.daemon.spawn();
        }
        if agent {
            world.start_agent(LAST);
        }
    }
    world.wait_until_done();
    world.check(1, LAST, &format!("{kind:?}, bursts of {burst}, seed {seed}"));
}

#[test]
fn agent_and_store_are_killed_and_every_reading_counts_once() {
    for seed in seeds(2) {
        run_kills(Kind::Stripes, 1, seed);
    }
}

#[test]
fn the_same_while_rrds_change_lanes() {
    for seed in seeds(2) {
        run_kills(Kind::Stripes, 300, seed);
    }
}

#[test]
fn the_same_with_files() {
    for seed in seeds(1) {
        run_kills(Kind::Files, 1, seed);
    }
}

/// Copies a directory.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_store_that_is_restored_gets_again_what_it_lacks() {
    run_restore(1, 0);
}

#[test]
fn the_same_when_rrds_have_changed_lanes() {
    run_restore(100, 3);
}

fn run_restore(burst: i64, pause: u64) {
    let mut world = World::new(Kind::Stripes);
    (world.pause, world.burst) = (pause, burst);
    world.daemon.start();
    world.start_agent(300);
    world.wait_until_done();
    world.kill_agent();
    world.daemon.kill();
    let store = world.daemon.directory().join("store");
    let backup = world.directory.path().join("backup");
    copy(&store, &backup);
    world.daemon.start();
    world.start_agent(600);
    world.wait_until_done();
    world.daemon.kill();
    std::fs::remove_dir_all(&store).unwrap();
    copy(&backup, &store);
    world.daemon.start();
    // The agent sends again what the copy lacks, in both lanes.
    let deadline = Instant::now() + DEADLINE;
    while world.rows(600).iter().any(|rows| rows[600].is_none()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    world.check(1, 600, "restored");
    world.kill_agent();
    world.start_agent(700);
    world.wait_until_done();
    world.check(1, 700, "restored, and on");
}

#[test]
fn what_a_full_spool_drops_is_unknown_and_counted() {
    let mut world = World::new(Kind::Stripes);
    (world.spool_bytes, world.pause) = (64_000, 0);
    // The first reading makes the RRDs.
    world.daemon.start();
    world.start_agent(10);
    world.wait_until_done();
    world.kill_agent();
    world.daemon.kill();
    const LAST: i64 = 3_000;
    world.start_agent(LAST);
    let deadline = Instant::now() + DEADLINE;
    while world.spooled < LAST && Instant::now() < deadline {
        let line = world.lines.as_ref().and_then(|lines| lines.recv().ok());
        world.note(&line.unwrap_or_default());
    }
    world.daemon.start();
    world.wait_until_done();
    let rows = world.rows(LAST);
    let first = (11..LAST).find(|&second| rows[0][second as usize].is_some()).unwrap();
    assert!(first > 1_000, "the spool of 64 kB held everything from second {first} on");
    world.check(1, 10, "before");
    world.check(first, LAST, "after");
    for rows in &rows {
        assert!(rows[11..first as usize].iter().all(Option::is_none), "up to {first}");
    }
    let log = world.daemon.log();
    assert!(log.contains(&format!("({})", first - 11)), "{first}: {log}");
}

/// The command itself: this machine's metrics arrive.
#[test]
fn the_command_sends_what_it_collects() {
    let mut world = World::new(Kind::Stripes);
    let http = testkit::free_port();
    world.daemon.configure(&format!(
        "[agents]\nlisten = ['127.0.0.1:{}']\n[http]\nlisten = ['127.0.0.1:{http}']\n",
        world.port
    ));
    let mut client = world.daemon.start();
    let config = world.host_agent_toml("hall-2");
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
    command.args(["agent", "--config"]).arg(&config);
    let agent = Running::start(&mut command, world.directory.path().join("agent.log"));
    let deadline = Instant::now() + DEADLINE;
    let mut found = false;
    while !found && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
        found = client.ask("LAST roundel/hall-2/agent.rrd").unwrap().status >= 0;
    }
    let log = || std::fs::read_to_string(world.directory.path().join("agent.log")).unwrap_or_default();
    assert!(found, "{}\n{}", log(), world.daemon.log());
    // A release appends numbers to this list and never changes what is there, because RRDs have them in this order.
    let info = client.ask("INFO roundel/hall-2/agent.rrd").unwrap().lines.join("\n");
    let sources = info.lines().filter_map(|line| line.strip_prefix("ds[")?.split_once("].type"));
    let names: Vec<&str> = sources.map(|(name, _)| name).collect();
    assert_eq!(
        names.join(" "),
        "connected spool_bytes waiting_bytes blocks dropped lost sessions bytes refused gone clock_skew_ms"
    );
    let agents = || {
        let status = testkit::http_get(http, "/api/v1/status").unwrap();
        let place = status.find("\"agents\":").unwrap();
        status[place..].split(']').next().unwrap().to_string()
    };
    assert!(
        agents().contains("\"connected\":true") && agents().contains("\"name\":\"hall-2\""),
        "{}",
        agents()
    );
    assert!(agent.terminate().success(), "{}", log());
    testkit::wait_until("the agent is away", || agents().contains("\"connected\":false"));
}

/// A session of the test's own, as an agent of the release before has it.
struct RawSession {
    stream: std::net::TcpStream,
    input: Vec<u8>,
}

impl RawSession {
    fn open(port: u16, epoch: u64) -> RawSession {
        RawSession::open_as(port, epoch, b"raw")
    }

    fn open_as(port: u16, epoch: u64, name: &[u8]) -> RawSession {
        let mut session = RawSession::connect(port);
        session.greet(epoch, name);
        session
    }

    /// A connection on which the agent has not said who it is.
    fn connect(port: u16) -> RawSession {
        let stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        RawSession { stream, input: Vec::new() }
    }

    fn greet(&mut self, epoch: u64, name: &[u8]) {
        let mut out = b"FRAMES 3\n".to_vec();
        push_hello(&mut out, &Hello { epoch, sent: 0, name });
        self.write(&out);
        let want = b"0 Frames of version 3 from here on\n";
        while self.input.len() < want.len() {
            assert!(self.read() > 0);
        }
        assert_eq!(self.input.drain(..want.len()).collect::<Vec<_>>(), want);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    fn read(&mut self) -> usize {
        let mut bytes = [0; 4096];
        let count = self.stream.read(&mut bytes).unwrap();
        self.input.extend_from_slice(&bytes[..count]);
        count
    }

    /// The next frame, as text.
    fn answer(&mut self) -> String {
        self.next(|frame| match frame {
            FromStore::Ended(code, text) => format!("{code:?}: {}", String::from_utf8_lossy(text)),
            FromStore::Welcome(welcome) => format!("welcome after {}", welcome.sequence),
            other => format!("{other:?}"),
        })
    }

    /// What `read` makes of the next frame.
    fn next<T>(&mut self, read: impl FnOnce(FromStore<'_>) -> T) -> T {
        loop {
            if let Some((frame, used)) = scan(&self.input, 1 << 20).unwrap() {
                let found = read(FromStore::decode(frame).unwrap());
                self.input.drain(..used);
                return found;
            }
            assert!(self.read() > 0, "the store hangs up");
        }
    }
}

/// A block with one reading, as a frame.
fn one_block(sequence: u64) -> Vec<u8> {
    let mut writer = BlockWriter::default();
    let args = ["DS:v:GAUGE:10:U:U", "RRA:LAST:0.5:1:10"].map(str::to_string);
    let definition = writer.add_definition(1, 1, &args).unwrap();
    for name in ["raw.rrd", "../out.rrd"] {
        let rrd = writer.add_rrd(definition, 0, name.as_bytes(), 1).unwrap();
        writer.push(rrd, Timestamp::whole(START + sequence as i64), [BlockValue::Unsigned(5)]);
    }
    let mut frame = Vec::new();
    writer.finish(sequence, &mut frame).unwrap();
    frame
}

#[test]
fn a_bad_session_ends_by_itself_and_the_newest_of_an_agent_counts() {
    let mut world = World::new(Kind::Stripes);
    let mut client = world.daemon.start();
    let mut first = RawSession::open(world.port, 7);
    assert_eq!(first.answer(), "welcome after 0");
    first.write(&one_block(3));
    // A name that leads out of the tree is refused, and stops nothing else.
    assert!(first.answer().contains("sequence: 3, count: 1"), "{}", world.daemon.log());
    assert_eq!(first.answer(), "Applied(Applied { sequence: 3, credit: 8388608 })");
    assert_eq!(client.ask("LAST raw.rrd").unwrap().message, (START + 3).to_string());
    let mut second = RawSession::open(world.port, 7);
    assert!(first.answer().starts_with("Fenced"), "the older one ends");
    assert_eq!(second.answer(), "welcome after 3");
    let mut old = RawSession::open(world.port, 6);
    assert_eq!(old.answer(), "LaterEpoch(7)");
    assert!(old.answer().starts_with("Fenced: epoch 6 is over"));
    let mut torn = one_block(4);
    *torn.last_mut().unwrap() ^= 1;
    let mut cut = one_block(4);
    cut.truncate(20);
    cut[..4].copy_from_slice(&8u32.to_le_bytes());
    for bad in [
        torn,
        cut,
        vec![0xff; 64],
        b"\0\0\0\0\x10\0\0\0\0\0\0\0".to_vec(),
        b"\0\0\0\0\x77\0\0\0\0\0\0\0".to_vec(),
    ] {
        let mut session = RawSession::open(world.port, 7);
        assert_eq!(session.answer(), "welcome after 3");
        session.write(&bad);
        assert!(session.answer().starts_with("Syntax: bad "), "{bad:?}");
    }
    let mut text = std::net::TcpStream::connect(("127.0.0.1", world.port)).unwrap();
    text.write_all(b"STATS\n").unwrap();
    let mut answer = String::new();
    text.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "-1 Only frames of version 3 and 4 are spoken here.\n");
    assert_eq!(client.ask("PING").unwrap().status, 0);
}

/// The connection of an agent that was killed may be read after that of the agent that was started in its place.
#[test]
fn a_connection_that_was_made_before_does_not_end_the_session_of_a_later_one() {
    let mut world = World::new(Kind::Stripes);
    world.daemon.start();
    let mut earlier = RawSession::connect(world.port);
    let mut later = RawSession::open(world.port, 7);
    assert_eq!(later.answer(), "welcome after 0");
    earlier.greet(7, b"raw");
    assert!(earlier.answer().starts_with("Fenced: a newer session"), "{}", world.daemon.log());
    later.write(&one_block(3));
    assert!(later.answer().contains("sequence: 3, count: 1"));
}

/// A token is one agent's, while it is known: what another one says of itself does not end that one's session.
#[test]
fn the_token_of_another_agent_ends_no_session() {
    let mut world = World::new(Kind::Stripes);
    let (tokens, config) =
        (world.directory.path().join("tokens"), world.directory.path().join("tokens.toml"));
    let access = format!("[access]\ntokens = '{}'\n", tokens.display());
    std::fs::write(&config, &access).unwrap();
    world.daemon.configure(&format!("[agents]\nlisten = [\"127.0.0.1:{}\"]\n{access}", world.port));
    let add = |name: &str| {
        let added = Command::new(env!("CARGO_BIN_EXE_roundel"))
            .args(["token", "add", name, "--write", "other.rrd", "--config"])
            .arg(&config)
            .output()
            .unwrap();
        assert!(added.status.success(), "{added:?}");
        let text = String::from_utf8(added.stdout).unwrap();
        text.split_whitespace().max_by_key(|word| word.len()).unwrap().to_string()
    };
    let revoke = |name: &str| {
        let revoked = Command::new(env!("CARGO_BIN_EXE_roundel"))
            .args(["token", "revoke", name, "--config"])
            .arg(&config)
            .status()
            .unwrap();
        assert!(revoked.success());
    };
    let (token, later_token) = (add("other"), add("later"));
    world.daemon.start();
    let mut first = RawSession::open(world.port, 7);
    assert_eq!(first.answer(), "welcome after 0");
    // All that is answered to an agent of this name.
    let ask = |name: &'static [u8], token: &str| {
        let mut other = std::net::TcpStream::connect(("127.0.0.1", world.port)).unwrap();
        let mut out = format!("AUTH {token}\nFRAMES 3\n").into_bytes();
        push_hello(&mut out, &Hello { epoch: 8, sent: 0, name });
        other.write_all(&out).unwrap();
        std::thread::spawn(move || {
            let mut answer = Vec::new();
            other.read_to_end(&mut answer).unwrap();
            String::from_utf8_lossy(&answer).into_owned()
        })
    };
    let answer = ask(b"raw", &token).join().unwrap();
    assert!(answer.contains("the token is that of \"other\""), "{answer}");
    // One whose token is revoked ends the session that it began.
    let connected = |count| {
        testkit::wait_until("an agent to connect", || {
            world.daemon.log().matches("an agent has connected").count() == count
        });
    };
    let session = ask(b"other", &token);
    connected(2);
    // The store looks at the tokens of all sessions in turn: it has looked at this one when a later one ends.
    let later = ask(b"later", &later_token);
    connected(3);
    revoke("later");
    let answer = later.join().unwrap();
    assert!(answer.contains("the token of \"later\" is not known any more"), "{answer}");
    assert!(!session.is_finished());
    revoke("other");
    let answer = session.join().unwrap();
    assert!(answer.contains("the token of \"other\" is not known any more"), "{answer}");
    first.write(&one_block(3));
    assert!(first.answer().contains("sequence: 3, count: 1"));
    assert_eq!(first.answer(), "Applied(Applied { sequence: 3, credit: 8388608 })");
}
