//! What stands in a spool: batches of updates, each of one partition, and how far those of a partition were drained.
//!
//! `docs/format/log.md` has the bytes. The partition is a hint for who looks for those of one: it holds for so many partitions as the record says, and
//! who has another number splits the batch by its names.

use store::engine::{StreamPosition, UpdateBatch};
use store::records::{Kind, LogError, LogWriter, Record, Stamp, Stream};
use store::transfer::DecodeError;

use crate::wire::{put_batch, take_batch};

/// Appends a batch to what the next commit writes; returns where its record begins and ends.
///
/// # Errors
/// When it is too long for a record.
pub(super) fn append_batch(
    log: &mut LogWriter,
    (partition, partition_count): (u32, u32),
    time_ms: i64,
    batch: &UpdateBatch,
) -> Result<(u64, u64), LogError> {
    let start = log.position().offset;
    let stamp = Stamp { producer: u64::from(partition), epoch: partition_count, sequence: 0, time_ms };
    put_batch(log.begin(Kind::Named, stamp), batch);
    Ok((start, log.end()?.offset))
}

/// Appends that everything of a partition before an offset was drained.
///
/// # Errors
/// When the log takes nothing more.
pub(super) fn append_mark(
    log: &mut LogWriter,
    (partition, partition_count): (u32, u32),
    drained: u64,
) -> Result<(), LogError> {
    let position = StreamPosition { epoch: 0, sequence: drained };
    let name = format!("{partition}/{partition_count}");
    Stream::encode(log.begin(Kind::Stream, Stamp::default()), name.as_bytes(), position);
    log.end().map(drop)
}

/// The partition of a batch, without a look at it; `None`: it is of another number of partitions.
pub(super) fn partition_of(record: &Record<'_>, partition_count: u32) -> Option<u32> {
    let (partition, count) = numbers_of(record);
    (count == partition_count && partition < partition_count).then_some(partition)
}

/// The partition of a batch, and of how many it is one.
pub(super) fn numbers_of(record: &Record<'_>) -> (u32, u32) {
    (u32::try_from(record.stamp.producer).unwrap_or(u32::MAX), record.stamp.epoch)
}

/// The batch of a record.
///
/// # Errors
/// When it is none.
pub(super) fn batch_of(record: &Record<'_>) -> Result<UpdateBatch, DecodeError> {
    take_batch(record.body)
}

/// What a mark says: the partition, of how many, and the offset.
///
/// # Errors
/// When the record is none.
pub(super) fn mark_of(record: &Record<'_>) -> Result<Option<(u32, u32, u64)>, DecodeError> {
    let Stream { name, position } = Stream::decode(record.body)?;
    let numbers = std::str::from_utf8(name).ok().and_then(|name| name.split_once('/'));
    let numbers = numbers.and_then(|(partition, count)| Some((partition.parse().ok()?, count.parse().ok()?)));
    Ok(numbers.map(|(partition, count)| (partition, count, position.sequence)))
}
