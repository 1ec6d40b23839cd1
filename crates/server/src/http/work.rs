//! How much of the machine HTTP may take: requests that read many rows or draw wait in a short line.

use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use super::failure::Failure;

/// Requests that may wait for their turn; further ones are sent away at once.
const WAITING_MAX: usize = 256;
/// Longest wait for a turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// The line.
#[derive(Debug)]
pub struct Work {
    turns: Semaphore,
    room: Semaphore,
}

impl Default for Work {
    /// One turn for each core: what is drawn at once is drawn no faster by more.
    fn default() -> Work {
        let turns = std::thread::available_parallelism().map_or(1, usize::from);
        Work { turns: Semaphore::new(turns), room: Semaphore::new(turns + WAITING_MAX) }
    }
}

impl Work {
    /// Runs `call`, which may be long, when its turn comes.
    ///
    /// # Errors
    /// 503 when too many wait, or for too long; and what `call` says.
    pub async fn run<T>(&self, call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let busy = |_| Failure::new(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once; ask again");
        let _room = self.room.try_acquire().map_err(|_| busy(()))?;
        let waited = tokio::time::timeout(PATIENCE, self.turns.acquire()).await;
        let _turn = waited.ok().and_then(Result::ok).ok_or_else(|| busy(()))?;
        tokio::task::block_in_place(call)
    }
}
