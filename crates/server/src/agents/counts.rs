//! Numbers about all agents.

use std::sync::atomic::{AtomicU64, Ordering};

use collect::statistics::Statistic;

/// Counts since the start.
#[derive(Debug, Default)]
pub struct AgentCounts {
    /// Sessions begun.
    pub sessions: AtomicU64,
    /// Blocks applied.
    pub blocks: AtomicU64,
    /// Bytes of blocks received.
    pub bytes: AtomicU64,
    /// Readings that the store took.
    pub stored: AtomicU64,
    /// Readings that the store had already.
    pub repeated: AtomicU64,
    /// Readings that the store refused.
    pub refused: AtomicU64,
    /// Readings that agents dropped because their spools were full.
    pub dropped: AtomicU64,
    /// Readings refused because another agent polls the device.
    pub refused_moved: AtomicU64,
    /// Sessions that ended because a later one took their place.
    pub fenced: AtomicU64,
    /// Sessions that ended because of what was sent.
    pub malformed: AtomicU64,
}

/// Adds to a count.
pub fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

impl AgentCounts {
    /// The numbers, with that of the agents that are connected.
    pub fn numbers(&self, connected: usize) -> Vec<Statistic> {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        vec![
            Statistic::level("connected", "Agents connected", connected as u64),
            Statistic::count("sessions", "Sessions begun", get(&self.sessions)),
            Statistic::count("blocks", "Blocks applied", get(&self.blocks)),
            Statistic::count("bytes", "Bytes of blocks received", get(&self.bytes)),
            Statistic::count("stored", "Readings that the store took", get(&self.stored)),
            Statistic::count("repeated", "Readings that the store had already", get(&self.repeated)),
            Statistic::count("refused", "Readings that the store refused", get(&self.refused)),
            Statistic::count("dropped", "Readings that agents dropped", get(&self.dropped)),
            Statistic::count(
                "refused_moved",
                "Of the refused, readings of devices that another agent polled by then",
                get(&self.refused_moved),
            ),
            Statistic::count("fenced", "Sessions that a later one replaced", get(&self.fenced)),
            Statistic::count("malformed", "Sessions ended by malformed frames", get(&self.malformed)),
        ]
    }
}
