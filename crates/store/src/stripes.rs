//! The striped store: an [`Engine`] over shards.
//!
//! The hash of an RRD's name determines its shard for good; the number of shards is fixed when the store is
//! created. A batch for a single shard is passed on without a copy. An unknown name may belong to a `.rrd`
//! file in the tree, which [`adopt`] imports.

mod adopt;
mod lost;

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::time::Timestamp;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::disk::{Disk, DiskFile, Mode};
use crate::engine::{
    CreateRequest, Engine, Hold, Reply, RrdStatus, Snapshot, Stats, StoreError, StreamPosition, UpdateBatch,
    UpdateFailure, UpdatevOutcome,
};
pub use crate::error::OpenError;
use crate::filenames;
use crate::identity::{Identity, Owner};
use crate::lock::lock;
use crate::memory::{self, Memory};
use crate::name::RrdName;
use crate::open_rows::ARENA_BYTES_MAX;
use crate::placeholder::{Placeholders, StoreIdentity};
pub use crate::shard::ShardOptions;
use crate::shard::message::{Command, Priority, UpdateOutcome};
use crate::shard::read::{FetchTicket, ReadTicket, RowsTicket};
use crate::shard::recover;
use crate::shard::view::View;
use crate::shard::{Clock, Shard};
use crate::stripes::adopt::Adopter;
use crate::tree::Tree;
use crate::verify::{self, Watch};
use rrd_file::tree::ListError;

/// How long to spin for an answer. A worker that is busy on another core answers within this time; sleeping
/// and being woken would cost both sides more, and under load a scheduler time slice.
const ANSWER_SOON: Duration = Duration::from_micros(30);

/// Batches of up to this many updates run on the caller's thread while the shard rests: some tens of
/// microseconds. Larger ones go to the worker, while the connection reads on.
const INLINE_LINES_MAX: usize = 64;
/// The same limit in bytes: a line may hold many updates.
const INLINE_BYTES_MAX: usize = 8 * 1024;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Shards of a newly created store; an existing one keeps its own.
    pub shard_count: u32,
    /// Options of its shards.
    pub shard: ShardOptions,
    /// Where placeholders are written; `None` = nowhere.
    pub placeholder_tree: Option<PathBuf>,
    /// The tree whose `.rrd` files, made by other programs, are imported when their name is first used;
    /// `None` = none.
    pub adopt_tree: Option<PathBuf>,
    /// The clock; the system's unless a test sets another.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        // One shard per two cores: its worker takes one core, parsing and the background threads the other.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            shard_count: (cores / 2).clamp(1, 16) as u32,
            shard: ShardOptions::default(),
            placeholder_tree: None,
            adopt_tree: None,
            clock: Arc::new(system_clock),
        }
    }
}

fn system_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::new(since.as_secs() as i64, since.subsec_micros())
}

/// A striped store.
pub struct Stripes {
    core: Arc<Core>,
    adopter: Option<Adopter>,
}

/// The shards, and how to reach them.
struct Core {
    shards: Vec<Shard>,
    /// What the RRDs of all shards take.
    memory: Memory,
    seed: u64,
    identity: StoreIdentity,
    flushes: AtomicU64,
    /// Some shard has lost RRDs.
    any_lost: bool,
    /// Held while the store is open: two daemons on one store would overwrite each other's files.
    _lock: Arc<dyn DiskFile>,
}

fn take_lock(disk: &dyn Disk) -> Result<Arc<dyn DiskFile>, OpenError> {
    let failed = |error: std::io::Error| OpenError::caused("cannot lock the store", error);
    let path = filenames::lock(Path::new(""));
    let file = match disk.open(&path, Mode::Write) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => disk.create(&path).map_err(failed)?,
        opened => opened.map_err(failed)?,
    };
    if !file.try_lock().map_err(failed)? {
        return Err(OpenError::new("another daemon has the store open; stop it first, or use its sockets"));
    }
    Ok(file)
}

impl Stripes {
    /// Opens the store on `disk`, or creates one.
    ///
    /// # Errors
    /// When another daemon has it open, a shard cannot be recovered, or a thread cannot be started.
    pub fn open(disk: Arc<dyn Disk>, options: &Options) -> Result<Stripes, OpenError> {
        if options.shard.open_bytes_min > ARENA_BYTES_MAX {
            let (bytes, most) = (options.shard.open_bytes_min, ARENA_BYTES_MAX);
            return Err(OpenError::new(format!(
                "{bytes} bytes of open rows are too many: give {most} at most"
            )));
        }
        let lock = take_lock(&*disk)?;
        let identity = Identity::load_or_create(&*disk, options.shard_count)?;
        let store = StoreIdentity(identity.id);
        let placeholders = match &options.placeholder_tree {
            Some(path) => {
                let tree = Tree::open(path).map_err(|error| {
                    OpenError::caused(format!("cannot open the tree \"{}\"", path.display()), error)
                })?;
                Some(Arc::new(Placeholders::new(tree, store)))
            }
            None => None,
        };
        let memory = Memory::new(options.shard.memory.limits());
        for shard in 0..identity.shard_count {
            recover::check(&*disk, Owner { store: identity, shard })?;
        }
        let open_one = |shard| {
            recover::open(
                Arc::clone(&disk),
                Owner { store: identity, shard },
                ShardOptions { memory: memory.clone(), ..options.shard.clone() },
                placeholders.clone(),
                Arc::clone(&options.clock),
            )
        };
        let shards = std::thread::scope(|scope| {
            let opening: Vec<_> =
                (0..identity.shard_count).map(|index| scope.spawn(move || open_one(index))).collect();
            opening
                .into_iter()
                .map(|thread| {
                    thread.join().unwrap_or_else(|_| Err(OpenError::new("a bug stopped the recovery")))
                })
                .collect::<Result<Vec<_>, _>>()
        })?;
        let any_lost = shards.iter().any(|shard| shard.shared.lost.place().is_some());
        let core = Arc::new(Core {
            any_lost,
            shards,
            memory,
            seed: identity.seed,
            identity: store,
            flushes: AtomicU64::new(0),
            _lock: lock,
        });
        if let Some(placeholders) = placeholders.as_ref().filter(|_| any_lost) {
            core.list_lost(&*disk, placeholders);
        }
        let adopter = match &options.adopt_tree {
            Some(path) => Some(Adopter::start(Arc::clone(&core), path, placeholders)?),
            None => None,
        };
        Ok(Stripes { core, adopter })
    }

    /// The identity that its placeholders carry.
    pub fn identity(&self) -> StoreIdentity {
        self.core.identity
    }

    /// Flushes everything to segments and a checkpoint.
    ///
    /// # Errors
    /// When a shard is poisoned or stopping.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.core.every_shard(Command::Checkpoint)
    }

    /// Runs `act`; when there is no such RRD, imports its `.rrd` file if there is one, and tries again.
    fn with_adoption<T>(
        &self,
        name: &RrdName,
        attempt: impl Fn(&Core) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match (attempt(&self.core), &self.adopter) {
            (Err(StoreError::NoSuchRrd(unknown)), adopter) => {
                self.core.check_lost(name)?;
                let Some(adopter) = adopter else { return Err(StoreError::NoSuchRrd(unknown)) };
                adopter.adopt(name)?;
                attempt(&self.core)
            }
            (result, _) => result,
        }
    }

    /// Whether a `.rrd` file that would be adopted has this name.
    fn is_only_a_file(&self, name: &RrdName) -> bool {
        self.adopter.as_ref().is_some_and(|adopter| adopter.is_only_a_file(name))
    }
}

#[cfg(test)]
impl Stripes {
    /// The number of the shard that an RRD of this name belongs to.
    pub(crate) fn shard_index(&self, name: &[u8]) -> usize {
        self.core.shard_index(name)
    }
}

impl Core {
    fn shard_index(&self, name: &[u8]) -> usize {
        match self.shards.len() {
            1 => 0,
            count => (xxh3_64_with_seed(name, self.seed) % count as u64) as usize,
        }
    }

    /// The shard that records how far a stream has been applied.
    fn home_of(&self, stream: &[u8]) -> &Shard {
        &self.shards[self.shard_index(stream)]
    }

    fn shard(&self, name: &RrdName) -> &Shard {
        &self.shards[self.shard_index(name.as_bytes())]
    }

    fn send(&self, shard: &Shard, command: Command) {
        let bytes = command.bytes();
        if let Err(closed) = shard.shared.mailbox.send_command(command, bytes) {
            closed.0.refuse(StoreError::Stopping);
        }
    }

    fn send_and_wait<T: Send + 'static>(
        &self,
        name: &RrdName,
        command: impl FnOnce(Reply<Result<T, StoreError>>) -> Command,
    ) -> Result<T, StoreError> {
        self.wait_for(self.shard(name), command)
    }

    /// Sends a command to a shard and waits for its answer.
    fn wait_for<T: Send + 'static>(
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
    fn query<T: Send + 'static>(
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

    fn every_shard(
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
    fn checkpoint_before_stop(&self) {
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
    fn update(&self, batch: UpdateBatch, reply: Reply<UpdateOutcome>) {
        match &self.shards[..] {
            _ if batch.lines.is_empty() => reply((batch, Vec::new())),
            [only] => self.update_shard(only, batch, reply),
            shards if batch.lines.len() == 1 => {
                let shard = &shards[self.shard_index(batch.name(&batch.lines[0]))];
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

    fn import(&self, name: &RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        let rrd = Box::new(rrd);
        self.send_and_wait(name, |reply| Command::Import(name.clone(), rrd, no_overwrite, reply))
    }

    fn is_in_store(&self, name: &RrdName) -> bool {
        self.ask(name, |view, name| view.status(name)).is_ok()
    }

    /// Makes everything durable that was sent to an RRD's shard before.
    fn sync(&self, name: &RrdName) -> Result<(), StoreError> {
        self.send_and_wait(name, Command::Sync)
    }

    /// What an RRD's shard answers about it.
    fn ask<T: Send + 'static>(
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
            let (part, lines) = &mut parts[self.shard_index(batch.name(line))];
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

impl Engine for Stripes {
    fn update(&self, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>) {
        match &self.adopter {
            None if self.core.any_lost => self.core.update(batch, lost::reply(&self.core, reply)),
            None => self.core.update(batch, Box::new(move |(_, failures)| reply(failures))),
            Some(adopter) => adopter.update(batch, reply),
        }
    }

    fn updatev(&self, name: &RrdName, values: &[u8]) -> Result<UpdatevOutcome, StoreError> {
        self.with_adoption(name, |core| {
            core.send_and_wait(name, |reply| Command::Updatev(name.clone(), values.to_vec(), reply))
        })
    }

    fn create(&self, name: RrdName, request: CreateRequest, reply: Reply<Result<(), StoreError>>) {
        if let Err(lost) = self.check_free(&name, request.no_overwrite) {
            return reply(Err(lost));
        }
        let shard = self.core.shard(&name);
        match self.adopter.as_ref().filter(|adopter| adopter.has_file(&name)) {
            None => self.core.send(shard, Command::Create(name, request, false, reply)),
            Some(_) if request.no_overwrite => reply(Err(StoreError::Exists(name))),
            Some(adopter) => {
                let reply = adopter.reply_after_replacing(name.clone(), reply);
                self.core.send(shard, Command::Create(name, request, true, reply));
            }
        }
    }

    fn check_filled(&self, definition: &Definition) -> Result<(), StoreError> {
        self.core.memory.check(definition, 0)?;
        memory::check_whole(definition)
    }

    fn import(&self, name: RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        self.check_free(&name, no_overwrite)?;
        if no_overwrite && self.is_only_a_file(&name) {
            return Err(StoreError::Exists(name));
        }
        self.core.import(&name, rrd, no_overwrite)
    }

    fn tune(&self, name: &RrdName, args: &[String]) -> Result<(), StoreError> {
        self.with_adoption(name, |core| {
            core.send_and_wait(name, |reply| Command::Tune(name.clone(), args.to_vec(), reply))
        })
    }

    fn delete(&self, name: &RrdName) -> Result<(), StoreError> {
        self.with_adoption(name, |core| {
            if let Some(adopter) = &self.adopter {
                core.ask(name, |view, name| view.status(name))?;
                // First the file: if it stayed, the next use of the name would adopt it again.
                adopter.replace_file(name)?;
            }
            core.send_and_wait(name, |reply| Command::Delete(name.clone(), reply))
        })
    }

    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        self.with_adoption(name, |core| core.ask(name, |view, name| view.snapshot(name)))
    }

    fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        self.with_adoption(name, |core| core.ask(name, |view, name| view.status(name)))
    }

    fn fetch(&self, name: &RrdName, request: FetchRequest) -> Result<FetchRows, StoreError> {
        let take = move |view: &View<'_>, name: &RrdName| FetchTicket::take(view, name, request);
        self.with_adoption(name, |core| core.ask(name, take))?.complete()
    }

    fn read(&self, name: &RrdName) -> Result<Rrd, StoreError> {
        self.with_adoption(name, |core| core.ask(name, ReadTicket::take))?.complete()
    }

    fn rows(
        &self,
        name: &RrdName,
        of: &Arc<Definition>,
        rra: usize,
        rows: Range<i64>,
    ) -> Result<Vec<f64>, StoreError> {
        let of = Arc::clone(of);
        let take =
            move |view: &View<'_>, name: &RrdName| RowsTicket::take(view, name, &of, rra, rows.clone());
        self.core.ask(name, take)?.complete()
    }

    fn list_within(
        &self,
        directory: &[u8],
        recursive: bool,
        hold: Hold<'_>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut prefix = directory.to_vec();
        if !prefix.is_empty() && prefix.last() != Some(&b'/') {
            prefix.push(b'/');
        }
        let mut names = Vec::new();
        for shard in &self.core.shards {
            let asked = prefix.clone();
            let bytes = self.core.query(shard, None, move |view| view.names_bytes(&asked))?;
            if !hold(bytes) {
                return Err(ListError::NoMemory.into());
            }
            let asked = prefix.clone();
            names.extend(self.core.query(shard, None, move |view| view.names(&asked))?);
        }
        if !recursive {
            for name in &mut names {
                if let Some(slash) = name[prefix.len()..].iter().position(|&byte| byte == b'/') {
                    name.truncate(prefix.len() + slash + 1);
                }
            }
        }
        if let Some(adopter) = &self.adopter {
            names.extend(adopter.list(directory, recursive, hold)?);
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn flush(&self, name: Option<&RrdName>) -> Result<(), StoreError> {
        self.core.flushes.fetch_add(1, Ordering::Relaxed);
        match name {
            Some(name) => {
                self.status(name)?;
                self.core.sync(name)
            }
            None => self.core.every_shard(Command::Sync),
        }
    }

    fn stream_position(&self, name: &[u8]) -> Result<Option<StreamPosition>, StoreError> {
        let asked: Box<[u8]> = name.into();
        self.core.query(self.core.home_of(name), None, move |view| view.state.streams.get(&asked))
    }

    fn set_stream_position(&self, name: &[u8], position: StreamPosition) -> Result<(), StoreError> {
        self.core.every_shard(Command::Sync)?;
        let home = self.core.home_of(name);
        self.core.wait_for(home, |reply| Command::Stream(name.into(), position, reply))
    }

    fn stats(&self) -> Stats {
        let mut stats =
            Stats { flushes_received: self.core.flushes.load(Ordering::Relaxed), ..Stats::default() };
        for shard in &self.core.shards {
            let shared = &shard.shared;
            let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            stats.updates_received += get(&shared.stats.updates_received);
            stats.updates_written += get(&shared.stats.updates_written);
            stats.data_sets_written += get(&shared.stats.data_sets_written);
            stats.updates_refused += get(&shared.stats.updates_refused);
            stats.rrd_count += get(&shared.stats.rrd_count);
            stats.name_changes += get(&shared.stats.name_changes);
            stats.log_bytes_written += get(&shared.stats.log_bytes_written);
            stats.log_bytes_live += get(&shared.stats.log_bytes_live);
            stats.segment_bytes_written += get(&shared.stats.segment_bytes_written);
            stats.checkpoint_bytes_written += get(&shared.stats.checkpoint_bytes_written);
            let segments = shared.files.segments();
            stats.segment_bytes += segments.bytes();
            stats.segment_count += segments.files.len() as u64;
            stats.read_only |= u64::from(shared.is_read_only());
        }
        stats
    }

    fn verify(&self, watch: &mut dyn Watch) -> Result<(), StoreError> {
        for (index, shard) in self.core.shards.iter().enumerate() {
            let mut names = |_, slots: RangeInclusive<u32>| {
                self.core.query(shard, None, move |view| view.names_of(slots)).unwrap_or_default()
            };
            if !verify::live_shard(shard, index as u32, &mut names, watch) {
                break;
            }
        }
        Ok(())
    }

    fn stop(&self) -> Result<(), StoreError> {
        if let Some(adopter) = &self.adopter {
            adopter.stop();
        }
        self.core.checkpoint_before_stop();
        self.core.shards.iter().for_each(Shard::stop);
        let failure = self.core.shards.iter().find_map(|shard| shard.shared.failure());
        failure.map_or(Ok(()), |text| Err(StoreError::Poisoned(text)))
    }
}
