//! Describes a checkpoint: its pages, their total content, and the groups in its end frame.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use super::{Report, moment, seconds};
use crate::checkpoint::survey::{Frame, Visitor, survey};
use crate::checkpoint::{CheckpointError, LoadedRrd, Loader, PageDefinition};
use crate::disk::Disk;
use crate::group::Geometry;
use crate::log::Position;

/// Totals over a checkpoint.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub pages: u64,
    pub rrds: u64,
    pub data_sources: u64,
    pub open_rows: u64,
    pub groups: Vec<Geometry>,
    pub next_id: u32,
    pub positions: Option<(Position, Position)>,
    pub newest: Option<(i64, u32)>,
    definitions: HashSet<u64>,
}

impl Summary {
    pub(super) fn line(&self) -> String {
        let Summary { pages, rrds, data_sources, open_rows, next_id, .. } = self;
        let definitions = self.definitions.len();
        format!(
            "{rrds} RRDs with {data_sources} DS in {definitions} definitions and {} groups, {open_rows} open rows, \
             {pages} pages, next id {next_id}",
            self.groups.len()
        )
    }
}

struct Counting<'a, 'b> {
    summary: Summary,
    report: &'a mut Report<'b>,
    each_frame: bool,
}

impl Visitor for Counting<'_, '_> {
    fn frame(&mut self, frame: &Frame) {
        let Frame { offset, bytes, next_id, position, is_end, .. } = *frame;
        if self.each_frame {
            let what = if is_end { "end " } else { "page" };
            self.report.line(format_args!(
                "  byte {offset:<9} {what} {bytes:>8} bytes, ids below {next_id}, at position {position}"
            ));
        }
        if is_end {
            self.summary.next_id = next_id;
            return;
        }
        self.summary.pages += 1;
        let (first, last) = self.summary.positions.unwrap_or((position, position));
        self.summary.positions = Some((first.min(position), last.max(position)));
    }

    fn damage(&mut self, error: CheckpointError) {
        self.report.damage(error);
    }
}

impl Loader for Counting<'_, '_> {
    fn group(&mut self, geometry: Geometry) {
        self.summary.groups.push(geometry);
    }

    fn page(&mut self, definitions: &[PageDefinition<'_>]) {
        // Sixty-four bits are enough to count a few thousand definitions.
        self.summary.definitions.extend(definitions.iter().map(|one| xxhash_rust::xxh3::xxh3_64(one.key)));
    }

    fn rrd(&mut self, rrd: LoadedRrd<'_>) {
        let summary = &mut self.summary;
        let definition = &rrd.definition.definition;
        summary.rrds += 1;
        summary.data_sources += definition.ds.len() as u64;
        summary.open_rows += rrd.open.iter().map(|rows| rows.count).sum::<u64>();
        let shape = rrd::live::HeadShape::of(definition);
        let time = (shape.split(&rrd.head_words()).last_update.whole, definition.units_per_second);
        let later = |(units, rate): (i64, u32)| units as f64 / f64::from(rate.max(1));
        if summary.newest.is_none_or(|newest| later(newest) < later(time)) {
            summary.newest = Some(time);
        }
    }
}

/// Reads a checkpoint and reports its damage.
pub(super) fn summarize(
    disk: &dyn Disk,
    path: &Path,
    each_frame: bool,
    report: &mut Report<'_>,
) -> io::Result<Summary> {
    let mut counting = Counting { summary: Summary::default(), report, each_frame };
    let ended = survey(disk, path, &mut counting);
    let Counting { summary, report, .. } = counting;
    match ended {
        Ok(true) => {}
        Ok(false) => report.damage(format_args!(
            "checkpoint {}: the end frame is missing, so a daemon would refuse it",
            path.display()
        )),
        Err(CheckpointError::Io(error)) => return Err(error),
        Err(error) => report.damage(error),
    }
    Ok(summary)
}

/// Describes one checkpoint.
pub(super) fn file(disk: &dyn Disk, name: &Path, report: &mut Report<'_>) -> io::Result<()> {
    report.line(format_args!("checkpoint, {} bytes", disk.length(name)?));
    let summary = summarize(disk, name, true, report)?;
    report.line(format_args!("  {}", summary.line()));
    if let Some((units, rate)) = summary.newest {
        report.line(format_args!("  newest update {}", moment(units, rate)));
    }
    groups(&summary, report);
    Ok(())
}

/// Prints a line per group.
pub(super) fn groups(summary: &Summary, report: &mut Report<'_>) {
    for (number, geometry) in summary.groups.iter().enumerate() {
        let archives: Vec<String> = geometry
            .archives
            .iter()
            .map(|archive| format!("{}:{}:{}", archive.cf.name(), archive.pdp_per_row, archive.row_count))
            .collect();
        report.line(format_args!(
            "  group {number}: step {}, {} DS, {}",
            seconds(geometry.step, geometry.units_per_second),
            geometry.ds_count,
            archives.join(" ")
        ));
    }
}
