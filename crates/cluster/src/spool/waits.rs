//! Who waits until what was spooled before is drained: changes that must come after it.

use super::queues::Queues;
use super::{Gathered, Spool, SpoolState};
use crate::lock::lock;

/// What is done at the end of a wait; whether everything was drained.
pub(crate) type Then = Box<dyn FnOnce(bool) + Send>;

/// One wait.
struct Wait {
    number: u64,
    partitions: Vec<u32>,
    /// Up to where each is to be drained; `None` until everything that was brought before is written.
    targets: Option<Vec<(u32, u64)>>,
    then: Then,
}

impl Wait {
    fn is_done(&self, queues: &Queues) -> bool {
        let targets = self.targets.as_ref();
        targets.is_some_and(|all| all.iter().all(|&(partition, upto)| queues.is_drained(partition, upto)))
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Waits {
    next_number: u64,
    waits: Vec<Wait>,
}

impl Waits {
    fn add(&mut self, partitions: Vec<u32>, then: Then) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.waits.push(Wait { number, partitions, targets: None, then });
        number
    }

    /// Those that begin from here on have a number that is not less.
    pub(super) fn next_number(&self) -> u64 {
        self.next_number
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// Everything was written that had been brought before the waits below a number.
    pub(super) fn aim(&mut self, below: u64, queues: &Queues) {
        for wait in self.waits.iter_mut().filter(|wait| wait.number < below && wait.targets.is_none()) {
            let target = |&partition: &u32| queues.target(partition).map(|target| (partition, target));
            wait.targets = Some(wait.partitions.iter().filter_map(target).collect());
        }
    }

    /// Whether one needs a target, or is done.
    pub(super) fn has_done(&self, queues: &Queues) -> bool {
        self.waits.iter().any(|wait| wait.targets.is_none() || wait.is_done(queues))
    }

    /// Takes out those whose partitions are drained; whether one of these is not noted yet.
    pub(super) fn take_done(&mut self, queues: &Queues) -> (Vec<Then>, bool) {
        let done: Vec<Wait> = self.waits.extract_if(.., |wait| wait.is_done(queues)).collect();
        let needs_marks =
            done.iter().flat_map(|wait| &wait.partitions).any(|&partition| queues.needs_mark(partition));
        (done.into_iter().map(|wait| wait.then).collect(), needs_marks)
    }

    /// Takes out one.
    pub(super) fn take(&mut self, number: u64) -> Option<Then> {
        let index = self.waits.iter().position(|wait| wait.number == number)?;
        Some(self.waits.swap_remove(index).then)
    }

    /// Takes out all.
    pub(super) fn take_all(&mut self) -> Vec<Then> {
        std::mem::take(&mut self.waits).into_iter().map(|wait| wait.then).collect()
    }
}

impl SpoolState {
    fn is_settled(&self, gathered: &Gathered, partitions: &[u32]) -> bool {
        let queues = self.queues();
        let is_settled =
            |&partition: &u32| queues.target(partition).is_none() && !queues.needs_mark(partition);
        gathered.is_idle() && partitions.iter().all(is_settled)
    }
}

impl Spool {
    /// Whether all updates of a partition that were brought before are drained, and noted as such.
    pub(crate) fn is_settled(&self, partition: u32) -> bool {
        self.shared.is_settled(&lock(&self.shared.gathered), &[partition])
    }

    /// Has something done once all updates of these partitions that were brought before are drained, and noted as such: at once, if they
    /// are, on this thread. Otherwise returns a number for [`Spool::give_up`].
    pub(crate) fn settle(&self, partitions: Vec<u32>, then: Then) -> Option<u64> {
        let mut gathered = lock(&self.shared.gathered);
        let is_settled = self.shared.is_settled(&gathered, &partitions);
        if is_settled || self.shared.is_stopping() {
            drop(gathered);
            then(is_settled);
            return None;
        }
        let number = gathered.waits.add(partitions, then);
        drop(gathered);
        self.shared.work.notify_one();
        Some(number)
    }

    /// Ends a wait that is not over yet.
    pub(crate) fn give_up(&self, number: u64) {
        let then = lock(&self.shared.gathered).waits.take(number);
        if let Some(then) = then {
            then(false);
        }
    }
}
