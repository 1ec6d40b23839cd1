//! How many connections there may be: a total for all doors, of which no door gets so much that another is left with
//! nothing, and which leaves the store the file descriptors that it needs.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{CONNECTIONS_MAX, DESCRIPTORS_KEPT_MIN, DOOR_SHARE};
use crate::machine;

/// The places for connections.
#[derive(Debug)]
pub struct Doors {
    total: Arc<Semaphore>,
    rrdcached: Arc<Semaphore>,
    http: Arc<Semaphore>,
}

/// A kind of door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// rrdcached's protocol and our frames.
    Rrdcached,
    /// HTTP.
    Http,
}

/// The place of one connection, free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    _door: OwnedSemaphorePermit,
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

impl Doors {
    /// Places for `most` connections, or as many as the process has file descriptors to spare.
    pub fn open(most: usize) -> Self {
        Doors::new(most.clamp(1, spare(machine::descriptors_max(), machine::descriptors_open())))
    }

    fn new(total: usize) -> Self {
        let semaphore = |count: usize| Arc::new(Semaphore::new(count));
        // Each door leaves this many to the other.
        let left = (total / DOOR_SHARE).max(usize::from(total > 1));
        Doors { total: semaphore(total), rrdcached: semaphore(total - left), http: semaphore(total - left) }
    }

    fn of(&self, door: Door) -> &Arc<Semaphore> {
        match door {
            Door::Rrdcached => &self.rrdcached,
            Door::Http => &self.http,
        }
    }

    /// A place, if there is one now.
    pub fn try_place(&self, door: Door) -> Option<Place> {
        let of_door = Arc::clone(self.of(door)).try_acquire_owned().ok()?;
        let of_total = Arc::clone(&self.total).try_acquire_owned().ok()?;
        Some(Place { _door: of_door, _total: of_total })
    }

    /// A place, once there is one.
    pub async fn place(&self, door: Door) -> Place {
        // The semaphores are never closed.
        loop {
            let of_door = Arc::clone(self.of(door)).acquire_owned().await;
            let of_total = Arc::clone(&self.total).acquire_owned().await;
            if let (Ok(of_door), Ok(of_total)) = (of_door, of_total) {
                return Place { _door: of_door, _total: of_total };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_door_takes_all_places() {
        let doors = Doors::new(80);
        let take = |door| std::iter::from_fn(|| doors.try_place(door)).collect::<Vec<_>>();
        let silent = take(Door::Rrdcached);
        assert_eq!(silent.len(), 70);
        let http = take(Door::Http);
        assert_eq!(http.len(), 10);
        drop(silent);
        assert_eq!(take(Door::Http).len(), 60);
        drop(http);
        assert_eq!(take(Door::Rrdcached).len(), 70);
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
