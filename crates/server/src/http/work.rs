//! Limits how much of the machine HTTP may use: requests that read many rows or draw wait in a short queue.

use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use super::failure::Failure;

/// Requests that may wait; further ones are refused at once.
const WAITING_MAX: usize = 256;
/// The longest time in the queue.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// The queue.
#[derive(Debug)]
pub struct Work {
    turns: Semaphore,
    room: Semaphore,
}

impl Default for Work {
    /// One slot per core: running more drawings at once does not make them faster.
    fn default() -> Work {
        let turns = std::thread::available_parallelism().map_or(1, usize::from);
        Work { turns: Semaphore::new(turns), room: Semaphore::new(turns + WAITING_MAX) }
    }
}

impl Work {
    /// Runs `call`, which may take long, when its turn comes.
    ///
    /// # Errors
    /// 503 when too many requests wait, or for too long; errors of `call`.
    pub async fn run<T>(&self, call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let busy = |_| Failure::new(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once; ask again");
        let _room = self.room.try_acquire().map_err(|_| busy(()))?;
        let waited = tokio::time::timeout(QUEUE_TIMEOUT, self.turns.acquire()).await;
        let _turn = waited.ok().and_then(Result::ok).ok_or_else(|| busy(()))?;
        tokio::task::block_in_place(call)
    }
}
