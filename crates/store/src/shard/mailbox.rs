//! The mailbox of a shard: two lanes into one owner thread.
//!
//! Changes wait in a bounded lane, so that a client that writes faster than the shard can apply is held
//! back and not the memory. Questions have a lane of their own that is looked at every few updates: a read
//! waits some microseconds, and never behind a batch.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of changes that may wait before senders are held back. Guessed: some milliseconds of work.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Changes that may wait, however small.
const WAITING_COUNT_MAX: usize = 16 * 1024;

/// Two lanes into one owner.
#[derive(Debug)]
pub struct Mailbox<Change, Question> {
    lanes: Mutex<Lanes<Change, Question>>,
    /// Whether a question waits; changed under the lock, and looked at without it.
    asked: AtomicBool,
    filled: Condvar,
    emptied: Condvar,
}

#[derive(Debug)]
struct Lanes<Change, Question> {
    changes: VecDeque<(Change, usize)>,
    changes_bytes: usize,
    questions: VecDeque<Question>,
    closed: bool,
    owner_sleeps: bool,
    /// What the owner took last it may still be working on.
    owner_holds: bool,
    /// The owner is to look, though there is nothing for it here.
    nudged: bool,
    senders_wait: usize,
}

/// The owner has gone; what was to be sent comes back.
#[derive(Debug)]
pub struct Closed<T>(pub T);

impl<Change, Question> Default for Mailbox<Change, Question> {
    fn default() -> Self {
        Mailbox {
            lanes: Mutex::new(Lanes {
                changes: VecDeque::new(),
                changes_bytes: 0,
                questions: VecDeque::new(),
                closed: false,
                owner_sleeps: false,
                owner_holds: false,
                nudged: false,
                senders_wait: 0,
            }),
            asked: AtomicBool::new(false),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }
}

impl<Change, Question> Mailbox<Change, Question> {
    fn lock(&self) -> MutexGuard<'_, Lanes<Change, Question>> {
        // A panic while the lock is held is impossible: nothing foreign runs under it.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a change of about `bytes` bytes; waits while the lane is full.
    pub fn send_change(&self, change: Change, bytes: usize) -> Result<(), Closed<Change>> {
        let mut lanes = self.lock();
        while !lanes.closed
            && (lanes.changes_bytes >= WAITING_BYTES_MAX || lanes.changes.len() >= WAITING_COUNT_MAX)
        {
            lanes.senders_wait += 1;
            lanes = self.emptied.wait(lanes).unwrap_or_else(PoisonError::into_inner);
            lanes.senders_wait -= 1;
        }
        if lanes.closed {
            return Err(Closed(change));
        }
        lanes.changes.push_back((change, bytes));
        lanes.changes_bytes += bytes;
        self.wake(lanes);
        Ok(())
    }

    /// Sends a question. Never waits: whoever asks waits for the answer anyway.
    pub fn send_question(&self, question: Question) -> Result<(), Closed<Question>> {
        let mut lanes = self.lock();
        if lanes.closed {
            return Err(Closed(question));
        }
        lanes.questions.push_back(question);
        self.asked.store(true, Ordering::Relaxed);
        self.wake(lanes);
        Ok(())
    }

    fn wake(&self, lanes: MutexGuard<'_, Lanes<Change, Question>>) {
        let sleeping = lanes.owner_sleeps;
        drop(lanes);
        if sleeping {
            self.filled.notify_one();
        }
    }

    /// Moves everything asked and at most about `bytes` of changes to the owner. Waits up to `patience`
    /// when there is neither. Returns false once the mailbox is closed and empty.
    pub fn take(
        &self,
        changes: &mut Vec<Change>,
        questions: &mut Vec<Question>,
        bytes: usize,
        patience: Duration,
    ) -> bool {
        let mut lanes = self.lock();
        lanes.owner_holds = false;
        let idle = (lanes.changes.is_empty() || bytes == 0) && lanes.questions.is_empty() && !lanes.nudged;
        if idle && !patience.is_zero() && (!lanes.closed || bytes == 0) {
            lanes.owner_sleeps = true;
            lanes = match self.filled.wait_timeout(lanes, patience) {
                Ok((lanes, _)) => lanes,
                Err(poisoned) => poisoned.into_inner().0,
            };
            lanes.owner_sleeps = false;
        }
        lanes.nudged = false;
        self.drain_questions(&mut lanes, questions);
        let mut taken = 0;
        while taken < bytes
            && let Some((change, size)) = lanes.changes.pop_front()
        {
            taken += size.max(1);
            lanes.changes_bytes -= size;
            changes.push(change);
        }
        lanes.owner_holds = taken > 0;
        if lanes.senders_wait > 0 && taken > 0 {
            self.emptied.notify_all();
        }
        !(lanes.closed && lanes.changes.is_empty() && changes.is_empty() && questions.is_empty())
    }

    /// True when all that was sent has been worked on: a change that is done now overtakes nothing.
    pub fn is_idle(&self) -> bool {
        let lanes = self.lock();
        lanes.changes.is_empty() && !lanes.owner_holds && !lanes.closed
    }

    /// Wakes the owner, or keeps it from going to sleep once.
    pub fn nudge(&self) {
        let mut lanes = self.lock();
        lanes.nudged = true;
        self.wake(lanes);
    }

    /// True when anything waits.
    pub fn is_waiting(&self) -> bool {
        let lanes = self.lock();
        !lanes.questions.is_empty() || !lanes.changes.is_empty()
    }

    /// True when a question waits. Costs a load from memory.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Takes what is asked now.
    pub fn take_questions(&self, questions: &mut Vec<Question>) {
        self.drain_questions(&mut self.lock(), questions);
    }

    fn drain_questions(&self, lanes: &mut Lanes<Change, Question>, questions: &mut Vec<Question>) {
        self.asked.store(false, Ordering::Relaxed);
        questions.extend(lanes.questions.drain(..));
    }

    /// Lets nothing more in. What waits is still taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_full_lane_holds_senders_back_and_questions_pass() {
        let mailbox: Arc<Mailbox<u32, u32>> = Arc::default();
        let sender = std::thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || (0..100).filter(|&n| mailbox.send_change(n, WAITING_BYTES_MAX / 4).is_ok()).count()
        });
        let (mut changes, mut questions) = (Vec::new(), Vec::new());
        mailbox.send_question(7).expect("open");
        assert!(mailbox.is_asked());
        while changes.len() < 100 {
            assert!(mailbox.take(&mut changes, &mut questions, 1, Duration::from_secs(5)));
            assert!(mailbox.lock().changes_bytes <= WAITING_BYTES_MAX * 5 / 4);
        }
        assert!(!mailbox.is_asked());
        assert_eq!((questions, sender.join().expect("no panic")), (vec![7], 100));
        assert!(changes.windows(2).all(|pair| pair[0] < pair[1]), "in order");
    }

    #[test]
    fn a_closed_mailbox_is_emptied_and_takes_no_more() {
        let mailbox: Mailbox<u32, u32> = Mailbox::default();
        mailbox.send_change(1, 1).expect("open");
        mailbox.close();
        assert!(mailbox.send_change(2, 1).is_err() && mailbox.send_question(2).is_err());
        let (mut changes, mut questions) = (Vec::new(), Vec::new());
        assert!(mailbox.take(&mut changes, &mut questions, 9, Duration::ZERO));
        changes.clear();
        assert!(!mailbox.take(&mut changes, &mut questions, 9, Duration::from_secs(5)));
    }
}
