//! One segment: every block, and whose rows a damaged one costs.

use std::ops::RangeInclusive;
use std::path::Path;

use super::{Finding, LostRows, NAMES_MAX, Watch};
use crate::content::Content;
use crate::segment::{Check, Segment, SegmentError, Stake};

/// Knows the names of a shard's RRDs.
pub(super) trait Namer {
    /// The RRDs of a group whose ids are in a range.
    fn names(&mut self, group: u32, slots: RangeInclusive<u32>) -> Vec<String>;
}

/// Reads every block of a segment; false when the pass is to end.
pub(super) fn check(
    segment: &Segment,
    content: Option<Content>,
    path: &Path,
    names: &mut dyn Namer,
    watch: &mut dyn Watch,
) -> bool {
    let mut check = Check::new(segment);
    if let Err(error) = check.head() {
        watch.found(finding(path, &error, None));
    }
    for gap in segment.gaps() {
        let error = gap.error(segment.name());
        let lost = lost(&segment.stakes_of_gap(gap), names);
        watch.found(finding(path, &error, Some(lost)));
    }
    for index in 0..segment.block_count() {
        if let Err(error) = check.block(index) {
            let lost = lost(&segment.stakes_of_block(index), names);
            watch.found(finding(path, &error, Some(lost)));
        }
        if !watch.checked(segment.release_block(index)) {
            return false;
        }
    }
    if let Err(error) = check.end(content) {
        watch.found(finding(path, &error, None));
    }
    true
}

pub(super) fn finding(path: &Path, error: &SegmentError, lost: Option<LostRows>) -> Finding {
    let byte = match error {
        SegmentError::Io { offset, .. } | SegmentError::Damaged { offset, .. } => *offset,
        _ => 0,
    };
    Finding { file: path.to_owned(), byte, what: error.to_string(), lost }
}

fn lost(stakes: &[Stake], names: &mut dyn Namer) -> LostRows {
    let mut lost = LostRows { from: i64::MAX, to: i64::MIN, ..LostRows::default() };
    for stake in stakes {
        for name in names.names(stake.group, stake.slots.clone()) {
            if !lost.rrds.contains(&name) {
                lost.count += 1;
                if lost.rrds.len() < NAMES_MAX {
                    lost.rrds.push(name);
                }
            }
        }
        let row = stake.hint.step.saturating_mul(stake.hint.pdp_per_row) as i64;
        let seconds = |number: i64| {
            number.saturating_mul(row).div_euclid(i64::from(stake.hint.units_per_second.max(1)))
        };
        lost.from = lost.from.min(seconds(stake.rows.start));
        lost.to = lost.to.max(seconds(stake.rows.end.saturating_sub(1)));
    }
    if stakes.is_empty() {
        (lost.from, lost.to) = (0, 0);
    }
    lost
}
