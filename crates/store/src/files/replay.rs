//! At start: loads the journals into the buffers, without opening any `.rrd` file.

use std::io;
use std::sync::atomic::Ordering;

use rrd::time::Timestamp;

use crate::files::buffer::Buffer;
use crate::files::journal::{self, Directory, Record};
use crate::files::shared::Shared;
use crate::files::updates;
use crate::name::RrdName;

/// The result of a replay.
#[derive(Debug, Default)]
pub struct Replayed {
    /// The newest generation; 0 when there was none.
    pub generation: u64,
    /// Updates that are buffered again.
    pub updates: u64,
}

/// Replays all journal files of a directory, oldest first. Damage is logged with its offset.
///
/// # Errors
/// When a file cannot be read.
pub fn replay(shared: &Shared, directory: &Directory) -> io::Result<Replayed> {
    let mut found = Replayed::default();
    for (generation, name) in directory.files()? {
        found.generation = found.generation.max(generation);
        let mut unsound = 0u64;
        let damages = journal::replay(directory, &name, |record| {
            if take(shared, generation, record).is_none() {
                unsound += 1;
            }
        })?;
        for damage in damages {
            if damage.is_tear {
                tracing::warn!("{damage}, as a crash leaves it");
            } else {
                tracing::error!("{damage}");
            }
        }
        if unsound > 0 {
            let path = directory.path().join(name);
            tracing::error!("journal {}: {unsound} records make no sense and are skipped", path.display());
        }
    }
    let mut bytes = 0;
    for entry in shared.shards.iter().flat_map(|shard| shard.table.all()) {
        let mut buffer = entry.lock();
        if buffer.updates.is_empty() {
            shared.forget(&entry, &mut buffer);
            continue;
        }
        bytes += buffer.updates.len() as u64;
        found.updates += u64::from(buffer.update_count);
        // Spread over one interval; otherwise everything would be due at once after a crash.
        let interval = shared.options.write_interval.as_secs().max(1);
        buffer.due_seconds = (crate::files::buffer::name_hash(entry.name.as_bytes()) % interval) as u32;
    }
    shared.counters.waiting_bytes.store(bytes, Ordering::Relaxed);
    Ok(found)
}

/// Applies a record; `None` when it is invalid.
fn take(shared: &Shared, generation: u64, record: Record<'_>) -> Option<()> {
    match record {
        Record::Update { name, updates } => {
            let name = sound(name)?;
            let newest = updates::is_sound(updates).then(|| updates::iter(updates).last())??.time;
            shared.with_entry(&name, |_, buffer| {
                if buffer.updates.is_empty() {
                    buffer.generation = generation;
                }
                buffer.updates.extend_from_slice(updates);
                buffer.update_count += updates::iter(updates).count() as u32;
                buffer.last = Some(newest);
            });
        }
        Record::Written { name, until } => {
            shared.with_entry(&sound(name)?, |_, buffer| drop_written(buffer, until));
        }
        Record::Forgotten { name } => shared.with_entry(&sound(name)?, |_, buffer| {
            buffer.updates.clear();
            buffer.update_count = 0;
            buffer.last = None;
        }),
    }
    Some(())
}

fn drop_written(buffer: &mut Buffer, until: Timestamp) {
    let written = updates::iter(&buffer.updates).take_while(|update| update.time <= until);
    let (bytes, count) = written
        .fold((0, 0), |(bytes, count), word| (bytes + updates::HEAD_BYTES + word.values.len(), count + 1));
    buffer.updates.drain(..bytes);
    buffer.update_count -= count;
}

fn sound(name: &[u8]) -> Option<RrdName> {
    RrdName::is_normal(name).then(|| RrdName::new(name).ok())?
}
