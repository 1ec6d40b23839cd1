//! The audit log: what was refused, and what was changed by whom. A line of JSON for each, appended to a file of the operator's.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::rate::RateLimit;

/// The file is opened again after this time, so that it can be moved away at any time.
const OPEN_FOR: Duration = Duration::from_secs(1);
/// Refusals per second that are recorded, and how many at once: a client that goes on asking does not fill the disk.
const REFUSALS_EVERY: Duration = Duration::from_millis(10);
const REFUSALS_AT_ONCE: u32 = 1000;

/// What happened.
#[derive(Debug, Serialize)]
pub struct Event<'a> {
    /// Who did it, or where it came from.
    pub who: &'a str,
    /// `create`, `refused` and so on.
    pub what: &'static str,
    /// The RRD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What else is to be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<&'a str>,
}

#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since the epoch.
    time: f64,
    #[serde(flatten)]
    event: &'a Event<'a>,
    /// Refusals before this one that were too many to be recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<u64>,
}

/// Where it is recorded; by default nowhere.
#[derive(Debug)]
pub struct Audit {
    path: Option<PathBuf>,
    refusals: RateLimit,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: Option<(File, Instant)>,
    left_out: u64,
    has_failed: bool,
}

impl Default for Audit {
    fn default() -> Self {
        Audit::new(None)
    }
}

impl Audit {
    /// Appends to this file.
    pub fn new(path: Option<PathBuf>) -> Self {
        Audit { path, refusals: RateLimit::new(REFUSALS_EVERY, REFUSALS_AT_ONCE), state: Mutex::default() }
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.path.is_some()
    }

    /// Records an event. That it cannot be written is logged once, and stops nothing.
    pub fn record(&self, event: &Event<'_>) {
        let Some(path) = &self.path else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if event.what == "refused" && !self.refusals.allow() {
            state.left_out += 1;
            return;
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |age| age.as_secs_f64());
        let left_out = (state.left_out > 0).then_some(state.left_out);
        let line = serde_json::to_string(&Line { time, event, left_out }).unwrap_or_default() + "\n";
        match state.file(path).and_then(|mut file| file.write_all(line.as_bytes())) {
            Ok(()) => (state.left_out, state.has_failed) = (0, false),
            Err(error) => {
                state.open = None;
                if !std::mem::replace(&mut state.has_failed, true) {
                    tracing::error!(file = %path.display(), %error, "the audit log cannot be written");
                }
            }
        }
    }
}

impl State {
    fn file(&mut self, path: &PathBuf) -> io::Result<&File> {
        if self.open.as_ref().is_none_or(|(_, opened)| opened.elapsed() > OPEN_FOR) {
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
            self.open = Some((file, Instant::now()));
        }
        self.open.as_ref().map(|(file, _)| file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
