//! Describes the journal of the files layout: the buffered updates of each RRD.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::{Report, moment_of, quoted};
use crate::files::journal::{self, Noted, Record};
use crate::files::updates;
use crate::streams::{StreamPosition, Streams};

/// The records of one RRD, summed up.
#[derive(Debug, Default)]
struct Waiting {
    updates: u64,
    newest: Option<rrd::time::Timestamp>,
    written_until: Option<rrd::time::Timestamp>,
    forgotten: u64,
}

/// Describes every journal file of a directory, oldest first.
pub(super) fn directory(path: &Path, report: &mut Report<'_>) -> io::Result<()> {
    let directory = journal::Directory::open(path)?;
    let files = directory.files()?;
    report.line(format_args!("journal of the files layout, {} files", files.len()));
    let ends = match directory.ends()? {
        Some(Ok(ends)) => Some(ends),
        Some(Err(what)) => {
            report.damage(format_args!("journal {}: {what}", path.display()));
            None
        }
        None => None,
    };
    if let Some(ends) = &ends {
        report.line(format_args!("  journal {}", journal::id_text(&ends.id)));
        let there =
            |key: &(u64, u32)| files.iter().any(|(_, name)| *name == *journal::file_name(key.0, key.1));
        for (key, end) in ends.files.iter().filter(|(key, _)| !there(key)) {
            let name = journal::file_name(key.0, key.1);
            report.damage(format_args!("journal file {name} is missing, with {end} bytes"));
        }
    }
    for (_, name) in &files {
        let key = name.to_str().and_then(journal::key_of);
        let durable = key.and_then(|key| ends.as_ref()?.files.get(&key)).copied().unwrap_or_default();
        let known = Noted { id: ends.as_ref().map(|ends| ends.id), durable };
        show(&directory, name, &known, report)?;
    }
    Ok(())
}

/// Describes one journal file.
pub(super) fn file(path: &Path, report: &mut Report<'_>) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    show(&journal::Directory::open(above)?, name, &Noted::default(), report)
}

fn show(
    directory: &journal::Directory,
    name: &OsStr,
    known: &Noted,
    report: &mut Report<'_>,
) -> io::Result<()> {
    let path = directory.path().join(name);
    let bytes = std::fs::metadata(&path)?.len();
    report.line(format_args!("journal file {}, {bytes} bytes", path.display()));
    let mut rrds: BTreeMap<Vec<u8>, Waiting> = BTreeMap::new();
    let (mut records, mut unsound, mut streams) = (0u64, 0u64, Streams::default());
    let scan = journal::scan(directory, name, known, |record| {
        records += 1;
        match record {
            Record::Update { name, updates } => {
                if !updates::is_sound(updates) {
                    unsound += 1;
                    return;
                }
                let waiting = rrds.entry(name.to_vec()).or_default();
                waiting.updates += updates::iter(updates).count() as u64;
                waiting.newest = updates::iter(updates).last().map(|update| update.time).or(waiting.newest);
            }
            Record::Written { name, until } => {
                rrds.entry(name.to_vec()).or_default().written_until = Some(until);
            }
            Record::Forgotten { name } => rrds.entry(name.to_vec()).or_default().forgotten += 1,
            Record::Stream { name, position } => streams.advance(name, position),
        }
    })?;
    for damage in &scan.damages {
        if damage.is_tear {
            report.line(format_args!("  {damage}, as a crash leaves it"));
        } else {
            report.damage(damage);
        }
    }
    if unsound > 0 {
        report.damage(format_args!("journal {}: {unsound} records make no sense", path.display()));
    }
    report.line(format_args!("  {records} records of {} RRDs", rrds.len()));
    for (name, StreamPosition { epoch, sequence }) in streams.iter() {
        report
            .line(format_args!("  the stream {} is applied up to {sequence} of epoch {epoch}", quoted(name)));
    }
    for (name, waiting) in &rrds {
        let time = |time: Option<_>| time.map_or("none".to_string(), |time| moment_of(time, 1));
        report.line(format_args!(
            "  {}: {} updates, the newest {}, in its file up to {}, removed or replaced {} times",
            quoted(name),
            waiting.updates,
            time(waiting.newest),
            time(waiting.written_until),
            waiting.forgotten
        ));
    }
    Ok(())
}
