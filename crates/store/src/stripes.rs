//! The striped store: an [`Engine`] over shards.
//!
//! The hash of an RRD's name determines its shard for good; the number of shards is fixed when the store is
//! created. A batch for a single shard is passed on without a copy. An unknown name may belong to a `.rrd`
//! file in the tree, which [`adopt`] imports.

mod adopt;
mod contents;
mod homes;
mod lost;
mod modified;
mod names;
mod reconcile;
mod replication;
mod shards;
mod trash;
mod upkeep;

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::time::Timestamp;

use crate::awaited;
use crate::capture::{Capture, CapturedShard};
use crate::catalogue::RrdId;
use crate::claim::Claim;
use crate::disk::{Disk, DiskFile, Mode};
use crate::engine::{
    Adoption, CreateRequest, Engine, Hold, Reply, RrdStatus, Snapshot, Stats, StoreError, StreamPosition,
    Trashed, UpdateBatch, UpdateFailure, UpdatevOutcome, VersionChange,
};
pub use crate::error::OpenError;
use crate::filenames;
use crate::identity::{Identity, Owner};
use crate::lock::lock;
use crate::log;
use crate::memory::{self, Memory};
use crate::name::RrdName;
use crate::open_rows::ARENA_BYTES_MAX;
use crate::placeholder::{Placeholders, StoreIdentity};
use crate::replication::{History, Replica, Role, SharedRole};
pub use crate::shard::ShardOptions;
use crate::shard::files::Files;
use crate::shard::message::Command;
use crate::shard::read::{FetchTicket, ReadTicket, RowsTicket};
use crate::shard::recover;
use crate::shard::view::View;
use crate::shard::{Clock, Shard};
pub use crate::stripes::adopt::Adopted;
use crate::stripes::adopt::{Adopter, Originals, Unused};
use crate::stripes::homes::Homes;
use crate::stripes::reconcile::Reconciler;
use crate::stripes::shards::Core;
use crate::stripes::upkeep::Upkeep;
use crate::tail::{LogTail, NamesNow, Reach, ShardTail};
use crate::tree::Tree;
use crate::verify::{self, Watch};
use rrd_file::tree::ListError;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Shards of a newly created store; an existing one keeps its own.
    pub shard_count: u32,
    /// Which store it is to be, if that is known before there is one.
    pub identity: Option<Identity>,
    /// Options of its shards.
    pub shard: ShardOptions,
    /// The store's own directory, which no other store's tree may have in it; `None` when the disk is not the system's.
    pub directory: Option<PathBuf>,
    /// Where placeholders are written; `None` = nowhere.
    pub placeholder_tree: Option<PathBuf>,
    /// Have the kernel tell what is done to placeholders; otherwise each name is looked at when it is used.
    pub watch: bool,
    /// The tree whose `.rrd` files, made by other programs, are imported when their name is first used;
    /// `None` = none.
    pub adopt_tree: Option<PathBuf>,
    /// What becomes of these files.
    pub adopted: Adopted,
    /// Those that no program names are imported, too, once they have been unchanged for so long; `None` = not.
    pub adopt_unused: Option<Duration>,
    /// How long removed and replaced RRDs are kept; zero = not at all.
    pub trash: Duration,
    /// The share of all RRDs, 0 to 1, that may be removed with their placeholders at a stroke; with more, none is.
    pub max_removed: f64,
    /// It is to follow another store: it takes no changes, even if it was the primary before.
    pub follow: bool,
    /// The clock; the system's unless a test sets another.
    pub clock: Clock,
}

/// How long files that were taken in are kept by default.
const ADOPTED_DEFAULT: Duration = Duration::from_hours(30 * 24);
/// How long removed RRDs are kept by default.
const TRASH_DEFAULT: Duration = Duration::from_hours(7 * 24);

impl Default for Options {
    fn default() -> Self {
        // One shard per two cores: its worker takes one core, parsing and the background threads the other.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            shard_count: (cores / 2).clamp(1, 16) as u32,
            identity: None,
            shard: ShardOptions::default(),
            directory: None,
            placeholder_tree: None,
            watch: true,
            adopt_tree: None,
            adopted: Adopted::Archived(ADOPTED_DEFAULT),
            adopt_unused: None,
            trash: TRASH_DEFAULT,
            max_removed: 0.1,
            follow: false,
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
    /// Not of a follower.
    naming: OnceLock<Naming>,
    /// What that is made of.
    disk: Arc<dyn Disk>,
    options: Options,
    placeholders: Option<Arc<Placeholders>>,
    history: Mutex<History>,
}

/// What the names of a store mean: placeholders and `.rrd` files in the tree, and who looks after them.
struct Naming {
    adopter: Option<Arc<Adopter>>,
    unused: Option<Unused>,
    reconciler: Option<Arc<Reconciler>>,
    upkeep: Upkeep,
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

/// The shard that has the RRD of a name, unless that was renamed.
pub fn home_by_hash(identity: &Identity, name: &[u8]) -> u32 {
    let count = identity.shard_count as usize;
    Homes::new(identity.seed, count).of(name) as u32
}

/// Opens all shards, side by side.
fn open_shards(
    disk: &Arc<dyn Disk>,
    identity: Identity,
    options: &Options,
    memory: &Memory,
    placeholders: Option<&Arc<Placeholders>>,
) -> Result<Vec<Shard>, OpenError> {
    for shard in 0..identity.shard_count {
        recover::check(&**disk, Owner { store: identity, shard })?;
    }
    let open_one = |shard| {
        recover::open(
            Arc::clone(disk),
            Owner { store: identity, shard },
            ShardOptions { memory: memory.clone(), ..options.shard.clone() },
            placeholders.cloned(),
            Arc::clone(&options.clock),
        )
    };
    std::thread::scope(|scope| {
        let opening: Vec<_> =
            (0..identity.shard_count).map(|index| scope.spawn(move || open_one(index))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Shard, OpenError>>| {
            thread.join().unwrap_or_else(|_| Err(OpenError::new("a bug stopped the recovery")))
        };
        opening.into_iter().map(join).collect()
    })
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
        awaited::refuse(&*disk)?;
        let lock = take_lock(&*disk)?;
        let identity = match options.identity {
            Some(identity) => identity.expect_or_create(&*disk)?,
            None => Identity::load_or_create(&*disk, options.shard_count)?,
        };
        let store = StoreIdentity(identity.id);
        let trees: Vec<&Path> =
            options.placeholder_tree.iter().chain(&options.adopt_tree).map(PathBuf::as_path).collect();
        let claim =
            Claim::take(store, options.directory.as_deref(), &trees).map_err(OpenError::transparent)?;
        let placeholders = match &options.placeholder_tree {
            Some(path) => {
                let tree = Tree::open(path).map_err(|error| {
                    OpenError::caused(format!("cannot open the tree \"{}\"", path.display()), error)
                })?;
                Some(Arc::new(Placeholders::new(Arc::new(tree), store)))
            }
            None => None,
        };
        let memory = Memory::new(options.shard.memory.limits());
        let history = History::load(&*disk)?;
        let options = &options.of_role(&history);
        let shards = open_shards(&disk, identity, options, &memory, placeholders.as_ref())?;
        let any_lost = shards.iter().any(|shard| shard.shared.lost.place().is_some());
        let core = Arc::new(Core {
            any_lost,
            homes: Homes::new(identity.seed, shards.len()),
            shards,
            memory,
            trash: Mutex::default(),
            trash_ms: i64::try_from(options.trash.as_millis()).unwrap_or(i64::MAX),
            renaming: Mutex::default(),
            clock: Arc::clone(&options.clock),
            identity: store,
            store: identity,
            flushes: AtomicU64::new(0),
            _lock: lock,
            _claim: claim,
        });
        let (naming, history) = (OnceLock::new(), Mutex::new(history));
        let store = Stripes { core, naming, disk, options: options.clone(), placeholders, history };
        store.begin_own_epoch().map_err(|error| OpenError::new(error.to_string()))?;
        if store.options.shard.role.get() == Role::Primary {
            store.begin_naming()?;
        }
        Ok(store)
    }

    /// Begins to follow what its names mean.
    fn begin_naming(&self) -> Result<(), OpenError> {
        let naming = Naming::start(&self.core, &self.disk, &self.options, self.placeholders.as_ref())?;
        // A store becomes the primary once: what was started a second time ends here.
        let _ = self.naming.set(naming);
        Ok(())
    }

    fn adopter(&self) -> Option<&Arc<Adopter>> {
        self.naming.get()?.adopter.as_ref()
    }

    fn unused(&self) -> Option<&Unused> {
        self.naming.get()?.unused.as_ref()
    }

    fn reconciler(&self) -> Option<&Arc<Reconciler>> {
        self.naming.get()?.reconciler.as_ref()
    }
}

impl Options {
    /// The options of a store with this history.
    fn of_role(&self, history: &History) -> Options {
        let role = SharedRole::of(history);
        if history.role == Role::Restored {
            role.set(Role::Promoting);
        }
        if self.follow {
            role.set(Role::Follower);
        }
        let shard = ShardOptions { role, ..self.shard.clone() };
        Options { shard, ..self.clone() }
    }
}

impl Naming {
    /// That of a store whose shards are open.
    fn start(
        core: &Arc<Core>,
        disk: &Arc<dyn Disk>,
        options: &Options,
        placeholders: Option<&Arc<Placeholders>>,
    ) -> Result<Naming, OpenError> {
        let (core, disk, placeholders) = (Arc::clone(core), Arc::clone(disk), placeholders.cloned());
        let arrivals = core.learn_names().map_err(|error| OpenError::new(error.to_string()))?;
        if let Some(placeholders) = placeholders.as_ref().filter(|_| core.any_lost) {
            core.list_lost(&*disk, placeholders);
        }
        let adopted = match &options.adopt_tree {
            Some(path) => Some(Arc::new(Tree::open(path).map_err(|error| {
                OpenError::caused(format!("cannot look for .rrd files in \"{}\"", path.display()), error)
            })?)),
            None => None,
        };
        let originals = Arc::new(Originals::new(Arc::clone(&disk), placeholders.clone(), options.adopted));
        let reconciler = match &placeholders {
            Some(placeholders) => Some(Arc::new(Reconciler::new(
                Arc::clone(&core),
                Arc::clone(placeholders),
                adopted.clone(),
                (disk, Arc::clone(&originals)),
                options,
                arrivals,
            ))),
            None => {
                core.arrive(arrivals).map_err(|error| OpenError::new(error.to_string()))?;
                None
            }
        };
        let adopter = match adopted.is_some() || reconciler.is_some() {
            true => Some(Arc::new(Adopter::start(
                Arc::clone(&core),
                adopted.clone(),
                placeholders,
                reconciler.clone(),
                Arc::clone(&originals),
            )?)),
            false => None,
        };
        let unused = match (&adopter, options.adopt_unused) {
            // A file that stays is better taken in when it is needed: until then it does not grow old.
            (Some(adopter), Some(quiet)) if adopted.is_some() && originals.go() => {
                Some(Unused::start(Arc::clone(adopter), quiet)?)
            }
            _ => None,
        };
        let upkeep = Upkeep::start(core, reconciler.clone(), originals)?;
        Ok(Naming { adopter, unused, reconciler, upkeep })
    }

    fn stop(&self) {
        self.upkeep.stop();
        if let Some(unused) = &self.unused {
            unused.stop();
        }
        if let Some(adopter) = &self.adopter {
            adopter.stop();
        }
    }
}

impl Drop for Stripes {
    /// Ends all threads as [`Engine::stop`] does, without a checkpoint. Otherwise the last one to end would close the shards, some time later.
    fn drop(&mut self) {
        if let Some(naming) = self.naming.get() {
            naming.stop();
        }
        self.core.shards.iter().for_each(Shard::stop);
    }
}

impl Stripes {
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

    /// Has the store follow what was done to placeholders, as far as it concerns these names.
    #[inline]
    fn catch_up<'n>(&self, names: impl Iterator<Item = &'n [u8]> + Clone) {
        if let Some(reconciler) = self.reconciler() {
            reconciler.catch_up(names);
        }
    }

    /// The same for all names.
    fn catch_up_with_all(&self) {
        if let Some(reconciler) = self.reconciler() {
            reconciler.catch_up_with_all(&AtomicBool::new(false));
        }
    }

    /// Does something with an RRD and another name: to placeholders where there are any, else in the shards alone.
    fn with_pair(
        &self,
        from: &RrdName,
        to: &RrdName,
        in_tree: impl Fn(&Reconciler, &RrdName, &RrdName) -> Result<(), StoreError>,
        in_shards: impl Fn(&Core, &RrdName, &RrdName) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.check_for_tree(to)?;
        self.catch_up(std::iter::once(to.as_bytes()));
        self.with_rrd(from, |core, from| {
            core.ask(from, |view, name| view.status(name))?;
            match self.reconciler() {
                _ if from == to => Ok(()),
                Some(reconciler) => in_tree(reconciler, from, to),
                None => in_shards(core, from, to),
            }
        })
    }

    fn set_modified(&self, name: Option<&RrdName>) -> Result<(), StoreError> {
        self.reconciler().map_or(Ok(()), |reconciler| reconciler.set_modified(name))
    }

    /// Makes an attempt with the RRD of a name. When there is none: with the one that is meant, or whose `.rrd` file is there to be imported.
    fn with_rrd<T>(
        &self,
        name: &RrdName,
        attempt: impl Fn(&Core, &RrdName) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.catch_up(std::iter::once(name.as_bytes()));
        let unknown = match attempt(&self.core, name) {
            Err(StoreError::NoSuchRrd(unknown)) => unknown,
            result => return result,
        };
        self.core.check_lost(name)?;
        if self.naming.get().is_none() && self.core.find_home(name)? {
            return attempt(&self.core, name);
        }
        if let Some(reconciler) = self.reconciler()
            && let Some(meant) = reconciler.resolve(name)?
        {
            return attempt(&self.core, &meant);
        }
        let Some(adopter) = self.adopter() else { return Err(StoreError::NoSuchRrd(unknown)) };
        adopter.adopt(name, false)?;
        attempt(&self.core, name)
    }

    /// Checks that a new name can have a placeholder, if the store keeps any.
    fn check_for_tree(&self, name: &RrdName) -> Result<(), StoreError> {
        Ok(self.reconciler().map_or(Ok(()), |_| name.check_for_files())?)
    }

    /// Whether a `.rrd` file that would be adopted has this name.
    fn is_only_a_file(&self, name: &RrdName) -> bool {
        self.adopter().is_some_and(|adopter| adopter.is_only_a_file(name))
    }
}

#[cfg(test)]
impl Stripes {
    /// The number of the shard that an RRD of this name belongs to.
    pub(crate) fn shard_index(&self, name: &[u8]) -> usize {
        self.core.homes.of(name)
    }
}

impl Engine for Stripes {
    fn update(&self, batch: UpdateBatch, reply: Reply<Vec<UpdateFailure>>) {
        self.catch_up(batch.lines.iter().map(|line| batch.name(line)));
        match self.adopter() {
            None if self.core.any_lost => self.core.update(batch, lost::reply(&self.core, reply)),
            None => self.core.update(batch, Box::new(move |(_, failures)| reply(failures))),
            Some(adopter) => adopter.update(batch, reply),
        }
    }

    fn updatev(&self, name: &RrdName, values: &[u8]) -> Result<UpdatevOutcome, StoreError> {
        self.with_rrd(name, |core, name| {
            core.send_and_wait(name, |reply| Command::Updatev(name.clone(), values.to_vec(), reply))
        })
    }

    fn create(&self, name: RrdName, request: CreateRequest, reply: Reply<Result<(), StoreError>>) {
        self.catch_up(std::iter::once(name.as_bytes()));
        let is_free = self.check_for_tree(&name).and_then(|()| self.check_free(&name, request.no_overwrite));
        if let Err(error) = is_free {
            return reply(Err(error));
        }
        self.core.make_room(&request.definition);
        match self.adopter().filter(|adopter| adopter.claim_file(&name)) {
            None => self.core.send_new(&name.clone(), Command::Create(name, request, false, reply)),
            Some(_) if request.no_overwrite => reply(Err(StoreError::Exists(name))),
            Some(adopter) => {
                let reply = adopter.reply_after_replacing(name.clone(), reply);
                self.core.send_new(&name.clone(), Command::Create(name, request, true, reply));
            }
        }
    }

    fn check_filled(&self, definition: &Definition) -> Result<(), StoreError> {
        self.core.memory.check(definition, 0)?;
        memory::check_whole(definition)
    }

    fn import(&self, name: RrdName, rrd: Rrd, no_overwrite: bool) -> Result<(), StoreError> {
        self.check_for_tree(&name)?;
        self.catch_up(std::iter::once(name.as_bytes()));
        self.check_free(&name, no_overwrite)?;
        if no_overwrite && self.is_only_a_file(&name) {
            return Err(StoreError::Exists(name));
        }
        self.core.make_room(&rrd.definition);
        let replaced = self.adopter().filter(|adopter| adopter.claim_file(&name));
        self.core.import(&name, rrd, no_overwrite)?;
        replaced.map_or(Ok(()), |adopter| adopter.replace_file(&name))
    }

    fn tune(&self, name: &RrdName, args: &[String]) -> Result<(), StoreError> {
        self.with_rrd(name, |core, name| {
            core.send_and_wait(name, |reply| Command::Tune(name.clone(), args.to_vec(), reply))
        })
    }

    fn change(&self, name: &RrdName, version: u64, change: VersionChange) -> Result<u64, StoreError> {
        if let VersionChange::Replace(rrd) = &change {
            self.core.make_room(&rrd.definition);
        }
        self.with_rrd(name, |core, name| core.change(name, version, change.clone()))
    }

    fn delete(&self, name: &RrdName) -> Result<(), StoreError> {
        self.with_rrd(name, |core, name| {
            core.ask(name, |view, name| view.status(name))?;
            if let Some(adopter) = self.adopter() {
                // First the file: if it stayed, the next use of the name would adopt it again.
                adopter.replace_file(name)?;
            }
            match self.reconciler() {
                Some(reconciler) => reconciler.remove(name),
                None => core.remove(name),
            }
        })
    }

    fn rename(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        self.with_pair(from, to, Reconciler::rename, Core::rename)
    }

    fn copy(&self, from: &RrdName, to: &RrdName) -> Result<(), StoreError> {
        self.with_pair(from, to, Reconciler::copy, Core::copy)
    }

    fn trash(&self) -> Result<Vec<Trashed>, StoreError> {
        Ok(lock(&self.core.trash).until(i64::MAX))
    }

    fn restore(&self, trashed: &Trashed, to: &RrdName) -> Result<(), StoreError> {
        self.check_for_tree(to)?;
        self.catch_up(std::iter::once(to.as_bytes()));
        match self.reconciler() {
            Some(reconciler) => reconciler.restore(trashed, to),
            None => self.core.restore(trashed, to),
        }
    }

    fn erase(&self, trashed: &Trashed) -> Result<(), StoreError> {
        self.core.erase(trashed)
    }

    fn snapshot(&self, name: &RrdName) -> Result<Snapshot, StoreError> {
        self.with_rrd(name, |core, name| core.ask(name, |view, name| view.snapshot(name)))
    }

    fn status(&self, name: &RrdName) -> Result<RrdStatus, StoreError> {
        self.with_rrd(name, |core, name| core.ask(name, |view, name| view.status(name)))
    }

    fn fetch(&self, name: &RrdName, request: FetchRequest) -> Result<FetchRows, StoreError> {
        let take = move |view: &View<'_>, name: &RrdName| FetchTicket::take(view, name, request);
        self.with_rrd(name, |core, name| core.ask(name, take))?.complete()
    }

    fn read(&self, name: &RrdName) -> Result<Rrd, StoreError> {
        self.with_rrd(name, |core, name| core.ask(name, ReadTicket::take))?.complete()
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
        self.catch_up_with_all();
        if let Some(reconciler) = self.reconciler() {
            reconciler.wait_for_scan();
        }
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
        if let Some(adopter) = self.adopter() {
            names.extend(adopter.list(directory, recursive, hold)?);
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn has_directory(&self, directory: &[u8]) -> Result<bool, StoreError> {
        self.catch_up(std::iter::empty());
        let prefix = [directory, b"/"].concat();
        for shard in &self.core.shards {
            let asked = prefix.clone();
            if self.core.query(shard, None, move |view| view.has_names(&asked))? {
                return Ok(true);
            }
        }
        match self.adopter() {
            Some(adopter) => Ok(!adopter.list(directory, true, &mut |_| true)?.is_empty()),
            None => Ok(false),
        }
    }

    fn flush(&self, name: Option<&RrdName>) -> Result<(), StoreError> {
        self.core.flushes.fetch_add(1, Ordering::Relaxed);
        match name {
            Some(name) => self.with_rrd(name, |core, name| {
                core.ask(name, |view, name| view.status(name))?;
                core.sync(name)?;
                self.set_modified(Some(name))
            }),
            None => {
                self.core.every_shard(Command::Sync)?;
                self.set_modified(None)
            }
        }
    }

    /// With one sync of all shards, instead of one for each RRD.
    fn flush_those(&self, names: &[RrdName]) -> Result<(), StoreError> {
        self.core.flushes.fetch_add(1, Ordering::Relaxed);
        self.core.every_shard(Command::Sync)?;
        names.iter().map(|name| self.set_modified(Some(name))).fold(Ok(()), Result::and)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.core.every_shard(Command::Sync)
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

    fn adopt(&self, name: &RrdName, archive: bool) -> Result<bool, StoreError> {
        self.catch_up(std::iter::once(name.as_bytes()));
        match self.adopter() {
            Some(adopter) if adopter.is_only_a_file(name) => adopter.adopt(name, archive).map(|()| true),
            _ => Ok(false),
        }
    }

    fn adoption(&self) -> Option<Adoption> {
        self.unused().map(Unused::progress)
    }

    fn missing(&self) -> Vec<RrdName> {
        self.reconciler().map_or(Vec::new(), |reconciler| reconciler.missing())
    }

    fn settle_missing(&self, remove: bool) -> Result<u64, StoreError> {
        self.catch_up_with_all();
        self.reconciler().map_or(Ok(0), |reconciler| reconciler.settle_missing(remove))
    }

    fn stats(&self) -> Stats {
        let adoption = self.unused().map(Unused::counts).unwrap_or_default();
        let mut stats = Stats {
            files_left: adoption.left,
            files_taken: adoption.taken,
            files_failed: adoption.failed,
            flushes_received: self.core.flushes.load(Ordering::Relaxed),
            missing_count: self.reconciler().map_or(0, |reconciler| reconciler.missing_count()),
            trash_count: lock(&self.core.trash).count() as u64,
            ..Stats::default()
        };
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

    fn capture(&self) -> Result<Capture, StoreError> {
        let pinned: Vec<_> = self.core.shards.iter().map(|shard| shard.shared.files.pin()).collect();
        let now = (self.core.clock)();
        let files = || self.core.shards.iter().map(|shard| &shard.shared.files);
        let ends = log::ends_at_once(files().map(Files::log));
        let shards = files().zip(pinned).zip(ends);
        let shards = shards
            .map(|((files, pinned), end)| CapturedShard::new(files, pinned, end))
            .collect::<Result<_, _>>()?;
        let time_ms = now.whole * 1000 + i64::from(now.micros / 1000);
        // After the ends: an epoch that began since is not that of any record before them.
        let history = self.history();
        Ok(Capture { identity: self.core.store, time_ms, history, shards })
    }

    fn replica(&self) -> Option<&dyn Replica> {
        Some(self)
    }
    fn tail(&self, reach: Reach, bytes_max: u64) -> Result<LogTail, StoreError> {
        let names = |index: usize| {
            // A reader that is late to end does not keep a store from being opened again.
            let core = Arc::downgrade(&self.core);
            move |ids: Vec<RrdId>| {
                let core = core.upgrade().ok_or(StoreError::Stopping)?;
                core.query(&core.shards[index], None, move |view| NamesNow::of(view, ids))
            }
        };
        let shards = self.core.shards.iter().enumerate().map(|(index, shard)| {
            ShardTail::new(&shard.shared.files, reach, bytes_max, Box::new(names(index)))
        });
        Ok(LogTail::new(self.core.store, shards.collect(), reach))
    }

    fn release_log(&self) {
        self.core.shards.iter().for_each(|shard| shard.shared.files.release_log());
    }

    fn stop(&self) -> Result<(), StoreError> {
        if let Some(naming) = self.naming.get() {
            naming.stop();
        }
        self.core.checkpoint_before_stop();
        self.core.shards.iter().for_each(Shard::stop);
        let failure = self.core.shards.iter().find_map(|shard| shard.shared.failure());
        failure.map_or(Ok(()), |text| Err(StoreError::Poisoned(text)))
    }
}
