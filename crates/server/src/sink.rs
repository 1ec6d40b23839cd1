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
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use access::PathSet;
use exchange::rows::{MS, Run, Selection};
use exchange::target::{RowOptions, RowTarget};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rrd::grid;
use rrd::time::Timestamp;
use store::engine::{Engine, RrdStatus, StoreError};
use store::name::RrdName;

/// How nice the threads are: below whatever answers clients.
const NICE: i32 = 10;
/// How long a stop waits for a round: a disk may be slow, and a database may never answer.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How often it looks.
const STOP_POLL: Duration = Duration::from_millis(10);

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
    passed_over: AtomicU64,
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
                    let begun = Instant::now();
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

    /// Ends the rounds and waits for the threads, but not for a database that does not answer. What a round has not written, the
    /// first one after the next start does.
    pub fn stop(self) {
        self.ends.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + STOP_PATIENCE;
        let (stops, threads): (Vec<_>, Vec<_>) = self.threads.into_iter().unzip();
        drop(stops);
        for thread in threads {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(STOP_POLL);
            }
            match thread.is_finished() {
                true => drop(thread.join()),
                false => tracing::warn!(
                    "a sink is in the middle of a round and is left there; its target keeps none of it or all"
                ),
            }
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

    /// One round; returns how many rows were written, or `None` when the daemon ends. An RRD that cannot be read or written keeps no
    /// other out.
    fn export(&mut self) -> Result<Option<u64>, String> {
        let mut writer = self.settings.to.begin(&Selection::default(), &RowOptions::default())?;
        let mut seen: HashMap<Vec<u8>, Timestamp> = HashMap::new();
        let mut passed_over = PassedOver::default();
        for name in self.engine.list(b"", true).map_err(|error| error.to_string())? {
            if self.ends.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if !self.settings.names.contains(&name) {
                continue;
            }
            let Ok(rrd_name) = RrdName::new(&name) else { continue };
            let before = self.seen.get(&name).copied();
            match self.new_rows(&rrd_name, before) {
                Ok((last_update, runs)) => {
                    if !runs.is_empty()
                        && let Err(why) = writer.add(&name, runs)?
                    {
                        passed_over.add(&rrd_name, why);
                    }
                    // What came while it was read is read again in the next round.
                    seen.insert(name, last_update);
                }
                // It was removed, or redefined, since.
                Err(StoreError::NoSuchRrd(_)) => seen.extend(before.map(|before| (name, before))),
                Err(error @ (StoreError::Stopping | StoreError::Poisoned(_))) => {
                    return Err(error.to_string());
                }
                Err(error) => {
                    passed_over.add(&rrd_name, error.to_string());
                    seen.extend(before.map(|before| (name, before)));
                }
            }
        }
        let rows = writer.finish(&mut || {})?.rows;
        self.seen = seen;
        if let Some(first) = passed_over.first {
            self.status.passed_over.fetch_add(passed_over.count, Ordering::Relaxed);
            let (to, count) = (&self.status.name, passed_over.count);
            tracing::warn!(to, count, first, "a sink has passed over RRDs; all others are there");
        }
        Ok(Some(rows))
    }

    /// When an RRD was updated last, and its rows that came after `before`; none, without a look at them, when it was not updated.
    fn new_rows(
        &self,
        name: &RrdName,
        before: Option<Timestamp>,
    ) -> Result<(Timestamp, Vec<Run>), StoreError> {
        let status = self.engine.status(name)?;
        let last = status.last_update;
        if before == Some(last) {
            return Ok((last, Vec::new()));
        }
        // One of an older time is another RRD of that name.
        let before = before.filter(|before| before.whole <= last.whole);
        let units = i64::from(status.definition.units_per_second.max(1));
        let after = before.map(|time| time.whole.saturating_mul(MS) / units);
        let selection = Selection { after, ..Selection::default() };
        if let Some(before) = before {
            match self.newest_rows(name, &status, &selection, before.whole) {
                Ok(Some(archives)) => {
                    return Ok((last, selection.runs_of(&status.definition, last.whole, &archives)));
                }
                Ok(None) => return Ok((last, Vec::new())),
                Err(StoreError::Unsupported(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((last, selection.runs(&self.engine.read(name)?)))
    }

    /// The rows of each archive that leaves from `before` on, in the RRD's units, and those before of one coarse row: by finer rows in
    /// it, it is known whether it leaves. `None` when no row was completed since.
    fn newest_rows(
        &self,
        name: &RrdName,
        status: &RrdStatus,
        selection: &Selection,
        before: i64,
    ) -> Result<Option<Vec<Vec<f64>>>, StoreError> {
        let definition = &status.definition;
        let taken: Vec<usize> =
            (0..definition.rra.len()).filter(|&rra| selection.takes(definition, rra)).collect();
        let span = |rra: usize| definition.rra[rra].span(definition.step);
        let newest = |rra: usize| definition.newest_row(rra, status.last_update.whole);
        if !taken.iter().any(|&rra| grid::row_time(newest(rra), span(rra)) > before) {
            return Ok(None);
        }
        let longest = taken.iter().map(|&rra| span(rra)).max().unwrap_or(1);
        let mut archives = vec![Vec::new(); definition.rra.len()];
        for rra in taken {
            let end = newest(rra) + 1;
            let from = before.saturating_sub(longest).div_euclid(span(rra));
            let oldest = end - definition.rra[rra].row_count as i64;
            archives[rra] = self.engine.rows(name, definition, rra, from.clamp(oldest, end)..end)?;
        }
        Ok(Some(archives))
    }
}

/// RRDs that a round has not exported.
#[derive(Default)]
struct PassedOver {
    count: u64,
    /// One of them, and why.
    first: Option<String>,
}

impl PassedOver {
    fn add(&mut self, name: &RrdName, why: String) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("{name}: {why}"));
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

const NUMBERS: [SinkNumber; 5] = [
    ("sink_rounds", "Rounds of the sink that succeeded", MetricType::Counter, |one| &one.rounds),
    (
        "sink_failures",
        "Rounds of the sink that failed; the next one repeats them",
        MetricType::Counter,
        |one| &one.failures,
    ),
    (
        "sink_passed_over",
        "RRDs that rounds of the sink have not exported, as the log says; each counts in each round",
        MetricType::Counter,
        |one| &one.passed_over,
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
