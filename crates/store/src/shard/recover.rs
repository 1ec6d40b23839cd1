//! Opening a shard: manifest, checkpoint, segments, then the log from the checkpoint's position on.
//!
//! Replay runs the same [`State`] methods as live. What a page of the checkpoint already holds is passed
//! over by the page's position. Files that no manifest names are left over from a crash and are removed.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};

use crate::catalogue::RrdId;
use crate::checkpoint::{self, Loaded, LoadedRrd, PAGE_IDS};
use crate::codec::DecodeError;
use crate::disk::Disk;
use crate::filenames::{self, FileKind};
use crate::log::catalogue::{Create, Delete, Import, Rename, Tune};
use crate::log::parts::{Lost, Parts, Piece};
use crate::log::{self, Kind, LogWriter, Position, Record, ReplayEnd};
use crate::manifest::Manifest;
use crate::placeholder::Placeholders;
use crate::segments::{SegmentFile, SegmentSet, open_segment};
use crate::shard::cycle::Cycle;
use crate::shard::files::Files;
use crate::shard::keeper;
use crate::shard::mailbox::Mailbox;
use crate::shard::merger::{self, MergerHandle};
use crate::shard::state::State;
use crate::shard::syncer::{self, SyncHandle};
use crate::shard::worker::{Seat, Worker};
use crate::shard::{Clock, Counters, Shard, ShardOptions, Shared, spawn};

/// Why a shard could not be opened; the text says what to do.
#[derive(Debug)]
pub struct OpenError(pub String);

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenError {}

fn told(what: impl std::fmt::Display) -> OpenError {
    OpenError(what.to_string())
}

/// Pages that may wait for the keeper: some megabytes.
const JOBS_MAX: usize = 16;

/// Opens the shard in `dir` (made when missing) and starts its threads.
pub fn open(
    disk: Arc<dyn Disk>,
    dir: &Path,
    options: ShardOptions,
    placeholders: Option<Arc<Placeholders>>,
    clock: Clock,
) -> Result<Shard, OpenError> {
    disk.create_dir_all(dir).map_err(told)?;
    let manifest = match Manifest::load(&*disk, dir).map_err(told)? {
        Some(manifest) => manifest,
        None => new_manifest(&*disk, dir)?,
    };
    remove_leftovers(&*disk, dir, &manifest).map_err(told)?;
    let open_words = options.open_bytes_min / 8;
    let mut state = State::new(clock().whole, open_words);
    let loaded = match manifest.checkpoint {
        0 => Loaded::default(),
        number => load_checkpoint(&*disk, dir, number, &mut state)?,
    };
    let segments = open_segments(&*disk, dir, &manifest)?;
    let stats = Counters::default();
    let end = replay(&*disk, dir, manifest.position, &loaded, &mut state, &stats)?;
    let writer = LogWriter::open(Arc::clone(&disk), dir, end.end, log::Options::default()).map_err(told)?;
    let kept_from = manifest.position;
    let files = Files::new(disk, dir, manifest, segments);
    start(files, stats, options, placeholders, clock, state, writer, kept_from)
}

fn new_manifest(disk: &dyn Disk, dir: &Path) -> Result<Manifest, OpenError> {
    let manifest = Manifest { next_number: 1, ..Manifest::default() };
    manifest.store(disk, dir).map_err(told)?;
    Ok(manifest)
}

/// Segments and checkpoints that the manifest does not name.
fn remove_leftovers(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> io::Result<()> {
    for name in disk.list(dir)? {
        let leftover = match filenames::kind_of(&name) {
            Some(FileKind::Segment(number)) => {
                !manifest.segments.iter().any(|segment| segment.number == number)
            }
            Some(FileKind::Checkpoint(number)) => number != manifest.checkpoint,
            _ => false,
        };
        if leftover {
            disk.remove(&dir.join(&name))?;
        }
    }
    Ok(())
}

fn load_checkpoint(disk: &dyn Disk, dir: &Path, number: u64, state: &mut State) -> Result<Loaded, OpenError> {
    let path = filenames::checkpoint(dir, number);
    // Both closures change the state, one after the other.
    let state = std::cell::RefCell::new(state);
    let loaded = checkpoint::load(
        disk,
        &path,
        &mut |geometry| {
            state.borrow_mut().group_index(geometry);
        },
        &mut |rrd| load_rrd(&mut state.borrow_mut(), rrd),
    )
    .map_err(told)?;
    state.into_inner().catalogue.skip_ids(loaded.next_id);
    Ok(loaded)
}

fn load_rrd(state: &mut State, rrd: LoadedRrd<'_>) {
    let LoadedRrd { id, name, definition, live, open } = rrd;
    let ds_count = definition.ds.len();
    state.insert(id, name, definition, live);
    for (source, first_row, count, values) in open {
        if values.len() == ds_count {
            state.push_open_repeat(id, source, first_row, count, &values);
        } else {
            state.push_open_block(id, source, first_row, &values);
        }
    }
}

fn open_segments(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<SegmentSet, OpenError> {
    let mut files = Vec::with_capacity(manifest.segments.len());
    for name in &manifest.segments {
        let path = filenames::segment(dir, name.number);
        let segment = open_segment(disk, &path).map_err(told)?;
        let file = SegmentFile {
            number: name.number,
            level: name.level,
            class: name.class,
            bytes: name.bytes,
            path,
            segment,
        };
        files.push(Arc::new(file));
    }
    Ok(SegmentSet { files })
}

fn replay(
    disk: &dyn Disk,
    dir: &Path,
    from: Position,
    loaded: &Loaded,
    state: &mut State,
    stats: &Counters,
) -> Result<ReplayEnd, OpenError> {
    let mut refused = 0;
    let mut parts = Parts::default();
    let end = log::replay(disk, dir, from, &mut |record: Record<'_>| {
        // The pieces of an import stand in a row: whatever else comes says that a crash cut the rest off before
        // anyone was told, or that damage took it, which is reported by itself.
        if record.kind != Kind::Part {
            parts.abandon();
        }
        refused += match whole(&mut parts, &record)? {
            Some(body) => apply(state, loaded, &Record { kind: Kind::Import, body: &body, ..record })?,
            None if record.kind == Kind::Part => 0,
            None => apply(state, loaded, &record)?,
        };
        Ok::<(), DecodeError>(())
    })
    .map_err(told)?;
    for damage in &end.damage {
        tracing::error!(%damage, "the log is damaged: the updates in the damaged part are lost, all others are not");
    }
    if refused > 0 {
        tracing::error!(refused, "updates in the log could not be applied");
    }
    stats.replay_refused.store(refused, Ordering::Relaxed);
    Ok(end)
}

/// The body of an import whose last piece this record is.
fn whole(parts: &mut Parts, record: &Record<'_>) -> Result<Option<Vec<u8>>, DecodeError> {
    if record.kind != Kind::Part {
        return Ok(None);
    }
    parts.take(&Piece::decode(record.body)?).or_else(|Lost| {
        tracing::error!(position = %record.position, "a piece of an import is lost in the log, and the import with it");
        Ok(None)
    })
}

/// Applies one record; returns how many updates of it were refused, which only damage can cause.
fn apply(state: &mut State, loaded: &Loaded, record: &Record<'_>) -> Result<u64, DecodeError> {
    let covered = |id: RrdId| {
        let page = loaded.pages.get((id / PAGE_IDS) as usize);
        page.is_some_and(|(next_id, position)| id < *next_id && record.position < *position)
    };
    let refused = match record.kind {
        Kind::Updates => {
            let mut refused = 0;
            log::updates::decode(record.body, &mut |id, time, values: &[u8]| {
                let known = covered(id)
                    || (state.catalogue.get(id).is_some() && state.replay_update(id, time, values).is_ok());
                refused += u64::from(!known);
            })?;
            return Ok(refused);
        }
        Kind::Create => {
            let Create { id, name, definition, start } = Create::decode(record.body)?;
            if covered(id) {
                return Ok(0);
            }
            let new = is_free(state, id, name);
            if new {
                state.create(id, name, definition, start);
            }
            !new
        }
        Kind::Import => {
            let Import { id, name, rrd } = Import::decode(record.body)?;
            if covered(id) {
                return Ok(0);
            }
            let new = is_free(state, id, name);
            if new {
                state.import(id, name, rrd);
            }
            !new
        }
        Kind::Tune => {
            let Tune { id, words } = Tune::decode(record.body)?;
            !covered(id) && (state.catalogue.get(id).is_none() || state.tune(id, &words).is_err())
        }
        Kind::Delete => {
            let Delete { id } = Delete::decode(record.body)?;
            if !covered(id) {
                state.delete(id);
            }
            false
        }
        Kind::Rename => {
            let Rename { id, name } = Rename::decode(record.body)?;
            if covered(id) {
                return Ok(0);
            }
            let fits = state.catalogue.get(id).is_some() && state.catalogue.find(name).is_none();
            if fits {
                state.catalogue.rename(id, name);
            }
            !fits
        }
        // Put together before they come here.
        Kind::Part => false,
        // Nothing of this version writes one; going on would give other numbers than its writer's.
        Kind::Behaviour => {
            return Err(DecodeError { offset: 0, expected: "a log of this version; use the newer program" });
        }
    };
    Ok(u64::from(refused))
}

fn is_free(state: &State, id: RrdId, name: &[u8]) -> bool {
    state.catalogue.get(id).is_none() && state.catalogue.find(name).is_none()
}

#[allow(clippy::too_many_arguments)]
fn start(
    files: Files,
    stats: Counters,
    options: ShardOptions,
    placeholders: Option<Arc<Placeholders>>,
    clock: Clock,
    state: State,
    log: LogWriter,
    kept_from: Position,
) -> Result<Shard, OpenError> {
    let (job_sender, jobs) = sync_channel(JOBS_MAX);
    let (sync_sender, sync_requests) = channel();
    let shared = Arc::new(Shared {
        mailbox: Mailbox::default(),
        files,
        stats,
        syncer: SyncHandle::new(sync_sender),
        merger: MergerHandle::default(),
        stopping: false.into(),
        keeper_full: false.into(),
        refuses: false.into(),
        log_full: false.into(),
        placeholders,
        failure: OnceLock::new(),
        options,
    });
    let interval = shared.options.sync_interval;
    let cycle =
        Cycle::new(job_sender, kept_from, shared.options.open_bytes_min, shared.options.log_bytes_max);
    let log_syncer = log.syncer();
    let worker = Arc::new(Seat::new(Worker::new(Arc::clone(&shared), state, log, cycle, clock)));
    let (seat, working) = (Arc::clone(&worker), Arc::clone(&shared));
    let (keeping, syncing, merging) = (Arc::clone(&shared), Arc::clone(&shared), Arc::clone(&shared));
    let threads = [
        spawn("shard", move || seat.run(&working)),
        spawn("keeper", move || keeper::run(&keeping, &jobs)),
        spawn("syncer", move || syncer::run(&syncing, &log_syncer, &sync_requests, interval)),
        spawn("merger", move || merger::run(&merging)),
    ];
    let threads = threads.into_iter().collect::<Result<Vec<_>, _>>().map_err(told)?;
    // A stop may have come before all was merged.
    shared.merger.wake();
    Ok(Shard { shared, worker, threads: Mutex::new(threads) })
}
