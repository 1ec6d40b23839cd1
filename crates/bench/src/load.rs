//! The load itself: create, update round by round, wait until everything is written.

use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::Outcome;
use crate::client::Client;
use crate::workload::{Feed, Workload, rrd_name};

/// CREATE lines sent before waiting for the first answer.
const CREATES_IN_FLIGHT: usize = 256;
/// UPDATE lines in a BATCH: about 150 kB, less than a socket buffer, so that a batch of errors cannot
/// block both sides.
const BATCH_LINES: usize = 4_096;
/// Batches sent before waiting for the first answer: the daemon never waits for us.
const BATCHES_IN_FLIGHT: usize = 2;
/// Plain UPDATE lines sent before waiting for the first answer.
const PLAIN_IN_FLIGHT: usize = 512;
/// Longest time for one load.
const SEND_LIMIT: Duration = Duration::from_secs(1_800);
/// Longest wait until STATS shows everything written.
const DRAIN_LIMIT: Duration = Duration::from_secs(1_800);

/// How updates are sent.
#[derive(Clone, Copy, Debug)]
pub struct LoadPlan {
    /// First round, so that a second load continues where the first ended.
    pub first_round: u64,
    /// Rounds to send.
    pub rounds: u64,
    /// Rounds per UPDATE line.
    pub values_per_line: u64,
    /// BATCH, or one answer per UPDATE.
    pub batch: bool,
    /// Values per second over all connections; 0 = full speed.
    pub pace: u64,
}

impl Default for LoadPlan {
    /// No rounds, in batches of one value per line, at full speed.
    fn default() -> Self {
        LoadPlan { first_round: 0, rounds: 0, values_per_line: 1, batch: true, pace: 0 }
    }
}

/// One or more connections, each with its share of the RRDs.
pub struct Load {
    workload: Workload,
    lanes: Vec<Lane>,
}

struct Lane {
    client: Client,
    feed: Feed,
}

/// The result of sending.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// (RRD, time) pairs sent.
    pub values: u64,
    /// How many of them were refused.
    pub refused: u64,
    /// From the first byte to the last answer.
    pub wall: Duration,
}

impl Load {
    /// Connects `connections` times and shares `count` RRDs among them.
    pub fn connect(address: &str, workload: Workload, count: usize, connections: usize) -> Outcome<Self> {
        let clients = (0..connections.clamp(1, count.max(1))).map(|_| Client::connect(address));
        Ok(Load::over(clients.collect::<Outcome<_>>()?, workload, count))
    }

    /// Shares `count` RRDs among these clients.
    pub fn over(clients: Vec<Client>, workload: Workload, count: usize) -> Self {
        let connections = clients.len();
        let lane = |(lane, client)| {
            let (first, end) = (count * lane / connections, count * (lane + 1) / connections);
            Lane { client, feed: Feed::new(workload, first, end - first) }
        };
        Load { workload, lanes: clients.into_iter().enumerate().map(lane).collect() }
    }

    /// RRDs in all.
    pub fn count(&self) -> usize {
        self.lanes.iter().map(|lane| lane.feed.count()).sum()
    }

    /// Reconnects after a restart of the daemon; the values continue where they were.
    pub fn reconnect(&mut self, address: &str) -> Outcome<()> {
        for lane in &mut self.lanes {
            lane.client = Client::connect(address)?;
        }
        Ok(())
    }

    /// Creates every RRD, pipelined on the first connection. Returns the wall time.
    pub fn create(&mut self, progress: &ProgressBar) -> Outcome<Duration> {
        let count = self.count();
        let words = self.workload.create_words();
        let begin = self.workload.round_seconds(0) - self.workload.step_seconds();
        let client = &mut self.lanes[0].client;
        let start = Instant::now();
        let mut text = Vec::new();
        let mut answered = 0;
        for index in 0..count {
            text.extend_from_slice(format!("CREATE {} -b {begin} {words}\n", rrd_name(index)).as_bytes());
            let in_flight = index + 1 - answered;
            if in_flight == CREATES_IN_FLIGHT || index + 1 == count {
                client.send(&text)?;
                text.clear();
                let keep = if index + 1 == count { 0 } else { CREATES_IN_FLIGHT / 2 };
                while index + 1 - answered > keep {
                    let answer = client.answer()?;
                    if answer.status < 0 {
                        let name = rrd_name(answered);
                        return Err(format!("CREATE {name}: {} {}", answer.status, answer.message).into());
                    }
                    answered += 1;
                    progress.inc(1);
                }
            }
        }
        Ok(start.elapsed())
    }

    /// Sends the planned rounds on every connection at once.
    pub fn send(&mut self, plan: LoadPlan) -> Outcome<Sent> {
        let start = Instant::now();
        let lane_plan = LoadPlan { pace: plan.pace / self.lanes.len() as u64, ..plan };
        let results: Vec<Outcome<(u64, u64)>> = thread::scope(|scope| {
            let workers: Vec<_> =
                self.lanes.iter_mut().map(|lane| scope.spawn(move || lane.send(lane_plan))).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|_| Err("a lane panicked".into())))
                .collect()
        });
        let mut sent = Sent { wall: start.elapsed(), ..Sent::default() };
        for result in results {
            let (values, refused) = result?;
            sent.values += values;
            sent.refused += refused;
        }
        Ok(sent)
    }

    /// FLUSHALL, then waits until STATS shows an empty queue and `written_target` data sets written.
    pub fn drain(&mut self, written_target: u64) -> Outcome<Duration> {
        let client = &mut self.lanes[0].client;
        let start = Instant::now();
        client.ask("FLUSHALL")?;
        loop {
            let stats = client.ask("STATS")?;
            let value = |name: &str| {
                let line = stats.lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                line.and_then(|text| text.trim().parse::<u64>().ok())
            };
            let (queued, written) = (value("QueueLength"), value("DataSetsWritten"));
            match (queued, written) {
                (Some(0), Some(written)) if written >= written_target => return Ok(start.elapsed()),
                (Some(_), Some(_)) => {}
                _ => return Err("STATS lacks QueueLength or DataSetsWritten".into()),
            }
            if start.elapsed() > DRAIN_LIMIT {
                return Err(format!("not drained after {DRAIN_LIMIT:?}: {stats:?}").into());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// DataSetsWritten now.
    pub fn data_sets_written(&mut self) -> Outcome<u64> {
        self.lanes[0].client.stat("DataSetsWritten")
    }
}

impl Lane {
    /// (values sent, values refused).
    fn send(&mut self, plan: LoadPlan) -> Outcome<(u64, u64)> {
        let mut text = Vec::with_capacity(BATCH_LINES * 64);
        let mut flow = Flow { in_flight: 0, lines: 0, refused: 0 };
        let start = Instant::now();
        let mut values = 0u64;
        let mut round = plan.first_round;
        let end = plan.first_round + plan.rounds;
        while round < end {
            let rounds = plan.values_per_line.max(1).min(end - round);
            for rrd in 0..self.feed.count() {
                if flow.lines == 0 && plan.batch {
                    text.extend_from_slice(b"BATCH\n");
                }
                self.feed.render_name(rrd, &mut text);
                for round in round..round + rounds {
                    self.feed.render_word(rrd, round, &mut text);
                }
                text.push(b'\n');
                values += rounds;
                flow.lines += 1;
                if flow.lines == plan.lines_per_piece() {
                    flow.push(&mut self.client, &mut text, plan)?;
                    plan.wait_for_pace(start, values);
                    if start.elapsed() > SEND_LIMIT {
                        return Err(format!("{values} values took longer than {SEND_LIMIT:?}").into());
                    }
                }
            }
            round += rounds;
        }
        if flow.lines > 0 {
            flow.push(&mut self.client, &mut text, plan)?;
        }
        flow.finish(&mut self.client, plan, 0)?;
        Ok((values, flow.refused))
    }
}

impl LoadPlan {
    /// A batch, or a tenth of what a second takes at this pace.
    fn lines_per_piece(self) -> usize {
        let most = if self.batch { BATCH_LINES } else { PLAIN_IN_FLIGHT / 2 };
        if self.pace == 0 { most } else { most.min((self.pace / 10).max(1) as usize) }
    }

    fn wait_for_pace(self, start: Instant, values: u64) {
        if self.pace > 0 {
            let due = Duration::from_secs_f64(values as f64 / self.pace as f64);
            thread::sleep(due.saturating_sub(start.elapsed()));
        }
    }
}

/// What is in flight to the daemon.
struct Flow {
    /// Outstanding answers.
    in_flight: usize,
    /// UPDATE lines rendered but not yet sent.
    lines: usize,
    /// Lines that the daemon refused.
    refused: u64,
}

impl Flow {
    /// Sends the rendered lines and reads answers until few enough are outstanding.
    fn push(&mut self, client: &mut Client, text: &mut Vec<u8>, plan: LoadPlan) -> Outcome<()> {
        if plan.batch {
            text.extend_from_slice(b".\n");
        }
        client.send(text)?;
        text.clear();
        self.in_flight += if plan.batch { 2 } else { self.lines };
        self.lines = 0;
        let keep = if plan.batch { 2 * (BATCHES_IN_FLIGHT - 1) } else { PLAIN_IN_FLIGHT / 2 };
        self.finish(client, plan, keep)
    }

    fn finish(&mut self, client: &mut Client, plan: LoadPlan, keep: usize) -> Outcome<()> {
        while self.in_flight > keep {
            let answer = client.answer()?;
            self.in_flight -= 1;
            if plan.batch {
                if answer.status < 0 {
                    return Err(format!("BATCH: {} {}", answer.status, answer.message).into());
                }
                self.refused += answer.lines.len() as u64;
            } else if answer.status < 0 {
                self.refused += 1;
            }
        }
        Ok(())
    }
}
