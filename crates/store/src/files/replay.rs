//! Start: the journals back into the buffers, without opening one `.rrd` file.

use std::io;
use std::sync::atomic::Ordering;

use rrd::time::Timestamp;

use crate::files::buffer::Buffer;
use crate::files::journal::{self, Directory, Record};
use crate::files::shared::Shared;
use crate::files::words;
use crate::name::RrdName;

/// What replay found.
#[derive(Debug, Default)]
pub struct Replayed {
    /// The newest generation there was; 0 when there was none.
    pub generation: u64,
    /// Updates that wait again.
    pub updates: u64,
}

/// Reads all journal files of a directory, oldest first. Damage is logged with its address.
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
            tracing::error!("{damage}");
        }
        if unsound > 0 {
            let path = directory.path().join(name);
            tracing::error!("journal {}: {unsound} records make no sense and are skipped", path.display());
        }
    }
    let mut bytes = 0;
    for entry in shared.shards.iter().flat_map(|shard| shard.table.all()) {
        let mut buffer = entry.lock();
        if buffer.words.is_empty() {
            shared.forget(&entry, &mut buffer);
            continue;
        }
        bytes += buffer.words.len() as u64;
        found.updates += u64::from(buffer.word_count);
        // Spread over one interval: after a crash everything would be due at once.
        let interval = shared.options.write_interval.as_secs().max(1);
        buffer.due_seconds = (crate::files::buffer::name_hash(entry.name.as_bytes()) % interval) as u32;
    }
    shared.counters.waiting_bytes.store(bytes, Ordering::Relaxed);
    Ok(found)
}

/// `None` when the record cannot be of ours.
fn take(shared: &Shared, generation: u64, record: Record<'_>) -> Option<()> {
    match record {
        Record::Update { name, words } => {
            let name = sound(name)?;
            let newest = words::is_sound(words).then(|| words::iter(words).last())??.time;
            shared.with_entry(&name, |_, buffer| {
                if buffer.words.is_empty() {
                    buffer.generation = generation;
                }
                buffer.words.extend_from_slice(words);
                buffer.word_count += words::iter(words).count() as u32;
                buffer.last = Some(newest);
            });
        }
        Record::Written { name, until } => {
            shared.with_entry(&sound(name)?, |_, buffer| drop_written(buffer, until));
        }
        Record::Forgotten { name } => shared.with_entry(&sound(name)?, |_, buffer| {
            buffer.words.clear();
            buffer.word_count = 0;
            buffer.last = None;
        }),
    }
    Some(())
}

fn drop_written(buffer: &mut Buffer, until: Timestamp) {
    let written = words::iter(&buffer.words).take_while(|word| word.time <= until);
    let (bytes, count) = written
        .fold((0, 0), |(bytes, count), word| (bytes + words::HEAD_BYTES + word.values.len(), count + 1));
    buffer.words.drain(..bytes);
    buffer.word_count -= count;
}

fn sound(name: &[u8]) -> Option<RrdName> {
    RrdName::is_normal(name).then(|| RrdName::new(name).ok())?
}
