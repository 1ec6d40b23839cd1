//! `[[sink]]`: the rows of the store into a database or files, again in each interval.
//!
//! A round reads the RRDs that were updated since the last round that succeeded. How far each was then is kept in memory only: the
//! first round after a start looks at all of them, and the target knows which rows it has. So nothing is lost, whatever ends a
//! round; a row that is read twice is not written twice.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use access::PathSet;
use exchange::rows::{MS, Selection};
use exchange::target::RowTarget;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rrd::time::Timestamp;
use store::engine::Engine;
use store::engine::StoreError;
use store::name::RrdName;

/// How nice the threads are: below whatever answers clients.
const NICE: i32 = 10;

/// One `[[sink]]`.
#[derive(Clone, Debug)]
pub struct SinkSettings {
    /// Where to.
    pub to: RowTarget,
    /// Which RRDs.
    pub names: PathSet,
    /// From the beginning of one round to that of the next.
    pub interval: Duration,
}

/// What a sink has done, for `/metrics`.
#[derive(Debug, Default)]
pub struct SinkStatus {
    /// Where to, without a password.
    name: String,
    rounds: AtomicU64,
    failures: AtomicU64,
    rows: AtomicU64,
    /// When the newest round that succeeded began, in seconds since 1970.
    complete: AtomicU64,
}

/// Those of all sinks, once they have begun.
pub type SinkStatuses = Arc<OnceLock<Vec<Arc<SinkStatus>>>>;

/// The sinks, each with a thread.
#[derive(Debug, Default)]
pub struct Sinks {
    threads: Vec<(SyncSender<()>, JoinHandle<()>)>,
    ends: Arc<AtomicBool>,
}

struct Sink {
    engine: Arc<dyn Engine>,
    settings: SinkSettings,
    status: Arc<SinkStatus>,
    ends: Arc<AtomicBool>,
    /// The last update of each RRD that the target has.
    seen: HashMap<Vec<u8>, Timestamp>,
}

impl Sinks {
    /// Starts them.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        engine: &Arc<dyn Engine>,
        sinks: Vec<SinkSettings>,
        statuses: &SinkStatuses,
    ) -> std::io::Result<Self> {
        let mut started = Sinks::default();
        let mut all = Vec::new();
        for settings in sinks {
            let status = Arc::new(SinkStatus { name: settings.to.shown(), ..SinkStatus::default() });
            all.push(Arc::clone(&status));
            let (stop, stopped) = sync_channel(1);
            let (engine, ends, seen) = (Arc::clone(engine), Arc::clone(&started.ends), HashMap::new());
            let mut sink = Sink { engine, settings, status, ends, seen };
            let run = move || {
                be_nice();
                loop {
                    let begun = std::time::Instant::now();
                    sink.round();
                    let rest = sink.settings.interval.saturating_sub(begun.elapsed());
                    if stopped.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
                        return;
                    }
                }
            };
            let thread = std::thread::Builder::new().name("sink".to_string()).spawn(run)?;
            started.threads.push((stop, thread));
        }
        // Set once: a server becomes the primary once.
        let _ = statuses.set(all);
        Ok(started)
    }

    /// Ends the rounds and waits for the threads. What a round has not written, the first one after the next start does.
    pub fn stop(self) {
        self.ends.store(true, Ordering::Relaxed);
        for (stop, thread) in self.threads {
            drop(stop);
            let _ended = thread.join();
        }
    }
}

/// Lowers the priority of the calling thread.
fn be_nice() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "a sink runs at normal priority");
    }
}

impl Sink {
    fn round(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        match self.export() {
            Ok(Some(rows)) => {
                self.status.rounds.fetch_add(1, Ordering::Relaxed);
                self.status.rows.fetch_add(rows, Ordering::Relaxed);
                self.status.complete.store(now, Ordering::Relaxed);
            }
            Ok(None) => {}
            Err(error) => {
                self.status.failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(to = self.status.name, %error, "a sink has not got its rows; they are sent in the next round");
            }
        }
    }

    /// One round; returns how many rows were written, or `None` when the daemon ends.
    fn export(&mut self) -> Result<Option<u64>, String> {
        let told = |error: StoreError| error.to_string();
        let selection = Selection::default();
        let mut writer = self.settings.to.begin(&selection)?;
        let mut seen: HashMap<Vec<u8>, Timestamp> = HashMap::new();
        for name in self.engine.list(b"", true).map_err(told)? {
            if self.ends.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if !self.settings.names.contains(&name) {
                continue;
            }
            let Ok(rrd_name) = RrdName::new(&name) else { continue };
            let before = self.seen.get(&name).copied();
            let status = match self.engine.status(&rrd_name) {
                Ok(status) => status,
                // It was removed since.
                Err(StoreError::NoSuchRrd(_)) => continue,
                Err(error) => return Err(error.to_string()),
            };
            if before != Some(status.last_update) {
                let rrd = match self.engine.read(&rrd_name) {
                    Ok(rrd) => rrd,
                    Err(StoreError::NoSuchRrd(_)) => continue,
                    Err(error) => return Err(format!("{rrd_name}: {error}")),
                };
                let units = i64::from(rrd.definition.units_per_second.max(1));
                let after = before.map(|time| time.whole.saturating_mul(MS) / units);
                let runs = Selection { after, ..selection.clone() }.runs(&rrd);
                if let Err(why) = writer.add(&name, runs)? {
                    tracing::debug!("{why}");
                }
            }
            // What came while it was read is read again in the next round.
            seen.insert(name, status.last_update);
        }
        let rows = writer.finish()?;
        self.seen = seen;
        Ok(Some(rows))
    }
}

/// `roundel_sink_*`
#[derive(Debug)]
pub struct SinkCollector(pub SinkStatuses);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SinkLabel {
    to: String,
}

type SinkNumber = (&'static str, &'static str, MetricType, fn(&SinkStatus) -> &AtomicU64);

const NUMBERS: [SinkNumber; 4] = [
    ("sink_rounds", "Rounds of the sink that succeeded", MetricType::Counter, |one| &one.rounds),
    (
        "sink_failures",
        "Rounds of the sink that failed; the next one repeats them",
        MetricType::Counter,
        |one| &one.failures,
    ),
    ("sink_rows", "Rows that the sink has written", MetricType::Counter, |one| &one.rows),
    (
        "sink_complete_seconds",
        "When the newest round that succeeded began, in seconds since 1970; 0 = there is none yet",
        MetricType::Gauge,
        |one| &one.complete,
    ),
];

impl Collector for SinkCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let Some(statuses) = self.0.get() else { return Ok(()) };
        for (name, help, kind, number) in NUMBERS {
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for status in statuses {
                let labels = SinkLabel { to: status.name.clone() };
                let one = metric.encode_family(&labels)?;
                let number = number(status).load(Ordering::Relaxed);
                match kind {
                    MetricType::Counter => ConstCounter::new(number).encode(one)?,
                    _ => ConstGauge::new(number as i64).encode(one)?,
                }
            }
        }
        Ok(())
    }
}
