//! Requests that took long, for the status page.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use serde::Serialize;

/// A request that takes longer is slow.
const SLOW: Duration = Duration::from_millis(500);
/// Slow requests that are kept.
const KEPT: usize = 20;
/// Bytes of a request's target that are kept.
const TARGET_BYTES_MAX: usize = 300;

/// The last slow requests, newest first.
#[derive(Debug, Default)]
pub struct SlowRequests(Mutex<VecDeque<SlowRequest>>);

/// A request that took long.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowRequest {
    /// When it ended, in seconds since the epoch.
    pub time: u64,
    /// How long it took until the answer began.
    pub seconds: f64,
    /// Method and target.
    pub request: String,
}

impl SlowRequests {
    /// All that are kept.
    pub fn all(&self) -> Vec<SlowRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn note(&self, took: Duration, mut request: String) {
        if let Some((end, _)) = request.char_indices().nth(TARGET_BYTES_MAX) {
            request.truncate(end);
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(KEPT - 1);
        kept.push_front(SlowRequest { time, seconds: took.as_secs_f64(), request });
    }
}

/// Notes requests that take long.
pub async fn watch(State(slow): State<Arc<SlowRequests>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let (method, target) = (request.method().clone(), request.uri().clone());
    let response = next.run(request).await;
    let took = begun.elapsed();
    if took >= SLOW {
        slow.note(took, format!("{method} {target}"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_slow_ones_are_kept() {
        let slow = SlowRequests::default();
        for number in 0..30 {
            slow.note(SLOW, format!("GET /{number}{}", "é".repeat(400)));
        }
        let all = slow.all();
        assert_eq!(all.len(), KEPT);
        assert!(all[0].request.starts_with("GET /29") && all[0].request.chars().count() == TARGET_BYTES_MAX);
    }
}
