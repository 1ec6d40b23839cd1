//! The log: structured lines to standard error, a file, or syslog.

mod recent;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::reload;

use crate::settings::{LogLevel, Settings};

pub use recent::{LogLine, recent};

/// Changes the level of the running log.
#[derive(Clone, Debug, Default)]
pub struct Reload(Option<reload::Handle<EnvFilter, tracing_subscriber::Registry>>);

impl Reload {
    /// Sets the level, unless `RUST_LOG` is set.
    pub fn set(&self, level: LogLevel) {
        if let Some(handle) = &self.0 {
            // The log is gone only at the very end.
            handle.reload(filter(level)).ok();
        }
    }
}

fn filter(level: LogLevel) -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level.directive()))
}

/// Starts the log according to the settings. If the process has a log already, that one stays.
///
/// # Errors
/// When the log file cannot be opened.
pub fn start(settings: &Settings) -> Result<Reload, String> {
    let (filter, handle) = reload::Layer::new(filter(settings.log_level));
    let layer = tracing_subscriber::fmt::layer().with_target(false);
    let registry = tracing_subscriber::registry().with(filter).with(recent::KeepRecent);
    let started = match (&settings.log_file, settings.foreground) {
        (Some(path), _) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file =
                file.map_err(|error| format!("cannot open log file \"{}\": {error}", path.display()))?;
            registry.with(layer.with_ansi(false).with_writer(Arc::new(file))).try_init()
        }
        (None, true) => {
            let colours = io::IsTerminal::is_terminal(&io::stderr());
            registry.with(layer.with_ansi(colours).with_writer(io::stderr)).try_init()
        }
        (None, false) => {
            let plain = layer.with_ansi(false).without_time().with_writer(SystemLog::open());
            registry.with(plain).try_init()
        }
    };
    Ok(Reload(started.is_ok().then_some(handle)))
}

/// Starts the log of a command that opens a store by itself: warnings and errors to standard error, and errors are counted.
pub fn start_for_command() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let layer = tracing_subscriber::fmt::layer().with_target(false).without_time();
    let colours = io::IsTerminal::is_terminal(&io::stderr());
    let layer = layer.with_ansi(colours).with_writer(io::stderr);
    // A process that has a log already keeps it.
    tracing_subscriber::registry().with(filter).with(layer).with(CountErrors).try_init().ok();
}

/// How many errors were logged since [`start_for_command`].
pub fn error_count() -> u64 {
    ERRORS.load(Ordering::Relaxed)
}

static ERRORS: AtomicU64 = AtomicU64::new(0);

/// Counts what is logged as an error.
struct CountErrors;

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for CountErrors {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        if *event.metadata().level() == tracing::Level::ERROR {
            ERRORS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Syslog: one datagram per line, to `/dev/log`.
struct SystemLog(Option<UnixDatagram>);

/// Facility "daemon" (3), severity "notice" (5), as in syslog.h; the text contains the level.
const PRIORITY: &str = "<29>";

impl SystemLog {
    /// Without syslog, lines are dropped.
    fn open() -> Self {
        let socket = UnixDatagram::unbound().and_then(|socket| socket.connect("/dev/log").map(|()| socket));
        SystemLog(socket.ok())
    }
}

impl<'a> MakeWriter<'a> for SystemLog {
    type Writer = SystemLogLine<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        SystemLogLine { log: self, line: Mutex::new(Vec::new()) }
    }
}

/// A line being written.
struct SystemLogLine<'a> {
    log: &'a SystemLog,
    line: Mutex<Vec<u8>>,
}

impl Write for SystemLogLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Ok(line) = self.line.get_mut() {
            line.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SystemLogLine<'_> {
    fn drop(&mut self) {
        let (Some(socket), Ok(line)) = (&self.log.0, self.line.get_mut()) else { return };
        let head = format!("{PRIORITY}roundel[{}]: ", std::process::id());
        // A full log must not stop the daemon.
        socket.send(&[head.as_bytes(), line.trim_ascii_end()].concat()).ok();
    }
}
