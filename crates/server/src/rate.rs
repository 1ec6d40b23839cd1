//! Rates: a bucket of tokens that fills by itself.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest time for which what was taken at once keeps the bucket empty.
const DEBT_MAX: Duration = Duration::from_secs(3600);

/// Allows one per interval, and some at once.
#[derive(Debug)]
pub struct RateLimit {
    interval: Duration,
    burst: u32,
    /// When the bucket is or was full.
    full_at: Mutex<Instant>,
}

impl RateLimit {
    /// One per `interval`, and `burst` at once; none at all if that is 0.
    pub fn new(interval: Duration, burst: u32) -> Self {
        RateLimit { interval, burst, full_at: Mutex::new(Instant::now()) }
    }

    /// Whether one more is allowed now.
    pub fn allow(&self) -> bool {
        self.allow_at(Instant::now())
    }

    /// Takes `count` at once if the bucket is not empty; it may then be so for a while. So what is larger than the bucket is not refused for
    /// ever.
    pub fn spend(&self, count: u64) -> bool {
        self.spend_at(Instant::now(), count)
    }

    fn spend_at(&self, now: Instant, count: u64) -> bool {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let due = (*full_at).max(now);
        if due - now >= self.interval * self.burst {
            return false;
        }
        let nanoseconds =
            (self.interval.as_nanos() as u64).saturating_mul(count).min(DEBT_MAX.as_nanos() as u64);
        *full_at = due + Duration::from_nanos(nanoseconds);
        true
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
        let debt = RateLimit { full_at: Mutex::new(start), ..RateLimit::new(Duration::from_millis(1), 10) };
        let spent = |ms: u64, count: u64| debt.spend_at(start + Duration::from_millis(ms), count);
        assert_eq!(
            [spent(0, 9), spent(0, 100), spent(0, 1), spent(98, 1), spent(100, 1)],
            [true, true, false, false, true]
        );
        let none = RateLimit::new(Duration::from_secs(1), 0);
        assert!(!none.allow() && !none.allow_at(start + Duration::from_secs(100)));
    }
}
