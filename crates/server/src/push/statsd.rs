//! What statsd counts, told to the store at each flush.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::ingest::fill::Filling;
use ::ingest::refusal::Refusal;
use ::ingest::sample::Samples;
use ::ingest::statsd::aggregate::StatsdAggregator;
use tokio::sync::watch;

use super::StatsdSettings;
use super::refusals::{RefusalLog, Refused};
use crate::ingest::{PushWay, now_ms};
use crate::service::{Service, stopped};

/// The name in `/metrics`.
const NAME: &str = "statsd";
/// All of its ports are one: what they bring is added up.
const WAY: PushWay<'static> = PushWay { protocol: NAME, port: Some(NAME) };

/// Adds up and flushes.
pub(super) struct StatsdFlush {
    service: Arc<Service>,
    settings: StatsdSettings,
    aggregator: Arc<Mutex<StatsdAggregator>>,
}

impl StatsdFlush {
    /// Nothing is counted yet.
    pub(super) fn new(service: &Arc<Service>, settings: StatsdSettings) -> Result<Self, String> {
        let service = service.seen_by(&settings.anonymous.principal()?);
        let aggregator = Arc::new(Mutex::new(StatsdAggregator::new(settings.options.clone())));
        Ok(StatsdFlush { service, settings, aggregator })
    }

    /// Where ports add what they hear.
    pub(super) fn aggregator(&self) -> Arc<Mutex<StatsdAggregator>> {
        Arc::clone(&self.aggregator)
    }

    /// Flushes at whole multiples of the interval, so that each flush is a row, and once more at the end.
    pub(super) async fn run(self, mut stop: watch::Receiver<bool>) -> io::Result<()> {
        let interval = self.settings.flush_seconds as i64 * 1_000;
        let mut began = Instant::now();
        let mut samples = Samples::default();
        let log = RefusalLog::new(NAME.to_owned());
        let mut is_stopping = false;
        while !is_stopping {
            let wait = interval - now_ms().rem_euclid(interval);
            tokio::select! {
                biased;
                () = stopped(&mut stop) => is_stopping = true,
                () = tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())) => {}
            }
            let now = Instant::now();
            let seconds = (now - began).as_secs_f64().max(0.001);
            began = now;
            tokio::task::block_in_place(|| self.collect(seconds, &mut samples));
            let written = self.service.ingest.write(&self.service, WAY, &samples).await;
            if let Some(failure) = written.failures.first() {
                let sample = samples.samples()[failure.sample as usize];
                let series = samples.series(sample.series).to_string();
                log.refused(Refused::One, series.as_bytes(), &failure.error);
            }
            samples.clear();
        }
        Ok(())
    }

    fn collect(&self, seconds: f64, samples: &mut Samples) {
        let mut refused = 0;
        let mut refuse = |_: Refusal<'_>| refused += 1;
        let mut aggregator = self.aggregator.lock().unwrap_or_else(PoisonError::into_inner);
        // Of a flush that is a little late, the time is the one that it was due at.
        let time = now_ms() / 1_000 * 1_000_000_000;
        aggregator.flush(time, seconds, &mut Filling::new(samples, &mut refuse));
        self.service.ingest.counts.refuse(NAME, "bad_series", refused);
    }
}
