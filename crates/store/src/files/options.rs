//! Options of the files layout: those of rrdcached, with its defaults, and limits of memory.

use std::path::PathBuf;
use std::time::Duration;

/// When an accepted update becomes safe from a power loss. It is always safe from a crash of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Before it is answered.
    Always,
    /// After this time, at the latest.
    Every(Duration),
}

/// Options of a [`super::FilesEngine`].
#[derive(Clone, Debug)]
pub struct Options {
    /// The tree of `.rrd` files (`-b`). Must exist.
    pub base: PathBuf,
    /// Directory of the journal (`-j`), created if missing; `None` = no journal: updates that are not in
    /// their files yet are lost when the process dies.
    pub journal: Option<PathBuf>,
    /// How long updates of an RRD stay in memory (`-w`).
    pub write_interval: Duration,
    /// The random delay added to that for the first write of each RRD (`-z`).
    pub write_jitter: Duration,
    /// How often RRDs whose updates have stopped are written and the journal is rotated (`-f`).
    pub flush_interval: Duration,
    /// Threads that write files (`-t`).
    pub write_threads: usize,
    /// Threads that accept updates, each for a part of the names.
    pub accept_threads: usize,
    /// See [`SyncMode`]. Needs a journal.
    pub sync: SyncMode,
    /// Write everything to the files at `stop`, even though the journal has it (`-F`).
    pub flush_at_stop: bool,
    /// Bytes of buffered updates at which accepting more waits for writers.
    pub waiting_bytes_max: u64,
    /// Bytes of memory that one RRD may take while it is made, read or updated.
    pub rrd_bytes_max: u64,
}

impl Options {
    /// rrdcached's defaults for a base directory, with a journal.
    pub fn new(base: PathBuf, journal: PathBuf) -> Self {
        Options {
            base,
            journal: Some(journal),
            write_interval: Duration::from_secs(300),
            write_jitter: Duration::ZERO,
            flush_interval: Duration::from_secs(3600),
            // Measured on two cores; there, more threads only wait for each other.
            write_threads: 2,
            accept_threads: 2,
            sync: SyncMode::Every(Duration::from_secs(1)),
            flush_at_stop: false,
            // A million RRDs with 30 updates each of one value; guessed.
            waiting_bytes_max: 1 << 30,
            rrd_bytes_max: rrd::footprint::LIVE_BYTES_MAX,
        }
    }
}
