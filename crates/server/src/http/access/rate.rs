//! A rate of requests: a bucket of tokens, of which each request takes one.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Allows a request per interval, and some at once.
#[derive(Debug)]
pub struct RateLimit {
    interval: Duration,
    burst: u32,
    /// When the bucket is or was full.
    full_at: Mutex<Instant>,
}

impl RateLimit {
    /// A request per `interval`, and `burst` at once; none at all if that is 0.
    pub fn new(interval: Duration, burst: u32) -> Self {
        RateLimit { interval, burst, full_at: Mutex::new(Instant::now()) }
    }

    /// Whether one more is allowed now.
    pub fn allow(&self) -> bool {
        self.allow_at(Instant::now())
    }

    fn allow_at(&self, now: Instant) -> bool {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let next = (*full_at).max(now) + self.interval;
        let is_allowed = next - now <= self.interval * self.burst;
        if is_allowed {
            *full_at = next;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_come_at_once_and_the_rest_one_by_one() {
        let start = Instant::now();
        let allowed = |limit: &RateLimit, ms: u64| limit.allow_at(start + Duration::from_millis(ms));
        let limit = RateLimit { full_at: Mutex::new(start), ..RateLimit::new(Duration::from_millis(100), 2) };
        assert_eq!(
            [0, 0, 0, 99, 100, 101, 199, 200].map(|ms| allowed(&limit, ms)),
            [true, true, false, false, true, false, false, true]
        );
        assert_eq!([1000, 1000, 1000].map(|ms| allowed(&limit, ms)), [true, true, false]);
        let none = RateLimit::new(Duration::from_secs(1), 0);
        assert!(!none.allow() && !none.allow_at(start + Duration::from_secs(100)));
    }
}
