//! Which agents are connected: of two sessions of one stream, the newer one counts. An agent has a stream of its name, and one that
//! is called `NAME/live`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedMutexGuard, watch};

/// The streams of agents that are connected, by their names.
#[derive(Debug, Default)]
pub struct Registry(Mutex<HashMap<Box<[u8]>, Arc<Seat>>>);

/// What the sessions of one stream share.
#[derive(Debug)]
struct Seat {
    /// The number of the newest session.
    newest: watch::Sender<u64>,
    /// Held by the session that applies blocks.
    taken: Arc<tokio::sync::Mutex<()>>,
}

/// The right to apply a stream's blocks.
#[derive(Debug)]
pub struct Place<'a> {
    registry: &'a Registry,
    name: Box<[u8]>,
    seat: Arc<Seat>,
    number: u64,
    newest: watch::Receiver<u64>,
    _taken: OwnedMutexGuard<()>,
}

/// The name of the agent that a stream is of.
pub fn agent_of(stream: &[u8]) -> &[u8] {
    stream.split(|&byte| byte == b'/').next().unwrap_or(stream)
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Arc<Seat>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many agents are connected.
    pub fn count(&self) -> usize {
        let streams = self.lock();
        streams.keys().map(|stream| agent_of(stream)).collect::<HashSet<_>>().len()
    }

    /// Ends an older session of the same stream, waits until that has applied what it is at, and takes its place. The session with the
    /// highest `number`, from 1 on, is the newest: `None` when that is another one.
    pub async fn take(&self, name: &[u8], number: u64) -> Option<Place<'_>> {
        let seat = Arc::clone(
            self.lock()
                .entry(name.into())
                .or_insert_with(|| Arc::new(Seat { newest: watch::Sender::new(0), taken: Arc::default() })),
        );
        let is_newest = seat.newest.send_if_modified(|newest| {
            let is_newest = number > *newest;
            *newest = number.max(*newest);
            is_newest
        });
        if !is_newest {
            return None;
        }
        let newest = seat.newest.subscribe();
        let taken = Arc::clone(&seat.taken).lock_owned().await;
        Some(Place { registry: self, name: name.into(), seat, number, newest, _taken: taken })
    }
}

impl Place<'_> {
    /// Returns when a newer session wants the place.
    pub async fn is_wanted(&mut self) {
        let number = self.number;
        // The sender is in this place, too.
        let _ = self.newest.wait_for(|newest| *newest != number).await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut agents = self.registry.lock();
        // A session that waits for the place has the same seat.
        if Arc::strong_count(&self.seat) <= 2 {
            agents.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_newest_session_gets_the_place() {
        let registry = Registry::default();
        let mut first = registry.take(b"a", 2).await.unwrap();
        let other = registry.take(b"b", 3).await.unwrap();
        let _second_stream = registry.take(b"b/live", 4).await.unwrap();
        assert_eq!(registry.count(), 2);
        assert!(registry.take(b"a", 1).await.is_none());
        let mut second = Box::pin(registry.take(b"a", 5));
        let wanted = async {
            tokio::select! {
                _ = &mut second => panic!("there are two"),
                () = first.is_wanted() => {}
            }
        };
        wanted.await;
        drop(first);
        let second = second.await.unwrap();
        drop(other);
        assert_eq!(registry.count(), 2);
        drop(second);
        assert_eq!(registry.count(), 1);
    }
}
