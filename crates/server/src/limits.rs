//! Limits of the daemon towards its clients: each number, its reason, and what happens when it is reached.

use std::time::Duration;

/// Bytes per read from a socket: eight times the default buffer of a UNIX socket. Measured with
/// `examples/parse_speed.rs`; more gains nothing.
pub const READ_BYTES: usize = 256 * 1024;

/// Bytes per read while clients hold all the memory that they may: slower, but served.
pub const READ_BYTES_SHORT: usize = 8 * 1024;

/// Read buffers kept for the next connection that sends something. A connection holds one only while bytes
/// are being processed, so ten thousand idle ones cost nothing. When more connections are busy, more are
/// allocated, and freed afterwards. None is kept once clients have been silent for a second
/// ([`crate::idle_memory`]).
pub const BUFFERS_KEPT: usize = 16;

/// Updates per chunk. Guessed: enough to pay for sending them to a shard, few enough that shards work while
/// the connection parses.
pub const CHUNK_UPDATES_MAX: usize = 1000;
/// Bytes per chunk of updates; a longer line is a chunk of its own.
pub const CHUNK_BYTES_MAX: usize = 64 * 1024;
/// Chunks of one connection that the store has not answered. At this limit the connection stops reading, so
/// its client blocks: back-pressure.
pub const CHUNKS_IN_FLIGHT_MAX: usize = 16;

/// The least number of threads that serve connections, on machines with fewer cores: twice
/// [`INLINE_CALLS_MAX`], so that half of them are always free.
pub const WORKERS_MIN: usize = 4;
/// Short calls that may block their thread at once; further ones move their thread's connections to another
/// thread.
pub const INLINE_CALLS_MAX: usize = 2;

/// Calls that may block a thread of their own at once, per core. Further ones wait in a queue, where they hold no thread;
/// what needs no store, or only asks for `/healthz`, goes on. A thread takes up to a megabyte, most of it the
/// allocator's.
pub const BLOCKING_CALLS_PER_CORE: usize = 8;
/// Threads for calls that are not queued: some by HTTP, FLUSHALL, and those made while an RRD is created.
pub const BLOCKING_THREADS_SPARE: usize = 16;

/// Connections in frames with their own thread; further ones are served by the shared threads.
pub const FRAMES_THREADS_MAX: usize = 64;
/// Bytes of a connection's own thread: its stack, and what the allocator keeps for it.
pub const FRAMES_THREAD_BYTES: u64 = 512 * 1024;
/// Bytes that must be free of the memory for clients before a connection gets a thread: it is only for speed.
pub const FRAMES_THREADS_ROOM: u64 = 8 << 20;
/// Bytes of any connection: its task, its socket in the runtime, and the little that it holds freely. Measured with ten
/// thousand of them: 4.2 kB while they are silent.
pub const CONNECTION_BYTES: u64 = 5 * 1024;
/// The same over HTTP, where hyper has a buffer for each: 12.6 kB.
pub const HTTP_CONNECTION_BYTES: u64 = 13 * 1024;
/// What TLS and HTTP/2 add to it: 6.3 kB and 8.2 kB, measured with a thousand of them.
pub const TLS_CONNECTION_BYTES: u64 = 9 * 1024;
/// What TLS adds to a connection of another port, where its state is kept beside the socket: 10.6 kB, measured with 800 of them.
pub const TLS_STREAM_BYTES: u64 = 11 * 1024;
/// The longest wait for a handshake of TLS, beside which nothing is done for the client: gnutls and openssl need 3 ms here, and a
/// line with a second of delay three seconds.
pub const TLS_HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// Clients of a port for frames only that have not said yet who they are; beyond it the oldest is ended for the newest.
pub const FRAMES_ARRIVALS_MAX: usize = 256;
/// Handshakes of a port at once; beyond it the oldest is ended for the newest. The library holds up to 64 kB for each.
pub const TLS_HANDSHAKES_MAX: usize = 256;
/// Connections for which there is always memory, whatever the limit says: fewer would be no service.
pub const CONNECTIONS_MIN: u64 = 64;

/// The longest time that a thread keeps what it has freed before it gives it back to the system, and that one for
/// blocking calls waits for the next.
pub const GIVE_BACK_INTERVAL: Duration = Duration::from_secs(1);
/// Freed bytes that are not worth waking the threads.
pub const GIVE_BACK_MIN: u64 = 256 * 1024;
/// How often the threads are woken after clients have freed something: it may be another thread that has it, and which
/// thread is woken is the runtime's choice.
pub const GIVE_BACK_ROUNDS: u32 = 5;

/// Bytes of answers collected for one write; more are written at once.
pub const ANSWER_BYTES_HELD: usize = 256 * 1024;

/// The same while clients hold all the memory that they may.
pub const ANSWER_BYTES_SHORT: usize = 4 * 1024;

/// Bytes of memory for answers that a connection keeps then until the next one.
pub const ANSWER_BYTES_KEPT_SHORT: usize = 32 * 1024;

/// Values of rows that are written at once of a longer answer: up to 12 kB of text.
pub const ANSWER_VALUES_PER_PIECE: usize = 128;
/// Values that are read from the store at once for a longer answer, 1 MiB; fewer where clients hold much memory. Reading
/// goes through the RRD's open rows, which takes as long for one row as for all.
pub const ANSWER_VALUES_PER_PART: usize = 128 * 1024;

/// Bytes of memory for answers that a connection keeps while its client is silent: most answers are shorter.
pub const ANSWER_BYTES_AT_REST: usize = 1024;

/// Bytes that a waiting connection may hold without a share of the budget ([`crate::budget`]): what ten thousand of them
/// hold is little, and one that behaves well needs no more.
pub const HELD_FREELY: usize = 2 * 1024;

/// Connections at once, through all listeners. At this limit the daemon stops accepting until one ends. Each takes a file
/// descriptor and some memory, so the limits of these may be reached first (`crates/server/src/connection_limits.rs`).
pub const CONNECTIONS_MAX: usize = 65_536;
/// One of so many connections is left to the other kind of listener, whichever of rrdcached's protocol and HTTP takes the
/// rest.
pub const LISTENER_SHARE: usize = 8;

/// File descriptors that no connection takes, at least: the store's, the log's, the runtime's. A store of one shard
/// has some 20 open, and opens a few more while it merges.
pub const DESCRIPTORS_KEPT_MIN: u64 = 64;
/// The daemon does not start with fewer: half of them would be the store's.
pub const DESCRIPTORS_MIN: u64 = 2 * DESCRIPTORS_KEPT_MIN;

/// Bytes of the head of an HTTP request. hyper itself takes no longer address than 64 KiB.
pub const HTTP_HEAD_BYTES_MAX: usize = 128 * 1024;
/// Bytes of all HTTP requests that have arrived in part, without those that may be held freely; a quarter of the memory for
/// clients if that is less. The connection that exceeds it is closed.
pub const HTTP_PARTS_BYTES_MAX: u64 = 32 << 20;
/// Bytes of a form sent to `/graph` or `/api/v1/xport`: more than they take, so that a longer one is answered.
pub const HTTP_BODY_BYTES_MAX: usize = 512 * 1024;
/// The longest wait for the rest of an HTTP request, for the next one, and for a client to read on; less where `idle` is.
pub const HTTP_WAIT_MAX: Duration = Duration::from_secs(30);
/// Requests at once of a connection by HTTP/2: what a browser asks for a page; RFC 9113 (6.5.2) recommends no less.
pub const HTTP_STREAMS_MAX: u32 = 100;
/// HTTP connections beyond all others that are answered `/healthz` and `/metrics`, and 503 for the rest.
pub const HTTP_RESERVE: usize = 16;

/// Names marked by SUSPEND, and by FORGET. At this limit SUSPEND is refused, and FORGET drops all earlier marks.
pub const MARKS_MAX: usize = 100_000;

/// The longest wait for connections and requests in progress when the daemon stops.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause before accepting again when the process has no file descriptor left.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of the largest `.rrd` file that IMPORT accepts; what the IMPORTs of all connections hold counts as memory for
/// clients ([`crate::budget`]). RRDtool itself maps files whole; the largest seen in the field are a few hundred megabytes.
pub const IMPORT_BYTES_MAX: u64 = 1 << 30;

/// Entries of a directory in one answer: some hundreds of kilobytes.
pub const ENTRIES_MAX: usize = 8192;

/// Sessions of agents at once: each agent has two, and takes a few megabytes.
pub const AGENT_SESSIONS_MAX: usize = 2048;
/// Bytes of blocks that an agent may have on their way: a second of a fast one.
pub const AGENT_CREDIT: u32 = 8 << 20;
/// Bytes of blocks after which their position is recorded while more arrive: a quarter of the credit, so that an agent need not wait.
pub const AGENT_COMMIT_BYTES: usize = 2 << 20;
/// How long blocks wait for others before their position is recorded, which takes an fsync of every shard.
pub const AGENT_COMMIT_AFTER: Duration = Duration::from_millis(200);
/// Bytes in memory of the labels of one agent: a hundred thousand RRDs with long titles.
pub const AGENT_LABELS_BYTES: usize = 64 << 20;
/// The longest wait for an agent's first frame.
pub const AGENT_HELLO_WAIT: Duration = Duration::from_secs(10);
/// An agent that is silent for longer is gone; they say every ten seconds that they are there.
pub const AGENT_SILENCE_MAX: Duration = Duration::from_secs(60);

/// How often the file of tokens is looked at, and whether a client's token is still one: a revoked one counts for this much longer.
pub const TOKENS_LOOK_EVERY: Duration = Duration::from_secs(1);

/// Followers at once: each has a thread and some megabytes.
pub const FOLLOWERS_MAX: usize = 16;
/// Followers for which the log is kept while they are away.
pub const FOLLOWERS_KEPT_MAX: usize = 16;
/// Frames of log that wait to be sent to a follower: some megabytes.
pub const FOLLOWER_QUEUE: usize = 8;
/// The longest wait for a follower's first frame.
pub const FOLLOWER_HELLO_WAIT: Duration = Duration::from_secs(10);
/// A follower that acknowledges nothing and reads nothing for longer is gone; it is told ten times a second that nothing has happened.
pub const FOLLOWER_SILENCE_MAX: Duration = Duration::from_secs(60);
/// Bytes of log that a follower holds back until other shards have caught up.
pub const FOLLOWER_DEFERRED_BYTES: usize = 64 << 20;
/// Targets of `[[forward]]`: each has a thread that reads the whole log.
pub const FORWARD_TARGETS_MAX: usize = 16;
/// Readings sent to a target at once: what one frame may have.
pub const FORWARD_BATCH_READINGS: usize = protocol::frames::UPDATES_MAX;
/// Bytes of names and readings sent at once; with what one piece of log adds to that, a batch takes a few megabytes.
pub const FORWARD_BATCH_BYTES: usize = 1 << 20;
/// Bytes of log kept beyond `spool_bytes`: so much may come while a target is waited for, before the oldest is dropped in order.
pub const FORWARD_SLACK_BYTES: u64 = 256 << 20;
