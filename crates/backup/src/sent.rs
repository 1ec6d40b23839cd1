//! Objects that were sent and that no manifest names yet.
//!
//! They are believed to be there for a time only: another pruning removes what no manifest names for long.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// So long, an object that was sent, or that the server had already, counts as there: no pruning deletes it before the manifest names it.
pub const BELIEVED: Duration = Duration::from_hours(12);

/// Objects with the time at which each was sent, by two clocks: one stands still while the machine sleeps, the other may be set.
#[derive(Debug, Default)]
pub struct SentObjects(HashMap<String, (Instant, SystemTime)>);

impl SentObjects {
    /// Whether an object was sent.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// An object is there now.
    pub fn add(&mut self, name: &str) {
        self.0.entry(name.to_string()).or_insert_with(|| (Instant::now(), SystemTime::now()));
    }

    /// It was not.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Those that were sent so long ago that they may have been removed.
    pub fn old(&self) -> Vec<String> {
        self.0.iter().filter(|(_, sent)| is_old(sent)).map(|(name, _)| name.clone()).collect()
    }

    /// Forgets these.
    pub fn drop_old(&mut self) {
        self.0.retain(|_, sent| !is_old(sent));
    }
}

fn is_old((since, at): &(Instant, SystemTime)) -> bool {
    since.elapsed() >= BELIEVED || at.elapsed().is_ok_and(|age| age >= BELIEVED)
}
