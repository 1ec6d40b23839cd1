//! What clients of the cluster do all the time: updates, of which is kept which were acknowledged, and queries, of which is kept which failed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::Client;
use testkit::random::Random;

/// RRDs, each in a directory of its own, so that all partitions have some.
pub const RRDS: usize = 48;
/// The second before the first update.
pub const BEGIN: u64 = 1_000_000_000;
/// Longer than a node keeps a client waiting (`ack_timeout`, and ten seconds for what other nodes are asked).
const PATIENCE: Duration = Duration::from_secs(20);
/// Clients that update, each RRDs of its own.
pub const WRITERS: usize = 3;

/// What all clients share.
pub struct Shared {
    pub sockets: Vec<PathBuf>,
    /// Of each node, and last of all together: odd while a fault has hit it, until it is well again.
    pub states: Vec<AtomicU64>,
    pub stop: AtomicBool,
    /// Whether wide RRDs are updated, too, so that stores need room.
    pub flood: AtomicBool,
    /// The second up to which each RRD may be updated: it has a row for each.
    pub end: u64,
    /// The latest acknowledged and the latest sent second of each RRD.
    acknowledged: Vec<AtomicU64>,
    sent: Vec<AtomicU64>,
    pub tally: Mutex<Tally>,
}

/// What was answered.
#[derive(Default)]
pub struct Tally {
    pub updates: u64,
    pub updates_acknowledged: u64,
    /// Of updates, by what was said: those may have been applied or not.
    pub refused: BTreeMap<String, u64>,
    /// The longest batch of updates that was acknowledged as a whole, since this was last looked at.
    pub longest_batch: Duration,
    pub queries: u64,
    /// Of queries to nodes that no fault had hit, by what was said.
    pub failed: BTreeMap<String, u64>,
    pub longest_query: Duration,
    /// Answers by LAST that lacked an update acknowledged before the question: a follower gave them.
    pub late: u64,
    pub queries_at_hit: u64,
    pub late_at_hit: u64,
    /// The same of queries to nodes that were killed, paused or cut off themselves.
    pub failed_at_hit: BTreeMap<String, u64>,
}

/// An RRD as its writer knows it.
pub struct Sent {
    pub rrd: usize,
    /// Seconds that were sent, and whether they were acknowledged.
    pub seconds: Vec<(u64, bool)>,
}

pub fn name(rrd: usize) -> String {
    format!("switch-{rrd:02}/port.rrd")
}

/// An RRD of which an update takes much room, beside the one of this number.
pub fn wide_name(rrd: usize) -> String {
    format!("switch-{rrd:02}/wide.rrd")
}

/// Its definition.
pub fn wide_definition() -> String {
    let sources: String = (0..40).map(|source| format!("DS:v{source}:GAUGE:1000000000:U:U ")).collect();
    format!("-b {BEGIN} -s 1 {sources}RRA:LAST:0:1:20")
}

/// A reading that does not compress, with the space before it.
fn wide_reading(time: &mut u64) -> String {
    *time += 1;
    let value = |source: u64| (*time * 40 + source).wrapping_mul(0x9e37_79b9_7f4a_7c15) as f64 / 1e3;
    let values: String = (0..40).map(|source| format!(":{}", value(source))).collect();
    format!(" {time}{values}")
}

/// The definition: what was stored at a second shows which update was stored next, and over which time.
pub fn definition(rows: u64) -> String {
    format!(
        "-b {BEGIN} -s 1 DS:level:GAUGE:1000000000:U:U DS:bytes:ABSOLUTE:1000000000:U:U RRA:LAST:0:1:{rows} RRA:AVERAGE:0.5:5:400"
    )
}

/// The time and the values of an update.
pub fn reading(second: u64) -> String {
    let number = second - BEGIN;
    format!("{second}:{number}:{}", number * 7 % 1000 + 1)
}

/// A text without the numbers in it, to count what is alike.
fn kind(text: &str) -> String {
    let mut kind = String::new();
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if kind.ends_with('N') => {}
            true => kind.push('N'),
            false => kind.push(letter),
        }
    }
    kind
}

impl Shared {
    pub fn new(sockets: Vec<PathBuf>, end: u64) -> Shared {
        let seconds = || (0..RRDS).map(|_| AtomicU64::new(BEGIN)).collect();
        Shared {
            states: (0..=sockets.len()).map(|_| AtomicU64::new(0)).collect(),
            sockets,
            stop: AtomicBool::new(false),
            flood: AtomicBool::new(false),
            end,
            acknowledged: seconds(),
            sent: seconds(),
            tally: Mutex::default(),
        }
    }

    fn connect(&self, node: usize) -> io::Result<Client> {
        let client = Client::connect(&self.sockets[node])?;
        client.wait_at_most(PATIENCE)?;
        Ok(client)
    }

    /// Updates until it is to stop, through one node as long as that answers. Returns what was sent.
    pub fn write(&self, writer: usize, seed: u64) -> Vec<Sent> {
        let mut random = Random::new(seed);
        let mut rrds: Vec<Sent> =
            (writer..RRDS).step_by(WRITERS).map(|rrd| Sent { rrd, seconds: vec![(BEGIN, true)] }).collect();
        let mut client = None;
        while !self.stop.load(Ordering::Relaxed) {
            let node = random.below(self.sockets.len() as u64) as usize;
            // Sometimes through another node, with nothing lost.
            let kept = client.take().filter(|_| !random.once_in(20));
            let Some(mut open) = kept.or_else(|| self.connect(node).ok()) else {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            if self.batch(&mut open, &mut rrds, &mut random) {
                client = Some(open);
            }
            std::thread::sleep(Duration::from_millis(60));
        }
        rrds
    }

    /// Some updates, several of one RRD among them; false when there was no answer.
    fn batch(&self, client: &mut Client, rrds: &mut [Sent], random: &mut Random) -> bool {
        let mut lines = Vec::new();
        let mut places = Vec::new();
        for _ in 0..random.between(1, 8) {
            let place = random.below(rrds.len() as u64) as usize;
            let sent = &mut rrds[place];
            let second = sent.seconds.last().map_or(BEGIN, |last| last.0) + random.between(1, 10) / 10 + 1;
            if second >= self.end {
                continue;
            }
            lines.push(format!("UPDATE {} {}", name(sent.rrd), reading(second)));
            places.push((place, sent.seconds.len(), second));
            sent.seconds.push((second, false));
            self.sent[sent.rrd].store(second, Ordering::SeqCst);
        }
        if lines.is_empty() {
            return true;
        }
        let begun = Instant::now();
        let answer = client.batch(&lines);
        let mut tally = self.tally.lock().unwrap();
        tally.updates += lines.len() as u64;
        let answer = match answer {
            Ok(answer) if answer.status >= 0 => answer,
            Ok(answer) => {
                *tally.refused.entry(kind(&answer.message)).or_default() += lines.len() as u64;
                return true;
            }
            Err(error) => {
                *tally.refused.entry(format!("no answer: {error}")).or_default() += lines.len() as u64;
                return false;
            }
        };
        let refused: BTreeMap<usize, &str> = answer
            .lines
            .iter()
            .filter_map(|line| line.split_once(' '))
            .map(|(number, text)| (number.parse().unwrap(), text))
            .collect();
        if refused.is_empty() {
            tally.longest_batch = tally.longest_batch.max(begun.elapsed());
        }
        for (line, (place, index, second)) in places.into_iter().enumerate() {
            if let Some(text) = refused.get(&(line + 1)) {
                *tally.refused.entry(kind(text)).or_default() += 1;
                continue;
            }
            let sent = &mut rrds[place];
            sent.seconds[index].1 = true;
            self.acknowledged[sent.rrd].store(second, Ordering::SeqCst);
            tally.updates_acknowledged += 1;
        }
        true
    }

    /// Updates a wide RRD as long as there is to be a flood. What becomes of that does not matter.
    pub fn flood(&self) {
        let (mut time, mut client, mut rrd) = (BEGIN, None, 0);
        while !self.stop.load(Ordering::Relaxed) {
            if !self.flood.load(Ordering::Relaxed) {
                // One RRD for each flood, so that one log grows by more than the room that it has taken in advance.
                (client, rrd) = (None, time as usize % RRDS);
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
            let node = time as usize % self.sockets.len();
            let Some(mut open) = client.take().or_else(|| self.connect(node).ok()) else { continue };
            let readings: String = (0..401).map(|_| wide_reading(&mut time)).collect();
            if open.ask(&format!("UPDATE {}{readings}", wide_name(rrd))).is_ok() {
                client = Some(open);
            }
        }
    }

    /// Asks until it is to stop, each time any of the nodes.
    pub fn read(&self, seed: u64) {
        let mut random = Random::new(seed);
        let mut clients: Vec<Option<Client>> = self.sockets.iter().map(|_| None).collect();
        while !self.stop.load(Ordering::Relaxed) {
            let node = random.below(self.sockets.len() as u64) as usize;
            let states = || [node, self.sockets.len()].map(|at| self.states[at].load(Ordering::SeqCst));
            let (before, begun) = (states(), Instant::now());
            let rrd = random.below(RRDS as u64) as usize;
            let mut is_late = false;
            let said = self.ask(&mut clients[node], node, (random.below(8), rrd), &mut is_late);
            let is_hit = before.iter().any(|state| state % 2 == 1) || states() != before;
            let mut tally = self.tally.lock().unwrap();
            if said.is_err() {
                clients[node] = None;
            }
            if is_hit {
                tally.queries_at_hit += 1;
                tally.late_at_hit += u64::from(is_late);
                if let Err(text) = said {
                    *tally.failed_at_hit.entry(kind(&text)).or_default() += 1;
                }
            } else {
                tally.queries += 1;
                tally.late += u64::from(is_late);
                tally.longest_query = tally.longest_query.max(begun.elapsed());
                if let Err(text) = said {
                    *tally.failed.entry(kind(&text)).or_default() += 1;
                }
            }
            drop(tally);
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    fn ask(
        &self,
        client: &mut Option<Client>,
        node: usize,
        (question, rrd): (u64, usize),
        is_late: &mut bool,
    ) -> Result<(), String> {
        let said = |error: io::Error| format!("no answer: {error}");
        let client = match client {
            Some(client) => client,
            None => client.insert(self.connect(node).map_err(said)?),
        };
        let floor = self.acknowledged[rrd].load(Ordering::SeqCst);
        let question = match question {
            0 => "LIST RECURSIVE /".to_string(),
            1..4 => format!("FETCH {} LAST {} {}", name(rrd), floor.saturating_sub(100), floor),
            _ => format!("LAST {}", name(rrd)),
        };
        let answer = client.ask(&question).map_err(said)?;
        if answer.status < 0 {
            return Err(format!("{}: {}", question.split(' ').next().unwrap(), answer.message));
        }
        match question.split(' ').next() {
            Some("LIST") => {
                let listed = answer.lines.iter().filter(|line| line.ends_with("/port.rrd")).count();
                if listed != RRDS {
                    return Err(format!("LIST: {listed} RRDs"));
                }
            }
            Some("LAST") => {
                let last: u64 = answer.message.parse().map_err(|_| answer.message.clone())?;
                if last > self.sent[rrd].load(Ordering::SeqCst) {
                    return Err("LAST: a second that was never sent".to_string());
                }
                *is_late = last < floor;
            }
            _ => {}
        }
        Ok(())
    }
}
