//! The striped store: shards behind the door [`Engine`].
//!
//! An RRD belongs to the shard its name hashes to, for ever; the number of shards is fixed when the store
//! is made. A batch for one shard is passed on as it is. A name that is not known may stand for a `.rrd` file
//! in the tree: [`adopt`] takes it in.

mod adopt;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rrd::content::Rrd;
use rrd::time::Timestamp;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::disk::{Disk, DiskFile, Mode};
use crate::engine::{
    CreateRequest, Engine, FetchRequest, FetchRows, Listed, Reply, Snapshot, Stats, StoreError, UpdateBatch,
    UpdateFailure,
};
use crate::filenames;
use crate::identity::Identity;
use crate::name::RrdName;
use crate::placeholder::{Placeholders, StoreIdentity};
use crate::shard::message::{Change, Question, UpdateOutcome};
use crate::shard::recover::{self, OpenError};
use crate::shard::worker::Worker;
use crate::shard::{Clock, Shard, ShardOptions};
use crate::stripes::adopt::Adopter;
use crate::tree::Tree;

/// A worker that is busy on another core answers within this: sleeping and being woken would cost both sides
/// more, and under load a turn of the processor.
const ANSWER_SOON: Duration = Duration::from_micros(30);

/// Updates of a batch that whoever brings it may do himself while the shard rests: some tens of microseconds. From
/// there on the worker does them while the connection reads on.
const LENT_LINES_MAX: usize = 64;
/// Bytes of such a batch: a line may hold many words.
const LENT_BYTES_MAX: usize = 8 * 1024;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Shards of a store that is made now; an existing one keeps its own.
    pub shard_count: u32,
    /// How its shards behave.
    pub shard: ShardOptions,
    /// Where placeholders are written; none when `None`.
    pub placeholder_tree: Option<PathBuf>,
    /// Where `.rrd` files that other programs made are taken in from when their name is first used.
    pub adopt_tree: Option<PathBuf>,
    /// What the time is; the system's clock unless a test says otherwise.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        // One shard a pair of cores: its worker wants one, parsing and the background threads the other.
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

/// A store of stripes.
pub struct Stripes {
    core: Arc<Core>,
    adopter: Option<Adopter>,
}

/// The shards, and how to reach them.
struct Core {
    shards: Vec<Shard>,
    seed: u64,
    identity: StoreIdentity,
    flushes: AtomicU64,
    /// Held while the store is open: two daemons on one store would write over each other.
    _lock: Arc<dyn DiskFile>,
}

fn take_lock(disk: &dyn Disk) -> Result<Arc<dyn DiskFile>, OpenError> {
    let failed = |error: std::io::Error| OpenError(format!("cannot lock the store: {error}"));
    let path = filenames::lock(Path::new(""));
    let file = match disk.open(&path, Mode::Write) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => disk.create(&path).map_err(failed)?,
        opened => opened.map_err(failed)?,
    };
    if !file.try_lock().map_err(failed)? {
        return Err(OpenError("another daemon has the store open; stop it first, or use its sockets".into()));
    }
    Ok(file)
}

impl Stripes {
    /// Opens the store on `disk`, or makes one.
    pub fn open(disk: Arc<dyn Disk>, options: &Options) -> Result<Stripes, OpenError> {
        let lock = take_lock(&*disk)?;
        let identity = Identity::load_or_create(&*disk, options.shard_count)?;
        let store = StoreIdentity(identity.id);
        let placeholders = match &options.placeholder_tree {
            Some(path) => {
                let tree = Tree::open(path).map_err(|error| {
                    OpenError(format!("cannot open the tree \"{}\": {error}", path.display()))
                })?;
                Some(Arc::new(Placeholders::new(tree, store)))
            }
            None => None,
        };
        let open_one = |index| {
            recover::open(
                Arc::clone(&disk),
                &filenames::shard(Path::new(""), index),
                options.shard.clone(),
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
                    thread.join().unwrap_or_else(|_| Err(OpenError("a bug stopped the recovery".into())))
                })
                .collect::<Result<Vec<_>, _>>()
        })?;
        let core = Arc::new(Core {
            shards,
            seed: identity.seed,
            identity: store,
            flushes: AtomicU64::new(0),
            _lock: lock,
        });
        let adopter = match &options.adopt_tree {
            Some(path) => Some(Adopter::start(Arc::clone(&core), path)?),
            None => None,
        };
        Ok(Stripes { core, adopter })
    }

    /// Which store it is, as its placeholders say.
    pub fn identity(&self) -> StoreIdentity {
        self.core.identity
    }

    /// Flushes everything to segments and a checkpoint.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.core.every_shard(Change::Checkpoint)
    }

    /// Does something with an RRD; when there is none, looks for a `.rrd` file to take in and tries again.
    fn with_adoption<T>(
        &self,
        name: &RrdName,
        attempt: impl Fn(&Core) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match (attempt(&self.core), &self.adopter) {
            (Err(StoreError::NoSuchRrd(_)), Some(adopter)) => {
                adopter.adopt(name)?;
                attempt(&self.core)
            }
            (result, _) => result,
        }
    }
}

impl Core {
    fn shard_index(&self, name: &[u8]) -> usize {
        match self.shards.len() {
            1 => 0,
            count => (xxh3_64_with_seed(name, self.seed) % count as u64) as usize,
        }
    }

    fn shard(&self, name: &RrdName) -> &Shard {
        &self.shards[self.shard_index(name.as_bytes())]
    }

    fn change(&self, shard: &Shard, change: Change) {
        let bytes = change.bytes();
        if let Err(closed) = shard.shared.mailbox.send_change(change, bytes) {
            closed.0.refuse(StoreError::Stopping);
        }
    }

    fn change_and_wait<T: Send + 'static>(
        &self,
        name: &RrdName,
        change: impl FnOnce(Reply<Result<T, StoreError>>) -> Change,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let reply = Box::new(move |result| {
            let _ = sender.send(result);
        });
        self.change(self.shard(name), change(reply));
        receiver.recv().unwrap_or(Err(StoreError::Stopping))
    }

    fn ask<T: Send + 'static>(
        &self,
        shard: &Shard,
        question: impl FnOnce(Reply<T>) -> Question,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let reply = Box::new(move |answer| {
            let _ = sender.send(answer);
        });
        shard.shared.mailbox.send_question(question(reply)).map_err(|_| StoreError::Stopping)?;
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

    /// Looks into the shard of a name; asks when its worker is busy.
    fn look<T: Send + 'static>(
        &self,
        name: &RrdName,
        look: impl FnOnce(&Worker) -> Result<T, StoreError>,
        question: impl FnOnce(Reply<Result<T, StoreError>>) -> Question,
    ) -> Result<T, StoreError> {
        let shard = self.shard(name);
        match shard.worker.look(look) {
            Some(result) => result,
            None => self.ask(shard, question)?,
        }
    }

    fn every_shard(
        &self,
        change: impl Fn(Reply<Result<(), StoreError>>) -> Change,
    ) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::channel();
        for shard in &self.shards {
            let sender = sender.clone();
            let reply = Box::new(move |result| {
                let _ = sender.send(result);
            });
            self.change(shard, change(reply));
        }
        drop(sender);
        receiver.iter().collect()
    }
}

/// Gathers the failures of a batch that was split over shards.
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

    /// A few updates, when their shard rests, are done here; others go to its worker.
    fn update_shard(&self, shard: &Shard, batch: UpdateBatch, reply: Reply<UpdateOutcome>) {
        let small = batch.lines.len() <= LENT_LINES_MAX && batch.text.len() <= LENT_BYTES_MAX;
        let change = Change::Update(batch, reply);
        let left = if small { shard.worker.lend(&shard.shared, change) } else { Some(change) };
        if let Some(change) = left {
            self.change(shard, change);
        }
    }

    fn import(&self, name: &RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        let rrd = Box::new(rrd);
        self.change_and_wait(name, |reply| Change::Import(name.clone(), rrd, no_overwrite, reply))
    }

    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        self.look(name, |worker| worker.snapshot(name), |reply| Question::Snapshot(name.clone(), reply))
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
                let mut gather = gather.lock().unwrap_or_else(PoisonError::into_inner);
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
            None => self.core.update(batch, Box::new(move |(_, failures)| reply(failures))),
            Some(adopter) => {
                let way = adopter.way();
                let look = Box::new(move |(batch, failures): UpdateOutcome| {
                    let unknown = |failure: &UpdateFailure| matches!(failure.error, StoreError::NoSuchRrd(_));
                    if failures.iter().any(unknown) {
                        way.send(batch, failures, reply);
                    } else {
                        reply(failures);
                    }
                });
                self.core.update(batch, look);
            }
        }
    }

    fn update_listed(&self, name: &RrdName, values: &[u8]) -> Result<Listed, StoreError> {
        self.with_adoption(name, |core| {
            core.change_and_wait(name, |reply| Change::UpdateListed(name.clone(), values.to_vec(), reply))
        })
    }

    fn create(&self, name: RrdName, request: CreateRequest, reply: Reply<Result<(), StoreError>>) {
        let shard = self.core.shard(&name);
        self.core.change(shard, Change::Create(name, request, reply));
    }

    fn import(&self, name: RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        self.core.import(&name, rrd, no_overwrite)
    }

    fn tune(&self, name: &RrdName, words: &[String]) -> Result<(), StoreError> {
        self.with_adoption(name, |core| {
            core.change_and_wait(name, |reply| Change::Tune(name.clone(), words.to_vec(), reply))
        })
    }

    fn delete(&self, name: &RrdName) -> Result<(), StoreError> {
        self.core.change_and_wait(name, |reply| Change::Delete(name.clone(), reply))
    }

    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        self.with_adoption(name, |core| core.snapshot(name))
    }

    fn fetch(&self, name: &RrdName, request: FetchRequest) -> Result<FetchRows, StoreError> {
        let ticket = self.with_adoption(name, |core| {
            let question = |reply| Question::Fetch(name.clone(), request, reply);
            core.look(name, |worker| worker.fetch(name, request), question)
        })?;
        ticket.complete()
    }

    fn read(&self, name: &RrdName) -> Result<Rrd, StoreError> {
        let ticket = self.with_adoption(name, |core| {
            core.look(name, |worker| worker.read(name), |reply| Question::Read(name.clone(), reply))
        })?;
        ticket.complete()
    }

    fn list(&self, directory: &[u8], recursive: bool) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut prefix = directory.to_vec();
        if !prefix.is_empty() && prefix.last() != Some(&b'/') {
            prefix.push(b'/');
        }
        let mut names = Vec::new();
        for shard in &self.core.shards {
            names.extend(self.core.ask(shard, |reply| Question::Names(prefix.clone(), reply))?);
        }
        if !recursive {
            for name in &mut names {
                if let Some(slash) = name[prefix.len()..].iter().position(|&byte| byte == b'/') {
                    name.truncate(prefix.len() + slash + 1);
                }
            }
        }
        if let Some(adopter) = &self.adopter {
            names.extend(adopter.list(directory, recursive)?);
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn flush(&self, name: Option<&RrdName>) -> Result<(), StoreError> {
        self.core.flushes.fetch_add(1, Ordering::Relaxed);
        match name {
            Some(name) => {
                self.snapshot(name)?;
                self.core.change_and_wait(name, Change::Sync)
            }
            None => self.core.every_shard(Change::Sync),
        }
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

    fn stop(&self) -> Result<(), StoreError> {
        if let Some(adopter) = &self.adopter {
            adopter.stop();
        }
        self.core.shards.iter().for_each(Shard::stop);
        let failure = self.core.shards.iter().find_map(|shard| shard.shared.failure());
        failure.map_or(Ok(()), |text| Err(StoreError::Poisoned(text)))
    }
}
