//! What is known of each target: counters, for `/metrics` and the page of the daemon's state.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::target::RefusalReason;

/// Readings that wait for longer are a problem, in milliseconds: a target that is restarted is back by then.
const LATE_MS: i64 = 5 * 60 * 1000;

/// One target's numbers.
#[derive(Debug)]
pub struct ForwardStatus {
    /// What it is called.
    pub name: String,
    /// It could be reached when that was last tried.
    pub reached: AtomicBool,
    /// Readings that it has taken.
    pub sent: AtomicU64,
    /// RRDs that were created there.
    pub created: AtomicU64,
    /// Readings that were dropped because too much was waiting.
    pub dropped: AtomicU64,
    /// Bytes of log that could not be read.
    pub lost_bytes: AtomicU64,
    /// Bytes of log that wait.
    pub waiting_bytes: AtomicU64,
    /// When the oldest of what waits was logged, in milliseconds since the epoch; 0 = nothing waits.
    pub waiting_since_ms: AtomicI64,
    refused: [AtomicU64; RefusalReason::ALL.len()],
    why: Mutex<String>,
}

impl ForwardStatus {
    /// Nothing has happened yet.
    pub fn new(name: &str) -> Self {
        ForwardStatus {
            name: name.to_owned(),
            reached: false.into(),
            sent: 0.into(),
            created: 0.into(),
            dropped: 0.into(),
            lost_bytes: 0.into(),
            waiting_bytes: 0.into(),
            waiting_since_ms: 0.into(),
            refused: Default::default(),
            why: Mutex::default(),
        }
    }

    /// Counts readings that the target does not take.
    pub fn refuse(&self, reason: RefusalReason, count: u64) {
        self.refused[reason as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// Records why nothing can be sent; an empty text = it can.
    pub fn set_away(&self, why: &str) {
        self.reached.store(why.is_empty(), Ordering::Relaxed);
        let mut known = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != why {
            why.clone_into(&mut known);
        }
    }

    /// Records whether something waits, when nothing was read yet that tells since when.
    pub fn note_waiting(&self, waits: bool) {
        let since = &self.waiting_since_ms;
        if !waits {
            since.store(0, Ordering::Relaxed);
        } else if since.load(Ordering::Relaxed) == 0 {
            since.store(now_ms(), Ordering::Relaxed);
        }
    }

    /// For how many milliseconds the oldest reading waits.
    pub fn waiting_ms(&self) -> i64 {
        let since = self.waiting_since_ms.load(Ordering::Relaxed);
        if since == 0 { 0 } else { (now_ms() - since).max(0) }
    }

    /// What is wrong with it, for the page.
    pub fn problem(&self) -> Option<String> {
        let waiting = self.waiting_ms();
        if waiting < LATE_MS {
            return None;
        }
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        let colon = if why.is_empty() { "" } else { ": " };
        let (name, minutes) = (&self.name, waiting / 60_000);
        Some(format!("Readings have waited for {minutes} minutes to be forwarded to {name}{colon}{why}"))
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64
}

/// Those of all targets, once forwarding has begun: that of a follower begins when it is promoted.
pub type ForwardStatuses = Arc<OnceLock<Vec<Arc<ForwardStatus>>>>;

/// `roundel_forward_*`
#[derive(Debug)]
pub struct ForwardCollector(pub ForwardStatuses);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TargetLabel {
    to: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusedLabels {
    to: String,
    reason: &'static str,
}

type ForwardNumber = (&'static str, &'static str, MetricType, fn(&ForwardStatus) -> u64);

const NUMBERS: [ForwardNumber; 7] = [
    (
        "forward_reached",
        "Whether the target could be reached when that was last tried",
        MetricType::Gauge,
        |one| u64::from(one.reached.load(Ordering::Relaxed)),
    ),
    ("forward_sent", "Readings that the target has taken", MetricType::Counter, |one| {
        one.sent.load(Ordering::Relaxed)
    }),
    ("forward_created", "RRDs created at the target", MetricType::Counter, |one| {
        one.created.load(Ordering::Relaxed)
    }),
    (
        "forward_dropped",
        "Readings dropped because too much was waiting (spool_bytes)",
        MetricType::Counter,
        |one| one.dropped.load(Ordering::Relaxed),
    ),
    (
        "forward_lost_bytes",
        "Bytes of log gone or damaged before they were forwarded",
        MetricType::Counter,
        |one| one.lost_bytes.load(Ordering::Relaxed),
    ),
    ("forward_waiting_bytes", "Bytes of log that wait to be forwarded", MetricType::Gauge, |one| {
        one.waiting_bytes.load(Ordering::Relaxed)
    }),
    ("forward_waiting_seconds", "How long the oldest reading has waited", MetricType::Gauge, |one| {
        (one.waiting_ms() / 1000) as u64
    }),
];

impl Collector for ForwardCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let Some(statuses) = self.0.get() else { return Ok(()) };
        for (name, help, kind, number) in NUMBERS {
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for status in statuses {
                let labels = TargetLabel { to: status.name.clone() };
                let one = metric.encode_family(&labels)?;
                match kind {
                    MetricType::Counter => ConstCounter::new(number(status)).encode(one)?,
                    _ => ConstGauge::new(number(status) as i64).encode(one)?,
                }
            }
        }
        let help = "Readings that the target has not taken, by reason";
        let mut metric = encoder.encode_descriptor("forward_refused", help, None, MetricType::Counter)?;
        for status in statuses {
            for reason in RefusalReason::ALL {
                let count = status.refused[reason as usize].load(Ordering::Relaxed);
                let labels = RefusedLabels { to: status.name.clone(), reason: reason.label() };
                ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
