//! Which agents there are, for the status page: those that have had a session since the daemon started.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// The most agents that are remembered.
const AGENTS_MAX: usize = 10_000;

/// The agents that have been seen, by their names.
#[derive(Debug, Default)]
pub struct SeenAgents(Mutex<BTreeMap<Box<[u8]>, Seen>>);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Open sessions.
    sessions: u32,
    /// When something of it came last, in seconds since the epoch.
    heard: i64,
    /// The time of its newest reading.
    newest: Option<i64>,
}

/// An agent, for the status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentState {
    /// Its name.
    pub name: String,
    /// Whether it has a session.
    pub connected: bool,
    /// When something of it came last, in seconds since the epoch.
    pub heard: i64,
    /// The age of its newest reading in seconds; `None`: none has come since the start.
    pub lag_seconds: Option<i64>,
}

/// A session of an agent; it is connected as long as one lives.
#[derive(Debug)]
pub struct SeenSession<'a> {
    agents: &'a SeenAgents,
    name: Box<[u8]>,
}

impl SeenAgents {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<[u8]>, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session of the agent `name` begins at `now`.
    pub fn session(&self, name: &[u8], now: i64) -> SeenSession<'_> {
        let mut agents = self.lock();
        if agents.len() < AGENTS_MAX || agents.contains_key(name) {
            let seen = agents.entry(name.into()).or_default();
            seen.sessions += 1;
            seen.heard = now;
        }
        SeenSession { agents: self, name: name.into() }
    }

    /// All of them at `now`, in the order of their names.
    pub fn all(&self, now: i64) -> Vec<AgentState> {
        let agents = self.lock();
        let states = agents.iter().map(|(name, seen)| AgentState {
            name: String::from_utf8_lossy(name).into_owned(),
            connected: seen.sessions > 0,
            heard: seen.heard,
            lag_seconds: seen.newest.map(|newest| (now - newest).max(0)),
        });
        states.collect()
    }
}

impl SeenSession<'_> {
    /// A block has come at `now` whose newest reading is of the time `newest`.
    pub fn note(&self, now: i64, newest: Option<i64>) {
        if let Some(seen) = self.agents.lock().get_mut(&self.name) {
            seen.heard = now;
            seen.newest = seen.newest.max(newest);
        }
    }
}

impl Drop for SeenSession<'_> {
    fn drop(&mut self) {
        if let Some(seen) = self.agents.lock().get_mut(&self.name) {
            seen.sessions = seen.sessions.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_connected_while_it_has_a_session() {
        let agents = SeenAgents::default();
        let first = agents.session(b"hall", 100);
        let second = agents.session(b"hall", 101);
        first.note(105, Some(90));
        second.note(106, Some(80));
        drop(first);
        let state = |connected| AgentState {
            name: "hall".to_string(),
            connected,
            heard: 106,
            lag_seconds: Some(110),
        };
        assert_eq!(agents.all(200), [state(true)]);
        drop(second);
        assert_eq!(agents.all(200), [state(false)]);
    }
}
