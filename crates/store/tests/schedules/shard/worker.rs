//! A worker that only counts. As the real one it refuses to take commands while its memory is full, needs a few rounds
//! until the checkpointer has everything, and goes on when the checkpointer has ended.

#[path = "../../../src/shard/worker/slot.rs"]
mod slot;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shuttle::sync::mpsc::Sender;

pub use slot::WorkerSlot;

use super::Shared;
use super::message::{Command, Priority};
use super::view::View;

const IDLE: Duration = Duration::from_millis(500);
/// Commands after which memory is full.
const FULL: u32 = 3;
/// Rounds that hand the memory to the checkpointer.
const TURNS: u32 = 2;

pub struct Worker {
    shared: Arc<Shared>,
    jobs: Sender<()>,
    ended: Sender<()>,
    recovery: Option<Infallible>,
    done: Vec<u32>,
    filled: u32,
    turns_left: u32,
    cycles: u32,
}

impl Worker {
    /// `jobs` go to the checkpointer, `ended` hears of each cycle that has ended.
    pub fn new(shared: Arc<Shared>, jobs: Sender<()>, ended: Sender<()>, clients: usize) -> Self {
        let done = vec![0; clients];
        Worker { shared, jobs, ended, recovery: None, done, filled: 0, turns_left: 0, cycles: 0 }
    }

    fn view(&self) -> View<'_> {
        View { done: &self.done, cycles: self.cycles }
    }

    fn takes_commands(&self) -> bool {
        self.filled < FULL || self.shared.stopping.load(Ordering::Relaxed)
    }

    fn budget(&self) -> usize {
        if self.takes_commands() { 2 } else { 0 }
    }

    fn timeout(&self) -> Duration {
        if self.turns_left > 0 { Duration::ZERO } else { IDLE }
    }

    fn round(&mut self, commands: &mut Vec<Command>, priority: &mut Vec<Priority>) {
        let mut answers = Vec::new();
        priority.drain(..).for_each(|message| self.handle(message));
        for command in commands.drain(..) {
            let done = &mut self.done[command.client];
            assert_eq!(*done, command.number, "client {} is out of order", command.client);
            *done += 1;
            self.filled += 1;
            if self.filled == FULL {
                self.turns_left = TURNS;
                self.cycles += 1;
            }
            answers.push(command);
            let mut messages = Vec::new();
            if self.shared.mailbox.has_priority() {
                self.shared.mailbox.take_priority(&mut messages);
            }
            messages.into_iter().for_each(|message| self.handle(message));
        }
        for Command { number, reply, .. } in answers {
            reply.send(number).unwrap();
        }
        if self.turns_left > 0 {
            self.turns_left -= 1;
            if self.turns_left == 0 {
                self.jobs.send(()).unwrap();
            }
        }
    }

    fn handle(&mut self, message: Priority) {
        match message {
            Priority::Query(look) => look(&self.view()),
            Priority::CycleEnded => {
                self.filled = 0;
                self.ended.send(()).unwrap();
            }
        }
    }

    fn end(self) {}
}
