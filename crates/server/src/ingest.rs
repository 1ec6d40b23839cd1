//! What others push, into the store: series that nothing has created get RRDs by the table `[[create]]`, the same for all protocols.
//!
//! A protocol fills [`Samples`] and calls [`Ingest::write`] with the service of who sends them, so that rights, limits and the record of
//! changes are those of every other door. What is answered is in the log.

mod counts;
mod finding;
mod remote_write;
pub mod routes;

use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use ingest::limits::{LeftOut, NewLimit, NewRrds};
use ingest::sample::Samples;
use ingest::series::{KnownSeries, SeriesCache};
use ingest::table::{CreateTable, Unplaced};
use rrd::live::HeadShape;
use rrd::update::UpdateError;
use store::engine::{Engine, StoreError, UpdateBatch};
use store::name::RrdName;
use tokio::sync::oneshot;

use crate::collectors::store_writer::WriteError;
use crate::service::Service;

pub use self::counts::{Counts, IngestCollector};

/// Samples may be so much later than this machine's clock, in milliseconds, as in Prometheus: an RRD that has had one takes none before it.
const AHEAD_MAX_MS: i64 = 10 * 60 * 1000;
/// Memory that a sample takes until its request is answered: as it was read, with its place, for the store, and when it is refused.
pub(crate) const SAMPLE_BYTES: usize = 256;
/// RRDs of a batch whose last sample is asked for, to see whether one was sent again.
const LOOKED_AT_MAX: usize = 1000;
/// Bytes of updates that the store gets at once.
const BATCH_BYTES: usize = 4 << 20;

/// `[ingest]` and `[[create]]`.
#[derive(Clone, Debug)]
pub struct IngestSettings {
    /// Which RRDs series become.
    pub table: CreateTable,
    /// Series whose places are kept in memory.
    pub series_max: usize,
    /// RRDs that are made in a minute.
    pub new_per_minute: u32,
    /// RRDs of the store, beyond which none are made for what is pushed.
    pub rrds_max: u64,
}

impl Default for IngestSettings {
    fn default() -> Self {
        IngestSettings {
            table: CreateTable::default(),
            series_max: 1_000_000,
            new_per_minute: 60_000,
            rrds_max: 10_000_000,
        }
    }
}

impl PartialEq for IngestSettings {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl Eq for IngestSettings {}

/// What all protocols share.
#[derive(Default)]
pub struct Ingest {
    ready: OnceLock<Ready>,
    /// The whole store: how many RRDs it has counts, whatever a client may see of it.
    store: OnceLock<Weak<dyn Engine>>,
    /// Samples by protocol, for `/metrics`.
    pub counts: Counts,
    metric_types: remote_write::MetricTypes,
}

struct Ready {
    table: CreateTable,
    series: Mutex<SeriesCache>,
    new: Mutex<NewRrds>,
    left: Mutex<LeftOut>,
}

impl fmt::Debug for Ingest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ingest")
    }
}

/// The way on which samples came.
#[derive(Clone, Copy, Debug)]
pub struct PushWay<'a> {
    /// A word for `/metrics`.
    pub protocol: &'static str,
    /// The address of a port of its own; `None`: by HTTP.
    pub port: Option<&'a str>,
}

impl PushWay<'_> {
    /// A protocol over HTTP.
    pub fn http(protocol: &'static str) -> Self {
        PushWay { protocol, port: None }
    }

    /// Who has a share of the new RRDs of a minute: an account, or else the way, because over UDP each sender can pass for many.
    fn asker(self, service: &Service) -> String {
        match (service.account(), self.port) {
            (Some(account), _) => format!("account {account}"),
            (None, Some(port)) => format!("port {port}"),
            (None, None) => format!("http {}", self.protocol),
        }
    }
}

/// Why a sample was not stored.
#[derive(Clone, Debug)]
pub enum SampleError {
    /// Its series has no place.
    Unplaced(Unplaced),
    /// No RRD is made for it now.
    Limit(NewLimit),
    /// It is too far in the future, or before 1970.
    OutOfBounds,
    /// Not later than the last one of its series.
    NotLater,
    /// The store does not take it, or does not make its RRD.
    Write(WriteError),
}

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SampleError::Unplaced(why) => why.fmt(f),
            SampleError::Limit(limit) => limit.fmt(f),
            SampleError::OutOfBounds => f.write_str(
                "out of bounds: more than ten minutes ahead of this machine's clock, or before 1970",
            ),
            SampleError::NotLater => {
                f.write_str("out of order sample: not later than the last one that was stored")
            }
            SampleError::Write(error) => error.fmt(f),
        }
    }
}

impl SampleError {
    /// Whether it may be sent again later.
    pub fn is_passing(&self) -> bool {
        match self {
            SampleError::Limit(NewLimit::PerMinute(_)) => true,
            SampleError::Write(WriteError::Store(StoreError::NoSuchRrd(_))) => true,
            SampleError::Write(error) => error.is_passing(),
            _ => false,
        }
    }

    /// A word for counters.
    pub fn reason(&self) -> &'static str {
        match self {
            SampleError::Unplaced(why) => why.reason(),
            SampleError::Limit(NewLimit::PerMinute(_)) => "new_per_minute",
            SampleError::Limit(NewLimit::InAll(_)) => "rrds_max",
            SampleError::OutOfBounds => "out_of_bounds",
            SampleError::NotLater => "not_later",
            SampleError::Write(WriteError::Store(StoreError::Denied(_))) => "denied",
            SampleError::Write(error) if error.is_passing() => "store_busy",
            SampleError::Write(_) => "store",
        }
    }
}

/// A sample that was not stored.
#[derive(Clone, Debug)]
pub struct SampleFailure {
    /// Its place among the samples.
    pub sample: u32,
    /// Why.
    pub error: SampleError,
}

/// What became of some samples.
#[derive(Clone, Debug, Default)]
pub struct PushOutcome {
    /// Samples that are in the store, those among them that were there already.
    pub stored: u64,
    /// Those of them that were sent again.
    pub again: u64,
    /// RRDs that were made.
    pub created: u64,
    /// Those that are not, in their order.
    pub failures: Vec<SampleFailure>,
}

impl PushOutcome {
    /// Whether some of the failures may pass, so that sending all again makes sense.
    pub fn is_passing(&self) -> bool {
        self.failures.iter().any(|failure| failure.error.is_passing())
    }
}

/// A line of a batch: the place of its sample, and what it says.
struct Line<'a> {
    sample: u32,
    known: &'a KnownSeries,
    time: i64,
    value: f64,
}

impl Ingest {
    /// Sets what the configuration says, before the first sample comes.
    pub fn configure(&self, settings: IngestSettings) {
        let _ = self.ready.set(Ready::new(settings));
    }

    /// Says which store the RRDs are in.
    pub fn store_in(&self, store: &Arc<dyn Engine>) {
        let _ = self.store.set(Arc::downgrade(store));
    }

    /// RRDs of the whole store.
    fn rrd_count(&self) -> u64 {
        self.store.get().and_then(Weak::upgrade).map_or(0, |store| store.stats().rrd_count)
    }

    fn ready(&self) -> &Ready {
        self.ready.get_or_init(|| Ready::new(IngestSettings::default()))
    }

    /// Which RRDs series become.
    pub fn table(&self) -> &CreateTable {
        &self.ready().table
    }

    /// Writes samples in their order to the store as `service`, who sends them, may.
    pub async fn write(&self, service: &Service, way: PushWay<'_>, samples: &Samples) -> PushOutcome {
        let ready = self.ready();
        let mut written = PushOutcome::default();
        let found = finding::find(ready, service, way, samples, &mut written.created).await;
        // By this machine's clock in milliseconds.
        let now = now_ms();
        let mut batch = UpdateBatch::default();
        let mut lines = Vec::with_capacity(samples.samples().len());
        for (place, sample) in (0..).zip(samples.samples()) {
            let time = sample.time.unwrap_or(now);
            let known = match &found[sample.series as usize] {
                Ok(known) => known,
                Err(error) => {
                    written.failures.push(SampleFailure { sample: place, error: error.clone() });
                    continue;
                }
            };
            if time < 0 || time > now.saturating_add(AHEAD_MAX_MS) {
                written.failures.push(SampleFailure { sample: place, error: SampleError::OutOfBounds });
                continue;
            }
            if known.is_last(time, sample.value) {
                written.again += 1;
                continue;
            }
            push(&mut batch, &known.path, time, sample.value);
            lines.push(Line { sample: place, known, time, value: sample.value });
            if batch.text.len() > BATCH_BYTES {
                update(service, std::mem::take(&mut batch), &lines, &mut written).await;
                lines.clear();
            }
        }
        update(service, batch, &lines, &mut written).await;
        written.failures.sort_by_key(|failure| failure.sample);
        written.stored = samples.samples().len() as u64 - written.failures.len() as u64;
        ready.settle(samples, &written);
        self.counts.add(way.protocol, &written);
        written
    }

    /// What `/metrics` and the list of what was left out say.
    fn with_left<T>(&self, use_it: impl FnOnce(&LeftOut) -> T) -> T {
        use_it(&self.ready().left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Series whose places are in memory.
    fn series_known(&self) -> usize {
        self.ready().series.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Ready {
    fn new(settings: IngestSettings) -> Ready {
        Ready {
            table: settings.table,
            series: Mutex::new(SeriesCache::new(settings.series_max)),
            new: Mutex::new(NewRrds::new(settings.new_per_minute, settings.rrds_max)),
            left: Mutex::default(),
        }
    }

    /// Lists series without a place, and forgets those whose RRDs are gone.
    fn settle(&self, samples: &Samples, written: &PushOutcome) {
        if written.failures.is_empty() {
            return;
        }
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        for failure in &written.failures {
            let number = samples.samples()[failure.sample as usize].series;
            match &failure.error {
                SampleError::Unplaced(why) => {
                    left.count(&samples.series(number).to_string(), &why.to_string())
                }
                SampleError::Limit(why @ NewLimit::InAll(_)) => {
                    left.count(&samples.series(number).to_string(), &why.to_string());
                }
                SampleError::Write(WriteError::Store(StoreError::NoSuchRrd(_))) => {
                    series.forget(samples.series(number));
                }
                _ => {}
            }
        }
    }
}

/// Milliseconds since the epoch.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Appends an update to a batch.
fn push(batch: &mut UpdateBatch, path: &str, time: i64, value: f64) {
    let from = batch.text.len() as u32;
    batch.text.extend_from_slice(path.as_bytes());
    let middle = batch.text.len() as u32;
    let (seconds, millis) = (time.div_euclid(1000), time.rem_euclid(1000));
    let out = &mut batch.text;
    let size = value.abs();
    // Writing to memory cannot fail.
    let _ = match millis {
        0 => write!(out, "{seconds}:"),
        _ => write!(out, "{seconds}.{millis:03}:"),
    };
    let _ = match () {
        () if value.is_nan() => out.write_all(b"U"),
        () if value.is_infinite() => out.write_all(if value > 0.0 { b"inf" } else { b"-inf" }),
        () if size == 0.0 || (1e-5..1e21).contains(&size) => write!(out, "{value}"),
        () => write!(out, "{value:e}"),
    };
    let line = store::engine::UpdateLine { name: from..middle, values: middle..batch.text.len() as u32 };
    batch.lines.push(line);
}

/// Whether a sample that is not later than the last one is that one. After a start, only the store knows; so many RRDs are looked at.
fn is_there(service: &Service, line: &Line<'_>, looked_at: &mut usize) -> bool {
    if line.known.is_last(line.time, line.value) {
        return true;
    }
    if line.known.last_time().is_some() || *looked_at >= LOOKED_AT_MAX {
        return false;
    }
    *looked_at += 1;
    let snapshot = || service.engine.snapshot(&RrdName::new(line.known.path.as_bytes()).ok()?).ok();
    let Some(snapshot) = tokio::task::block_in_place(snapshot) else { return false };
    let head = HeadShape::of(&snapshot.definition).split(&snapshot.live.words);
    let time = head.last_update;
    let unit = i64::from(snapshot.definition.units_per_second.max(1));
    let millis = time.whole.saturating_mul(1000) / unit + i64::from(time.micros) / 1000 / unit;
    let text = head.pdp.iter().map(|pdp| pdp.last_ds.as_bytes()).next().unwrap_or_default();
    let value = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok()).unwrap_or(f64::NAN);
    millis == line.time && (value == line.value || value.is_nan() && line.value.is_nan())
}

/// Has the store apply a batch, and notes what became of its lines.
async fn update(service: &Service, batch: UpdateBatch, lines: &[Line<'_>], written: &mut PushOutcome) {
    if lines.is_empty() {
        return;
    }
    let (sender, receiver) = oneshot::channel();
    service.engine.update(batch, Box::new(move |failures| drop(sender.send(failures))));
    let Ok(failures) = receiver.await else {
        let stopping = |line: &Line<'_>| SampleFailure {
            sample: line.sample,
            error: SampleError::Write(WriteError::Store(StoreError::Stopping)),
        };
        written.failures.extend(lines.iter().map(stopping));
        return;
    };
    let mut failures = failures.into_iter().peekable();
    let mut looked_at = 0;
    for (place, line) in (0..).zip(lines) {
        let Some(failed) = failures.next_if(|failure| failure.line == place) else {
            line.known.took(line.time, line.value);
            continue;
        };
        let error = match failed.error {
            StoreError::Update(UpdateError::NotLater { .. }) if is_there(service, line, &mut looked_at) => {
                written.again += 1;
                continue;
            }
            StoreError::Update(UpdateError::NotLater { .. }) => SampleError::NotLater,
            error => SampleError::Write(WriteError::Store(error)),
        };
        written.failures.push(SampleFailure { sample: line.sample, error });
    }
}
