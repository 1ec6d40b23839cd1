//! Upkeep: one thread that syncs the journals, retries files that could not be written, and rotates.
//!
//! A journal file is removed once none of its updates is still buffered and the file system has been synced
//! since, so that after a power loss each update is in its file or in a journal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use disk::{DiskFile, Shortage};
use rrd_file::system_text;

use crate::files::journal::{Directory, Frame};
use crate::files::options::SyncMode;
use crate::files::shared::Shared;
use crate::files::write::push_all;

/// Longest pause: locked or failed files are retried this often.
const TICK_MAX: Duration = Duration::from_secs(1);
/// Shortest pause, however short the configured sync interval is.
const TICK_MIN: Duration = Duration::from_millis(10);
/// How often old journal files are checked for removal.
const REMOVE_INTERVAL: Duration = Duration::from_secs(10);
/// Total size at which journal files are rotated early, which limits disk space and replay time (0.5 GB is
/// some ten million updates of one value).
const JOURNAL_BYTES_MAX: u64 = 512 << 20;

/// A daemon that has just ended may still hold its journal for a moment, through a child process it was
/// starting.
const LOCK_TRIES: usize = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(25);

/// Runs until the engine stops.
pub fn run(shared: &Shared) {
    let sync_interval = match shared.options.sync {
        SyncMode::Every(interval) => interval,
        SyncMode::Always => TICK_MAX,
    };
    let tick = sync_interval.clamp(TICK_MIN, TICK_MAX);
    let (mut synced, mut rotated, mut removed) = (Instant::now(), Instant::now(), Instant::now());
    while !shared.stopping.load(Ordering::Acquire) {
        // Woken early only when the engine stops.
        shared.queue.pause(tick);
        shared.queue.retry();
        if shared.counters.disk_full.load(Ordering::Acquire) {
            make_room(shared);
        }
        if synced.elapsed() >= sync_interval {
            synced = Instant::now();
            for shard in &shared.shards {
                // The shard's next commit reports a failure to a caller that can act on it.
                shared.commit(shard, &mut Frame::default()).ok();
            }
            // First, so that the journal does not forget the updates of a removed file before it is gone.
            shared.sync_new_files().ok();
            shared.sync_journals();
        }
        let large = shared.journal_bytes_live() > JOURNAL_BYTES_MAX;
        if rotated.elapsed() >= shared.options.flush_interval || large {
            rotated = Instant::now();
            rotate(shared);
        }
        if removed.elapsed() >= REMOVE_INTERVAL {
            removed = Instant::now();
            remove_old(shared);
        }
    }
}

/// The journal's disk is full: once everything is in the files, the journal can be emptied.
fn make_room(shared: &Shared) {
    push_all(shared, u64::MAX);
    shared.queue.wait_for_all();
    remove_old(shared);
    shared.empty_journals();
}

/// Queues every RRD with buffered updates for writing, and starts new journal files.
fn rotate(shared: &Shared) {
    let generation = shared.shards.iter().map(|shard| shard.generation()).max().unwrap_or_default();
    if shared.journal.is_some() {
        match shared.rotate(generation + 1) {
            Ok(()) => drop(shared.counters.journal_rotations.fetch_add(1, Ordering::Relaxed)),
            Err(error) => {
                tracing::error!("cannot rotate the journal: {}; the old one goes on", system_text(&error));
            }
        }
    }
    push_all(shared, generation);
    shared.geometries.shrink();
}

/// Removes journal files with no buffered updates.
pub fn remove_old(shared: &Shared) {
    let Some(directory) = &shared.journal else { return };
    let Ok(files) = directory.files() else { return };
    let current = shared.shards.iter().map(|shard| shard.generation()).min().unwrap_or_default();
    if files.iter().all(|(generation, _)| *generation >= current) {
        return;
    }
    let mut oldest = current;
    for entry in shared.shards.iter().flat_map(|shard| shard.table.all()) {
        let buffer = entry.lock();
        if !buffer.updates.is_empty() {
            oldest = oldest.min(buffer.generation);
        }
    }
    let old: Vec<_> = files.into_iter().filter(|(generation, _)| *generation < oldest).collect();
    if old.is_empty() {
        return;
    }
    if let Err(error) = shared.tree.sync_all() {
        tracing::warn!("cannot sync the file system of the RRDs: {error}; old journal files are kept");
        return;
    }
    // First: a file that it names must be there.
    let noted = shared.note_ends(|ends| ends.files.retain(|(generation, _), _| *generation >= oldest));
    if let Err(error) = &noted
        && Shortage::of(error).is_none()
    {
        tracing::warn!("cannot note the end of old journal files: {}; they are kept", system_text(error));
        return;
    }
    for (_, name) in old {
        if let Err(error) = directory.remove(&name) {
            let path = directory.path().join(name);
            tracing::warn!("cannot remove journal {}: {}", path.display(), system_text(&error));
        }
    }
    // Removing them may have made the room.
    if noted.is_err()
        && let Err(error) = shared.note_ends(|_| {})
    {
        tracing::warn!("cannot note the end of old journal files: {}", system_text(&error));
    }
}

/// Keeps other daemons off the journal for as long as the file lives.
///
/// # Errors
/// When the system fails, or another daemon uses the journal.
pub fn lock_journal(directory: &Directory) -> io::Result<Arc<dyn DiskFile>> {
    for _ in 0..LOCK_TRIES {
        match directory.lock()? {
            Some(file) => return Ok(file),
            None => std::thread::sleep(LOCK_PAUSE),
        }
    }
    Err(io::Error::other("another daemon uses it"))
}
