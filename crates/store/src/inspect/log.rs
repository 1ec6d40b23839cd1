//! Describes a log file: one line per record, and the bytes between and after them.

use std::io;
use std::path::Path;

use super::{Report, moment, quoted};
use crate::codec::DecodeError;
use crate::disk::Disk;
use crate::filenames;
use crate::log::catalogue::{CopyCheck, Create, Delete, Import, Rename, RowCheck, Stream, Tune};
use crate::log::parts::ImportPart;
use crate::log::scan::{Item, Tail, scan};
use crate::log::writer::log_files;
use crate::log::{Kind, Position, Record, updates};

/// Totals over the records of a log.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub records: u64,
    pub updates: u64,
    pub created: u64,
    pub imported: u64,
    pub deleted: u64,
    pub tuned: u64,
    pub renamed: u64,
}

impl Counts {
    /// Counts a record.
    pub(super) fn add(&mut self, record: &Record<'_>) -> Result<(), DecodeError> {
        self.records += 1;
        let count = match record.kind {
            Kind::Updates => {
                self.updates += updates::count(record.body)?;
                return Ok(());
            }
            Kind::Create => &mut self.created,
            Kind::Import => &mut self.imported,
            Kind::Delete => &mut self.deleted,
            Kind::Tune => &mut self.tuned,
            Kind::Rename => &mut self.renamed,
            Kind::Part => {
                // An import in several parts is counted at its last.
                let piece = ImportPart::decode(record.body)?;
                self.imported += u64::from(piece.offset + piece.bytes.len() as u64 == piece.total);
                return Ok(());
            }
            Kind::Behaviour | Kind::Stream | Kind::Check | Kind::RowCheck | Kind::Named => return Ok(()),
        };
        *count += 1;
        Ok(())
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts { records, updates, created, imported, deleted, tuned, renamed } = self;
        write!(
            f,
            "{records} records: {updates} updates, {created} created, {imported} imported, {deleted} deleted, \
             {tuned} tuned, {renamed} renamed"
        )
    }
}

/// Describes one file of a log.
pub(super) fn file(disk: &dyn Disk, name: &Path, start: Position, report: &mut Report<'_>) -> io::Result<()> {
    let bytes = disk.length(name)?;
    let next = next_file(disk, name, start)?;
    report.line(format_args!("log file from position {start} on (generation:offset), {bytes} bytes"));
    let mut counts = Counts::default();
    let mut end = start;
    scan(disk, name, start, next.map(|next| next.offset), &mut |item| {
        match item {
        Item::Record(record) => {
            let body = describe(&record);
            report.line(format_args!(
                "  byte {:<9} position {:<14} {:<9} {:>8} bytes  {}",
                record.position.offset - start.offset,
                record.position.to_string(),
                kind_name(record.kind),
                record.end.offset - record.position.offset,
                body.as_deref().unwrap_or("cannot be decoded"),
            ));
            if let Err(error) = body.and_then(|_| counts.add(&record)) {
                let at = record.position.offset - start.offset + crate::log::envelope::ENVELOPE_BYTES as u64;
                report.damage(format_args!(
                    "at byte {}: expected {}, though the checksum is good",
                    at + error.offset as u64,
                    error.expected
                ));
            }
            end = record.end;
        }
        Item::Unknown { position, version, kind } => report.line(format_args!(
            "  byte {:<9} position {position}: a record of version {version}, kind {kind}; a newer program wrote it",
            position.offset - start.offset
        )),
        Item::Damaged { damage, durable } => {
            report.damage(&damage);
            if !durable {
                report.line("    nothing proves that this was ever durable: recovery would end the log here");
            }
        }
        Item::Tail(tail) => show_tail(&tail, start, next, report),
    }
    })?;
    report.line(format_args!("  {counts}; the last good one ends at position {end}"));
    Ok(())
}

/// Where the file after `start` begins, if there is one in the same generation.
fn next_file(disk: &dyn Disk, name: &Path, start: Position) -> io::Result<Option<Position>> {
    // Only a file with its original name has neighbours.
    if filenames::log(Path::new(""), start) != name {
        return Ok(None);
    }
    let files = log_files(disk, Path::new(""))?;
    Ok(files.into_iter().find(|other| *other > start && other.generation == start.generation))
}

fn show_tail(tail: &Tail, start: Position, next: Option<Position>, report: &mut Report<'_>) {
    let Tail { position, bytes, zero_bytes, torn } = tail;
    let at = position.offset - start.offset;
    if let Some(next) = next {
        return report.damage(format_args!(
            "at byte {at}: {bytes} bytes are no record, yet the next file begins at position {next}"
        ));
    }
    match torn {
        Some(fault) => report.line(format_args!(
            "  byte {at}: a record begins here and is torn, as a crash leaves it, or damaged ({fault:?}); recovery ends the log here"
        )),
        None if zero_bytes == bytes => report.line(format_args!("  byte {at}: {bytes} bytes reserved, zero")),
        None => report.line(format_args!(
            "  byte {at}: {bytes} bytes that are no records of this place, as a file that is used again has them"
        )),
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Updates => "updates",
        Kind::Create => "create",
        Kind::Tune => "tune",
        Kind::Delete => "delete",
        Kind::Rename => "rename",
        Kind::Import => "import",
        Kind::Behaviour => "behaviour",
        Kind::Part => "part",
        Kind::Stream => "stream",
        Kind::Check => "check",
        Kind::RowCheck => "rowcheck",
        Kind::Named => "named",
    }
}

/// Describes a record in a few words.
fn describe(record: &Record<'_>) -> Result<String, DecodeError> {
    Ok(match record.kind {
        Kind::Updates => {
            let (mut count, mut ids) = (0u64, Vec::new());
            let mut span: Option<(i64, i64)> = None;
            updates::decode(record.body, &mut |id, time, _: &[u8]| {
                count += 1;
                ids.push(id);
                let (first, last) = span.unwrap_or((time.whole, time.whole));
                span = Some((first.min(time.whole), last.max(time.whole)));
            })?;
            ids.sort_unstable();
            ids.dedup();
            let (first, last) = span.unwrap_or_default();
            format!("{count} updates of {} RRDs, times {first} to {last}", ids.len())
        }
        Kind::Create => {
            let Create { id, name, definition, start } = Create::decode(record.body)?;
            format!(
                "id {id} {} with {} DS, {} RRA, start {}",
                quoted(name),
                definition.ds.len(),
                definition.rra.len(),
                moment(start, definition.units_per_second)
            )
        }
        Kind::Tune => {
            let Tune { id, args } = Tune::decode(record.body)?;
            format!("id {id} by {}", quoted(args.join(" ").as_bytes()))
        }
        Kind::Delete => {
            let Delete { id, name } = Delete::decode(record.body)?;
            format!("id {id}{}", name.map_or_else(String::new, |name| format!(" {}", quoted(name))))
        }
        Kind::Rename => {
            let Rename { id, name, from } = Rename::decode(record.body)?;
            let from = from.map_or_else(String::new, |from| format!(" {}", quoted(from)));
            format!("id {id}{from} to {}", quoted(name))
        }
        Kind::Import => {
            let Import { id, name, rrd } = Import::decode(record.body)?;
            let values: usize = rrd.archives.iter().map(Vec::len).sum();
            let definition = &rrd.definition;
            let (ds, rra) = (definition.ds.len(), definition.rra.len());
            format!("id {id} {} with {ds} DS, {rra} RRA, {values} values", quoted(name))
        }
        Kind::Part => {
            let ImportPart { total, offset, bytes } = ImportPart::decode(record.body)?;
            format!("bytes {offset} to {} of an import of {total}", offset + bytes.len() as u64)
        }
        Kind::Stream => {
            let Stream { name, position } = Stream::decode(record.body)?;
            format!("{} is applied up to {} of epoch {}", quoted(name), position.sequence, position.epoch)
        }
        Kind::Check => {
            let CopyCheck { first, count, hash } = CopyCheck::decode(record.body)?;
            format!("{count} RRDs from id {first} on have the hash {hash:016x}")
        }
        Kind::RowCheck => {
            let RowCheck { number, first, count } = RowCheck::decode(record.body)?;
            format!("number {number:016x}: {count} RRDs from id {first} on are compared with their rows")
        }
        Kind::Named => {
            format!("{} bytes of updates for partition {}", record.body.len(), record.stamp.producer)
        }
        Kind::Behaviour => "a newer program's behaviour from here on".to_string(),
    })
}
