//! What is logged of what is refused: not more often than is read, and shortened.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often something that is refused is logged, for a port.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// Bytes of what is refused that are logged.
const LOGGED_BYTES_MAX: usize = 200;

/// How much is refused.
#[derive(Clone, Copy)]
pub(super) enum Refused {
    /// A line or a sample.
    One,
    /// A connection, a message, or a line of which only a part is there.
    Whole,
}

/// The log of a port's refusals.
pub(super) struct RefusalLog {
    port: String,
    /// When something was logged, by [`Refused`].
    logged: Mutex<[Option<Instant>; 2]>,
}

impl RefusalLog {
    /// Nothing is logged yet of the port of this address.
    pub(super) fn new(port: String) -> Self {
        RefusalLog { port, logged: Mutex::default() }
    }

    /// Logs that `text` is refused, unless something of its kind was logged a moment ago.
    pub(super) fn refused(&self, kind: Refused, text: &[u8], cause: &dyn Display) {
        let mut all = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let logged = &mut all[kind as usize];
        if logged.is_some_and(|at| at.elapsed() < LOG_EVERY) {
            return;
        }
        *logged = Some(Instant::now());
        let more = if text.len() > LOGGED_BYTES_MAX { "..." } else { "" };
        let text = text[..text.len().min(LOGGED_BYTES_MAX)].escape_ascii();
        tracing::warn!(
            port = self.port,
            "refused \"{text}{more}\": {cause}; what else is refused is counted in /metrics (roundel_ingest_refused_total)"
        );
    }
}
