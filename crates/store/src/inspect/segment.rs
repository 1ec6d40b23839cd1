//! Describes a segment: head, footer, and the runs of each archive.

use std::path::Path;

use super::{Report, moment, seconds};
use crate::column::codec::ColumnHint;
use crate::disk::Disk;
use crate::segment::salvage::salvage;
use crate::segment::{Segment, SegmentError, SourceSummary};
use crate::segments::{disk_reader, open_segment};
use std::collections::BTreeMap;

/// Totals over the rows of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub runs: u64,
    pub rows: u64,
}

/// Describes one segment, reading all of it.
pub(super) fn file(disk: &dyn Disk, name: &Path, report: &mut Report<'_>) {
    let segment = match open_segment(disk, name) {
        Ok(segment) => segment,
        Err(error) => {
            report.line("segment");
            report.damage(&error);
            if !matches!(error, SegmentError::Newer { .. }) {
                without_footer(disk, name, report);
            }
            return;
        }
    };
    report.line(format_args!(
        "segment {}, format {}, {} bytes: {} blocks, {} runs, footer at byte {}",
        segment.segment_id(),
        crate::segment::VERSION,
        segment.file_bytes(),
        segment.block_count(),
        segment.entry_count(),
        segment.footer_offset()
    ));
    let rows = verify(&segment, report);
    for source in segment.sources() {
        let counted = rows.get(&(source.group, source.source)).copied().unwrap_or_default();
        report.line(format_args!(
            "  {}: {}, {} runs, {} rows readable, {} bytes",
            source_name(source.group, source.source, source.ds_count, &source.hint),
            span(source),
            source.entry_count,
            counted.rows,
            source.bytes
        ));
    }
}

/// Reads and decodes every run; reports all damage and counts good rows by (group, source).
pub(super) fn verify(segment: &Segment, report: &mut Report<'_>) -> BTreeMap<(u32, u16), Rows> {
    if let Err(error) = crate::segment::Check::new(segment).head() {
        report.damage(error);
    }
    let mut counted: BTreeMap<_, Rows> = BTreeMap::new();
    let mut entries = segment.entries();
    loop {
        match entries.next_entry() {
            Ok(None) => return counted,
            Ok(Some(entry)) => {
                let rows = counted.entry((entry.key.group, entry.key.source)).or_default();
                rows.runs += 1;
                rows.rows += entry.count as u64;
            }
            Err(error) => report.damage(error),
        }
    }
}

/// The time span of the rows: from the end of the first row to the end of the last.
pub(super) fn span(source: &SourceSummary) -> String {
    let (first, last) = times(source);
    let rate = source.hint.units_per_second;
    format!("{} to {}", moment(first, rate), moment(last, rate))
}

/// The times of the oldest and newest row, in units.
pub(super) fn times(source: &SourceSummary) -> (i64, i64) {
    let row_units = source.hint.step.saturating_mul(source.hint.pdp_per_row) as i64;
    let time = |row: i64| row.saturating_mul(row_units);
    (time(source.first_row), time(source.end_row.saturating_sub(1)))
}

fn source_name(group: u32, source: u16, ds_count: u16, hint: &ColumnHint) -> String {
    let row = seconds(hint.step.saturating_mul(hint.pdp_per_row), hint.units_per_second);
    format!("group {group} source {source} ({ds_count} DS, a row each {row})")
}

fn without_footer(disk: &dyn Disk, name: &Path, report: &mut Report<'_>) {
    let mut sources: BTreeMap<(u32, u16), (Rows, u16, ColumnHint, u64)> = BTreeMap::new();
    let walked = disk_reader(disk, name).and_then(|file| {
        salvage(&*file, &name.display().to_string(), &mut |run| {
            let new = (Rows::default(), run.ds_count as u16, run.hint, 0);
            let (rows, _, _, bytes) = sources.entry((run.key.group, run.key.source)).or_insert(new);
            rows.runs += 1;
            rows.rows += run.count as u64;
            *bytes += run.bytes as u64;
        })
    });
    match walked {
        Err(error) => report.damage(error),
        Ok(found) => {
            let end = found.gaps.last().map_or(0, |gap| gap.start);
            report.line(format_args!(
                "  without the footer: segment {}, {} good blocks up to byte {end}",
                found.segment_id, found.block_count
            ));
            for gap in found.gaps.split_last().map_or(&[][..], |(_, inner)| inner) {
                report.damage(format_args!("bytes {} to {} are no blocks", gap.start, gap.end));
            }
        }
    }
    for ((group, source), (rows, ds_count, hint, bytes)) in sources {
        let name = source_name(group, source, ds_count, &hint);
        report
            .line(format_args!("  {name}: {} runs, {} rows, {bytes} bytes of values", rows.runs, rows.rows));
    }
}
