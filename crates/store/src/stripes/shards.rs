//! The shards of a striped store, and how requests reach them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rrd::content::Rrd;

use crate::claim::Claim;
use crate::disk::DiskFile;
use crate::engine::{Reply, StoreError, UpdateBatch, UpdateFailure, UpdatevOutcome, VersionChange};
use crate::identity::Identity;
use crate::lock::lock;
use crate::memory::Memory;
use crate::name::RrdName;
use crate::placeholder::StoreIdentity;
use crate::shard::message::{Command, Priority, UpdateOutcome};
use crate::shard::view::View;
use crate::shard::{Clock, Shard};
use crate::stripes::homes::Homes;
use crate::stripes::trash::Trash;

/// How long to spin for an answer. A worker that is busy on another core answers within this time; sleeping
/// and being woken would cost both sides more, and under load a scheduler time slice.
const ANSWER_SOON: Duration = Duration::from_micros(30);

/// Batches of up to this many updates run on the caller's thread while the shard rests: some tens of
/// microseconds. Larger ones go to the worker, while the connection reads on.
const INLINE_LINES_MAX: usize = 64;
/// The same limit in bytes: a line may hold many updates.
const INLINE_BYTES_MAX: usize = 8 * 1024;

/// The shards, and how to reach them.
pub(super) struct Core {
    pub(super) shards: Vec<Shard>,
    /// What the RRDs of all shards take.
    pub(super) memory: Memory,
    pub(super) homes: Homes,
    pub(super) trash: Mutex<Trash>,
    /// How long an RRD stays in the trash, in milliseconds.
    pub(super) trash_ms: i64,
    /// Held by the operation that changes names ([`super::names`]).
    pub(super) renaming: Mutex<()>,
    pub(super) clock: Clock,
    pub(super) identity: StoreIdentity,
    /// What the file STORE says.
    pub(super) store: Identity,
    pub(super) flushes: AtomicU64,
    /// Some shard has lost RRDs.
    pub(super) any_lost: bool,
    /// Held while the store is open: two daemons on one store would overwrite each other's files.
    pub(super) _lock: Arc<dyn DiskFile>,
    /// Held while the store is open: two stores would follow what is done in one tree.
    pub(super) _claim: Claim,
}

impl Core {
    /// The shard that records how far a stream has been applied.
    pub(super) fn home_of(&self, stream: &[u8]) -> &Shard {
        &self.shards[self.homes.by_hash().of(stream)]
    }

    pub(super) fn shard(&self, name: &RrdName) -> &Shard {
        &self.shards[self.homes.of(name.as_bytes())]
    }

    pub(super) fn send(&self, shard: &Shard, command: Command) {
        let bytes = command.bytes();
        if let Err(closed) = shard.shared.mailbox.send_command(command, bytes) {
            closed.0.refuse(StoreError::Stopping);
        }
    }

    /// Sends a command that gives an RRD the name.
    pub(super) fn send_new(&self, name: &RrdName, command: Command) {
        let home = self.homes.hold(name.as_bytes());
        self.send(&self.shards[home.shard], command);
    }

    pub(super) fn send_and_wait<T: Send + 'static>(
        &self,
        name: &RrdName,
        command: impl FnOnce(Reply<Result<T, StoreError>>) -> Command,
    ) -> Result<T, StoreError> {
        self.wait_for(self.shard(name), command)
    }

    /// Sends a command to a shard and waits for its answer.
    pub(super) fn wait_for<T: Send + 'static>(
        &self,
        shard: &Shard,
        command: impl FnOnce(Reply<Result<T, StoreError>>) -> Command,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let reply = Box::new(move |result| {
            let _ = sender.send(result);
        });
        self.send(shard, command(reply));
        receiver.recv().unwrap_or(Err(StoreError::Stopping))
    }

    /// Runs a query on a shard: directly while its worker rests, else through the mailbox.
    pub(super) fn query<T: Send + 'static>(
        &self,
        shard: &Shard,
        about: Option<&RrdName>,
        look: impl FnOnce(&View<'_>) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut look = Some(look);
        if let Some(answer) = shard.worker.look(|view| look.take().map(|look| look(view))) {
            return answer.ok_or(StoreError::Stopping);
        }
        let Some(look) = look else { return Err(StoreError::Stopping) };
        let (sender, receiver) = mpsc::sync_channel(1);
        let look = Box::new(move |view: &View<'_>| {
            let _ = sender.send(look(view));
        });
        let query = Priority::Query { about: about.cloned(), look };
        shard.shared.mailbox.send_priority(query).map_err(|_| StoreError::Stopping)?;
        let asked = Instant::now();
        while asked.elapsed() < ANSWER_SOON {
            match receiver.try_recv() {
                Ok(answer) => return Ok(answer),
                Err(TryRecvError::Disconnected) => return Err(StoreError::Stopping),
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
            }
        }
        receiver.recv().map_err(|_| StoreError::Stopping)
    }

    pub(super) fn every_shard(
        &self,
        command: impl Fn(Reply<Result<(), StoreError>>) -> Command,
    ) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::channel();
        for shard in &self.shards {
            let sender = sender.clone();
            let reply = Box::new(move |result| {
                let _ = sender.send(result);
            });
            self.send(shard, command(reply));
        }
        drop(sender);
        receiver.iter().collect()
    }
}

/// Log that a stop may leave for the next start to replay: about a tenth of a second of work.
const LOG_BYTES_AT_STOP_MAX: u64 = 4 << 20;
/// How long a stop may wait for checkpoints. A million RRDs take some seconds; what is not saved is replayed.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

impl Core {
    /// Checkpoints the shards with a long log, so that the next start accepts updates at once.
    pub(super) fn checkpoint_before_stop(&self) {
        let (sender, receiver) = mpsc::channel();
        for shard in &self.shards {
            let log_bytes = shard.shared.stats.log_bytes_live.load(Ordering::Relaxed);
            if log_bytes > LOG_BYTES_AT_STOP_MAX && !shard.shared.is_read_only() {
                let sender = sender.clone();
                let reply = Box::new(move |result| {
                    let _ = sender.send(result);
                });
                self.send(shard, Command::Checkpoint(reply));
            }
        }
        drop(sender);
        let deadline = Instant::now() + STOP_TIMEOUT;
        while let Ok(result) = receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if let Err(error) = result {
                tracing::debug!(%error, "no checkpoint before the stop; the next start replays the log");
            }
        }
    }
}

/// Collects the failures of a batch that was split over shards.
struct Gather {
    left: usize,
    failures: Vec<UpdateFailure>,
    reply: Option<(UpdateBatch, Reply<UpdateOutcome>)>,
}

impl Core {
    pub(super) fn update(&self, batch: UpdateBatch, reply: Reply<UpdateOutcome>) {
        match &self.shards[..] {
            _ if batch.lines.is_empty() => reply((batch, Vec::new())),
            [only] => self.update_shard(only, batch, reply),
            shards if batch.lines.len() == 1 => {
                let shard = &shards[self.homes.of(batch.name(&batch.lines[0]))];
                self.update_shard(shard, batch, reply);
            }
            _ => self.update_split(batch, reply),
        }
    }

    /// Runs a few updates on this thread when their shard rests; others go to its worker.
    fn update_shard(&self, shard: &Shard, batch: UpdateBatch, reply: Reply<UpdateOutcome>) {
        let small = batch.lines.len() <= INLINE_LINES_MAX && batch.text.len() <= INLINE_BYTES_MAX;
        let command = Command::Update(batch, reply);
        let left = if small { shard.worker.run_inline(&shard.shared, command) } else { Some(command) };
        if let Some(command) = left {
            self.send(shard, command);
        }
    }

    pub(super) fn import(&self, name: &RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        self.send_new_and_wait(name, |reply| {
            Command::Import(name.clone(), Box::new(rrd), no_overwrite, reply)
        })
    }

    /// Makes a change to an RRD of this version; returns the one that follows.
    pub(super) fn change(
        &self,
        name: &RrdName,
        version: u64,
        change: VersionChange,
    ) -> Result<u64, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let tell = Box::new(move |version| {
            let _ = sender.send(version);
        });
        let on_condition = |command| Command::IfUnchanged(name.clone(), version, Box::new(command), tell);
        match change {
            VersionChange::Update(values) => {
                let outcome: UpdatevOutcome = self.send_and_wait(name, |reply| {
                    on_condition(Command::Updatev(name.clone(), values, reply))
                })?;
                outcome.refused.map_or(Ok(()), Err)?;
            }
            VersionChange::Replace(rrd) => self.send_new_and_wait(name, |reply| {
                on_condition(Command::Import(name.clone(), rrd, false, reply))
            })?,
        }
        receiver.recv().map_err(|_| StoreError::Stopping)
    }

    /// As [`Core::send_new`], and waits for the answer.
    fn send_new_and_wait(
        &self,
        name: &RrdName,
        command: impl FnOnce(Reply<Result<(), StoreError>>) -> Command,
    ) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let reply = Box::new(move |result| {
            let _ = sender.send(result);
        });
        self.send_new(name, command(reply));
        receiver.recv().unwrap_or(Err(StoreError::Stopping))
    }

    pub(super) fn is_in_store(&self, name: &RrdName) -> bool {
        self.ask(name, |view, name| view.status(name)).is_ok()
    }

    /// Makes everything durable that was sent to an RRD's shard before.
    pub(super) fn sync(&self, name: &RrdName) -> Result<(), StoreError> {
        self.send_and_wait(name, Command::Sync)
    }

    /// What an RRD's shard answers about it.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        name: &RrdName,
        look: impl FnOnce(&View<'_>, &RrdName) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let asked = name.clone();
        self.query(self.shard(name), Some(name), move |view| look(view, &asked))?
    }

    fn update_split(&self, batch: UpdateBatch, reply: Reply<UpdateOutcome>) {
        let mut parts: Vec<(UpdateBatch, Vec<u32>)> = Vec::new();
        parts.resize_with(self.shards.len(), Default::default);
        for (index, line) in batch.lines.iter().enumerate() {
            let (part, lines) = &mut parts[self.homes.of(batch.name(line))];
            part.push_copy(&batch, line);
            lines.push(index as u32);
        }
        let left = parts.iter().filter(|(part, _)| !part.lines.is_empty()).count();
        let gather = Arc::new(Mutex::new(Gather { left, failures: Vec::new(), reply: Some((batch, reply)) }));
        for (shard, (part, lines)) in self.shards.iter().zip(parts) {
            if part.lines.is_empty() {
                continue;
            }
            let gather = Arc::clone(&gather);
            let reply = Box::new(move |(_, failures): UpdateOutcome| {
                let mut gather = lock(&gather);
                let renumber =
                    |failure: UpdateFailure| UpdateFailure { line: lines[failure.line as usize], ..failure };
                gather.failures.extend(failures.into_iter().map(renumber));
                gather.left -= 1;
                if gather.left == 0 {
                    let mut failures = std::mem::take(&mut gather.failures);
                    failures.sort_by_key(|failure| failure.line);
                    if let Some((batch, reply)) = gather.reply.take() {
                        drop(gather);
                        reply((batch, failures));
                    }
                }
            });
            self.update_shard(shard, part, reply);
        }
    }
}
