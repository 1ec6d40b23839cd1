//! The order of the updates of a partition while its leader changes.
//!
//! A client may send batch after batch without waiting for answers. When a leader is lost, some of them fail, and must reach the next leader before
//! any later one does: RRDtool refuses what comes late. So parts that are tried again, and all that come after them, wait at a gate; it opens when
//! none is on its way any more, and lets them through in their order, to one leader. A node that did not take one takes none of those that
//! were already on their way after it ([`crate::wire::Ask::round`]), even if it leads again by then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use store::engine::{Engine, StoreError};

use super::Hub;
use super::updates::Part;
use crate::lock::lock;
use crate::routes::NodeAddress;

/// How long it counts who leads according to a node that does not, against what this node knows.
const HINT_LIFE: Duration = Duration::from_secs(1);

/// Where a part goes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Here,
    Node(NodeAddress),
}

/// The gate of a partition.
#[derive(Default)]
pub(super) struct Gate(Mutex<Parts>);

#[derive(Default)]
struct Parts {
    next_number: u64,
    /// Raised whenever some are sent again.
    round: u64,
    /// Where those on their way went; all to one place.
    target: Option<Target>,
    on_their_way: usize,
    /// Those that wait, in their order.
    waiting: BTreeMap<u64, Part>,
    /// Whether the waiting ones are about to be let through.
    is_opening: bool,
    /// Not before then: one of them has just failed.
    due: Option<Instant>,
    hint: Option<(NodeAddress, Instant)>,
}

impl Gate {
    fn parts(&self) -> MutexGuard<'_, Parts> {
        lock(&self.0)
    }
}

/// What becomes of a part after an attempt.
pub(super) enum After {
    /// It is done.
    Done,
    /// It is tried again, not before a time.
    Again(Box<Part>, Instant),
}

/// A part's way to its leader.
enum Way {
    Local(Arc<dyn Engine>),
    Remote(NodeAddress),
}

impl Way {
    fn target(&self) -> Target {
        match self {
            Way::Local(_) => Target::Here,
            Way::Remote(node) => Target::Node(node.clone()),
        }
    }

    fn send(self, part: Part) {
        match self {
            Way::Local(engine) => part.apply_here(&*engine),
            Way::Remote(node) => part.send_to(node),
        }
    }
}

impl Hub {
    fn gate(&self, partition: u32) -> &Gate {
        &self.gates[partition as usize]
    }

    /// Who leads a partition now.
    fn way(&self, partition: u32, hint: Option<(NodeAddress, Instant)>) -> Option<Way> {
        if let Some(engine) = self.led_here(partition) {
            return Some(Way::Local(engine));
        }
        let hint = hint.filter(|(_, said)| said.elapsed() < HINT_LIFE).map(|(node, _)| node);
        hint.or_else(|| self.routes.route(partition).leader).map(Way::Remote)
    }

    /// Notes who leads a partition, according to a node that does not.
    pub(super) fn note_leader(&self, partition: u32, leader: Option<NodeAddress>) {
        self.gate(partition).parts().hint = leader.map(|node| (node, Instant::now()));
    }

    /// Sends a new part, or has it wait for those before it.
    pub(super) fn enter(self: &Arc<Self>, mut part: Part) {
        let partition = part.trial.partition;
        let hint = self.gate(partition).parts().hint.clone();
        let way = self.way(partition, hint);
        let mut parts = self.gate(partition).parts();
        part.number = parts.next_number;
        parts.next_number += 1;
        let is_free = parts.waiting.is_empty() && !parts.is_opening;
        match way {
            Some(way) if is_free && parts.may_go(&way.target()) => {
                part.round = parts.round;
                drop(parts);
                way.send(part);
            }
            _ => {
                parts.waiting.insert(part.number, part);
                self.open_if_quiet(parts, partition);
            }
        }
    }

    /// A part that was sent has come back.
    pub(super) fn leave(self: &Arc<Self>, partition: u32, after: After) {
        let mut parts = self.gate(partition).parts();
        parts.on_their_way -= 1;
        if let After::Again(part, due) = after {
            parts.waiting.insert(part.number, *part);
            parts.due = Some(due);
        }
        self.open_if_quiet(parts, partition);
    }

    /// Opens the gate soon, if something waits and nothing is on its way.
    fn open_if_quiet(self: &Arc<Self>, mut parts: MutexGuard<'_, Parts>, partition: u32) {
        if parts.on_their_way == 0 && !parts.waiting.is_empty() && !parts.is_opening {
            parts.is_opening = true;
            parts.round += 1;
            let due = parts.due.unwrap_or_else(Instant::now);
            drop(parts);
            self.open_at(partition, due);
        }
    }

    fn open_at(self: &Arc<Self>, partition: u32, due: Instant) {
        let hub = Arc::clone(self);
        self.retries.at(due, move || hub.open(partition));
    }

    /// Lets through what waits, in its order; it is this that has `is_opening` set.
    fn open(self: &Arc<Self>, partition: u32) {
        loop {
            let mut parts = self.gate(partition).parts();
            if let Some(due) = parts.due.take()
                && due > Instant::now()
                && !self.is_stopping()
            {
                drop(parts);
                return self.open_at(partition, due);
            }
            let Some((_, mut part)) = parts.waiting.pop_first() else {
                parts.is_opening = false;
                return;
            };
            let hint = parts.hint.clone();
            drop(parts);
            if self.is_stopping() {
                part.fail_all(&StoreError::Stopping);
                continue;
            }
            if part.trial.is_over() {
                let error = part.trial.unavailable();
                part.fail_all(&error);
                continue;
            }
            let Some(way) = self.way(partition, hint) else {
                part.trial.note_no_leader(self);
                let due = part.trial.pause();
                self.gate(partition).parts().waiting.insert(part.number, part);
                return self.open_at(partition, due);
            };
            let mut parts = self.gate(partition).parts();
            if !parts.may_go(&way.target()) {
                // Another leader than that of those on their way: once they are back.
                parts.waiting.insert(part.number, part);
                parts.is_opening = false;
                return;
            }
            part.round = parts.round;
            drop(parts);
            way.send(part);
        }
    }
}

impl Parts {
    /// Counts a part that goes somewhere, if those on their way went there, too.
    fn may_go(&mut self, target: &Target) -> bool {
        let may = self.on_their_way == 0 || self.target.as_ref() == Some(target);
        if may {
            self.target = Some(target.clone());
            self.on_their_way += 1;
        }
        may
    }
}
