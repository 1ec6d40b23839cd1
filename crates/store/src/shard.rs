//! A shard: the state of its RRDs, its log, and the threads that maintain both.
//!
//! - the *worker* applies commands to the state and logs them ([`worker`]); between its rounds other threads
//!   may read the state;
//! - the *syncer* makes the log durable ([`syncer`]);
//! - the *checkpointer* writes segments and checkpoints ([`checkpointer`]);
//! - the *compactor* merges short runs into long ones and drops expired rows ([`compactor`]).
//!
//! ```text
//!             commands                    commit
//!   clients ----------> mailbox -> worker ------> log <------ syncer
//!      |                  ^  ^       | arena, pages
//!      | reads, small     |  |       v
//!      | commands         |  +-- checkpointer -> segment, checkpoint -\
//!      v                  |    CycleEnded                             +-> manifest
//!   WorkerSlot            +----- compactor ----> segments ------------/
//!                              SegmentsChanged
//! ```
//!
//! Invariants: an answer is given only when the log holds the change; only a round of the worker changes the state; a
//! failed write or sync poisons the shard, which then refuses commands and still answers queries.

pub mod checkpointer;
pub mod compactor;
pub mod cycle;
pub mod files;
pub mod flush;
pub mod lost;
pub mod mailbox;
pub mod message;
pub mod pages;
pub mod pins;
pub mod read;
pub mod recover;
pub mod recovery;
pub mod replica_wait;
pub mod row_checks;
pub mod state;
pub mod syncer;
pub mod view;
pub mod waiting;
pub mod worker;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rrd::definition::Definition;
use rrd::grid;
use rrd::live::Live;
use rrd::time::Timestamp;

use crate::catalogue::RrdId;
use crate::engine::StoreError;
use crate::lock::lock;
use crate::log::Position;
use crate::memory::Memory;
use crate::name::RrdName;
use crate::placeholder::{PlaceholderError, Placeholders, RrdNumber};
use crate::replication::{Role, SharedConfirmation, SharedRole};
use crate::shard::compactor::CompactorHandle;
use crate::shard::files::Files;
use crate::shard::lost::LostRrds;
use crate::shard::mailbox::Mailbox;
use crate::shard::message::{Command, Priority};
use crate::shard::replica_wait::ReplicaWait;
use crate::shard::row_checks::RowChecks;
use crate::shard::syncer::SyncHandle;
use crate::shard::waiting::Waiting;
use crate::shard::worker::WorkerSlot;

/// The striped store's clock: seconds and microseconds since the epoch.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How a shard behaves.
#[derive(Clone, Debug)]
pub struct ShardOptions {
    /// Answer a command only after an fsync.
    pub sync_always: bool,
    /// Answer a command only when a follower has it, too; one that none has for so long is refused.
    pub replica_patience: Option<Duration>,
    /// Without `sync_always`: how soon an answered command becomes durable.
    pub sync_interval: Duration,
    /// Open rows are flushed once they take this many bytes, or 256 bytes per RRD if that is more.
    pub open_bytes_min: usize,
    /// About how much log a replay may have to read.
    pub log_bytes_max: u64,
    /// How many segments of one level are merged into one of the next; 0 = nothing is ever merged or dropped.
    pub merge_count: usize,
    /// What the RRDs of all shards take in memory.
    pub memory: Memory,
    /// Whether the store takes changes, and from whom.
    pub role: SharedRole,
    /// Keep all of the log that is there at the start until [`crate::engine::Engine::release_log`]: tails go on in it.
    pub hold_log: bool,
    /// What is kept of the log: whatever is beyond was not accepted by the replicated log that the store is a copy of.
    pub log_end: Option<Position>,
    /// What a checkpoint waits for.
    pub confirmation: Option<SharedConfirmation>,
}

impl Default for ShardOptions {
    fn default() -> Self {
        ShardOptions {
            sync_always: false,
            replica_patience: None,
            sync_interval: Duration::from_secs(1),
            // 64 MiB: 140 rows of W1 per RRD at 20,500 RRDs; runs of that length compress within 5 % of the
            // longest (`docs/format/segment.md`).
            open_bytes_min: 64 << 20,
            // 128 MiB: 20 million updates of W1, replayed in a few seconds.
            log_bytes_max: 128 << 20,
            merge_count: 8,
            memory: Memory::default(),
            role: SharedRole::default(),
            hold_log: false,
            log_end: None,
            confirmation: None,
        }
    }
}

/// Counters of a shard; see [`crate::engine::Stats`].
#[derive(Debug, Default)]
pub struct Counters {
    /// UPDATE lines received.
    pub updates_received: AtomicU64,
    /// UPDATE lines applied whole.
    pub updates_written: AtomicU64,
    /// Update arguments applied.
    pub data_sets_written: AtomicU64,
    /// UPDATE lines refused.
    pub updates_refused: AtomicU64,
    /// Bytes written to the log.
    pub log_bytes_written: AtomicU64,
    /// Bytes that a replay would read now.
    pub log_bytes_live: AtomicU64,
    /// Bytes of segments written.
    pub segment_bytes_written: AtomicU64,
    /// Bytes of checkpoints written.
    pub checkpoint_bytes_written: AtomicU64,
    /// RRDs.
    pub rrd_count: AtomicU64,
    /// How often an RRD was added, removed or renamed.
    pub name_changes: AtomicU64,
    /// Bytes of heads, names and open rows.
    pub memory_bytes: AtomicU64,
    /// fsyncs of the log that failed.
    pub sync_failures: AtomicU64,
    /// Updates and other changes that recovery could not apply.
    pub replay_refused: AtomicU64,
}

/// What the threads of a shard share.
pub struct Shared {
    /// The queue to the worker.
    pub mailbox: Mailbox<Command, Priority>,
    /// The manifest and its segments.
    pub files: Files,
    /// Counters.
    pub stats: Counters,
    /// The shard's options.
    pub options: ShardOptions,
    /// The channel to the syncer.
    pub syncer: SyncHandle,
    /// Wakes and stops the compactor.
    pub compactor: CompactorHandle,
    /// Set when the shard is to stop: nothing waits for room on the disk any more.
    pub stopping: AtomicBool,
    /// What checkpointer and compactor wait for.
    pub checkpointer_waits: Waiting,
    /// The worker refuses commands.
    pub refuses: AtomicBool,
    /// What the log waits for.
    pub log_waits: Waiting,
    /// What a damaged checkpoint has cost.
    pub lost: LostRrds,
    /// A record of another server's log did not fit the state.
    pub differs: AtomicBool,
    /// What copies compare of whole RRDs.
    pub row_checks: RowChecks,
    /// Answers that wait for a follower.
    pub replica_wait: ReplicaWait,
    placeholders: Option<Arc<Placeholders>>,
    /// The shard's number.
    index: u32,
    failure: OnceLock<String>,
}

impl Shared {
    /// Stops accepting commands for good and records why. Only the first reason is kept.
    pub fn poison(&self, text: String) {
        tracing::error!(reason = %text, "the store takes no more updates");
        let _ = self.failure.set(text);
    }

    /// Why commands are refused, if they are.
    pub fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }

    /// Whether answers wait until a follower has what they are about.
    pub fn waits_for_replica(&self) -> bool {
        let role = &self.options.role;
        self.options.replica_patience.is_some() && !role.is_alone() && role.get() == Role::Primary
    }

    /// True while commands are refused.
    pub fn is_read_only(&self) -> bool {
        self.refuses.load(Ordering::Relaxed) || self.failure.get().is_some()
    }

    /// Checks that a name, which no RRD has, is not that of a lost one: then a file of that name would stand in the tree.
    ///
    /// # Errors
    /// [`StoreError::Lost`].
    pub fn check_lost(&self, name: &RrdName) -> Result<(), StoreError> {
        let Some(place) = self.lost.place() else { return Ok(()) };
        match &self.placeholders {
            Some(placeholders) if !placeholders.has_file(name) => Ok(()),
            _ => Err(StoreError::Lost(format!(
                "\"{name}\" may be one of the RRDs that are lost with a damaged page of {place}; `roundel repair` on the store's \
                 directory says what can be restored"
            ))),
        }
    }

    fn write_placeholder(
        &self,
        name: &RrdName,
        id: Option<RrdId>,
        bytes: u64,
        beside_file: bool,
    ) -> Result<(), StoreError> {
        let Some(placeholders) = self.placeholders.as_ref().filter(|_| !RrdName::is_hidden(name.as_bytes()))
        else {
            return Ok(());
        };
        let number = id.map(|id| RrdNumber { shard: self.index, id });
        match placeholders.write(name, number, bytes) {
            Err(PlaceholderError::Occupied { rrd_file: true, .. }) if beside_file => Ok(()),
            result => Ok(result?),
        }
    }

    fn remove_placeholder(&self, name: &RrdName) {
        if !RrdName::is_hidden(name.as_bytes())
            && let Some(placeholders) = &self.placeholders
            && let Err(error) = placeholders.remove(name)
        {
            tracing::warn!(%error, rrd = %name, "cannot remove the placeholder of a deleted RRD; remove it by hand");
        }
    }
}

/// A running shard.
pub struct Shard {
    /// What its threads share.
    pub shared: Arc<Shared>,
    /// The worker, accessible between its rounds.
    pub worker: Arc<WorkerSlot>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Shard {
    /// Stops accepting commands, applies those that are queued, makes the log durable and joins the threads.
    /// Idempotent.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.mailbox.close();
        self.shared.compactor.stop();
        self.shared.row_checks.stop();
        // The worker's thread comes first; the syncer must outlive it, because answers may be waiting there.
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            let _ = thread.join();
            self.shared.syncer.close();
        }
        if self.shared.failure().is_none()
            && let Err(error) = self.shared.files.note_durable(true)
        {
            tracing::warn!(%error, "cannot record in the manifest where the log ends");
        }
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts a thread of a shard.
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(move || abort_on_panic(body))
}

/// Runs the body of a shard's thread. A panic in it ends the process: the state may be half changed and must
/// not be written, while the log is still good.
fn abort_on_panic(body: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err() {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        tracing::error!(thread = %thread, "a bug stopped this thread of the store; the process ends and the next start replays the log");
        std::process::abort();
    }
}

/// The ring positions to report for an RRD's archives. SEASONAL archives store theirs; all others follow from
/// the time of the last update.
pub fn current_rows(definition: &Definition, live: &Live, last_update_whole: i64) -> Vec<u64> {
    (0..definition.rra.len())
        .map(|rra| match live.seasons.iter().find(|season| season.rra == rra) {
            Some(season) => season.current_row,
            None => {
                grid::ring_index(definition.newest_row(rra, last_update_whole), definition.rra[rra].row_count)
            }
        })
        .collect()
}
