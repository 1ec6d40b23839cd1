//! Describes a store or one shard: identity, manifest, checkpoint, log and segments, in one or a few lines
//! each.

use std::io;
use std::path::Path;

use super::log::Counts;
use super::{Options, Report, checkpoint, moment, segment};
use crate::codec::DecodeError;
use crate::disk::{Disk, RealDisk};
use crate::filenames::{self, FileKind};
use crate::identity::{self, Identity};
use crate::log::writer::log_files;
use crate::log::{self, Record, ReplayError};
use crate::manifest::{LostIds, Manifest, SegmentName};
use crate::replication::{History, Mark};
use crate::segment::Segment;
use crate::segments::{CLASS_MIXED, open_segment};

/// Describes a whole store.
pub(super) fn store(root: &Path, options: Options, report: &mut Report<'_>) -> io::Result<()> {
    let disk = RealDisk::open(root)?;
    let mut shards: Vec<u32> =
        disk.list(Path::new(""))?.iter().filter_map(|name| filenames::shard_index(name)).collect();
    shards.sort_unstable();
    if disk.exists(&filenames::restoring(Path::new("")))? {
        report.line("its restore is not complete: files *.awaited have not come whole");
    }
    match Identity::load(&disk) {
        Ok(None) => report.damage("the file STORE is missing; `roundel repair` can write it again"),
        Ok(Some(identity)) => {
            describe_identity("store", &identity, report);
            for index in (0..identity.shard_count).filter(|index| !shards.contains(index)) {
                let directory = filenames::shard(Path::new(""), index);
                report.damage(format_args!("{} is missing", directory.display()));
            }
        }
        Err(error) => report.damage(error),
    }
    match History::load(&disk) {
        Ok(history) if history == History::default() => {}
        Ok(history) => describe_history(&history, report),
        Err(error) => report.damage(error),
    }
    match Mark::load(&disk) {
        Ok(None) => {}
        Ok(Some(mark)) => describe_mark(&mark, report),
        Err(error) => report.damage(error),
    }
    for index in shards {
        let directory = filenames::shard(root, index);
        report.line(format_args!("shard {index} in {}", directory.display()));
        shard(&directory, options, report)?;
    }
    Ok(())
}

/// Describes the file `STORE`.
pub(super) fn identity(path: &Path, report: &mut Report<'_>) -> io::Result<()> {
    match identity::decode(&String::from_utf8_lossy(&std::fs::read(path)?)) {
        Ok(identity) => describe_identity("identity of store", &identity, report),
        Err(error) => report.damage(error),
    }
    Ok(())
}

fn describe_identity(what: &str, identity: &Identity, report: &mut Report<'_>) {
    report.line(format_args!(
        "{what} {}, layout {}, {} shards, seed {:016x}",
        identity.id_text(),
        crate::identity::VERSION,
        identity.shard_count,
        identity.seed
    ));
}

/// Says whether it takes changes, and since when.
fn describe_history(history: &History, report: &mut Report<'_>) {
    let fenced = match history.fenced_by {
        0 => String::new(),
        epoch => format!(", fenced by epoch {epoch}"),
    };
    report.line(format_args!("role {}, epoch {}{fenced}", history.role.word(), history.epoch()));
}

/// Says how far it is a copy of what a replicated log says.
fn describe_mark(mark: &Mark, report: &mut Report<'_>) {
    let Mark { log, next, epoch, leader, end, sealed_for } = mark;
    report.line(format_args!(
        "a replica in epoch {epoch}, led by {leader:016x}, up to position {end}; next message {next} of the log {log}"
    ));
    if let Some(other) = sealed_for {
        report.line(format_args!("which is sealed: the replica goes on in the log {other}"));
    }
}

/// Describes a manifest.
pub(super) fn manifest_file(path: &Path, report: &mut Report<'_>) -> io::Result<()> {
    match Manifest::decode(&String::from_utf8_lossy(&std::fs::read(path)?)) {
        Ok(manifest) => describe_manifest(&manifest, report),
        Err(error) => report.damage(error),
    }
    Ok(())
}

fn describe_manifest(manifest: &Manifest, report: &mut Report<'_>) {
    if let Some(owner) = manifest.owner {
        report.line(format_args!("  manifest of {owner}"));
    }
    report.line(format_args!(
        "  manifest: checkpoint {}, log from position {}, durable up to {} at least, next number {}, {} segments of {} bytes",
        manifest.checkpoint,
        manifest.position,
        manifest.known.durable,
        manifest.next_number,
        manifest.segments.len(),
        manifest.segments.iter().map(|segment| segment.bytes).sum::<u64>()
    ));
    for LostIds { ids, checkpoint } in &manifest.lost {
        report.damage(format_args!(
            "the RRDs with ids from {} to {} are lost since a page of checkpoint {checkpoint} was damaged; `roundel repair` says what can be done",
            ids.start, ids.end - 1
        ));
    }
}

/// Describes one shard.
pub(super) fn shard(directory: &Path, options: Options, report: &mut Report<'_>) -> io::Result<()> {
    let disk = RealDisk::open(directory)?;
    let here = Path::new("");
    let manifest = match Manifest::load(&disk, here) {
        Ok(Some(manifest)) => {
            describe_manifest(&manifest, report);
            Some(manifest)
        }
        Ok(None) => {
            report.damage("the manifest is missing; `roundel repair` shows how to restore it");
            None
        }
        Err(error) => {
            report.damage(error);
            None
        }
    };
    // Without a manifest, every file may belong to the shard.
    let manifest = match manifest {
        Some(manifest) => manifest,
        None => guess(&disk)?,
    };
    if manifest.checkpoint != 0 {
        show_checkpoint(&disk, manifest.checkpoint, report);
    }
    show_log(&disk, &manifest, report)?;
    for name in &manifest.segments {
        show_segment(&disk, name, options, report);
    }
    show_leftovers(&disk, &manifest, report)
}

/// A manifest that names all files, for a shard that has lost its own.
fn guess(disk: &dyn Disk) -> io::Result<Manifest> {
    let mut manifest = Manifest::default();
    for name in disk.list(Path::new(""))? {
        match filenames::kind_of(&name) {
            Some(FileKind::Checkpoint(number)) => manifest.checkpoint = manifest.checkpoint.max(number),
            Some(FileKind::Segment(number)) => {
                let bytes = disk.length(Path::new(&name))?;
                manifest.segments.push(SegmentName {
                    number,
                    level: 0,
                    class: CLASS_MIXED,
                    bytes,
                    content: None,
                });
            }
            _ => {}
        }
    }
    manifest.position = log_files(disk, Path::new(""))?.first().copied().unwrap_or_default();
    Ok(manifest)
}

fn show_checkpoint(disk: &dyn Disk, number: u64, report: &mut Report<'_>) {
    let path = filenames::checkpoint(Path::new(""), number);
    let bytes = match disk.length(&path) {
        Ok(bytes) => bytes,
        Err(error) => return report.damage(format_args!("checkpoint {number}: {error}")),
    };
    match checkpoint::summarize(disk, &path, false, report) {
        Ok(summary) => {
            report.line(format_args!("  checkpoint {number}, {bytes} bytes: {}", summary.line()));
            if let Some((units, rate)) = summary.newest {
                report.line(format_args!("  newest update in it {}", moment(units, rate)));
            }
            checkpoint::groups(&summary, report);
        }
        Err(error) => report.damage(format_args!("checkpoint {number}: {error}")),
    }
}

/// Describes the log files, and totals the records after the checkpoint.
fn show_log(disk: &dyn Disk, manifest: &Manifest, report: &mut Report<'_>) -> io::Result<()> {
    let here = Path::new("");
    for start in log_files(disk, here)? {
        let path = filenames::log(here, start);
        match disk.length(&path) {
            Ok(bytes) => report
                .line(format_args!("  log file {} from position {start}, {bytes} bytes", path.display())),
            Err(error) => report.damage(error),
        }
    }
    let mut counts = Counts::default();
    let mut undecodable = Vec::new();
    let replayed = log::replay(disk, here, manifest.position, manifest.known(), &mut |record: Record<'_>| {
        if let Err(error) = counts.add(&record) {
            undecodable.push((record.position, error));
        }
        Ok::<(), DecodeError>(())
    });
    match replayed {
        Ok(end) => {
            end.damage.iter().for_each(|damage| report.damage(damage));
            if let Some(cut) = &end.cut {
                report.line(format_args!("  {cut}: a start cuts it off, as after a crash"));
            }
            report.line(format_args!(
                "  log behind the checkpoint, {} to {}: {counts}",
                manifest.position, end.end
            ));
        }
        Err(ReplayError::Log(error)) => report.damage(error),
        // The visitor never fails.
        Err(ReplayError::Visitor(_)) => {}
    }
    for (position, error) in undecodable {
        report.damage(format_args!("the record at position {position}: expected {}", error.expected));
    }
    Ok(())
}

fn show_segment(disk: &dyn Disk, name: &SegmentName, options: Options, report: &mut Report<'_>) {
    let SegmentName { number, level, class, bytes, .. } = *name;
    let path = filenames::segment(Path::new(""), number);
    let segment = match open_segment(disk, &path) {
        Ok(segment) => segment,
        Err(error) => return report.damage(error),
    };
    if segment.file_bytes() != bytes {
        report.damage(format_args!(
            "segment {number} has {} bytes, the manifest says {bytes}",
            segment.file_bytes()
        ));
    }
    let rows = rows(&segment, options, report);
    let class = if class == CLASS_MIXED { "mixed".to_string() } else { class.to_string() };
    report.line(format_args!(
        "  segment {number} level {level} class {class}, {}: {} runs, {rows}, {bytes} bytes",
        span(&segment),
        segment.entry_count(),
    ));
}

/// Rows of a segment: counted if every block is read, else the maximum over archives.
fn rows(segment: &Segment, options: Options, report: &mut Report<'_>) -> String {
    if options.verify {
        let rows = segment::verify(segment, report).values().map(|rows| rows.rows).sum::<u64>();
        return format!("{rows} rows");
    }
    let widest = segment.sources().iter().map(|source| source.end_row.saturating_sub(source.first_row)).max();
    format!("up to {} rows an RRD", widest.unwrap_or(0))
}

/// From the oldest to the newest row over all archives.
fn span(segment: &Segment) -> String {
    let mut span: Option<((i64, u32), (i64, u32))> = None;
    let seconds = |(units, rate): (i64, u32)| units as f64 / f64::from(rate.max(1));
    for source in segment.sources() {
        let rate = source.hint.units_per_second;
        let (first, last) = segment::times(source);
        let (mut oldest, mut newest) = span.unwrap_or(((first, rate), (last, rate)));
        if seconds((first, rate)) < seconds(oldest) {
            oldest = (first, rate);
        }
        if seconds((last, rate)) > seconds(newest) {
            newest = (last, rate);
        }
        span = Some((oldest, newest));
    }
    match span {
        Some((oldest, newest)) => format!("{} to {}", moment(oldest.0, oldest.1), moment(newest.0, newest.1)),
        None => "no rows".to_string(),
    }
}

/// Files left by a crash, and files that do not belong to the store.
fn show_leftovers(disk: &dyn Disk, manifest: &Manifest, report: &mut Report<'_>) -> io::Result<()> {
    for name in disk.list(Path::new(""))? {
        let why = match filenames::kind_of(&name) {
            Some(FileKind::Segment(number))
                if !manifest.segments.iter().any(|segment| segment.number == number) =>
            {
                "the manifest does not name it: being written now, or left by a crash"
            }
            Some(FileKind::Checkpoint(number)) if number != manifest.checkpoint => {
                "the manifest does not name it: being written now, or left by a crash"
            }
            None if name.to_string_lossy().starts_with("damaged-") => {
                "put aside by a start or a repair; never read"
            }
            Some(FileKind::ManifestNew) => "a manifest being written, or left by a crash",
            None => "not a file of a store",
            _ => continue,
        };
        report.line(format_args!("  {}: {why}", name.to_string_lossy()));
    }
    Ok(())
}
