//! At start: loads the journals into the buffers, without opening any `.rrd` file.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::atomic::Ordering;

use rrd::time::Timestamp;

use crate::files::buffer::Buffer;
use crate::files::journal::{self, Damage, Directory, Ends, Noted, Record};
use crate::files::shared::{Shared, lock};
use crate::files::updates;
use crate::name::RrdName;

/// The result of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// The newest generation; 0 when there was none.
    pub generation: u64,
    /// Updates that are buffered again.
    pub updates: u64,
    /// The files that are there and where they end.
    pub ends: Ends,
}

/// Replays all journal files of a directory, oldest first. Damage is logged with its offset, and the damaged file is copied
/// aside, because it is removed once its updates are in their `.rrd` files.
///
/// # Errors
/// When a file cannot be read, synced or copied.
pub fn replay(shared: &Shared, directory: &Directory) -> io::Result<Replayed> {
    let files = directory.files()?;
    let noted = noted_ends(directory, &files)?;
    let newest_noted = noted.as_ref().and_then(|ends| ends.files.keys().map(|key| key.0).max());
    let mut generation = newest_noted.unwrap_or_default();
    let mut id = noted.as_ref().map(|ends| ends.id);
    let mut there = BTreeMap::new();
    for (of, name) in files {
        generation = generation.max(of);
        let Some(key) = name.to_str().and_then(journal::key_of) else { continue };
        let durable = noted.as_ref().and_then(|ends| ends.files.get(&key)).copied().unwrap_or_default();
        let mut unsound = 0u64;
        let scan = journal::scan(directory, &name, &Noted { id, durable }, |record| {
            if take(shared, of, record).is_none() {
                unsound += 1;
            }
        })?;
        // Without the file `JOURNAL`, the oldest file tells.
        id = id.or(scan.id);
        directory.sync(&name)?;
        there.insert(key, scan.end);
        if unsound > 0 {
            let path = directory.path().join(&name);
            tracing::error!("journal {}: {unsound} records make no sense and are skipped", path.display());
        }
        if report(&scan.damages) || unsound > 0 {
            put_aside(directory, &name)?;
        }
    }
    for (key, end) in noted.iter().flat_map(|ends| &ends.files).filter(|(key, _)| !there.contains_key(key)) {
        let path = directory.path().join(journal::file_name(key.0, key.1));
        tracing::error!("journal {} is missing: its {end} bytes of updates are lost", path.display());
    }
    let ends = match id {
        Some(id) => Ends { id, files: there },
        None => Ends { files: there, ..Ends::draw()? },
    };
    let mut found = Replayed { generation, updates: 0, ends };
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

/// What the file `JOURNAL` says, if it is there and sound.
fn noted_ends(directory: &Directory, files: &[(u64, OsString)]) -> io::Result<Option<Ends>> {
    match directory.ends()? {
        Some(Ok(ends)) => return Ok(Some(ends)),
        Some(Err(what)) => {
            tracing::error!(
                "journal {}: {what}; missing journal files go unnoticed",
                directory.path().display()
            );
            put_aside(directory, OsStr::new(journal::ENDS_NAME))?;
        }
        // A new journal, or one of version 1.
        None if !directory.has_labels(files)? => {}
        None => tracing::error!(
            "journal {}: the file {} is missing; missing journal files go unnoticed",
            directory.path().display(),
            journal::ENDS_NAME
        ),
    }
    Ok(None)
}

/// Logs what a file lacks; returns whether more than a crash leaves.
fn report(damages: &[Damage]) -> bool {
    for damage in damages {
        match damage.is_tear {
            true => tracing::warn!("{damage}, as a crash leaves it"),
            false => tracing::error!("{damage}"),
        }
    }
    damages.iter().any(|damage| !damage.is_tear)
}

fn put_aside(directory: &Directory, name: &OsStr) -> io::Result<()> {
    if let Some(copy) = directory.put_aside(name)? {
        tracing::error!("a copy of it is {}", directory.path().join(copy).display());
    }
    Ok(())
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
        Record::Stream { name, position } => lock(&shared.streams).advance(name, position),
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
