//! How the files layout behaves: rrdcached's options, with rrdcached's defaults, and the limits of memory.

use std::path::PathBuf;
use std::time::Duration;

/// When an accepted update is safe from a power loss. From a death of the process it is safe at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Before it is answered.
    Always,
    /// This long after, at the latest.
    Every(Duration),
}

/// Options of a [`super::FilesEngine`].
#[derive(Clone, Debug)]
pub struct Options {
    /// The tree of `.rrd` files (`-b`). Must exist.
    pub base: PathBuf,
    /// Where the journal is kept (`-j`), made if missing; `None` = no journal: what is not in its file yet
    /// is lost when the process dies.
    pub journal: Option<PathBuf>,
    /// How long updates of an RRD wait in memory (`-w`).
    pub write_interval: Duration,
    /// Spread of the first write of each RRD after that (`-z`).
    pub write_jitter: Duration,
    /// How often RRDs whose updates have stopped are looked for and the journal is rotated (`-f`).
    pub flush_interval: Duration,
    /// Threads that write files (`-t`).
    pub write_threads: usize,
    /// Threads that take updates, each for a part of the names.
    pub accept_threads: usize,
    /// See [`SyncMode`]. Only with a journal.
    pub sync: SyncMode,
    /// Write everything to the files at `stop` even though the journal has it (`-F`).
    pub flush_at_stop: bool,
    /// Bytes of updates waiting at which taking more waits for writing.
    pub waiting_bytes_max: u64,
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
            // Two cores are what was measured on; more threads only wait for each other there.
            write_threads: 2,
            accept_threads: 2,
            sync: SyncMode::Every(Duration::from_secs(1)),
            flush_at_stop: false,
            // A million RRDs with 30 updates each of one value; guessed.
            waiting_bytes_max: 1 << 30,
        }
    }
}
