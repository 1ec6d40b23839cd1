//! What is logged of a target: each kind of trouble at once, then at most once a minute with how often it came.

use std::time::{Duration, Instant};

use super::target::{ForwardRefusal, RefusalReason};

/// How often the same kind of refusal is logged.
const EVERY: Duration = Duration::from_secs(60);

/// The complaints about one target.
pub struct ForwardComplaints {
    target: String,
    refusals: [Option<(Instant, u64)>; RefusalReason::ALL.len()],
    away: Option<(Instant, String)>,
}

impl ForwardComplaints {
    /// None yet.
    pub fn new(target: &str) -> Self {
        ForwardComplaints { target: target.to_owned(), refusals: [None; _], away: None }
    }

    /// The target refuses readings.
    pub fn refused(&mut self, refusal: &ForwardRefusal<'_>) {
        let now = Instant::now();
        let kind = &mut self.refusals[refusal.reason as usize];
        let unlogged = kind.map_or(0, |(_, count)| count) + refusal.count;
        if let Some((logged, count)) = kind
            && logged.elapsed() < EVERY
        {
            *count = unlogged;
            return;
        }
        *kind = Some((now, 0));
        let name = String::from_utf8_lossy(refusal.name);
        let (target, reason, text) = (&self.target, refusal.reason.label(), refusal.text);
        if refusal.reason == RefusalReason::NotNewer {
            tracing::debug!(to = %target, count = unlogged, rrd = %name, "the target has these readings already: {text}");
        } else {
            tracing::warn!(to = %target, count = unlogged, reason, rrd = %name, "readings were not taken, and are not sent again: {text}");
        }
    }

    /// Nothing can be sent.
    pub fn away(&mut self, why: &str, waiting_bytes: u64) {
        match &mut self.away {
            Some((_, known)) if known == why => {}
            Some((_, known)) => {
                tracing::warn!(to = %self.target, waiting_bytes, "still cannot forward: {why}");
                *known = why.to_owned();
            }
            None => {
                tracing::warn!(to = %self.target, waiting_bytes, "cannot forward now: {why}; the log keeps what comes");
                self.away = Some((Instant::now(), why.to_owned()));
            }
        }
    }

    /// Something was sent.
    pub fn reached(&mut self, waiting_bytes: u64) {
        if let Some((since, _)) = self.away.take() {
            let seconds = since.elapsed().as_secs();
            tracing::info!(to = %self.target, waiting_bytes, "forwarding goes on after {seconds} s");
        }
    }
}
