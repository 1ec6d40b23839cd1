//! What replication is doing, for `/metrics`, the status page and `roundel replication`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use store::engine::{Engine, NO_TAIL, StoreError};
use store::replication::{Position, Replica, Role};
use tokio::sync::Notify;

/// A follower whose content is older is a problem.
const LATE: Duration = Duration::from_secs(60);

/// Followers that are remembered: names of those that are away are forgotten beyond that.
const FOLLOWERS_SEEN_MAX: usize = 64;

/// What both sides have done.
pub struct ReplicationState {
    engine: Arc<dyn Engine>,
    /// Of a follower: the session with its primary.
    pub following: Following,
    followers: Mutex<BTreeMap<String, SeenFollower>>,
    /// Bytes of log sent to followers.
    pub sent_bytes: AtomicU64,
    /// This server was promoted.
    pub promoted: Notify,
}

/// A follower's side.
#[derive(Debug, Default)]
pub struct Following {
    /// It is connected.
    pub connected: AtomicBool,
    /// The primary's time up to which everything is applied, in milliseconds since 1970; 0 = not known yet.
    pub complete_ms: AtomicI64,
    /// Bytes of log applied.
    pub applied_bytes: AtomicU64,
    /// Sessions begun.
    pub sessions: AtomicU64,
    failure: Mutex<Option<String>>,
}

/// A follower, as its primary knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenFollower {
    /// It is connected.
    pub connected: bool,
    /// What it acknowledged last, per shard; empty while it takes its first copy.
    pub has: Vec<Position>,
}

impl SeenFollower {
    /// Bytes of log that it has not acknowledged, when the logs end at `ends`. It counts for one that is away or hangs, too.
    pub fn bytes_lacking(&self, ends: &[Position]) -> u64 {
        ends.iter().zip(&self.has).map(|(end, has)| end.offset.saturating_sub(has.offset)).sum()
    }
}

impl std::fmt::Debug for ReplicationState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "replication: {:?}", self.following)
    }
}

/// This machine's time in milliseconds since 1970.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

impl Following {
    /// Remembers why there is no session.
    pub fn failed(&self, text: &str) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_string());
    }

    /// How old what is served is: the time since everything of the primary's was applied; `None` = that has not been yet.
    pub fn age(&self) -> Option<Duration> {
        let complete = self.complete_ms.load(Ordering::Relaxed);
        let age = now_ms().saturating_sub(complete).max(0);
        (complete > 0).then(|| Duration::from_millis(age.unsigned_abs()))
    }
}

impl ReplicationState {
    /// Nothing has been done yet.
    pub fn new(engine: Arc<dyn Engine>) -> Arc<Self> {
        let (following, followers, sent_bytes, promoted) = Default::default();
        Arc::new(ReplicationState { engine, following, followers, sent_bytes, promoted })
    }

    /// The store, if it has a log.
    pub fn replica(&self) -> Option<&dyn Replica> {
        self.engine.replica()
    }

    /// What the store is.
    pub fn role(&self) -> Role {
        self.replica().map_or(Role::Primary, |replica| replica.role())
    }

    /// Makes this server the primary; returns the epoch that begins.
    ///
    /// # Errors
    /// As [`Replica::promote`].
    pub fn promote(&self) -> Result<u32, StoreError> {
        let no_log = StoreError::Unsupported(NO_TAIL);
        let epoch = self.replica().ok_or(no_log)?.promote()?;
        tracing::warn!(epoch, "this server is the primary from now on");
        self.promoted.notify_one();
        Ok(epoch)
    }

    /// Takes changes again, of a store that was the primary when it was last open.
    ///
    /// # Errors
    /// As [`Replica::resume`].
    pub fn resume(&self) -> Result<(), StoreError> {
        self.replica().ok_or(StoreError::Unsupported(NO_TAIL))?.resume()?;
        tracing::info!("this server is the primary, as it was when it last ran");
        self.promoted.notify_one();
        Ok(())
    }

    /// Whether a follower is missing that answers should wait for.
    fn answers_alone(&self) -> bool {
        self.replica().is_some_and(|replica| replica.answers_alone())
    }

    /// The followers that have been seen.
    pub fn followers(&self) -> MutexGuard<'_, BTreeMap<String, SeenFollower>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers how far a follower is.
    pub fn note_follower(&self, name: &str, seen: SeenFollower) {
        let mut followers = self.followers();
        if followers.len() >= FOLLOWERS_SEEN_MAX && !followers.contains_key(name) {
            followers.retain(|_, seen| seen.connected);
        }
        followers.insert(name.to_string(), seen);
    }

    /// What is wrong, for the page.
    pub fn problem(&self) -> Option<String> {
        match self.role() {
            Role::Primary if self.answers_alone() => Some(
                "This server was promoted and has no follower yet: until one has caught up, it answers changes that it alone has"
                    .to_string(),
            ),
            Role::Primary | Role::Promoting | Role::Restored => None,
            Role::Fenced => Some(
                "This server takes no changes: another one was made the primary. Let it follow that one (docs/replication.md)"
                    .to_string(),
            ),
            Role::Follower => {
                let failure = self.following.failure.lock().unwrap_or_else(PoisonError::into_inner);
                let why = failure.as_ref().map_or_else(String::new, |text| format!(": {text}"));
                match self.following.age() {
                    Some(age) if age <= LATE => None,
                    Some(age) => Some(format!("This server follows another one, and what it has is {} seconds old{why}", age.as_secs())),
                    None => Some(format!("This server follows another one, and has not caught up with it yet{why}")),
                }
            }
        }
    }

    /// Lines for `roundel replication`: a key, a space, a value.
    pub fn lines(&self) -> Vec<String> {
        let Some(replica) = self.replica() else { return vec!["role none".to_string()] };
        let history = replica.history();
        let mut lines = vec![format!("role {}", self.role().word()), format!("epoch {}", history.epoch())];
        if history.fenced_by > 0 {
            lines.push(format!("fenced_by {}", history.fenced_by));
        }
        if self.answers_alone() {
            lines.push("alone yes".to_string());
        }
        let ends = replica.moment();
        let positions: Vec<String> = ends.iter().map(ToString::to_string).collect();
        lines.push(format!("positions {}", positions.join(",")));
        if self.role() == Role::Follower {
            let connected = self.following.connected.load(Ordering::Relaxed);
            lines.push(format!("connected {}", if connected { "yes" } else { "no" }));
            let age = self.following.age();
            lines.push(format!(
                "age_ms {}",
                age.map_or("unknown".to_string(), |age| age.as_millis().to_string())
            ));
            if let Some(text) = &*self.following.failure.lock().unwrap_or_else(PoisonError::into_inner)
                && !connected
            {
                lines.push(format!("failure {text}"));
            }
        }
        for (name, seen) in &*self.followers() {
            let state = if seen.connected { "connected" } else { "away" };
            lines.push(format!("follower {name} {state} lacks {} bytes", seen.bytes_lacking(&ends)));
        }
        lines
    }
}

/// `roundel_replication_*`
#[derive(Debug)]
pub struct ReplicationCollector(pub Arc<ReplicationState>);

impl Collector for ReplicationCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let state = &self.0;
        let ends = state.replica().map(|replica| replica.moment()).unwrap_or_default();
        let (connected, lacking) = {
            let followers = state.followers();
            let connected = followers.values().filter(|seen| seen.connected).count() as i64;
            (connected, followers.values().map(|seen| seen.bytes_lacking(&ends)).max().unwrap_or(0))
        };
        let age = state.following.age().map_or(-1.0, |age| age.as_secs_f64());
        let is_follower = state.role() == Role::Follower;
        let mut gauges = vec![
            (
                "replication_primary",
                "Whether this server takes changes",
                i64::from(state.role() == Role::Primary),
            ),
            ("replication_followers", "Followers that are connected", connected),
            (
                "replication_bytes_lacking",
                "Bytes of log that the slowest follower seen has not acknowledged",
                i64::try_from(lacking).unwrap_or(i64::MAX),
            ),
        ];
        if is_follower {
            let is_connected = state.following.connected.load(Ordering::Relaxed);
            gauges.push((
                "replication_connected",
                "Whether the primary is connected",
                i64::from(is_connected),
            ));
            let gauge = ConstGauge::new(age);
            let help = "How old what is served is, in seconds; -1 = this follower has not caught up yet";
            gauge.encode(encoder.encode_descriptor(
                "replication_age_seconds",
                help,
                None,
                gauge.metric_type(),
            )?)?;
        }
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let counters = [
            ("replication_sent_bytes", "Bytes of log sent to followers", &state.sent_bytes),
            (
                "replication_applied_bytes",
                "Bytes of the primary's log applied",
                &state.following.applied_bytes,
            ),
            ("replication_sessions", "Sessions with the primary begun", &state.following.sessions),
        ];
        for (name, help, counter) in counters {
            let metric = ConstCounter::new(counter.load(Ordering::Relaxed));
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
        }
        Ok(())
    }
}
