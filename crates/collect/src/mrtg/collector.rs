//! The collector of `[[mrtg]]`: when what is read, and which targets have a new reading.
//!
//! Programs are read at multiples of the interval by the clock, and so are agents, a little apart. A target has its reading when all
//! its terms have been answered: it waits for no other target's agent.

use std::net::SocketAddr;
use std::ops::AddAssign;
use std::sync::Arc;

use super::agents::{Agents, obstacle};
use super::plan::{Answer, MrtgPlan, TermId};
use super::program;
use super::term::{AgentAddress, Term};
use crate::complaints::{Complaints, Notice};
use crate::reading::Readings;
use crate::snmp::engine::Now;
use crate::snmp::totals::Totals;
use crate::statistics::Statistic;

/// How a collector works.
#[derive(Clone, Debug)]
pub struct MrtgCollectorOptions {
    /// What messages call the configuration.
    pub config: String,
    /// Whether programs are run.
    pub programs: bool,
    /// Requests in flight at most.
    pub window: usize,
    /// Makes the ids of requests hard to guess.
    pub seed: u64,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MrtgCounts {
    /// Rounds begun.
    pub rounds: u64,
    /// Programs run.
    pub programs: u64,
    /// Programs that failed or did not end in time.
    pub failed_programs: u64,
    /// Readings of targets.
    pub readings: u64,
    /// Those of them without any value.
    pub unknown: u64,
    /// What the SNMP engine counts.
    pub snmp: Totals,
}

impl MrtgCounts {
    /// The numbers for `/metrics` and for an RRD.
    pub fn statistics(&self) -> Vec<Statistic> {
        let mut numbers = vec![
            Statistic::count("rounds", "Rounds begun", self.rounds),
            Statistic::count("readings", "Readings of targets", self.readings),
            Statistic::count("unknown", "Readings without any value", self.unknown),
            Statistic::count("programs", "Programs run", self.programs),
            Statistic::count(
                "failed_programs",
                "Programs that failed or took too long",
                self.failed_programs,
            ),
        ];
        numbers.extend(self.snmp.statistics());
        numbers
    }
}

impl AddAssign for MrtgCounts {
    fn add_assign(&mut self, more: Self) {
        self.rounds += more.rounds;
        self.programs += more.programs;
        self.failed_programs += more.failed_programs;
        self.readings += more.readings;
        self.unknown += more.unknown;
        self.snmp += more.snmp;
    }
}

/// Where a target's terms are on their way.
#[derive(Clone, Debug)]
struct Progress {
    /// Which of its terms have been answered since its last reading.
    fresh: Vec<bool>,
    missing: usize,
    /// The time of its last reading, in seconds.
    last: i64,
    /// True when it never has a reading.
    is_off: bool,
}

/// Reads what a configuration names.
#[derive(Debug)]
pub struct MrtgCollector {
    plan: Arc<MrtgPlan>,
    agents: Agents,
    runs_programs: bool,
    /// By term: whether it cannot be read.
    is_unreadable: Vec<bool>,
    answers: Vec<Answer>,
    /// Memory for answers on their way there.
    arrived: Vec<(TermId, Answer)>,
    progress: Vec<Progress>,
    complete: Vec<usize>,
    commands: Vec<TermId>,
    /// Programs that have not ended.
    is_running: Vec<bool>,
    complaints: Complaints,
    /// When the next round begins, in microseconds by the clock.
    due: i64,
    counts: MrtgCounts,
}

impl MrtgCollector {
    /// A collector whose first round begins at `due`, in seconds since 1970, but not before `now`.
    pub fn new(now: Now, plan: Arc<MrtgPlan>, options: &MrtgCollectorOptions, due: i64) -> Self {
        let is_program = |term: &TermId| matches!(plan.terms[*term].1, Term::Program(_));
        let mut progress = Vec::with_capacity(plan.targets.len());
        for target in &plan.targets {
            let (fresh, missing) = (vec![false; target.terms.len()], target.terms.len());
            let is_off = !options.programs && target.terms.iter().any(is_program);
            progress.push(Progress { fresh, missing, last: i64::MIN, is_off });
        }
        let mut collector = MrtgCollector {
            agents: Agents::new(now, &plan, options.window, options.seed),
            runs_programs: options.programs,
            is_unreadable: plan.terms.iter().map(|(_, term)| cause(term).is_some()).collect(),
            answers: vec![Answer::default(); plan.terms.len()],
            arrived: Vec::new(),
            progress,
            complete: Vec::new(),
            commands: Vec::new(),
            is_running: vec![false; plan.terms.len()],
            complaints: Complaints::default(),
            due: due.saturating_mul(1_000_000).max(now.wall),
            counts: MrtgCounts::default(),
            plan,
        };
        collector.complain(&options.config);
        collector
    }

    /// Says what of the configuration has no values, once.
    fn complain(&mut self, config: &str) {
        if self.progress.iter().any(|progress| progress.is_off) {
            let subject = format!("{config}: programs are switched off (programs = false)");
            self.complaints.raise(&subject, "some targets get no readings");
        }
        for target in &self.plan.targets {
            let causes = target.terms.iter().filter_map(|term| cause(&self.plan.terms[*term].1));
            let causes: Vec<String> =
                target.expression.as_ref().err().cloned().into_iter().chain(causes).collect();
            if !causes.is_empty() {
                let subject = format!("{}: target[{}]", target.place, target.name);
                self.complaints.raise(&subject, format!("its values are unknown: {}", causes.join("; ")));
            }
        }
    }

    /// Where the agents are said to be, by their number.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = &AgentAddress> {
        self.agents.addresses()
    }

    /// Notes where an agent is; it is polled from now on.
    pub fn set_address(&mut self, now: Now, agent: usize, address: SocketAddr) {
        self.agents.set_address(now, agent, address);
    }

    /// Notes that an agent's name has no address.
    pub fn cannot_resolve(&mut self, now: Now, agent: usize, error: &str) {
        self.agents.cannot_resolve(now, agent, error);
    }

    /// When the round after this one begins, in seconds since 1970.
    pub fn due(&self) -> i64 {
        self.due.div_euclid(1_000_000)
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.agents.in_flight()
    }

    /// Whether no agent's answer is awaited, and none will be soon.
    pub fn is_resting(&self, now: Now) -> bool {
        self.agents.is_resting(now)
    }

    /// When [`MrtgCollector::tick`] is due, at the latest, by the clock that only goes forward.
    pub fn next_tick(&self, now: Now) -> u64 {
        let round = now.mono + u64::try_from(self.due - now.wall).unwrap_or(0);
        self.agents.next_tick().map_or(round, |tick| tick.min(round))
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now) {
        if now.wall >= self.due {
            let step = (self.plan.interval.step().max(1) * 1_000_000) as i64;
            self.due = (now.wall.div_euclid(step) + 1) * step;
            self.begin_round(now);
        }
        self.agents.tick(now);
        self.take_answers();
    }

    /// Takes a datagram.
    pub fn receive(&mut self, now: Now, from: SocketAddr, datagram: &[u8]) {
        self.agents.receive(now, from, datagram);
        self.take_answers();
    }

    /// Programs to run now, with their command lines.
    pub fn take_commands(&mut self) -> Vec<(TermId, String)> {
        let commands = std::mem::take(&mut self.commands).into_iter().filter_map(|term| {
            match &self.plan.terms[term].1 {
                Term::Program(command) => Some((term, command.clone())),
                _ => None,
            }
        });
        commands.collect()
    }

    /// Takes what a program printed, or why it could not be run.
    pub fn program_ended(&mut self, now: Now, term: TermId, output: Result<Vec<u8>, String>) {
        self.is_running[term] = false;
        let time = seconds(now);
        let subject = &self.plan.terms[term].0;
        let complain = |complaints: &mut Complaints, cause: &str| {
            complaints.raise(subject, format!("{cause} ({})", self.plan.describe_users(&[term])));
        };
        let answer = match output.map(|bytes| program::read(&bytes)) {
            Ok(output) => {
                match output.complaint {
                    Some(complaint) => complain(&mut self.complaints, &complaint),
                    None => self.complaints.resolve(subject),
                }
                Answer { time, input: output.input, output: output.output, is_reset: false }
            }
            Err(cause) => {
                self.counts.failed_programs += 1;
                complain(&mut self.complaints, &cause);
                Answer { time, ..Answer::default() }
            }
        };
        self.take_answer(term, answer);
    }

    /// Passes each datagram that is to be sent to `send`, with the number of its agent.
    pub fn send_all(&mut self, send: impl FnMut(usize, SocketAddr, &[u8])) {
        self.agents.send_all(send);
    }

    /// The targets that have a new reading since the last call.
    pub fn take_complete(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.complete)
    }

    /// Appends the new reading of a target.
    pub fn push_reading(&mut self, now: Now, target: usize, readings: &mut Readings) {
        let before = readings.len();
        self.plan.push_reading(&self.plan.targets[target], &self.answers, seconds(now), readings);
        let Some(reading) = readings.iter().next_back() else { return };
        let last = &mut self.progress[target].last;
        if reading.time.whole <= *last {
            // A second one in the same second, of a lookup just after a pass.
            return readings.truncate(before);
        }
        *last = reading.time.whole;
        self.counts.readings += 1;
        let is_unknown = readings.values(reading).all(|value| value == crate::reading::Value::Unknown);
        self.counts.unknown += u64::from(is_unknown);
    }

    /// What is wrong since the last call, and what no longer is.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let mut notices = self.complaints.take_notices();
        notices.extend(self.agents.take_notices());
        notices
    }

    /// Counters since the start.
    pub fn counts(&self) -> MrtgCounts {
        MrtgCounts { snmp: self.agents.totals(), ..self.counts }
    }

    fn begin_round(&mut self, now: Now) {
        self.counts.rounds += 1;
        let time = seconds(now);
        for term in 0..self.plan.terms.len() {
            match &self.plan.terms[term].1 {
                Term::Program(_) if !self.runs_programs || self.is_running[term] => {}
                Term::Program(_) => {
                    self.is_running[term] = true;
                    self.counts.programs += 1;
                    self.commands.push(term);
                }
                _ if self.is_unreadable[term] => {
                    self.take_answer(term, Answer { time, ..Answer::default() });
                }
                Term::Snmp(_) | Term::Unreadable(_) => {}
            }
        }
        let constant = |(number, target): (usize, &super::plan::PlannedTarget)| {
            target.terms.is_empty().then_some(number)
        };
        self.complete.extend(self.plan.targets.iter().enumerate().filter_map(constant));
    }

    fn take_answers(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        self.agents.swap_answers(&mut arrived);
        for (term, answer) in arrived.drain(..) {
            self.take_answer(term, answer);
        }
        self.arrived = arrived;
    }

    fn take_answer(&mut self, term: TermId, answer: Answer) {
        let before = &self.answers[term];
        // A restart that no target has seen yet is still one.
        let is_unseen = before.is_reset
            && self.plan.users[term]
                .iter()
                .any(|(target, nth)| self.progress[*target as usize].fresh[*nth as usize]);
        self.answers[term] = Answer { is_reset: answer.is_reset || is_unseen, ..answer };
        for &(target, nth) in &self.plan.users[term] {
            let progress = &mut self.progress[target as usize];
            if progress.is_off || std::mem::replace(&mut progress.fresh[nth as usize], true) {
                continue;
            }
            progress.missing -= 1;
            if progress.missing == 0 {
                progress.missing = progress.fresh.len();
                progress.fresh.fill(false);
                self.complete.push(target as usize);
            }
        }
    }
}

/// Why a term is never answered, if it is not.
fn cause(term: &Term) -> Option<String> {
    match term {
        Term::Unreadable(cause) => Some(cause.clone()),
        Term::Snmp(term) => obstacle(term),
        Term::Program(_) => None,
    }
}

fn seconds(now: Now) -> i64 {
    now.wall.div_euclid(1_000_000)
}

#[cfg(test)]
mod tests;
