//! One request to the leader of a partition, tried until it is done or its time is over.
//!
//! A node that does not lead says who does. When the outcome of an attempt is not known, because the connection or the leader was lost, only what
//! may be done twice is tried again; then what was done already by the first attempt does not count as a failure of the second.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use store::engine::{Reply, StoreError};

use super::{Hub, done, is_outcome_unknown, passes, shown};
use crate::execute;
use crate::peer::{NoAnswer, Received};
use crate::routes::NodeAddress;
use crate::wire::{Answer, Ask, Request, Told, add_stats};

/// Before a second attempt, and at most between two.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];
/// In the time of a request there is room for so many attempts that get no answer.
const ATTEMPTS: u32 = 3;
/// Requests for whole RRDs or stores may take so many times as long as others.
const LONGER: u32 = 6;
/// The part of that time that counters get.
const SHORTER: u32 = 5;

/// What is common to all that is tried again: how long, how often, and where.
#[derive(Clone)]
pub(super) struct Trial {
    pub(super) partition: u32,
    pub(super) until: Instant,
    pause: Duration,
    /// Who leads, according to a node that does not.
    pub(super) hint: Option<NodeAddress>,
    /// Why the last attempt failed.
    pub(super) said: String,
}

impl Trial {
    pub(super) fn new(partition: u32, patience: Duration) -> Self {
        let until = Instant::now() + patience;
        Trial { partition, until, pause: PAUSES[0], hint: None, said: String::new() }
    }

    /// The leader on another node, as far as it is known.
    pub(super) fn leader(&mut self, hub: &Hub) -> Option<NodeAddress> {
        // What a node has just said is newer than what this one knows; but it is asked only once.
        let leader = self.hint.take().or_else(|| hub.routes.route(self.partition).leader);
        if leader.is_none() {
            self.note_no_leader(hub);
        }
        leader
    }

    /// Notes why a node gave no answer; whether it may have done what was asked.
    pub(super) fn note(&mut self, node: &NodeAddress, why: NoAnswer) -> bool {
        let (partition, node) = (self.partition, shown(node));
        let (why, is_unknown) = match why {
            NoAnswer::Unsent(why) => (format!("does not answer: {why}"), false),
            NoAnswer::Unknown(why) => (format!("does not answer: {why}"), true),
            NoAnswer::Older(version) => (format!("cannot do that: {}", NoAnswer::older(version)), false),
        };
        self.said = format!("partition {partition}: node {node} {why}");
        is_unknown
    }

    /// Notes that a node does not lead the partition.
    pub(super) fn note_follower(&mut self, node: &NodeAddress, leader: Option<(String, String)>) {
        self.said = format!("partition {}: node {} does not lead it", self.partition, shown(node));
        let hint = leader.map(|(name, address)| NodeAddress { name, address });
        self.hint = hint.filter(|hint| hint != node);
    }

    /// Until when an attempt is waited for: a node that lost its lead may not know it, and never answer.
    pub(super) fn attempt_until(&self, hub: &Hub) -> Instant {
        self.until.min(Instant::now() + hub.options.patience / ATTEMPTS)
    }

    /// When to try again.
    pub(super) fn pause(&mut self) -> Instant {
        let next = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSES[1]);
        next
    }

    /// When to try again; `None` when the time is over.
    pub(super) fn next(&mut self) -> Option<Instant> {
        let next = self.pause();
        (next < self.until).then_some(next)
    }

    /// Whether the time is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Notes that no node leads the partition.
    pub(super) fn note_no_leader(&mut self, hub: &Hub) {
        let what = match hub.routes.is_sealed(self.partition) {
            true => "is sealed: the cluster goes on in another log, once its nodes are started with that",
            false => "has no leader now",
        };
        self.said = format!("partition {} {what}", self.partition);
    }

    /// The error of a request whose time is over.
    pub(super) fn unavailable(&self) -> StoreError {
        let said = match self.said.is_empty() {
            true => format!("partition {} did not answer in time", self.partition),
            false => self.said.clone(),
        };
        StoreError::Unavailable(format!("{said}; try again later"))
    }
}

/// A request on its way.
struct Errand {
    hub: Arc<Hub>,
    trial: Trial,
    request: Request,
    is_unknown: bool,
    reply: Reply<Result<Answer, StoreError>>,
}

impl Errand {
    fn go(mut self) {
        if self.hub.is_stopping() {
            return (self.reply)(Err(StoreError::Stopping));
        }
        if let Some(engine) = self.hub.led_here(self.trial.partition) {
            let request = self.request.clone();
            return execute::run(&*engine, request, Box::new(move |result| self.ended(result)));
        }
        let hub = Arc::clone(&self.hub);
        let Some(node) = self.trial.leader(&hub) else { return self.again() };
        match hub.peer(&node) {
            Ok(peer) => {
                let partition = self.trial.partition;
                let until = match self.request.is_repeatable() && !is_long(&self.request) {
                    true => self.trial.attempt_until(&hub),
                    false => self.trial.until,
                };
                let request = Ask { partition, leader_only: true, round: 0, request: self.request };
                let letter = request.letter();
                self.request = request.request;
                peer.ask(partition, letter, until, Box::new(move |heard| self.heard(&node, heard)));
            }
            Err(error) => {
                self.trial.note(&node, NoAnswer::Unsent(error.to_string()));
                self.again();
            }
        }
    }

    fn heard(mut self, node: &NodeAddress, heard: Result<Received, NoAnswer>) {
        match heard.map(|received| received.told()) {
            Ok(Ok(Told::Answer(answer, _))) => self.ended(Ok(answer)),
            Ok(Ok(Told::Refused(error))) => self.ended(Err(error)),
            Ok(Ok(Told::NotLeader(leader))) => {
                self.trial.note_follower(node, leader);
                self.again();
            }
            Ok(Ok(Told::Absent)) => {
                self.trial.note_follower(node, None);
                self.again();
            }
            Ok(Ok(Told::Unreadable(why))) => {
                let text = format!(
                    "node {} cannot read a request: {why}; upgrade the older one of the two",
                    shown(node)
                );
                (self.reply)(Err(StoreError::Unavailable(text)));
            }
            Ok(Err(error)) => {
                let text = format!("cannot read an answer of node {}: {error}", shown(node));
                (self.reply)(Err(StoreError::Unavailable(text)));
            }
            Err(NoAnswer::Older(version)) => {
                self.trial.note(node, NoAnswer::Older(version));
                (self.reply)(Err(StoreError::Unavailable(self.trial.said)));
            }
            Err(why) => {
                self.is_unknown |= self.trial.note(node, why);
                self.again();
            }
        }
    }

    /// A store has answered.
    fn ended(mut self, result: Result<Answer, StoreError>) {
        match result {
            Err(error) if passes(&error) => {
                self.is_unknown |= is_outcome_unknown(&error);
                self.trial.said = format!("partition {}: {error}", self.trial.partition);
                self.again();
            }
            Err(error) if self.is_unknown && was_done_before(&self.request, &error) => {
                // It is, as far as the store knows; once that is in the log, it stays so. This may be the store's own thread, which must not wait for itself.
                self.request = Request::Sync;
                let hub = Arc::clone(&self.hub);
                hub.retries.now(move || self.go());
            }
            result => (self.reply)(result),
        }
    }

    fn again(mut self) {
        if self.is_unknown && !self.request.is_repeatable() {
            let text = format!(
                "{}; it is not known whether that was done: look before you try again",
                self.trial.said
            );
            return (self.reply)(Err(StoreError::Unavailable(text)));
        }
        match self.trial.next() {
            Some(next) => {
                let hub = Arc::clone(&self.hub);
                hub.retries.at(next, move || self.go());
            }
            None => (self.reply)(Err(self.trial.unavailable())),
        }
    }
}

/// Whether a request is for a whole RRD or store.
fn is_long(request: &Request) -> bool {
    matches!(
        request,
        Request::Import(..) | Request::Copy(..) | Request::Read(_) | Request::Flush(_) | Request::Sync
    )
}

/// Whether the error of a second attempt says that the first one, of unknown outcome, did it.
fn was_done_before(request: &Request, error: &StoreError) -> bool {
    match (request, error) {
        (Request::Delete(_), StoreError::NoSuchRrd(_)) => true,
        (Request::Create(_, create), StoreError::Exists(_)) => create.no_overwrite,
        (Request::Import(_, _, no_overwrite), StoreError::Exists(_)) => *no_overwrite,
        _ => false,
    }
}

impl Hub {
    /// How long a request is tried.
    pub(super) fn patience(&self, request: &Request) -> Duration {
        match request {
            // Who looks at counters looks again soon, and those of most partitions are better than none.
            Request::Stats => self.options.patience / SHORTER,
            request if is_long(request) => self.options.patience * LONGER,
            _ => self.options.patience,
        }
    }

    /// Has the leader of a partition do something; the answer comes by a callback.
    pub(super) fn order_then(
        self: &Arc<Self>,
        partition: u32,
        request: Request,
        reply: Reply<Result<Answer, StoreError>>,
    ) {
        let has_spooled = self.spool.get().is_some_and(|spool| !spool.is_settled(partition));
        if matches!(request, Request::Flush(_) | Request::Sync)
            && !has_spooled
            && self.routes.is_sealed(partition)
        {
            // All that counts was in the log by then.
            return reply(Ok(Answer::Done));
        }
        let trial = Trial::new(partition, self.patience(&request));
        let until = trial.until;
        let (follows, errand) = (
            request.follows_updates(),
            Errand { hub: Arc::clone(self), trial, request, is_unknown: false, reply },
        );
        match follows {
            false => errand.go(),
            true => self.after_spooled(partition, until, move |settled| match settled {
                Ok(()) => errand.go(),
                Err(error) => (errand.reply)(Err(error)),
            }),
        }
    }

    /// Has the leader of a partition do something, and waits for it.
    ///
    /// # Errors
    /// The store's; [`StoreError::Unavailable`] when there is no answer in time.
    pub(super) fn order(self: &Arc<Self>, partition: u32, request: Request) -> Result<Answer, StoreError> {
        let (sender, receiver) = mpsc::channel();
        self.order_then(partition, request, Box::new(move |result| drop(sender.send(result))));
        receiver.recv().unwrap_or(Err(StoreError::Stopping))
    }

    /// Has the leaders of all partitions do the same, side by side.
    ///
    /// # Errors
    /// The first failure, by the number of the partition; the others do it all the same.
    pub(super) fn order_all(self: &Arc<Self>, request: &Request) -> Result<(), StoreError> {
        self.order_each((0..self.routes.partition_count()).collect(), request)
    }

    /// The same for some partitions.
    pub(super) fn order_each(
        self: &Arc<Self>,
        partitions: Vec<u32>,
        request: &Request,
    ) -> Result<(), StoreError> {
        let answers = self.gather(partitions, request);
        answers.into_iter().map(|(_, result)| result.and_then(done)).fold(Ok(()), Result::and)
    }

    /// Asks leaders side by side: other nodes at once, the stores of this one by some threads.
    pub(super) fn gather(
        self: &Arc<Self>,
        partitions: Vec<u32>,
        request: &Request,
    ) -> Vec<(u32, Result<Answer, StoreError>)> {
        let (sender, receiver) = mpsc::channel();
        for partition in partitions {
            let (hub, request, sender) = (Arc::clone(self), request.clone(), sender.clone());
            self.reads.now(move || {
                let answered = move |result| drop(sender.send((partition, result)));
                hub.order_then(partition, request, Box::new(answered));
            });
        }
        drop(sender);
        let mut answers: Vec<_> = receiver.iter().collect();
        answers.sort_by_key(|(partition, _)| *partition);
        answers
    }

    /// What the leaders have in their trash, by partition.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn trash(self: &Arc<Self>) -> Result<Vec<Answer>, StoreError> {
        let partitions = (0..self.routes.partition_count()).collect();
        self.gather(partitions, &Request::Trash).into_iter().map(|(_, result)| result).collect()
    }

    /// The counters of all leaders that answer, added up.
    pub(super) fn stats(self: &Arc<Self>) -> store::engine::Stats {
        let partitions = (0..self.routes.partition_count()).collect();
        let mut total = store::engine::Stats::default();
        for (_, answer) in self.gather(partitions, &Request::Stats) {
            if let Ok(Answer::Stats(stats)) = answer {
                add_stats(&mut total, *stats);
            }
        }
        total
    }
}
