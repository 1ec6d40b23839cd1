//! How many connections there may be: a total for all listeners, of which neither rrdcached's protocol nor HTTP gets so much
//! that the other is left with nothing, which leaves the store the file descriptors that it needs, and whose connections take no
//! more memory than there is for them, whatever they do.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use crate::limits::{
    CONNECTION_BYTES, CONNECTIONS_MAX, CONNECTIONS_MIN, DESCRIPTORS_KEPT_MIN, HELD_FREELY,
    HTTP_CONNECTION_BYTES, LISTENER_SHARE,
};
use crate::machine;

/// Slots for connections.
#[derive(Debug)]
pub struct ConnectionLimits {
    total: Arc<Semaphore>,
    /// The memory that they may take, in kB.
    memory: Arc<Semaphore>,
    rrdcached: Arc<Semaphore>,
    http: Arc<Semaphore>,
}

/// What a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// rrdcached's protocol and our frames.
    Rrdcached,
    /// HTTP.
    Http,
}

impl ListenerKind {
    /// Memory of a connection that holds what none is refused, in kB.
    fn kilobytes(self) -> u32 {
        let bytes = match self {
            ListenerKind::Rrdcached => CONNECTION_BYTES,
            ListenerKind::Http => HTTP_CONNECTION_BYTES,
        };
        ((bytes + HELD_FREELY as u64) / 1024) as u32
    }
}

/// The slot of one connection, free again when this is dropped.
#[derive(Debug)]
pub struct Slot {
    _kind: OwnedSemaphorePermit,
    _memory: OwnedSemaphorePermit,
    _total: OwnedSemaphorePermit,
}

/// Descriptors for connections, of `most` of which `open` are in use.
fn spare(most: u64, open: u64) -> usize {
    // The store opens a file for each segment, and merges keep their number small.
    let kept = (most / 4).clamp(DESCRIPTORS_KEPT_MIN, 1024).max(2 * open);
    // Where the store has opened most of them, a few clients must do.
    let spare = most.saturating_sub(kept).max(most / 8).max(1);
    usize::try_from(spare).unwrap_or(usize::MAX).min(CONNECTIONS_MAX)
}

impl ConnectionLimits {
    /// Slots for `most` connections, or as many as the process has file descriptors to spare, or as `memory_bytes` are enough for.
    pub fn with_total(most: usize, memory_bytes: u64) -> Self {
        let total = most.clamp(1, spare(machine::descriptors_max(), machine::descriptors_open()));
        ConnectionLimits::new(total, memory_bytes)
    }

    fn new(total: usize, memory_bytes: u64) -> Self {
        let semaphore = |count: usize| Arc::new(Semaphore::new(count));
        let least = CONNECTIONS_MIN * u64::from(ListenerKind::Http.kilobytes());
        // More than all connections could take is as good as no limit.
        let most = CONNECTIONS_MAX as u64 * u64::from(ListenerKind::Http.kilobytes());
        let kilobytes = (memory_bytes / 1024).clamp(least, most) as usize;
        let of_kind = |kind: ListenerKind| {
            let fit = total.min(kilobytes / kind.kilobytes() as usize);
            // Each kind leaves this part to the other.
            semaphore(fit - (fit / LISTENER_SHARE).max(usize::from(fit > 1)))
        };
        ConnectionLimits {
            total: semaphore(total),
            memory: semaphore(kilobytes),
            rrdcached: of_kind(ListenerKind::Rrdcached),
            http: of_kind(ListenerKind::Http),
        }
    }

    fn of(&self, kind: ListenerKind) -> &Arc<Semaphore> {
        match kind {
            ListenerKind::Rrdcached => &self.rrdcached,
            ListenerKind::Http => &self.http,
        }
    }

    /// A slot, if one is free now.
    pub fn try_acquire(&self, kind: ListenerKind) -> Option<Slot> {
        let of_kind = Arc::clone(self.of(kind)).try_acquire_owned().ok()?;
        let memory = Arc::clone(&self.memory).try_acquire_many_owned(kind.kilobytes()).ok()?;
        let of_total = Arc::clone(&self.total).try_acquire_owned().ok()?;
        Some(Slot { _kind: of_kind, _memory: memory, _total: of_total })
    }

    /// A slot, once one is free.
    pub async fn acquire(&self, kind: ListenerKind) -> Slot {
        // The semaphores are never closed.
        loop {
            let of_kind = Arc::clone(self.of(kind)).acquire_owned().await;
            let memory = Arc::clone(&self.memory).acquire_many_owned(kind.kilobytes()).await;
            let of_total = Arc::clone(&self.total).acquire_owned().await;
            if let (Ok(of_kind), Ok(memory), Ok(of_total)) = (of_kind, memory, of_total) {
                return Slot { _kind: of_kind, _memory: memory, _total: of_total };
            }
        }
    }
}

/// A shortage is over when nothing was short for so long: at the limit, each client that ends makes room for another.
const SHORTAGE_OVER: Duration = Duration::from_secs(10);

/// Tells the operator what keeps clients waiting: once when that begins, and once when it is over.
#[derive(Debug)]
pub struct ShortageLog {
    now: Option<Shortage>,
    pause: Duration,
}

#[derive(Debug)]
struct Shortage {
    cause: String,
    over: Instant,
}

impl Default for ShortageLog {
    fn default() -> Self {
        ShortageLog { now: None, pause: SHORTAGE_OVER }
    }
}

impl ShortageLog {
    /// Clients have to wait because of `cause`; true when that is news.
    pub fn begin(&mut self, cause: impl Display) -> bool {
        let (cause, over) = (cause.to_string(), Instant::now() + self.pause);
        let is_news = self.now.as_ref().is_none_or(|shortage| shortage.cause != cause);
        if is_news {
            tracing::warn!("{cause}");
        }
        self.now = Some(Shortage { cause, over });
        is_news
    }

    /// Returns when a shortage is over; then call [`ShortageLog::end`].
    pub async fn over(&self) {
        match &self.now {
            Some(shortage) => sleep_until(shortage.over).await,
            None => std::future::pending().await,
        }
    }

    /// The shortage is over.
    pub fn end(&mut self) {
        self.now = None;
        tracing::info!("clients no longer wait to be accepted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUCH: u64 = 1 << 40;

    #[test]
    fn connections_take_no_more_memory_than_there_is_and_neither_kind_takes_all_of_it() {
        let memory = 15_000 * 1024;
        let limits = ConnectionLimits::new(CONNECTIONS_MAX, memory);
        let take = |kind| std::iter::from_fn(|| limits.try_acquire(kind)).collect::<Vec<_>>();
        let silent = take(ListenerKind::Rrdcached);
        let http = take(ListenerKind::Http);
        // Seven eighths of the first kind, and the rest of the other.
        assert_eq!((silent.len(), http.len()), (1875, 125));
        let bytes = silent.len() as u64 * (CONNECTION_BYTES + HELD_FREELY as u64)
            + http.len() as u64 * (HTTP_CONNECTION_BYTES + HELD_FREELY as u64);
        assert!(bytes <= memory && bytes > memory * 9 / 10, "{bytes}");
        drop((silent, http));
        assert_eq!(take(ListenerKind::Http).len(), 875);
        let few = ConnectionLimits::new(CONNECTIONS_MAX, 0);
        assert!(few.try_acquire(ListenerKind::Http).is_some());
    }

    #[test]
    fn neither_kind_takes_all_slots() {
        let limits = ConnectionLimits::new(80, MUCH);
        let take = |kind| std::iter::from_fn(|| limits.try_acquire(kind)).collect::<Vec<_>>();
        let silent = take(ListenerKind::Rrdcached);
        assert_eq!(silent.len(), 70);
        let http = take(ListenerKind::Http);
        assert_eq!(http.len(), 10);
        drop(silent);
        assert_eq!(take(ListenerKind::Http).len(), 60);
        drop(http);
        assert_eq!(take(ListenerKind::Rrdcached).len(), 70);
    }

    #[tokio::test]
    async fn a_shortage_is_told_once_until_it_is_over() {
        let pause = Duration::from_millis(20);
        let mut log = ShortageLog { now: None, pause };
        let told =
            [log.begin("full"), log.begin("full"), log.begin("no descriptor"), log.begin("no descriptor")];
        assert_eq!(told, [true, false, true, false]);
        let start = Instant::now();
        log.over().await;
        assert!(start.elapsed() > pause / 2);
        log.end();
        assert!(log.begin("no descriptor"));
    }

    #[test]
    fn the_store_keeps_descriptors() {
        assert_eq!(spare(1024, 30), 768);
        assert_eq!(spare(128, 20), 64);
        assert_eq!(spare(1024, 400), 224);
        assert_eq!(spare(1024, 600), 128);
        assert_eq!(spare(1 << 20, 100), CONNECTIONS_MAX);
    }
}
