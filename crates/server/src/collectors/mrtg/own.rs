//! The collector's own numbers: published every second, stored every step.

use std::sync::Arc;
use std::time::{Duration, Instant};

use collect::mrtg::collector::MrtgCounts;
use collect::reading::Readings;
use collect::statistics::{OwnRrd, Statistic};

use crate::collectors::recorder::{Recorded, Recorder};
use crate::service::Service;

/// The collector's name in the log, in `/metrics` and of its own RRD.
const NAME: &str = "mrtg";
/// How often numbers are published.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// The numbers of one `[[mrtg]]`.
pub struct Own {
    /// Which of them.
    part: usize,
    rrd: OwnRrd,
    recorder: Recorder,
    stored: Recorded,
    /// What was counted before the configuration was read again.
    before: MrtgCounts,
    due: Instant,
}

impl Own {
    /// Of a further `[[mrtg]]`. The first has the RRD `roundel/mrtg.rrd`, the second `roundel/mrtg-2.rrd`.
    pub fn new(service: &Arc<Service>) -> Self {
        let part = service.metrics.collectors.add_part(NAME);
        let name = if part == 0 { NAME.to_string() } else { format!("{NAME}-{}", part + 1) };
        Own {
            part,
            rrd: OwnRrd::new(&name),
            recorder: Recorder::new(Arc::clone(service), NAME),
            stored: Recorded::default(),
            before: MrtgCounts::default(),
            due: Instant::now(),
        }
    }

    /// Counts what became of readings.
    pub fn add(&mut self, recorded: Recorded) {
        self.stored.accepted += recorded.accepted;
        self.stored.refused += recorded.refused;
    }

    /// Keeps what a collector has counted that ends now.
    pub fn keep(&mut self, counts: MrtgCounts) {
        self.before = self.before.plus(counts);
    }

    /// Publishes and stores, if it is time; `levels` are the numbers of targets and agents.
    pub async fn publish(&mut self, service: &Service, counts: MrtgCounts, levels: [usize; 2]) {
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + PUBLISH_EVERY;
        let mut numbers = self.before.plus(counts).statistics();
        numbers.extend([
            Statistic::count("stored", "Readings that the store took", self.stored.accepted),
            Statistic::count("refused", "Readings that the store refused", self.stored.refused),
            Statistic::level("targets", "Targets", levels[0] as u64),
            Statistic::level("agents", "Agents", levels[1] as u64),
        ]);
        let mut readings = Readings::default();
        self.rrd.read(service.now(), &numbers, &mut readings);
        if !readings.is_empty() {
            self.recorder.record(self.rrd.inventory(), &readings).await;
        }
        service.metrics.collectors.publish_part(NAME, self.part, numbers);
    }
}
