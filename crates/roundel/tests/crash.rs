//! Kills the daemon with SIGKILL at random moments under load, then compares every RRD with what was
//! acknowledged.
//!
//! The reference is Debian's rrdcached with files of its own: it gets exactly the updates that Roundel
//! acknowledged, and afterwards both must answer LAST, FIRST, INFO and FETCH alike. Updates that were
//! unanswered when the daemon died may or may not be there, in the order they were sent; nothing else may
//! differ.
//!
//! Each seed is one store, killed 25 times: `ROUNDEL_SEED=n` runs one, `ROUNDEL_SEEDS=n` sets how many.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::thread;
use std::time::{Duration, Instant};

use testkit::random::{Random, seeds};
use testkit::{Client, Daemon, Kind};

/// Kills after which a lane starts with an empty store.
const KILLS_PER_STORE: u64 = 25;
/// RRDs in a new store.
const RRDS: usize = 16;
/// RRDs it may grow to.
const RRDS_MAX: usize = 40;
/// Longest time under load before the kill, in milliseconds.
const LOAD_MILLISECONDS_MAX: u64 = 300;
/// Longest wait until the connection breaks.
const KILL_PATIENCE: Duration = Duration::from_secs(20);
/// Where simulated time starts.
const BEGIN: u64 = 1_700_000_000;

/// A kind of RRD in the mix.
struct Definition {
    /// `-s STEP DS:... RRA:...`
    words: &'static str,
    /// The values of its data sources.
    sources: &'static [Source],
    /// Consolidation function and seconds back: one fetch per archive.
    fetches: &'static [(&'static str, u64)],
    /// Number of archives, for FIRST.
    archives: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Source {
    Gauge,
    Counter,
}

const DEFINITIONS: &[Definition] = &[
    Definition {
        words: "-s 1 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:50 RRA:AVERAGE:0.5:5:40 RRA:MAX:0.5:5:40 \
                RRA:MIN:0.3:12:30 RRA:LAST:0.5:3:20",
        sources: &[Source::Gauge],
        fetches: &[("AVERAGE", 45), ("AVERAGE", 190), ("MAX", 190), ("MIN", 350), ("LAST", 55)],
        archives: 5,
    },
    Definition {
        words: "-s 5 DS:in:COUNTER:20:0:U DS:out:GAUGE:20:-100:1000 RRA:AVERAGE:0.5:1:60 \
                RRA:MIN:0.5:1:60 RRA:MAX:0.5:1:60 RRA:AVERAGE:0.1:7:50 RRA:MAX:0.1:7:50",
        sources: &[Source::Counter, Source::Gauge],
        fetches: &[("AVERAGE", 290), ("MIN", 290), ("MAX", 290), ("AVERAGE", 1_700), ("MAX", 1_700)],
        archives: 5,
    },
    Definition {
        words: "-s 2 DS:x:GAUGE:40:U:U DS:twice:COMPUTE:x,2,* RRA:AVERAGE:0.5:1:40 \
                RRA:HWPREDICT:60:0.1:0.0035:10 RRA:LAST:0.5:4:30",
        sources: &[Source::Gauge],
        fetches: &[("AVERAGE", 70), ("HWPREDICT", 100), ("SEASONAL", 18), ("FAILURES", 18), ("LAST", 200)],
        archives: 7,
    },
    Definition {
        words: "-s 10 DS:a:DERIVE:60:U:U DS:b:ABSOLUTE:60:0:U DS:c:GAUGE:15:0:500 \
                RRA:AVERAGE:0.5:1:500 RRA:MIN:0.9:3:100",
        sources: &[Source::Counter, Source::Gauge, Source::Gauge],
        fetches: &[("AVERAGE", 4_900), ("MIN", 2_900)],
        archives: 2,
    },
];

/// The expected state of one RRD.
struct Rrd {
    name: String,
    definition: usize,
    /// Time of the newest update sent, in seconds.
    sent: u64,
    /// Time of the newest update acknowledged, in seconds.
    acknowledged: u64,
    counter: u64,
    /// Updates sent and not yet acknowledged: (seconds, argument).
    pending: Vec<(u64, String)>,
}

/// A store under test and its reference.
struct Lane {
    random: Random,
    kind: Kind,
    daemon: Daemon,
    reference: Daemon,
    rrds: Vec<Rrd>,
    /// Acknowledged lines that have not been sent to the reference yet.
    for_reference: Vec<String>,
    /// An RRD whose creation was not answered when the daemon died.
    unanswered: Option<Rrd>,
    _directory: tempfile::TempDir,
}

// Two tests, so that they run side by side.
#[test]
fn stripes_lose_nothing_acknowledged_with_even_seeds() {
    crash(Kind::Stripes, seeds(8).filter(|seed| seed % 2 == 0));
}

#[test]
fn stripes_lose_nothing_acknowledged_with_odd_seeds() {
    crash(Kind::Stripes, seeds(8).filter(|seed| seed % 2 == 1));
}

#[test]
fn files_lose_nothing_acknowledged() {
    crash(Kind::Files, seeds(2));
}

fn crash(kind: Kind, seeds: impl Iterator<Item = u64>) {
    let (mut values, mut kills) = (0, 0);
    for seed in seeds {
        let (mut lane, mut client) = Lane::start(kind, seed);
        for kill in 0..KILLS_PER_STORE {
            let context = format!("{kind:?}, ROUNDEL_SEED={seed}, kill {kill} of the store");
            values += lane.load_until_killed(client, &context);
            client = lane.restart();
            lane.compare(&mut client, &context);
            kills += 1;
        }
    }
    assert!(values >= kills, "hardly anything was acknowledged: {values} values");
    println!("{kind:?}: {kills} kills, {values} acknowledged values");
}

impl Lane {
    fn start(kind: Kind, seed: u64) -> (Self, Client) {
        let directory = tempfile::Builder::new().prefix("crash-").tempdir().unwrap();
        let mut daemon = testkit::daemon!(kind, &directory.path().join("roundel"));
        // One store in three flushes, checkpoints and merges all the time, one sometimes, one never.
        if kind == Kind::Stripes && !seed.is_multiple_of(3) {
            let (open_bytes, log_bytes) = if seed % 3 == 1 { (4_096, 60_000) } else { (65_536, 600_000) };
            let limits =
                format!("[stripes]\nshards = 2\nopen_bytes = {open_bytes}\nlog_bytes = {log_bytes}\n");
            daemon.configure(&limits);
        }
        let mut reference = testkit::daemon!(Kind::Rrdcached, &directory.path().join("reference"));
        let mut client = daemon.start();
        reference.start();
        let mut lane = Lane {
            random: Random::new(seed),
            kind,
            daemon,
            reference,
            rrds: Vec::new(),
            for_reference: Vec::new(),
            unanswered: None,
            _directory: directory,
        };
        while lane.rrds.len() < RRDS {
            lane.create(&mut client).expect("the daemon lives");
        }
        (lane, client)
    }

    /// Creates another RRD, and in the reference once it is acknowledged.
    fn create(&mut self, client: &mut Client) -> std::io::Result<()> {
        let index = self.rrds.len();
        let definition = index % DEFINITIONS.len();
        let name = format!("dir{}/rrd-{index}.rrd", index % 3);
        let rrd = Rrd { name, definition, sent: BEGIN, acknowledged: BEGIN, counter: 0, pending: Vec::new() };
        let command = create_command(&rrd);
        self.unanswered = Some(rrd);
        let answer = client.ask(&command)?;
        assert_eq!(answer.status, 0, "{command}: {answer:?}");
        self.created();
        Ok(())
    }

    /// The RRD of the unanswered creation exists, so the reference gets it too.
    fn created(&mut self) {
        let rrd = self.unanswered.take().expect("one was asked for");
        let mut reference = Client::connect(&self.reference.socket()).unwrap();
        assert_eq!(reference.ask(&create_command(&rrd)).unwrap().status, 0);
        self.rrds.push(rrd);
    }

    /// Sends until the connection breaks; returns how many values were acknowledged.
    fn load_until_killed(&mut self, mut client: Client, context: &str) -> u64 {
        let delay = Duration::from_micros(self.random.below(LOAD_MILLISECONDS_MAX * 1_000));
        let child = self.daemon.take();
        let killer = thread::spawn(move || {
            thread::sleep(delay);
            child.kill();
        });
        let mut acknowledged = 0;
        let start = Instant::now();
        while let Ok(values) = self.send_some(&mut client, context) {
            acknowledged += values;
            assert!(start.elapsed() < KILL_PATIENCE, "{context}: it answers although it was killed");
            thread::sleep(Duration::from_micros(self.random.below(3_000)));
        }
        killer.join().unwrap();
        acknowledged
    }

    /// One batch, one plain UPDATE or one CREATE.
    fn send_some(&mut self, client: &mut Client, context: &str) -> std::io::Result<u64> {
        if self.rrds.len() < RRDS_MAX && self.random.once_in(30) {
            self.create(client)?;
            return Ok(0);
        }
        if self.random.once_in(10) {
            let (line, values) = self.line();
            let answer = client.ask(&line)?;
            assert!(answer.status >= 0, "{context}: {line}: {answer:?}");
            self.acknowledge();
            return Ok(values);
        }
        let mut lines = Vec::new();
        let (mut values, mut refused) = (0, 0);
        for _ in 0..1 + self.random.below(60) {
            if self.random.once_in(50) {
                let index = self.random.below(self.rrds.len() as u64) as usize;
                let rrd = &self.rrds[index];
                let value = ":1".repeat(DEFINITIONS[rrd.definition].sources.len());
                lines.push(format!("UPDATE {} 1600000000{value}", rrd.name));
                refused += 1;
            } else {
                let (line, more) = self.line();
                lines.push(line);
                values += more;
            }
        }
        let answer = client.batch(&lines)?;
        assert_eq!(answer.lines.len(), refused, "{context}: {:?}", answer.lines);
        self.acknowledge();
        Ok(values)
    }

    /// An UPDATE with one to three values, which become pending.
    fn line(&mut self) -> (String, u64) {
        let random = &mut self.random;
        let index = random.below(self.rrds.len() as u64) as usize;
        let rrd = &mut self.rrds[index];
        let mut line = format!("UPDATE {}", rrd.name);
        let count = if random.once_in(4) { 3 } else { 1 };
        for _ in 0..count {
            rrd.sent += match random.below(40) {
                0 => 61 + random.below(400),
                1..=5 => 10,
                _ => 1 + random.below(6),
            };
            let mut word = rrd.sent.to_string();
            if random.once_in(8) {
                word.push_str(&format!(".{:03}", random.below(1_000)));
            }
            for source in DEFINITIONS[rrd.definition].sources {
                word.push(':');
                word.push_str(&value(random, *source, &mut rrd.counter));
            }
            line.push(' ');
            line.push_str(&word);
            rrd.pending.push((rrd.sent, word));
        }
        (line, count)
    }

    /// Everything pending was acknowledged.
    fn acknowledge(&mut self) {
        for rrd in &mut self.rrds {
            if !rrd.pending.is_empty() {
                rrd.acknowledged = rrd.sent;
                self.for_reference.push(update_line(&rrd.name, &rrd.pending));
                rrd.pending.clear();
            }
        }
    }

    /// Restarts the daemon, sometimes killing it once more during recovery.
    fn restart(&mut self) -> Client {
        if self.random.once_in(4) {
            self.daemon.spawn();
            thread::sleep(Duration::from_micros(self.random.below(40_000)));
            self.daemon.kill();
        }
        self.daemon.start()
    }

    /// Determines which unanswered requests were executed, then compares every RRD.
    fn compare(&mut self, client: &mut Client, context: &str) {
        let mut reference = Client::connect(&self.reference.socket()).unwrap();
        if let Some(rrd) = &self.unanswered {
            let exists = client.ask(&format!("LAST {}", rrd.name)).unwrap().status >= 0;
            if exists {
                self.created();
            }
            self.unanswered = None;
        }
        for rrd in &mut self.rrds {
            let last = last_update(client, &rrd.name, context);
            assert!(
                last >= rrd.acknowledged,
                "{context}: {} lost updates: {last}, acknowledged until {}",
                rrd.name,
                rrd.acknowledged
            );
            let arrived = rrd.pending.iter().filter(|(seconds, _)| *seconds <= last).count();
            let newest = rrd.pending[..arrived].last().map_or(rrd.acknowledged, |(seconds, _)| *seconds);
            assert_eq!(last, newest, "{context}: {} has an update that was never sent", rrd.name);
            if arrived > 0 {
                self.for_reference.push(update_line(&rrd.name, &rrd.pending[..arrived]));
            }
            rrd.pending.clear();
            (rrd.sent, rrd.acknowledged) = (last, last);
        }
        let lines = std::mem::take(&mut self.for_reference);
        let answer = reference.batch(&lines).unwrap();
        assert_eq!(answer.status, 0, "{context}: the reference refused {:?}", answer.lines);
        for rrd in &self.rrds {
            compare_rrd(rrd, client, &mut reference, &format!("{context}, {:?}", self.kind));
        }
    }
}

/// From INFO: rrdcached's LAST rounds down to the step.
fn last_update(client: &mut Client, name: &str, context: &str) -> u64 {
    let answer = client.ask(&format!("INFO {name}")).unwrap();
    let seconds = answer.lines.iter().find_map(|line| line.strip_prefix("last_update 1 ")?.parse().ok());
    seconds.unwrap_or_else(|| panic!("{context}: INFO {name}: {answer:?}"))
}

fn create_command(rrd: &Rrd) -> String {
    format!("CREATE {} -b {BEGIN} {}", rrd.name, DEFINITIONS[rrd.definition].words)
}

fn update_line(name: &str, updates: &[(u64, String)]) -> String {
    let mut line = format!("UPDATE {name}");
    for (_, word) in updates {
        line.push(' ');
        line.push_str(word);
    }
    line
}

fn value(random: &mut Random, source: Source, counter: &mut u64) -> String {
    if random.once_in(25) {
        return "U".to_string();
    }
    match source {
        Source::Gauge => format!("{}.{:02}", random.below(1_200) as i64 - 150, random.below(100)),
        Source::Counter => {
            *counter = if random.once_in(60) { random.below(10) } else { *counter + random.below(100_000) };
            counter.to_string()
        }
    }
}

/// LAST, FIRST, INFO and FETCH must be answered alike.
fn compare_rrd(rrd: &Rrd, client: &mut Client, reference: &mut Client, context: &str) {
    let name = &rrd.name;
    reference.ask(&format!("FLUSH {name}")).unwrap();
    let definition = &DEFINITIONS[rrd.definition];
    let mut commands = vec![format!("LAST {name}"), format!("INFO {name}")];
    commands.extend((0..definition.archives).map(|archive| format!("FIRST {name} {archive}")));
    let last = rrd.acknowledged;
    let ranges = definition.fetches.iter();
    commands.extend(ranges.map(|(cf, back)| format!("FETCH {name} {cf} {} {last}", last - back)));
    for command in commands {
        let ours = comparable(client.ask(&command).unwrap());
        let theirs = comparable(reference.ask(&command).unwrap());
        if ours != theirs {
            let differs: Vec<_> =
                ours.iter().zip(&theirs).filter(|(ours, theirs)| ours != theirs).take(5).collect();
            panic!(
                "{context}: {command}: {} lines instead of {}; (ours, reference): {differs:#?}",
                ours.len(),
                theirs.len()
            );
        }
    }
}

/// The answer without parts that may differ: the path of the file, and the row where RRDtool happened to
/// start the ring.
fn comparable(answer: testkit::Answer) -> Vec<String> {
    let message = if answer.message.starts_with("Info for") { String::new() } else { answer.message };
    let lines = answer
        .lines
        .into_iter()
        .filter(|line| !line.starts_with("filename ") && !line.contains("].cur_row "));
    std::iter::once(format!("{} {message}", answer.status)).chain(lines).collect()
}
