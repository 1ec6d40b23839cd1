//! Wakes who waits for more of some logs.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::lock::lock;

/// Rung by logs, heard by one thread.
#[derive(Debug, Default)]
pub struct Bell {
    is_rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    /// Wakes the waiting thread; or the next one to wait, which then does not wait.
    pub fn ring(&self) {
        let mut is_rung = lock(&self.is_rung);
        // Only once until it is heard: waking costs a system call, and a busy log rings thousands of times per second.
        if !std::mem::replace(&mut *is_rung, true) {
            self.heard.notify_one();
        }
    }

    /// Waits until it is rung, or was since the last call; false when `timeout` is over first.
    pub fn wait(&self, timeout: Duration) -> bool {
        let is_rung = lock(&self.is_rung);
        let waited = self.heard.wait_timeout_while(is_rung, timeout, |is_rung| !*is_rung);
        let (mut is_rung, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::take(&mut *is_rung)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rung_before_is_heard_once() {
        let bell = Bell::default();
        bell.ring();
        bell.ring();
        assert!(bell.wait(Duration::ZERO));
        assert!(!bell.wait(Duration::from_millis(1)));
    }

    #[test]
    fn a_waiting_thread_wakes() {
        let bell = Bell::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| bell.wait(Duration::from_secs(60)));
            bell.ring();
            assert!(waiting.join().unwrap());
        });
    }
}
