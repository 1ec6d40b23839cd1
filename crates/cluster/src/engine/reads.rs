//! Reads: the leader is asked, and a follower as well when it does not answer soon.
//!
//! A follower may be a little late. So what it finds is an answer, but that it finds nothing is one only if no other replica answers. A replica of this node
//! that has not caught up since it was opened, or stands still, may lack hours: it answers only when no other one has for a while.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use store::engine::{Engine, Hold, StoreError};
use store::read_age::{self, Age, ReadAge};
use store::tree::ListError;

use super::errand::Trial;
use super::{Hub, passes, strange};
use crate::execute;
use crate::key;
use crate::peer::{NoAnswer, Received};
use crate::routes::NodeAddress;
use crate::wire::{Answer, Ask, Request, Told};

/// Once a follower has refused a read, how many times the time of a hedge the others have to say better.
const GRACE: u32 = 10;

/// In the time of a read, this part goes by before a replica is asked that has not caught up.
const OTHERS_FIRST: u32 = 3;

/// So often in a round, a node is asked that another one takes for the leader.
const HINTS_MAX: u32 = 3;

/// A replica that can be asked.
enum Replica {
    Leader(NodeAddress),
    Here(Arc<dyn Engine>),
    Follower(NodeAddress),
}

/// What came from a node.
type Heard = (NodeAddress, bool, Result<Received, NoAnswer>);

/// A read on its way.
struct Read<'a> {
    hub: &'a Arc<Hub>,
    trial: Trial,
    request: Request,
    sender: Sender<Heard>,
    receiver: Receiver<Heard>,
    /// When a replica may answer that has not caught up.
    old_from: Instant,
    /// How many nodes have not answered yet.
    asked: usize,
    /// What a follower refused it with.
    refused: Option<StoreError>,
}

/// An answer, and how old it may be at most.
pub(super) struct Aged {
    answer: Answer,
    age: Age,
}

/// The age of which a node knows that, or not.
fn age_of(known: Option<Duration>) -> Age {
    known.map_or(Age::Unknown, Age::AtMost)
}

impl Read<'_> {
    /// All replicas, the best first.
    fn replicas(&mut self) -> Vec<Replica> {
        let route = self.hub.routes.route(self.trial.partition);
        let leader = self.trial.leader(self.hub);
        let here = self.hub.routes.local(self.trial.partition).map(|(engine, _)| Replica::Here(engine));
        let is_current = self.hub.routes.is_current(self.trial.partition);
        let (here, old) = if is_current { (here, None) } else { (None, here) };
        let old = old.filter(|_| Instant::now() >= self.old_from);
        let others =
            route.leader.into_iter().chain(route.followers).filter(|node| Some(node) != leader.as_ref());
        let others: Vec<_> = others.map(Replica::Follower).collect();
        leader.into_iter().map(Replica::Leader).chain(here).chain(others).chain(old).collect()
    }

    fn ask(&mut self, node: NodeAddress, leader_only: bool) {
        let peer = match self.hub.peer(&node) {
            Ok(peer) => peer,
            Err(error) => {
                self.trial.note(&node, NoAnswer::Unsent(error.to_string()));
                return;
            }
        };
        let ask =
            Ask { partition: self.trial.partition, leader_only, round: 0, request: self.request.clone() };
        let sender = self.sender.clone();
        self.asked += 1;
        let heard = move |bytes| drop(sender.send((node, leader_only, bytes)));
        let until = match self.request {
            Request::Read(_) => self.trial.until,
            _ => self.trial.attempt_until(self.hub),
        };
        peer.ask(self.trial.partition, ask.letter(), until, Box::new(heard));
    }

    /// Waits for answers of those who were asked; `None` when there is none that ends the read.
    fn wait(&mut self, until: Instant) -> Option<Result<Aged, StoreError>> {
        while self.asked > 0 {
            let left = until.saturating_duration_since(Instant::now());
            match self.receiver.recv_timeout(left) {
                Ok(heard) => {
                    self.asked -= 1;
                    if let Some(answer) = self.judge(heard) {
                        return Some(answer);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    fn judge(&mut self, (node, is_leader, heard): Heard) -> Option<Result<Aged, StoreError>> {
        match heard.map(|received| received.told()) {
            Ok(Ok(Told::Answer(answer, age))) => return Some(Ok(Aged { answer, age: age_of(age) })),
            Ok(Ok(Told::Refused(error))) if passes(&error) => {
                self.trial.said = format!("partition {}: {error}", self.trial.partition);
            }
            Ok(Ok(Told::Refused(error))) if is_leader => return Some(Err(error)),
            Ok(Ok(Told::Refused(error))) => self.refused = Some(error),
            Ok(Ok(Told::NotLeader(leader))) => self.trial.note_follower(&node, leader),
            Ok(Ok(Told::Absent)) => self.trial.note_follower(&node, None),
            Ok(Ok(Told::Unreadable(why))) => {
                self.trial.note(&node, NoAnswer::Unsent(why));
            }
            Ok(Err(error)) => {
                self.trial.note(&node, NoAnswer::Unsent(error.to_string()));
            }
            Err(why) => {
                self.trial.note(&node, why);
            }
        }
        None
    }

    /// Has a store of this node answer.
    fn answer_here(&self, engine: &dyn Engine) -> Result<Aged, StoreError> {
        // As of before it is read.
        let age = age_of(self.hub.routes.age(self.trial.partition));
        execute::answer(engine, self.request.clone()).map(|answer| Aged { answer, age })
    }

    /// Asks one replica after the other, each when those before it were given their time.
    fn round(&mut self) -> Option<Result<Aged, StoreError>> {
        let hedge = self.hub.options.hedge;
        let mut replicas = VecDeque::from(self.replicas());
        let mut hints = 0;
        while let Some(replica) = replicas.pop_front() {
            match replica {
                Replica::Leader(node) => self.ask(node, true),
                Replica::Follower(node) => self.ask(node, false),
                Replica::Here(engine) => match self.answer_here(&*engine) {
                    Ok(answer) => return Some(Ok(answer)),
                    Err(error) if passes(&error) => {}
                    Err(error) => self.refused = Some(error),
                },
            }
            if let Some(answer) = self.wait(Instant::now() + hedge) {
                return Some(answer);
            }
            // A node that does not lead has said who does. That one has what a client has just written, so it is asked before any follower.
            if hints < HINTS_MAX
                && let Some(leader) = self.trial.hint.take()
            {
                hints += 1;
                replicas.push_front(Replica::Leader(leader));
            }
        }
        // All were asked.
        let until = match self.refused {
            Some(_) => self.trial.until.min(Instant::now() + hedge * GRACE),
            None => self.trial.until,
        };
        self.wait(until).or_else(|| {
            let refused = self.refused.take()?;
            read_age::note(Age::Unknown);
            Some(Err(refused))
        })
    }

    fn run(&mut self) -> Result<Aged, StoreError> {
        loop {
            if self.hub.is_stopping() {
                return Err(StoreError::Stopping);
            }
            if let Some(engine) = self.hub.led_here(self.trial.partition) {
                match self.answer_here(&*engine) {
                    Err(error) if passes(&error) => self.trial.said = error.to_string(),
                    result => return result,
                }
            } else if let Some(answer) = self.round() {
                return answer;
            }
            match self.trial.next() {
                Some(next) => std::thread::sleep(next.saturating_duration_since(Instant::now())),
                None => return Err(self.trial.unavailable()),
            }
        }
    }
}

/// The answer, once its age is noted.
fn noted(Aged { answer, age }: Aged) -> Answer {
    read_age::note(age);
    answer
}

impl Hub {
    /// Reads from a replica of a partition, and notes how old that may be for the request of this thread.
    ///
    /// # Errors
    /// The store's; [`StoreError::Unavailable`] when no replica answers in time.
    pub(super) fn read(self: &Arc<Self>, partition: u32, request: Request) -> Result<Answer, StoreError> {
        self.read_aged(partition, request).map(noted)
    }

    fn read_aged(self: &Arc<Self>, partition: u32, request: Request) -> Result<Aged, StoreError> {
        let (sender, receiver) = mpsc::channel();
        let trial = Trial::new(partition, self.patience(&request));
        let old_from = Instant::now() + self.options.patience / OTHERS_FIRST;
        Read { hub: self, trial, request, sender, receiver, old_from, asked: 0, refused: None }.run()
    }

    /// Reads the same from all partitions, side by side, until `take` has enough.
    ///
    /// # Errors
    /// The first failure.
    fn read_all(
        self: &Arc<Self>,
        request: &Request,
        take: &mut dyn FnMut(Answer) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        for partition in 0..self.routes.partition_count() {
            let (hub, request, sender) = (Arc::clone(self), request.clone(), sender.clone());
            let (is_over, begun) = (Arc::clone(&is_over), ReadAge::current());
            self.reads.now(move || {
                if !is_over.load(Ordering::Relaxed) {
                    let read = || hub.read_aged(partition, request);
                    let _ = sender.send(ReadAge::go_on(begun.as_ref(), read));
                }
            });
        }
        drop(sender);
        let taken = receiver.iter().find_map(|result| match result.map(noted).and_then(&mut *take) {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        });
        // Partitions that are not asked yet need not be.
        is_over.store(true, Ordering::Relaxed);
        taken.unwrap_or(Ok(()))
    }

    /// The names of all partitions, merged.
    ///
    /// # Errors
    /// As [`Engine::list_within`].
    pub(super) fn list(
        self: &Arc<Self>,
        directory: &[u8],
        recursive: bool,
        hold: Hold<'_>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut names = Vec::new();
        let request = Request::List(directory.to_vec(), recursive);
        self.read_all(&request, &mut |answer| match answer {
            Answer::Names(more) => {
                let bytes: usize = more.iter().map(|name| name.len() + size_of::<Vec<u8>>()).sum();
                if !hold(bytes as u64) {
                    return Err(ListError::NoMemory.into());
                }
                names.extend(more);
                Ok(false)
            }
            other => strange(other),
        })?;
        names.sort_unstable();
        // A directory can have RRDs of several partitions below it.
        names.dedup();
        Ok(names)
    }

    /// Whether any partition has a directory.
    ///
    /// # Errors
    /// As [`Engine::has_directory`].
    pub(super) fn has_directory(self: &Arc<Self>, directory: &[u8]) -> Result<bool, StoreError> {
        let request = Request::HasDirectory(directory.to_vec());
        // What is immediately in it is in one partition, and most directories have that.
        let home = key::of_directory(directory, self.routes.partition_count());
        let mut is = false;
        let mut take = |answer| match answer {
            Answer::Is(found) => {
                is |= found;
                Ok(is)
            }
            other => strange(other),
        };
        if !take(self.read(home, request.clone())?)? {
            self.read_all(&request, &mut take)?;
        }
        Ok(is)
    }
}
