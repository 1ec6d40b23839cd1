//! Forwards what the store accepts to other servers: another Roundel, an rrdcached, a Graphite, a Prometheus.
//!
//! The log of the store is the queue ([`store::tail`]): updates are read from it once they are durable, so the update path
//! does nothing for them, and a crash loses none. Each target has a thread ([`forwarder`]), which reads the log from where
//! the target has everything ([`positions`]), and sends in the order of the log. What a target has is sent again after a
//! lost connection or a crash; for all of them that changes nothing. A target that is away for so long that more waits
//! than it may costs the oldest readings, never an update. `docs/forward.md` is what an operator reads.

mod batch;
mod carbon;
mod complaints;
mod daemons;
pub mod destination;
mod forwarder;
mod positions;
#[cfg(feature = "http-client")]
mod prometheus;
#[cfg(not(feature = "http-client"))]
#[path = "forward/prometheus_absent.rs"]
mod prometheus;
mod source;
mod sources;
pub mod status;
mod target;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use crate::ingest::Ingest;
use access::PathSet;
use client::daemon::ClientIdentity;
use store::engine::Engine;
use store::position::Position;
use store::tail::{Bell, LogTail, Reach};

use self::destination::Destination;
use self::forwarder::Forwarder;
use self::positions::ForwardPositions;
use self::source::ForwardSource;
use self::status::ForwardStatus;
use crate::limits::FORWARD_SLACK_BYTES;

/// One `[[forward]]`.
#[derive(Clone, Debug)]
pub struct ForwardSettings {
    /// What it is called in metrics, and its file of positions.
    pub name: String,
    /// Where it sends.
    pub to: Destination,
    /// Which RRDs.
    pub names: PathSet,
    /// How it shows who it is.
    pub identity: ClientIdentity,
    /// Bytes of log that may wait.
    pub spool_bytes: u64,
}

/// Why forwarding cannot start.
#[derive(Debug)]
pub struct ForwardError(String);

impl fmt::Display for ForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ForwardError {}

/// The threads that forward.
pub struct Forwarding {
    threads: Vec<ForwardThread>,
    /// What they tell of themselves.
    pub statuses: Vec<Arc<ForwardStatus>>,
}

struct ForwardThread {
    thread: JoinHandle<LogTail>,
    stop: Arc<AtomicBool>,
    bell: Arc<Bell>,
}

/// Keeps the log that is still to be sent. Drop it after the store has stopped: a checkpoint at the stop would remove it.
pub struct UnsentLog {
    _tails: Vec<LogTail>,
}

impl Forwarding {
    /// Starts one thread for each target. `directory` holds the positions; those of `begin` are in their place where a promotion
    /// has made this server the primary: what came before then was the former one's to forward. Call it before the first update, of a store that was
    /// opened to hold its log.
    /// `ingest` says which RRDs are of series that were pushed.
    ///
    /// # Errors
    /// When the store has no log, positions cannot be read or written, or no thread can be started.
    pub fn start(
        (engine, ingest): (&Arc<dyn Engine>, &Arc<Ingest>),
        settings: Vec<ForwardSettings>,
        directory: &Path,
        begin: Option<&[Position]>,
    ) -> Result<Self, ForwardError> {
        let mut forwarding = Forwarding { threads: Vec::new(), statuses: Vec::new() };
        for one in settings {
            let name = one.name.clone();
            let cannot = |cause: &dyn fmt::Display| {
                ForwardError(format!("cannot forward to \"{name}\" ([[forward]]): {cause}"))
            };
            let tail = engine
                .tail(Reach::Durable, one.spool_bytes + FORWARD_SLACK_BYTES)
                .map_err(|error| cannot(&error))?;
            let bell = tail.bell();
            let source = ForwardSource::new(tail, one.names.clone());
            let positions = ForwardPositions::in_directory(directory, &one.name);
            let (stop, status) = (Arc::new(AtomicBool::new(false)), Arc::new(ForwardStatus::new(&one.name)));
            let forwarder = Forwarder::open(
                (one, Arc::clone(engine), Arc::clone(ingest)),
                source,
                (positions, begin),
                (Arc::clone(&status), Arc::clone(&stop)),
            )
            .map_err(|error| cannot(&error))?;
            let thread = std::thread::Builder::new().name("forward".into()).spawn(move || forwarder.run());
            let thread = thread.map_err(|error| cannot(&error))?;
            forwarding.threads.push(ForwardThread { thread, stop, bell });
            forwarding.statuses.push(status);
        }
        engine.release_log();
        Ok(forwarding)
    }

    /// Stops the threads, at the latest after what they are sending has been answered or given up. What was not sent stays in the
    /// log.
    pub fn stop(self) -> UnsentLog {
        for ForwardThread { stop, bell, .. } in &self.threads {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            bell.ring();
        }
        let tails = self.threads.into_iter().filter_map(|one| one.thread.join().ok());
        UnsentLog { _tails: tails.collect() }
    }
}
