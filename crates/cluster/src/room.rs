//! How many bytes may be in some place at once: who brings more waits.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// What a message counts beside its bytes: maps, threads and callbacks have entries for it.
const MESSAGE_COST: usize = 4096;

/// A place with a limit.
pub(crate) struct Room {
    bytes_max: usize,
    taken: Mutex<usize>,
    freed: Condvar,
}

/// Part of a [`Room`]; dropping it frees that.
pub(crate) struct Taken {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    /// An empty one.
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Room { bytes_max, taken: Mutex::new(0), freed: Condvar::new() })
    }

    /// Takes room for a message, which may be larger than all of it if there is nothing else; `None` when there is none until then.
    pub(crate) fn take(self: &Arc<Self>, message_bytes: usize, until: Instant) -> Option<Taken> {
        let bytes = message_bytes + MESSAGE_COST;
        let mut taken = lock(&self.taken);
        while *taken > 0 && *taken + bytes > self.bytes_max {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return None;
            }
            taken = self.freed.wait_timeout(taken, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken += bytes;
        Some(Taken { room: Arc::clone(self), bytes })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        *lock(&self.room.taken) -= self.bytes;
        self.room.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_room_makes_others_wait_until_it_is_left() {
        let room = Room::new(2 * MESSAGE_COST);
        let large = room.take(10 * MESSAGE_COST, Instant::now()).expect("nothing else is there");
        assert!(room.take(0, Instant::now()).is_none());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| room.take(0, Instant::now() + Duration::from_secs(60)).is_some());
            drop(large);
            assert!(waiting.join().unwrap());
        });
        let both = [room.take(0, Instant::now()), room.take(0, Instant::now())];
        assert!(both.iter().all(Option::is_some));
        assert!(room.take(0, Instant::now()).is_none());
    }
}
