//! From a collector's readings to the place where they go; what fails is logged, but not every time.

use std::ops::AddAssign;
use std::sync::Arc;
use std::time::{Duration, Instant};

use collect::inventory::{Inventory, RrdId};
use collect::reading::Readings;
use collect::statistics::Statistic;

use super::context::{CollectorContext, ReadingSink};
use super::fence::Fence;
use super::store_writer::{StoreWriter, WriteError, WriteFailure};
use crate::agent::feed::{SpoolFeed, SpooledRrds};

/// How many failures of one call are logged one by one; of the others, only the number is.
const FAILURES_LOGGED: usize = 5;
/// After a failure, the next one of the same RRD is logged only after this many readings without one: of a name with two
/// sources, every other reading is refused.
const READINGS_WELL: u8 = 60;

/// Readings wait for others at most so long, and for so many.
const RECORD_AFTER: Duration = Duration::from_millis(200);
const READINGS_AT_ONCE: usize = 4_096;

/// When readings that wait are recorded. Together they cost less than one by one, but what has come is recorded as soon as no more is
/// expected: a poller's round of 36 ms took 250 ms when its last readings waited for nothing.
#[derive(Debug, Default)]
pub struct Gathering {
    /// Since when there are readings.
    since: Option<Instant>,
}

impl Gathering {
    /// Whether so many readings are recorded now. `is_resting`: whether no more are expected soon.
    pub fn is_over(&mut self, now: Instant, readings: usize, is_resting: impl FnOnce() -> bool) -> bool {
        if readings == 0 {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let is_over =
            readings >= READINGS_AT_ONCE || now.duration_since(since) >= RECORD_AFTER || is_resting();
        if is_over {
            self.since = None;
        }
        is_over
    }

    /// How long to wait at most for something else to happen.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        self.since.map(|since| RECORD_AFTER.saturating_sub(now.duration_since(since)))
    }
}

/// What became of some readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// RRDs created.
    pub created: u64,
    /// Readings that the store took.
    pub accepted: u64,
    /// Readings that the store refused, or whose RRD could not be created.
    pub refused: u64,
    /// Readings that were thrown away because another node polls now.
    pub lead_lost: u64,
}

impl Recorded {
    /// The number of a poller in a cluster.
    pub fn lead_lost_count(&self) -> Statistic {
        let help =
            "Readings that were thrown away because another node polls now, or the log did not take them";
        Statistic::count("lead_lost", help, self.lead_lost)
    }
}

impl AddAssign for Recorded {
    fn add_assign(&mut self, more: Self) {
        self.created += more.created;
        self.accepted += more.accepted;
        self.refused += more.refused;
        self.lead_lost += more.lead_lost;
    }
}

/// What is known of an RRD of the inventory.
#[derive(Clone, Copy, Debug, Default)]
struct Fed {
    /// Readings without a failure until one is logged again; 0 when none was logged.
    unlogged_readings: u8,
}

impl Fed {
    /// Notes a failure; true when it is to be logged.
    fn fails(&mut self) -> bool {
        std::mem::replace(&mut self.unlogged_readings, READINGS_WELL) == 0
    }

    /// Notes that a reading was passed on.
    fn was_fed(&mut self) {
        self.unlogged_readings = self.unlogged_readings.saturating_sub(1);
    }
}

/// Records the readings of one collector.
pub struct Recorder {
    /// What the log calls the collector, such as `host`.
    collector: &'static str,
    /// By the RRD's index in the inventory.
    fed: Vec<Fed>,
    destination: Destination,
}

/// Where the readings of a collector go, with what is known there of its RRDs.
enum Destination {
    Store(StoreWriter),
    Spool(Arc<SpoolFeed>, SpooledRrds),
}

impl Recorder {
    /// A recorder for one collector, whose inventory is passed with each call.
    pub fn new(context: Arc<CollectorContext>, collector: &'static str) -> Self {
        Recorder::of_poller(context, collector, None)
    }

    /// A recorder for a poller; in a node of a cluster, a fence decides what is written.
    pub fn of_poller(
        context: Arc<CollectorContext>,
        collector: &'static str,
        fence: Option<Arc<Fence>>,
    ) -> Self {
        let destination = match &context.sink {
            ReadingSink::Store(engine) => Destination::Store(StoreWriter::fenced(Arc::clone(engine), fence)),
            ReadingSink::Spool(feed) => Destination::Spool(Arc::clone(feed), SpooledRrds::default()),
        };
        Recorder { collector, fed: Vec::new(), destination }
    }

    /// Creates the RRDs that are new, and passes the readings on in their order.
    pub async fn record(&mut self, inventory: &Inventory, readings: &Readings) -> Recorded {
        let mut written = match &mut self.destination {
            Destination::Store(writer) => writer.write(inventory, readings).await,
            Destination::Spool(feed, known) => {
                return tokio::task::block_in_place(|| feed.take(inventory, readings, known));
            }
        };
        self.fed.resize(inventory.len(), Fed::default());
        let accepted = (readings.len() - written.failures.len()) as u64;
        let lost = |failure: &&WriteFailure| matches!(failure.error, WriteError::LeadLost);
        let lead_lost = written.failures.iter().filter(lost).count() as u64;
        // Of these, nothing is wrong: another node has them.
        let is_ours =
            |failure: &WriteFailure| !matches!(failure.error, WriteError::LeadLost | WriteError::Elsewhere);
        written.failures.retain(is_ours);
        let refused = written.failures.len() as u64;
        let of_rrds = |at_creation: bool| {
            let failures = written.failures.iter().filter(move |failure| failure.at_creation == at_creation);
            failures.map(|failure| (failure.rrd, failure.error.to_string())).collect()
        };
        self.log("cannot create an RRD", inventory, of_rrds(true));
        self.log("a reading was refused", inventory, of_rrds(false));
        let mut uncreated = written.failures.iter().filter(|failure| failure.at_creation).peekable();
        for (index, reading) in (0..).zip(readings.iter()) {
            if uncreated.next_if(|failure| failure.reading == index).is_none() {
                self.fed[reading.rrd.index()].was_fed();
            }
        }
        Recorded { created: written.created, accepted, refused, lead_lost }
    }

    /// Logs the failures of RRDs that have had none of late.
    fn log(&mut self, what: &str, inventory: &Inventory, failed: Vec<(RrdId, String)>) {
        let mut count: usize = 0;
        for (rrd, error) in failed {
            if !self.fed[rrd.index()].fails() {
                continue;
            }
            count += 1;
            if count <= FAILURES_LOGGED {
                let name = String::from_utf8_lossy(inventory.name(rrd)).into_owned();
                tracing::warn!(collector = self.collector, name, error, "{what}");
            }
        }
        if let Some(more) = count.checked_sub(FAILURES_LOGGED + 1) {
            tracing::warn!(collector = self.collector, more = more + 1, "{what}: further RRDs");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_recorded_when_no_more_come_or_have_waited_or_are_many() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut gathering = Gathering::default();
        assert!(!gathering.is_over(at(0), 0, || true) && gathering.patience(at(0)).is_none());
        assert!(gathering.is_over(at(0), 1, || true), "nothing else is expected");
        assert!(!gathering.is_over(at(1_000), 1, || false), "the wait begins with the first reading");
        assert_eq!(gathering.patience(at(1_150)), Some(Duration::from_millis(50)));
        assert!(!gathering.is_over(at(1_199), 2, || false) && gathering.is_over(at(1_200), 2, || false));
        assert!(!gathering.is_over(at(1_201), 1, || false), "the next ones wait again");
        assert!(gathering.is_over(at(1_202), READINGS_AT_ONCE, || false));
    }

    #[test]
    fn a_failure_is_logged_again_after_readings_without_one() {
        let mut fed = Fed::default();
        assert!(fed.fails());
        for _ in 0..200 {
            fed.was_fed();
            assert!(!fed.fails(), "every other reading is refused");
        }
        (0..READINGS_WELL).for_each(|_| fed.was_fed());
        assert!(fed.fails());
    }
}
