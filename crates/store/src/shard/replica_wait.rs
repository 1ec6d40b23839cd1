//! Answers that wait until a follower has what they are about (`ack = "replica"`).

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::engine::{Reply, StoreError};
use crate::lock::lock;
use crate::log::Position;

/// Why one that waited too long is refused.
const NOT_REPLICATED: &str =
    "no follower has taken this in time: it is in this server's log, and would be lost with this server";

/// One of them: the end of what it is about in the log, and until when it waits.
type WaitingAnswer = (Position, Instant, Reply<Result<(), StoreError>>);

/// The answers of a shard.
pub struct ReplicaWait {
    patience: Duration,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Some follower has everything before this.
    acknowledged: Position,
    /// By position.
    answers: VecDeque<WaitingAnswer>,
    /// The shard has stopped: nothing is acknowledged any more.
    has_ended: bool,
}

impl ReplicaWait {
    /// None waits yet; one that waits for longer than `patience` is refused.
    pub fn new(patience: Option<Duration>) -> Self {
        ReplicaWait { patience: patience.unwrap_or_default(), waiting: Mutex::default() }
    }

    /// Answers when a follower has everything before `position`.
    pub fn wait(&self, position: Position, answer: Reply<Result<(), StoreError>>) {
        let mut waiting = lock(&self.waiting);
        let result = match position <= waiting.acknowledged {
            true => Ok(()),
            false if waiting.has_ended => Err(StoreError::NotReplicated(NOT_REPLICATED)),
            false => {
                // At the end, but for an answer that has waited for an fsync before.
                let at = waiting.answers.partition_point(|(other, ..)| *other <= position);
                waiting.answers.insert(at, (position, Instant::now() + self.patience, answer));
                return;
            }
        };
        drop(waiting);
        answer(result);
    }

    /// A follower has everything before `position`.
    pub fn acknowledged(&self, position: Position) {
        let mut waiting = lock(&self.waiting);
        waiting.acknowledged = position.max(waiting.acknowledged);
        let count = waiting.answers.partition_point(|(wanted, ..)| *wanted <= position);
        let answered: Vec<_> = waiting.answers.drain(..count).collect();
        drop(waiting);
        answered.into_iter().for_each(|(.., answer)| answer(Ok(())));
    }

    /// Refuses what has waited too long.
    pub fn expire(&self) {
        let now = Instant::now();
        self.refuse(|until| until <= now, false);
    }

    /// Refuses all, and what is still to come.
    pub fn end(&self) {
        self.refuse(|_| true, true);
    }

    fn refuse(&self, is_over: impl Fn(Instant) -> bool, has_ended: bool) {
        let mut waiting = lock(&self.waiting);
        waiting.has_ended |= has_ended;
        let count = waiting.answers.iter().take_while(|(_, until, _)| is_over(*until)).count();
        let refused: Vec<_> = waiting.answers.drain(..count).collect();
        drop(waiting);
        let error = || Err(StoreError::NotReplicated(NOT_REPLICATED));
        refused.into_iter().for_each(|(.., answer)| answer(error()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn at(offset: u64) -> Position {
        Position { generation: 1, offset }
    }

    #[test]
    fn an_answer_waits_for_its_position_and_not_for_ever() {
        let wait = ReplicaWait::new(Some(Duration::ZERO));
        let (sender, answers) = mpsc::channel();
        let ask = |offset| {
            let sender = sender.clone();
            wait.wait(at(offset), Box::new(move |result| sender.send((offset, result.is_ok())).unwrap()));
        };
        for offset in [10, 20, 30] {
            ask(offset);
        }
        let answered = || answers.try_iter().collect::<Vec<_>>();
        assert_eq!(answered(), []);
        wait.acknowledged(at(20));
        assert_eq!(answered(), [(10, true), (20, true)]);
        ask(15);
        assert_eq!(answered(), [(15, true)]);
        wait.acknowledged(at(5));
        wait.expire();
        assert_eq!(answered(), [(30, false)]);
        wait.end();
        ask(40);
        ask(20);
        assert_eq!(answered(), [(40, false), (20, true)]);
    }

    #[test]
    fn an_answer_that_comes_late_lets_no_other_go_early() {
        let wait = ReplicaWait::new(Some(Duration::from_secs(60)));
        let (sender, answers) = mpsc::channel();
        // That of a sync has waited for an fsync meanwhile.
        for offset in [20, 10, 30] {
            let sender = sender.clone();
            wait.wait(at(offset), Box::new(move |result| sender.send((offset, result.is_ok())).unwrap()));
        }
        let answered = || answers.try_iter().collect::<Vec<_>>();
        for (acknowledged, want) in [(10, 10), (20, 20), (30, 30)] {
            wait.acknowledged(at(acknowledged));
            assert_eq!(answered(), [(want, true)]);
        }
    }
}
