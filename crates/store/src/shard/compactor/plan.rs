//! Chooses what to merge: a pure function of what segments say about themselves.
//!
//! Freshly flushed segments hold rows of every retention. Eight of them are merged into one segment per
//! *retention class*, then eight of a class into one of the next level, until a segment spans an eighth to a
//! quarter of its retention. From then on it is left alone until half its rows have expired, rewritten once
//! without those, and removed when all have expired. So a value is written about three times in its life, and
//! expired rows take at most an eighth more space than the live ones; half of that on average.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::group::{Group, SourceIndex};
use crate::segment::SourceSummary;
use crate::segments::{CLASS_MIXED, class_seconds};

/// Level of a segment with the remains of expired ones: rows of RRDs that stopped reporting.
const LEVEL_SILENT: u8 = 200;
/// Level of a segment that was rewritten when half its rows had expired. It is not merged with others.
const LEVEL_TRIMMED: u8 = 100;
/// Segments smaller than this (one block) are already merged [`TINY_COUNT`] at a time, because a file takes
/// whole pages.
const TINY_BYTES: u64 = 16 * 1024;
const TINY_COUNT: usize = 4;
/// The most inputs of one merge; each takes a block of memory.
const INPUTS_MAX: usize = 64;
/// A segment is not merged further once it spans this fraction of its retention; it spans at most twice that.
const SPAN_PARTS: u64 = 8;

/// A segment that may be merged.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// How often its rows have been merged.
    pub level: u8,
    /// Its retention class, or [`CLASS_MIXED`].
    pub class: u8,
    /// Bytes of its file.
    pub bytes: u64,
    /// Its sources.
    pub sources: Vec<SourceSummary>,
    /// A merge of it has failed before, so it is left alone.
    pub failed: bool,
}

/// A merge worth doing.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// Indices of the candidates to replace, in order.
    pub inputs: Vec<usize>,
    /// The level of the segment that replaces them.
    pub level: u8,
}

/// The next merge among `files`, which are ordered by number: the kind with the most waiting files goes
/// first, so that none piles up while the compactor lags.
pub fn plan(files: &[Candidate], groups: &[Arc<Group>], merge_count: usize) -> Option<Plan> {
    let kinds: BTreeSet<(u8, u8)> = files.iter().map(|file| (file.level, file.class)).collect();
    let of = |wanted: &dyn Fn(&Candidate) -> bool| -> Vec<usize> {
        (0..files.len()).filter(|&index| wanted(&files[index])).collect()
    };
    let joined = kinds
        .iter()
        .filter_map(|&kind| join(files, &of(&|file| (file.level, file.class) == kind), groups, merge_count));
    let newest = newest_rows(files);
    let is_expired = |file: &Candidate| {
        !file.failed
            && file.level < LEVEL_SILENT
            && is_expired(file, groups, &newest, &|source| source.end_row)
    };
    let classes: BTreeSet<u8> = kinds.iter().map(|(_, class)| *class).collect();
    let expired = classes.iter().filter_map(|&class| {
        let mut inputs = of(&|file| file.class == class && is_expired(file));
        inputs.truncate(INPUTS_MAX);
        (!inputs.is_empty()).then_some(Plan { inputs, level: LEVEL_SILENT })
    });
    let middle = |source: &SourceSummary| source.first_row + (source.end_row - source.first_row) / 2;
    let is_half_expired = |file: &Candidate| {
        !file.failed && file.level < LEVEL_TRIMMED && self::is_expired(file, groups, &newest, &middle)
    };
    joined.chain(expired).max_by_key(|plan| plan.inputs.len()).or_else(|| {
        let index = files.iter().position(is_half_expired)?;
        Some(Plan { inputs: vec![index], level: LEVEL_TRIMMED })
    })
}

/// Consecutive segments of one level and class that are worth a merge: at least `merge_count`, or fewer if
/// together they are long enough to be left alone from then on. When the compactor lags there may be more;
/// rows that have expired by then are never written at all.
fn join(files: &[Candidate], of_kind: &[usize], groups: &[Arc<Group>], merge_count: usize) -> Option<Plan> {
    let (mut inputs, mut seconds, mut worth) = (Vec::new(), 0, false);
    for &index in of_kind {
        let file = &files[index];
        let timed = file.level < LEVEL_SILENT && file.class != CLASS_MIXED;
        let trimmed = (LEVEL_TRIMMED..LEVEL_SILENT).contains(&file.level);
        let enough = class_seconds(file.class) / SPAN_PARTS;
        let span = file.sources.iter().map(span_seconds).max().unwrap_or(0);
        if trimmed || (timed && span >= enough) || file.failed {
            if worth {
                break;
            }
            (inputs, seconds) = (Vec::new(), 0);
            continue;
        }
        inputs.push(index);
        seconds += span;
        let long = timed && seconds >= enough;
        let mostly_old = file.class == CLASS_MIXED && spans_part_of_shortest(file, groups);
        let tiny = timed && file.bytes < TINY_BYTES && inputs.len() >= TINY_COUNT;
        worth |= inputs.len() >= merge_count || long || mostly_old || tiny;
        if long || inputs.len() == INPUTS_MAX {
            break;
        }
    }
    let &first = inputs.first().filter(|_| worth)?;
    let level = match files[first].level {
        silent @ LEVEL_SILENT.. => silent,
        level => (level + 1).min(LEVEL_TRIMMED - 1),
    };
    Some(Plan { inputs, level })
}

/// True when a freshly flushed segment holds so many rows of some source that they expire before seven more
/// such segments are written: few RRDs, updated often. It is split by class at once.
fn spans_part_of_shortest(file: &Candidate, groups: &[Arc<Group>]) -> bool {
    file.sources.iter().any(|summary| {
        let group = groups.get(summary.group as usize);
        let kept = group.map_or(u64::MAX, |group| group.retention_seconds(summary.source));
        span_seconds(summary) >= kept / SPAN_PARTS
    })
}

fn span_seconds(summary: &SourceSummary) -> u64 {
    let rows = (summary.end_row - summary.first_row).max(0) as u64;
    rows.saturating_mul(summary.hint.step * summary.hint.pdp_per_row)
        / u64::from(summary.hint.units_per_second.max(1))
}

type NewestRows = HashMap<(u32, SourceIndex), i64>;

fn newest_rows(files: &[Candidate]) -> NewestRows {
    let mut newest = NewestRows::new();
    for summary in files.iter().flat_map(|file| &file.sources) {
        let row = newest.entry((summary.group, summary.source)).or_insert(i64::MIN);
        *row = (*row).max(summary.end_row);
    }
    newest
}

/// True when every row before `row` is older than its source keeps, measured from the source's newest row.
/// Rows of silent RRDs that are still needed are copied when the segment is removed.
fn is_expired(
    file: &Candidate,
    groups: &[Arc<Group>],
    newest: &NewestRows,
    row: &dyn Fn(&SourceSummary) -> i64,
) -> bool {
    file.class != CLASS_MIXED
        && file.sources.iter().all(|summary| {
            let kept = groups
                .get(summary.group as usize)
                .and_then(|group| group.sources.get(usize::from(summary.source)))
                .map_or(u64::MAX, |source| source.row_count);
            let newest = newest.get(&(summary.group, summary.source)).copied().unwrap_or(i64::MIN);
            newest.saturating_sub(row(summary)) > kept.min(i64::MAX as u64) as i64
        })
}

#[cfg(test)]
mod tests;
