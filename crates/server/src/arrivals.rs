//! Clients of a port of which it is not known yet who they are. Beyond a number of them the oldest makes room for the newest: one
//! that connects and says nothing keeps no other client out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Those of one port, from the oldest to the newest.
#[derive(Debug)]
pub struct Arrivals {
    max: usize,
    waiting: Mutex<VecDeque<Arc<Notify>>>,
}

/// One of them, until it is dropped.
pub struct Arrival<'a> {
    arrivals: &'a Arrivals,
    ended: Arc<Notify>,
}

impl Arrivals {
    /// So many at once.
    pub fn new(max: usize) -> Self {
        Arrivals { max, waiting: Mutex::default() }
    }

    /// One has come.
    pub fn begin(&self) -> Arrival<'_> {
        let ended = Arc::new(Notify::new());
        let mut waiting = self.waiting();
        waiting.push_back(Arc::clone(&ended));
        if waiting.len() > self.max
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.notify_one();
        }
        drop(waiting);
        Arrival { arrivals: self, ended }
    }

    /// Ends the oldest, whose place another client needs.
    pub fn make_room(&self) {
        if let Some(oldest) = self.waiting().pop_front() {
            oldest.notify_one();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrival<'_> {
    /// Waits until it has to make room.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        self.arrivals.waiting().retain(|other| !Arc::ptr_eq(other, &self.ended));
    }
}
