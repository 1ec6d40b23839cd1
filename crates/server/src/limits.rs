//! Bounds of the daemon's edge: each number, its reason, and what happens there.

use std::time::Duration;

/// Bytes read from a socket at once. Eight times what a UNIX socket holds by default; measured with
/// `examples/parse_speed.rs`, more brings nothing.
pub const READ_BYTES: usize = 256 * 1024;

/// Read buffers kept for the next connection that has something to say. A connection holds one only while
/// bytes are being worked on, so that ten thousand idle ones cost nothing; more are made when more work at
/// once, and let go afterwards.
pub const BUFFERS_KEPT: usize = 16;

/// Updates of one chunk. Guessed: long enough to pay for the way to a shard, short enough that
/// shards work while the connection parses.
pub const CHUNK_UPDATES_MAX: usize = 1000;
/// Bytes of one chunk of updates; a longer line makes a chunk of its own.
pub const CHUNK_BYTES_MAX: usize = 64 * 1024;
/// Chunks of one connection that the store has not answered yet. At this point the connection stops
/// reading, and so does its client: back-pressure.
pub const CHUNKS_IN_FLIGHT_MAX: usize = 16;

/// Threads that serve connections, where the machine has fewer cores: twice [`INLINE_CALLS_MAX`], so that
/// half of them are always free.
pub const WORKERS_MIN: usize = 4;
/// Short calls that may hold up their thread at once; further ones hand their thread's connections over.
pub const INLINE_CALLS_MAX: usize = 2;

/// Connections in frames that have a thread of their own; further ones share the others' threads.
pub const FRAMES_THREADS_MAX: usize = 64;

/// Bytes of answers held back for one write; more are written at once.
pub const ANSWER_BYTES_HELD: usize = 256 * 1024;

/// Connections at once. Above it the daemon stops accepting until one ends; each costs a file descriptor,
/// so the process' own limit usually comes first.
pub const CONNECTIONS_MAX: usize = 65_536;

/// Names with a mark of SUSPEND or FORGET; at this point further ones are refused.
pub const MARKS_MAX: usize = 100_000;

/// Longest wait for connections and requests under way when the daemon stops.
pub const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Wait before accepting again when the process has no file descriptor left.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of `.rrd` files that all connections hold at once of IMPORTs whose last part has not come; so the largest file that
/// is taken, too. RRDtool itself maps files whole; the largest seen in the field are a few hundred megabytes.
pub const IMPORT_BYTES_MAX: usize = 1 << 30;
