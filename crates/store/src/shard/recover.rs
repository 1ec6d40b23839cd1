//! Opening a shard: manifest, checkpoint, segments, then the log from the checkpoint's position on. Most of
//! the log is applied by the worker after the shard has opened ([`Recovery`]).
//!
//! Files that the manifest does not name are left over from a crash and are removed, once everything that it names was found
//! to be there.

use std::io;
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};

use rrd::definition::Definition;

use crate::checkpoint::{self, Label, Loaded, LoadedRows, LoadedRrd, Loader, PAGE_IDS, PageDefinition};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::filenames::{self, FileKind};
use crate::group::Geometry;
use crate::identity::Owner;
use crate::log::{self, Known, LogWriter, Position};
use crate::manifest::{self, Manifest};
use crate::placeholder::Placeholders;
use crate::segments::{SegmentFile, SegmentSet, open_named};
use crate::shard::checkpointer;
use crate::shard::compactor::{self, CompactorHandle};
use crate::shard::cycle::Cycle;
use crate::shard::files::Files;
use crate::shard::lost::{self, LostRrds};
use crate::shard::mailbox::Mailbox;
use crate::shard::recovery::{Recovery, Scanned, scan};
use crate::shard::replica_wait::ReplicaWait;
use crate::shard::state::{RrdKind, State};
use crate::shard::syncer::{self, SyncHandle};
use crate::shard::worker::{Worker, WorkerSlot};
use crate::shard::{Clock, Counters, Shard, ShardOptions, Shared, spawn};
use crate::streams::StreamPosition;

/// The most names of RRDs in a line of the log.
const NAMES_LOGGED: usize = 20;
/// Pages that may be queued for the checkpointer: some megabytes.
const JOBS_MAX: usize = 16;

/// Opens a shard and starts its threads.
///
/// # Errors
/// When a file is missing, cannot be read or is damaged beyond what recovery can skip, or a thread cannot be started.
pub fn open(
    disk: Arc<dyn Disk>,
    owner: Owner,
    options: ShardOptions,
    placeholders: Option<Arc<Placeholders>>,
    clock: Clock,
) -> Result<Shard, OpenError> {
    let dir = &filenames::shard(Path::new(""), owner.shard);
    let mut manifest = load_manifest(&*disk, dir, owner)?;
    if let Some(end) = options.log_end {
        cut_log(&*disk, dir, &mut manifest, end)?;
    }
    let now = clock().whole;
    let mut read = read(&*disk, dir, &manifest, State::new(now, options.open_bytes_min / 8))?;
    if !read.scanned.end.misplaced.is_empty() {
        put_aside(&*disk, dir, &read.scanned)?;
        for path in &read.scanned.end.misplaced {
            tracing::error!(file = %path.display(), "records of the log are not at their places: bytes were removed or added; they are put there");
            log::straighten(&*disk, dir, path, owner.tag()).map_err(OpenError::transparent)?;
        }
        read = self::read(&*disk, dir, &manifest, State::new(now, options.open_bytes_min / 8))?;
    }
    let Read { state, loaded, scanned } = read;
    report(&*disk, dir, &scanned, &state)?;
    let lost = lost::note(&*disk, dir, &mut manifest, &loaded)?;
    let segments = open_segments(&*disk, dir, &manifest)?;
    let from = manifest.position;
    tidy(&*disk, dir, &mut manifest, scanned.end.damage.is_empty()).map_err(OpenError::transparent)?;
    let end = scanned.end.end;
    let log_options = log::Options { owner: owner.tag(), ..log::Options::default() };
    let log = LogWriter::open(Arc::clone(&disk), dir, end, log_options).map_err(OpenError::transparent)?;
    let recovery = Recovery::start(Arc::clone(&disk), dir.to_owned(), from, &loaded, scanned)
        .map_err(OpenError::transparent)?;
    let files = Files::new(disk, dir, manifest, segments, log.syncer());
    if options.hold_log {
        files.hold_log();
    }
    start(
        Recovered { index: owner.shard, files, state, log, recovery, replay_from: from, lost },
        options,
        placeholders,
        clock,
    )
}

/// Cuts off what the log has after `end`, where a record ends: the replicated log, of which the store is a copy, did not accept it.
fn cut_log(disk: &dyn Disk, dir: &Path, manifest: &mut Manifest, end: Position) -> Result<(), OpenError> {
    if manifest.position > end {
        return Err(OpenError::new(format!(
            "the checkpoint has what the log says up to {}, of which the replicated log accepted only what is before {end}: this copy is not \
             the same as the others",
            manifest.position
        )));
    }
    let failed = |error| OpenError::caused("cannot cut off what the replicated log did not accept", error);
    let starts = log::log_files(disk, dir).map_err(failed)?;
    // First the manifest: a log that ends before what it vouches for is damaged.
    if manifest.known.durable > end {
        let newest_file = starts.iter().rfind(|start| **start <= end).copied().unwrap_or(end);
        manifest.known = Known { durable: end, newest_file, ..manifest.known };
        manifest.store(disk, dir).map_err(failed)?;
    }
    log::cut_after(disk, dir, end).map_err(failed)
}

/// Checks, without changing anything, that a shard has its manifest and the files which that names. A store is only
/// opened once all of its shards have passed.
///
/// # Errors
/// When one is missing, or the manifest is damaged or another shard's.
pub fn check(disk: &dyn Disk, owner: Owner) -> Result<(), OpenError> {
    let dir = &filenames::shard(Path::new(""), owner.shard);
    let manifest = find_manifest(disk, dir, owner)?;
    let checkpoint = Some(manifest.checkpoint).filter(|number| *number != 0);
    let segments = manifest.segments.iter().map(|segment| filenames::segment(dir, segment.number));
    for path in checkpoint.map(|number| filenames::checkpoint(dir, number)).into_iter().chain(segments) {
        if !disk.exists(&path).map_err(OpenError::transparent)? {
            // The wrong manifest names files that never were there.
            let manifest = filenames::manifest(dir);
            return Err(missing(&format!("file {}, which {} names,", path.display(), manifest.display())));
        }
    }
    Ok(())
}

fn missing(what: &str) -> OpenError {
    OpenError::new(format!(
        "the {what} is missing: nothing was changed; `roundel inspect` on the store's directory shows what is there, and \
         `roundel repair` what can be restored"
    ))
}

/// What checkpoint and log hold.
struct Read {
    state: State,
    loaded: Loaded,
    scanned: Scanned,
}

/// Reads checkpoint and log into an empty `state`.
fn read(disk: &dyn Disk, dir: &Path, manifest: &Manifest, mut state: State) -> Result<Read, OpenError> {
    let loaded = match manifest.checkpoint {
        0 => Loaded::default(),
        number => load_checkpoint(disk, dir, Label { owner: manifest.tag(), number }, &mut state)?,
    };
    let lost = lost::ids(manifest, &loaded);
    let scanned = scan(disk, dir, manifest.position, manifest.known(), (&loaded, &lost), &mut state)
        .map_err(OpenError::transparent)?;
    Ok(Read { state, loaded, scanned })
}

/// Copies damaged log files aside, before anything is written.
fn put_aside(disk: &dyn Disk, dir: &Path, scanned: &Scanned) -> Result<(), OpenError> {
    let failed = |error| OpenError::caused("cannot copy the damaged log aside", error);
    for copy in log::put_aside(disk, dir, &scanned.end).map_err(failed)? {
        tracing::error!(copy = %copy.display(), "the damaged log file was copied for inspection");
    }
    Ok(())
}

/// Reports what is wrong with the log, and copies it aside.
fn report(disk: &dyn Disk, dir: &Path, scanned: &Scanned, state: &State) -> Result<(), OpenError> {
    for damage in &scanned.end.damage {
        tracing::error!(%damage, "the log is damaged: the updates in the damaged part are lost, all others are not");
    }
    if let Some(cut) = &scanned.end.cut {
        tracing::warn!(%cut, "the end of the log is cut off, as after a loss of power: what is cut was never synced");
    }
    put_aside(disk, dir, scanned)?;
    let Some(affected) = &scanned.affected else { return Ok(()) };
    let [names, may_lack_names] = affected.names(state, NAMES_LOGGED);
    tracing::error!(
        lacking = affected.lacking.len(),
        %names,
        lost = affected.lost.len(),
        may_lack = affected.silent.len(),
        %may_lack_names,
        "RRDs that lack updates because the log is damaged, RRDs that are lost with it, and RRDs that may lack their last updates"
    );
    let path = filenames::damaged_rrds(dir);
    let list = affected.report(state);
    let write = || {
        match disk.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = disk.create(&path)?;
        file.write_at(list.as_bytes(), 0)?;
        file.sync()
    };
    if !list.is_empty() {
        write().map_err(|error| OpenError::caused("cannot list the RRDs that lack updates", error))?;
        tracing::error!(file = %path.display(), "all RRDs that lack updates, or may lack some, are listed in this file");
    }
    Ok(())
}

/// The shard's manifest. Only the creation of the store makes the first one, so a missing one is damage.
fn find_manifest(disk: &dyn Disk, dir: &Path, owner: Owner) -> Result<Manifest, OpenError> {
    if !disk.exists(dir).map_err(OpenError::transparent)? {
        return Err(missing(&format!("directory {}", dir.display())));
    }
    let path = filenames::manifest(dir);
    let loaded = Manifest::load(disk, dir);
    let manifest = loaded
        .map_err(|error| OpenError::caused(path.display().to_string(), error))?
        .ok_or_else(|| missing(&format!("file {}", path.display())))?;
    match manifest.owner {
        Some(named) if named != owner => Err(OpenError::new(format!(
            "the file {} is that of {named}, while STORE says {owner}: put the right one in its place, or let `roundel repair` \
             on the store's directory show what can be restored; nothing was changed",
            path.display()
        ))),
        _ => Ok(manifest),
    }
}

/// The shard's manifest, converted to this version if it is an older one; its copy is written again if it is not the same.
fn load_manifest(disk: &dyn Disk, dir: &Path, owner: Owner) -> Result<Manifest, OpenError> {
    let mut manifest = find_manifest(disk, dir, owner)?;
    let path = filenames::manifest(dir);
    if manifest.owner.is_none() {
        manifest.owner = Some(owner);
        tracing::info!(file = %path.display(), version = manifest::VERSION, "the manifest is converted to this version");
    } else {
        let copy = Manifest::load_from(disk, &filenames::manifest_copy(dir));
        if copy.is_ok_and(|copy| copy.as_ref() == Some(&manifest)) {
            return Ok(manifest);
        }
        // A crash leaves an older one.
        tracing::info!(file = %path.display(), "the manifest's copy was outdated, missing or damaged, and is written again");
    }
    manifest.store(disk, dir).map_err(OpenError::transparent)?;
    Ok(manifest)
}

/// Removes segments and checkpoints that the manifest does not name, when all is `well`: after damage they may be what a
/// repair needs. New files get numbers after all that are there.
fn tidy(disk: &dyn Disk, dir: &Path, manifest: &mut Manifest, well: bool) -> io::Result<()> {
    for name in disk.list(dir)? {
        let (number, leftover) = match filenames::kind_of(&name) {
            Some(FileKind::Segment(number)) => {
                (number, !manifest.segments.iter().any(|segment| segment.number == number))
            }
            Some(FileKind::Checkpoint(number)) => (number, number != manifest.checkpoint),
            _ => continue,
        };
        manifest.next_number = manifest.next_number.max(number.saturating_add(1));
        if leftover && well {
            let path = dir.join(&name);
            tracing::info!(file = %path.display(), "removed: a crash left it unfinished, or the manifest no longer needs it");
            disk.remove(&path)?;
        }
    }
    Ok(())
}

/// Loads the checkpoint `label` into an empty `state`, without the pages that cannot be read.
///
/// # Errors
/// When it is another one, or so damaged that no page can be used.
pub fn load_checkpoint(
    disk: &dyn Disk,
    dir: &Path,
    label: Label,
    state: &mut State,
) -> Result<Loaded, OpenError> {
    let path = filenames::checkpoint(dir, label.number);
    let mut loader = StateLoader { state, kinds: Vec::new() };
    let loaded = checkpoint::load(disk, &path, label.owner, &mut loader).map_err(OpenError::transparent)?;
    let Label { owner, number } = loaded.label;
    if !label.matches(loaded.label) {
        return Err(misplaced(&path, owner == label.owner, number));
    }
    state.catalogue.skip_ids(loaded.next_id);
    Ok(loaded)
}

/// Loads the content of a checkpoint into the state.
struct StateLoader<'a> {
    state: &'a mut State,
    /// For each definition of the page, its kind in the state; set by its first RRD.
    kinds: Vec<Option<RrdKind>>,
}

impl StateLoader<'_> {
    /// The geometry of a group, if it can be that of a definition.
    fn geometry(&self, group: u32, definition: &Definition) -> Option<Geometry> {
        let geometry = &self.state.groups().get(group as usize)?.group.geometry;
        geometry.is_of(definition).then(|| geometry.clone())
    }
}

impl Loader for StateLoader<'_> {
    fn page_count(&mut self, count: usize) {
        self.state.catalogue.reserve(count * PAGE_IDS as usize);
    }

    fn group(&mut self, geometry: Geometry) {
        self.state.group_index(geometry);
    }

    fn stream(&mut self, name: &[u8], position: StreamPosition) {
        self.state.streams.advance(name, position);
    }

    fn page(&mut self, definitions: &[PageDefinition<'_>]) {
        self.kinds.clear();
        self.kinds.resize(definitions.len(), None);
    }

    fn rrd(&mut self, rrd: LoadedRrd<'_>) {
        let LoadedRrd { id, name, definition: PageDefinition { definition, key, .. }, head, .. } = rrd;
        let kind = match self.kinds[rrd.definition_index] {
            Some(kind) => {
                self.state.catalogue.retain_definition(kind.definition);
                let is_same = kind.group == rrd.group || self.geometry(rrd.group, definition).is_none();
                RrdKind { group: if is_same { kind.group } else { rrd.group }, ..kind }
            }
            None => {
                let geometry = self.geometry(rrd.group, definition);
                let geometry = geometry.unwrap_or_else(|| Geometry::of(definition));
                let kind = self.state.intern(definition.clone(), key.to_vec(), geometry);
                *self.kinds[rrd.definition_index].insert(kind)
            }
        };
        self.state.insert_head(id, name, kind, head, rrd.seasons);
        for LoadedRows { source, first_row, count, values } in rrd.open {
            if values.len() == definition.ds.len() {
                self.state.push_open_repeat(id, source, first_row, count, &values);
            } else {
                self.state.push_open_block(id, source, first_row, &values);
            }
        }
    }
}

/// A checkpoint's file is another one.
fn misplaced(path: &Path, is_ours: bool, number: u64) -> OpenError {
    let whose = if is_ours { "this shard" } else { "another shard or store" };
    OpenError::new(format!(
        "the file {} is checkpoint {number} of {whose}: files were exchanged, this one or STORE and manifest; put the right one in its place, or let `roundel repair` \
         on the store's directory show what can be done",
        path.display()
    ))
}

fn open_segments(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<SegmentSet, OpenError> {
    let mut files = Vec::with_capacity(manifest.segments.len());
    for name in &manifest.segments {
        let path = filenames::segment(dir, name.number);
        let (segment, damage) =
            open_named(disk, &path, &manifest.expected(name)).map_err(OpenError::transparent)?;
        for damage in &damage {
            tracing::error!(%damage, "a segment is damaged: what can be read of it is served, and a read that may lack rows fails");
        }
        files.push(Arc::new(SegmentFile { name: *name, path, segment }));
    }
    Ok(SegmentSet { files })
}

/// A shard as loaded from its files.
struct Recovered {
    files: Files,
    state: State,
    index: u32,
    log: LogWriter,
    recovery: Recovery,
    replay_from: Position,
    lost: LostRrds,
}

fn start(
    recovered: Recovered,
    options: ShardOptions,
    placeholders: Option<Arc<Placeholders>>,
    clock: Clock,
) -> Result<Shard, OpenError> {
    let Recovered { index, files, state, log, recovery, replay_from, lost } = recovered;
    let (job_sender, jobs) = sync_channel(JOBS_MAX);
    let (sync_sender, sync_requests) = channel();
    let shared = Arc::new(Shared {
        mailbox: Mailbox::default(),
        files,
        stats: Counters::default(),
        syncer: SyncHandle::new(sync_sender),
        compactor: CompactorHandle::default(),
        stopping: false.into(),
        checkpointer_waits: Default::default(),
        refuses: false.into(),
        log_waits: Default::default(),
        lost,
        differs: false.into(),
        row_checks: Default::default(),
        replica_wait: ReplicaWait::new(options.replica_patience),
        placeholders,
        index,
        failure: OnceLock::new(),
        options,
    });
    let interval = shared.options.sync_interval;
    let cycle =
        Cycle::new(job_sender, replay_from, shared.options.open_bytes_min, shared.options.log_bytes_max);
    let log_syncer = log.syncer();
    let worker =
        Arc::new(WorkerSlot::new(Worker::new(Arc::clone(&shared), state, log, cycle, recovery, clock)));
    let (slot, working) = (Arc::clone(&worker), Arc::clone(&shared));
    let (checkpointing, syncing, compacting) =
        (Arc::clone(&shared), Arc::clone(&shared), Arc::clone(&shared));
    let threads = [
        spawn("shard", move || slot.run(&working)),
        spawn("checkpointer", move || checkpointer::run(&checkpointing, &jobs)),
        spawn("syncer", move || syncer::run(&syncing, &log_syncer, &sync_requests, interval)),
        spawn("compactor", move || compactor::run(&compacting)),
    ];
    let threads = threads.into_iter().collect::<Result<Vec<_>, _>>().map_err(OpenError::transparent)?;
    // The last stop may have interrupted merging.
    shared.compactor.wake();
    Ok(Shard { shared, worker, threads: Mutex::new(threads) })
}
