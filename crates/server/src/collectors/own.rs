//! A collector's own numbers: published every second, stored every step.

use std::sync::Arc;
use std::time::{Duration, Instant};

use collect::reading::Readings;
use collect::statistics::{OwnRrd, Statistic};

use super::context::CollectorContext;
use super::recorder::{Recorded, Recorder};

/// How often numbers are published.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// The numbers of one collector, or of one part of it if it runs several times.
pub struct Own {
    /// The collector's name in the log, in `/metrics` and of its RRD.
    collector: &'static str,
    /// Which of its parts.
    part: usize,
    rrd: OwnRrd,
    recorder: Recorder,
    stored: Recorded,
    due: Instant,
}

impl Own {
    /// Of a further part of `collector`. The first has the RRD `roundel/COLLECTOR.rrd`, the second `roundel/COLLECTOR-2.rrd`.
    pub fn new(context: &Arc<CollectorContext>, collector: &'static str) -> Self {
        let part = context.statistics.add_part(collector);
        let name = if part == 0 { collector.to_string() } else { format!("{collector}-{}", part + 1) };
        let name = format!("{}{name}", context.own_directory);
        Own {
            collector,
            part,
            rrd: OwnRrd::new(&name),
            recorder: Recorder::new(Arc::clone(context), collector),
            stored: Recorded::default(),
            due: Instant::now(),
        }
    }

    /// Counts what became of readings.
    pub fn add(&mut self, recorded: Recorded) {
        self.stored += recorded;
    }

    /// When numbers are published again.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Publishes and stores, if it is time; `numbers` makes them from what became of readings so far.
    pub async fn publish(
        &mut self,
        context: &CollectorContext,
        numbers: impl FnOnce(Recorded) -> Vec<Statistic>,
    ) {
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + PUBLISH_EVERY;
        let numbers = numbers(self.stored);
        let mut readings = Readings::default();
        self.rrd.read(context.now(), &numbers, &mut readings);
        if !readings.is_empty() {
            self.recorder.record(self.rrd.inventory(), &readings).await;
        }
        context.statistics.publish(self.collector, self.part, numbers);
    }
}
