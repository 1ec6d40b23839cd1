//! A daemon under test with the load that goes to it.

use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;

use crate::Outcome;
use crate::builds::Program;
use crate::client::Client;
use crate::daemon::Daemon;
use crate::load::{Load, LoadPlan};
use crate::usage::ProcessUsage;
use crate::workload::{Workload, rrd_name};

/// A daemon, its connection, and how far its values have got.
pub struct Subject {
    /// The daemon.
    pub daemon: Daemon,
    load: Load,
    workload: Workload,
    next_round: u64,
}

/// One load and what it cost.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// (RRD, time) pairs.
    pub values: u64,
    /// From the first byte to the last answer.
    pub accepted: Duration,
    /// From the first byte until everything was written.
    pub drained: Duration,
    /// The daemon's usage until then.
    pub usage: ProcessUsage,
    /// Client CPU.
    pub client_cpu: Duration,
}

impl Measured {
    /// Values per second until accepted.
    pub fn accepted_rate(&self) -> f64 {
        self.values as f64 / self.accepted.as_secs_f64()
    }

    /// Values per second until written.
    pub fn drained_rate(&self) -> f64 {
        self.values as f64 / self.drained.as_secs_f64()
    }

    /// Seconds of daemon CPU per value.
    pub fn cpu_per_value(&self) -> f64 {
        self.usage.cpu.as_secs_f64() / self.values as f64
    }
}

impl Subject {
    /// Starts a daemon in a new directory and connects `count` RRDs' worth of load to it.
    pub fn start(program: &Program, directory: &Path, workload: Workload, count: usize) -> Outcome<Self> {
        Self::on(Daemon::new(program, directory)?, workload, count)
    }

    /// As [`Subject::start`], on a daemon that is not yet started.
    pub fn on(mut daemon: Daemon, workload: Workload, count: usize) -> Outcome<Self> {
        daemon.start()?;
        let client = Client::connect(&daemon.address())?;
        Ok(Subject::through(client, daemon, workload, count))
    }

    /// A daemon that runs, and the client that its load goes through.
    pub fn through(client: Client, daemon: Daemon, workload: Workload, count: usize) -> Self {
        Subject { daemon, load: Load::over(vec![client], workload, count), workload, next_round: 0 }
    }

    /// The load alone, with its daemon to look at: for driving it from a thread of its own.
    pub fn count(&self) -> usize {
        self.load.count()
    }

    /// Creates all RRDs. Returns how many per second.
    pub fn create(&mut self, progress: &ProgressBar) -> Outcome<f64> {
        let wall = self.load.create(progress)?;
        Ok(self.load.count() as f64 / wall.as_secs_f64())
    }

    /// Sends rounds at full speed, one value per line, and waits until they are written.
    pub fn run(&mut self, rounds: u64) -> Outcome<Measured> {
        self.run_planned(LoadPlan { rounds, ..LoadPlan::default() })
    }

    /// Sends rounds, many to a line, where only the result matters.
    pub fn fill(&mut self, rounds: u64, values_per_line: u64) -> Outcome<Measured> {
        self.run_planned(LoadPlan { rounds, values_per_line, ..LoadPlan::default() })
    }

    /// Sends rounds at so many values per second.
    pub fn run_at_pace(&mut self, rounds: u64, pace: u64) -> Outcome<Measured> {
        let measured = self.send(LoadPlan { rounds, pace, ..LoadPlan::default() }, false)?;
        Ok(measured)
    }

    fn run_planned(&mut self, plan: LoadPlan) -> Outcome<Measured> {
        self.send(plan, true)
    }

    fn send(&mut self, plan: LoadPlan, drain: bool) -> Outcome<Measured> {
        let plan = LoadPlan { first_round: self.next_round, ..plan };
        let written = self.load.data_sets_written()?;
        let before = self.daemon.usage()?;
        let own_before = ProcessUsage::of(std::process::id())?;
        let sent = self.load.send(plan)?;
        let own = ProcessUsage::of(std::process::id())?.since(&own_before);
        self.next_round += plan.rounds;
        if sent.refused > 0 {
            return Err(format!("{} of {} values were refused", sent.refused, sent.values).into());
        }
        let mut drained = sent.wall;
        if drain {
            drained += self.load.drain(written + sent.values)?;
        }
        let usage = self.daemon.usage()?.since(&before);
        Ok(Measured { values: sent.values, accepted: sent.wall, drained, usage, client_cpu: own.cpu })
    }

    /// Stops cleanly and starts again. Returns the time until the first answer.
    pub fn restart(&mut self) -> Outcome<Duration> {
        self.daemon.stop()?;
        self.start_again()
    }

    /// Kills with -9 and starts again. Returns the time until LAST of an RRD answers, which must be the last round's.
    pub fn crash(&mut self) -> Outcome<Duration> {
        self.daemon.kill()?;
        self.start_again()
    }

    fn start_again(&mut self) -> Outcome<Duration> {
        let start = std::time::Instant::now();
        self.daemon.start()?;
        let mut client = self.client()?;
        let count = self.load.count();
        let want = self.workload.round_seconds(self.next_round.max(1) - 1);
        let answer = client.ask(&format!("LAST {}", rrd_name(0)))?;
        let wall = start.elapsed();
        for index in [0, count / 2, count - 1] {
            let name = rrd_name(index);
            let answer = if index == 0 { &answer } else { &client.ask(&format!("LAST {name}"))? };
            let last: i64 = answer.message.trim().parse()?;
            let late_max = self.workload.step_seconds();
            if self.next_round > 0 && !(want..want + late_max).contains(&last) {
                return Err(format!("{name} was last updated at {last} instead of {want}").into());
            }
        }
        self.load.reconnect(&self.daemon.address())?;
        Ok(wall)
    }

    /// Another connection to the daemon.
    pub fn client(&self) -> Outcome<Client> {
        Client::connect(&self.daemon.address())
    }

    /// Seconds of the newest round sent.
    pub fn now_seconds(&self) -> i64 {
        self.workload.round_seconds(self.next_round.max(1) - 1)
    }
}
