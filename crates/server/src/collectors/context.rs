//! What collectors need of the process that runs them: the daemon, or an agent on another machine.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use store::engine::Engine;

use super::labels::Labels;
use super::statistics::CollectorStatistics;
use crate::agent::feed::SpoolFeed;

/// Where readings go.
pub enum ReadingSink {
    /// Into the store of this process.
    Store(Arc<dyn Engine>),
    /// Into the spool of an agent.
    Spool(Arc<SpoolFeed>),
}

/// What all collectors of a process share.
pub struct CollectorContext {
    /// Where their readings go.
    pub sink: ReadingSink,
    /// Their numbers.
    pub statistics: CollectorStatistics,
    /// What they say of how their RRDs are shown.
    pub labels: Arc<Labels>,
    /// The directory of their own RRDs in `roundel`: empty in the daemon, an agent's name and a slash in an agent.
    pub own_directory: String,
}

impl CollectorContext {
    /// Seconds since the epoch.
    pub fn now(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
    }
}
