//! What must stay although the shard no longer needs it: the files and the log that are being copied.
//!
//! A copy may take long, and the disk must not fill up for it. So pins hold only so much: then they give way, and the copy
//! that finds a file gone begins again with what is there by then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::disk::Disk;
use crate::lock::lock;
use crate::log::Position;

/// Bytes of files that wait for their removal; with more, none waits any longer. A few merges of a busy store.
const WAITING_BYTES_MAX: u64 = 4 << 30;
/// Bytes of log that are kept for a copy although replay does not need them: eight cycles of a busy store.
pub const LOG_BYTES_MAX: u64 = 1 << 30;

/// The pins of a shard.
pub struct Pins {
    disk: Arc<dyn Disk>,
    pinned: Mutex<Pinned>,
}

#[derive(Debug, Default)]
struct Pinned {
    /// Pins of files.
    files: usize,
    /// Files to be removed with the last of these.
    waiting: Vec<PathBuf>,
    waiting_bytes: u64,
    /// From where on each pin keeps the log, all of it at first, and how many bytes at most.
    logs: BTreeMap<u64, (Option<Position>, u64)>,
    next: u64,
}

/// Keeps the files that were there when it was made, until it is dropped.
pub struct FilePin(Arc<Pins>);

/// Keeps the log from a position on, until it is dropped.
pub struct LogPin {
    pins: Arc<Pins>,
    number: u64,
}

impl Pins {
    /// No pins.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Pins { disk, pinned: Mutex::default() }
    }

    /// Keeps all files that are there now.
    pub fn hold_files(self: &Arc<Self>) -> FilePin {
        lock(&self.pinned).files += 1;
        FilePin(Arc::clone(self))
    }

    /// Keeps all of the log that is there now; later no more than `bytes_max` that replay does not need.
    pub fn hold_log(self: &Arc<Self>, bytes_max: u64) -> LogPin {
        let mut pinned = lock(&self.pinned);
        let number = pinned.next;
        pinned.next += 1;
        pinned.logs.insert(number, (None, bytes_max));
        LogPin { pins: Arc::clone(self), number }
    }

    /// Removes a file, now or with the last pin. One that cannot be removed goes when the shard is next opened, because nothing
    /// names it.
    pub fn remove(&self, path: &Path, bytes: u64) {
        let mut pinned = lock(&self.pinned);
        pinned.waiting.push(path.to_owned());
        pinned.waiting_bytes += bytes;
        if pinned.files > 0 && pinned.waiting_bytes <= WAITING_BYTES_MAX {
            return;
        }
        let gone = std::mem::take(&mut pinned.waiting);
        pinned.waiting_bytes = 0;
        drop(pinned);
        self.remove_all(&gone);
    }

    fn remove_all(&self, paths: &[PathBuf]) {
        for path in paths {
            let _ = self.disk.remove(path);
        }
    }

    /// From where on the log is kept when replay starts at `replay_from`.
    pub fn log_kept_from(&self, replay_from: Position) -> Position {
        let pinned = lock(&self.pinned);
        // One that is just being made: it does not know its position yet.
        if pinned.logs.values().any(|(from, _)| from.is_none()) {
            return Position::default();
        }
        let near = |(from, bytes_max): &(Option<Position>, u64)| {
            from.filter(|from| {
                from.generation == replay_from.generation
                    && replay_from.offset.saturating_sub(from.offset) <= *bytes_max
            })
        };
        let first = pinned.logs.values().filter_map(near).min();
        first.map_or(replay_from, |from| from.min(replay_from))
    }
}

impl Drop for FilePin {
    fn drop(&mut self) {
        let mut pinned = lock(&self.0.pinned);
        pinned.files -= 1;
        if pinned.files > 0 {
            return;
        }
        let gone = std::mem::take(&mut pinned.waiting);
        pinned.waiting_bytes = 0;
        drop(pinned);
        self.0.remove_all(&gone);
    }
}

impl LogPin {
    /// Keeps the log only from `to` on.
    pub fn raise(&self, to: Position) {
        if let Some((from, _)) = lock(&self.pins.pinned).logs.get_mut(&self.number) {
            *from = Some(to);
        }
    }
}

impl Drop for LogPin {
    fn drop(&mut self) {
        lock(&self.pins.pinned).logs.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    #[test]
    fn the_log_is_kept_for_the_reader_that_is_furthest_behind() {
        let pins = Arc::new(Pins::new(SimDisk::new(1).handle()));
        let at = |offset| Position { generation: 1, offset };
        let kept = |replay_from| pins.log_kept_from(at(replay_from));
        assert_eq!(kept(500), at(500));
        let (slow, fast) = (pins.hold_log(1000), pins.hold_log(1000));
        slow.raise(at(200));
        assert_eq!(kept(500), Position::default(), "the other one does not know its position yet");
        fast.raise(at(400));
        assert_eq!([kept(500), kept(100)], [at(200), at(100)]);
        // With more than it may keep, it gives way, and the other one does not.
        assert_eq!([kept(1200), kept(1201), kept(1401)], [at(200), at(400), at(1401)]);
        drop(fast);
        assert_eq!(kept(500), at(200));
        drop(slow);
        assert_eq!(kept(500), at(500));
    }
}
