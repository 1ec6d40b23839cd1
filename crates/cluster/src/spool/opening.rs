//! Opens a spool: finds where it ends, cuts off what a crash has torn, and how far each partition was drained.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};

use disk::{Disk, DiskFile, RealDisk};
use store::records::{Kind, Known, LogWriter, Options, Position, Record, ReplayEnd, log_files, replay};
use store::transfer::DecodeError;

use super::queues::Queues;
use super::{Gathered, SpoolOptions, SpoolState, record};

/// The directory of the spool, for its disk.
pub(super) const HERE: &str = "";
/// The generation of all positions: a spool has one.
pub(super) const GENERATION: u32 = 1;
const LOCK_FILE: &str = "lock";
/// A file of the spool is a part of all it may have, within these bounds: as many bytes as stay when everything is drained.
const FILE_PART: u64 = 16;
const FILE_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=16 << 20;

/// What stands in a spool.
pub(super) struct SpoolContents {
    pub(super) begin: u64,
    pub(super) end: ReplayEnd,
    /// For each partition, up to where it was drained.
    pub(super) drained: Vec<u64>,
    /// The same of the partitions of other numbers of them, by partition and number.
    pub(super) earlier: Earlier,
}

/// Up to where partitions were drained before the cluster was divided, by partition and the number of them.
pub(super) type Earlier = HashMap<(u32, u32), u64>;

/// Bytes of a file.
pub(super) fn file_bytes(bytes_max: u64) -> u64 {
    (bytes_max / FILE_PART).clamp(*FILE_BYTES.start(), *FILE_BYTES.end())
}

/// Reads the whole spool of a disk.
///
/// # Errors
/// When it cannot be read, or is none.
pub(super) fn look(disk: &dyn Disk, partition_count: u32) -> Result<SpoolContents, String> {
    let dir = Path::new(HERE);
    let files = log_files(disk, dir).map_err(|error| error.to_string())?;
    let begin = files.first().map_or(0, |first| first.offset);
    let mut drained = vec![0; partition_count as usize];
    let mut earlier = Earlier::new();
    let mut see = |record: Record<'_>| match record.kind {
        Kind::Stream => {
            if let Some((partition, count, offset)) = record::mark_of(&record)? {
                let own = drained.get_mut(partition as usize).filter(|_| count == partition_count);
                let known: &mut u64 = own.unwrap_or_else(|| earlier.entry((partition, count)).or_default());
                *known = (*known).max(offset);
            }
            Ok(())
        }
        Kind::Named => Ok(()),
        _ => Err(DecodeError { offset: 0, expected: "records of a spool; this is another log" }),
    };
    let from = Position { generation: GENERATION, offset: begin };
    let end = replay(disk, dir, from, Known::default(), &mut see).map_err(|error| error.to_string())?;
    // No mark is of what comes later, whatever a file says.
    drained.iter_mut().for_each(|offset| *offset = (*offset).min(end.end.offset));
    Ok(SpoolContents { begin, end, drained, earlier })
}

/// Opens a spool, or makes one; with the lock that keeps other processes out.
///
/// # Errors
/// A text for the operator.
pub(super) fn open(
    options: SpoolOptions,
    partition_count: u32,
) -> Result<(SpoolState, LogWriter, Arc<dyn DiskFile>), String> {
    let directory = options.directory.display().to_string();
    let failed = |error: &dyn std::fmt::Display| format!("cannot open the spool \"{directory}\": {error}");
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(&options.directory).map_err(|error| failed(&error))?);
    let lock_path = Path::new(LOCK_FILE);
    let lock = match disk.exists(lock_path).map_err(|error| failed(&error))? {
        true => disk.open(lock_path, disk::Mode::Write),
        false => disk.create(lock_path),
    };
    let lock = lock.map_err(|error| failed(&error))?;
    if !lock.try_lock().map_err(|error| failed(&error))? {
        return Err(failed(&"another process uses it"));
    }
    let SpoolContents { begin, end, drained, earlier } =
        look(&*disk, partition_count).map_err(|error| failed(&error))?;
    for damage in &end.damage {
        tracing::error!(%damage, "the spool is damaged: acknowledged updates are lost");
    }
    if let Some(cut) = &end.cut {
        tracing::warn!(%cut, "the end of the spool is cut off, as a crash leaves it: what was there had not been acknowledged");
    }
    let log_options = Options { file_bytes_max: file_bytes(options.bytes_max), spare_files_max: 1, owner: 0 };
    let log = LogWriter::open(Arc::clone(&disk), Path::new(HERE), end.end, log_options)
        .map_err(|error| failed(&error))?;
    let shared = SpoolState {
        options,
        partition_count,
        earlier,
        disk,
        gathered: Mutex::new(Gathered::default()),
        is_stopping: AtomicBool::new(false),
        work: Condvar::new(),
        room: Condvar::new(),
        queues: Mutex::new(Queues::new(drained, begin, end.end.offset)),
        ready: Condvar::new(),
        counts: Default::default(),
        said: Mutex::default(),
    };
    Ok((shared, log, lock))
}

/// Whether updates wait in the spool of a directory, which need not be there. It must not be in use.
///
/// # Errors
/// A text for the operator.
pub fn has_updates(directory: &Path) -> Result<bool, String> {
    let failed =
        |error: &dyn std::fmt::Display| format!("cannot read the spool \"{}\": {error}", directory.display());
    if !directory.is_dir() {
        return Ok(false);
    }
    let disk = RealDisk::open(directory).map_err(|error| failed(&error))?;
    let (mut drained, mut last) = (Earlier::new(), Earlier::new());
    let dir = Path::new(HERE);
    let begin =
        log_files(&disk, dir).map_err(|error| failed(&error))?.first().map_or(0, |first| first.offset);
    let mut see = |record: Record<'_>| -> Result<(), DecodeError> {
        match record.kind {
            Kind::Named => {
                last.insert(record::numbers_of(&record), record.end.offset);
            }
            Kind::Stream => {
                if let Some((partition, count, offset)) = record::mark_of(&record)? {
                    drained.insert((partition, count), offset);
                }
            }
            _ => {}
        }
        Ok(())
    };
    let from = Position { generation: GENERATION, offset: begin };
    replay(&disk, dir, from, Known::default(), &mut see).map_err(|error| failed(&error))?;
    let is_drained = |(numbers, end): (&(u32, u32), &u64)| {
        drained.get(numbers).is_some_and(|drained| drained >= end)
            // Or by those that the cluster was divided into.
            || drained.keys().any(|&(_, count)| {
                let drained = |partition| drained.get(&(partition, count)).is_some_and(|drained| drained >= end);
                (0..count).all(drained)
            })
    };
    Ok(!last.iter().all(is_drained))
}
