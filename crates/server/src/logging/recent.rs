//! The last warnings and errors, for the page.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Lines that are kept.
const LINES_KEPT: usize = 100;
/// Bytes of a line that are kept.
const LINE_BYTES_MAX: usize = 1_000;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// Seconds since the epoch.
    pub time: u64,
    /// `error` or `warn`.
    pub level: &'static str,
    /// The message, and its fields as `name=value`.
    pub text: String,
}

static LINES: Mutex<VecDeque<LogLine>> = Mutex::new(VecDeque::new());

fn lines() -> MutexGuard<'static, VecDeque<LogLine>> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last warnings and errors of this process, newest first.
pub fn recent() -> Vec<LogLine> {
    lines().iter().rev().cloned().collect()
}

/// Keeps what is logged as a warning or an error.
pub struct KeepRecent;

impl<S: Subscriber> Layer<S> for KeepRecent {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warn",
            _ => return,
        };
        let mut text = Text::default();
        event.record(&mut text);
        let mut text = text.message + &text.fields;
        if let Some((end, _)) = text.char_indices().nth(LINE_BYTES_MAX) {
            text.truncate(end);
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut lines = lines();
        if lines.len() == LINES_KEPT {
            lines.pop_front();
        }
        lines.push_back(LogLine { time, level, text });
    }
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a String cannot fail.
        if field.name() == "message" {
            write!(self.message, "{value:?}").ok();
        } else {
            write!(self.fields, " {}={value:?}", field.name()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::prelude::*;

    use super::*;

    #[test]
    fn the_last_warnings_and_errors_are_kept_newest_first() {
        let log = tracing_subscriber::registry().with(KeepRecent);
        tracing::subscriber::with_default(log, || {
            tracing::info!("not kept");
            for number in 0..LINES_KEPT + 5 {
                tracing::warn!(number, "counted");
            }
            tracing::error!(file = %"a b", "broken");
        });
        let recent = recent();
        assert_eq!(recent.len(), LINES_KEPT);
        assert_eq!((recent[0].level, recent[0].text.as_str()), ("error", "broken file=a b"));
        assert_eq!(recent[1].text, format!("counted number={}", LINES_KEPT + 4));
    }
}
