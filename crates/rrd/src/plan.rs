//! Fetch planning: which archive answers a fetch, and which of its rows.
//!
//! Pure arithmetic on the definition and the time of the last update; knows nothing of where rows are. The
//! rules are those of `../shared/rrd-format.md`, section 4; `tests/fetch_oracle.rs` pins them.

use std::fmt;
use std::ops::Range;

use crate::definition::{Cf, Definition, Rra};

/// Most values a fetch may return: 512 MB of doubles. Chosen; RRDtool stops where malloc does.
pub const VALUES_MAX: u64 = 1 << 26;

/// Times beyond this many seconds are taken for it: far from any archive, and safe to calculate with.
const SECONDS_MAX: i64 = 1 << 42;

/// What a fetch reads. Times and step are in units of the RRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The archive.
    pub rra: usize,
    /// One row before the first row's time.
    pub start: i64,
    /// The last row's time.
    pub end: i64,
    /// Between rows.
    pub step: u64,
    /// The rows by number (see [`crate::grid`]); the archive need not have them: then they are NaN.
    pub rows: Range<i64>,
}

/// Why a fetch cannot be answered. `Display` is RRDtool's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// No archive with this function.
    NoArchive,
    /// More than [`VALUES_MAX`] values, or a range that ends before it starts.
    TooLarge,
    /// No archive of this number.
    ArchiveNumber,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PlanError::NoArchive => "the RRD does not contain an RRA matching the chosen CF",
            PlanError::TooLarge => "malloc fetch data area",
            PlanError::ArchiveNumber => "invalid rraindex number",
        })
    }
}

impl std::error::Error for PlanError {}

/// Plans a fetch of `start..=end` (seconds) at the resolution nearest to `step_wish` (seconds).
///
/// `last_update_whole` is the last update in whole units of the RRD.
///
/// # Errors
/// [`PlanError`].
pub fn plan(
    definition: &Definition,
    last_update_whole: i64,
    cf: Cf,
    start: i64,
    end: i64,
    step_wish: u64,
) -> Result<Plan, PlanError> {
    let units = i64::from(definition.units_per_second.max(1));
    let to_units = |seconds: i64| seconds.clamp(-SECONDS_MAX, SECONDS_MAX) * units;
    let (start, end) = (to_units(start), to_units(end));
    let wish = to_units(i64::try_from(step_wish).unwrap_or(i64::MAX));
    let rra = choose(definition, last_update_whole, cf, start..end, wish).ok_or(PlanError::NoArchive)?;
    let span = definition.rra[rra].span(definition.step);
    let first = start.div_euclid(span) + 1;
    let last = end.div_euclid(span) + 1;
    let count = last - first + 1;
    let values = u64::try_from(count).ok().and_then(|count| count.checked_mul(definition.ds.len() as u64));
    if values.is_none_or(|values| values > VALUES_MAX) {
        return Err(PlanError::TooLarge);
    }
    Ok(Plan {
        rra,
        start: (first - 1) * span,
        end: last * span,
        step: span as u64,
        rows: first..last + 1,
    })
}

/// The archive that begins early enough and is nearest to the wish, or else the one that covers most.
fn choose(
    definition: &Definition,
    last_update: i64,
    cf: Cf,
    range: Range<i64>,
    wish: i64,
) -> Option<usize> {
    let mut best_full: Option<(i64, usize)> = None;
    let mut best_part: Option<(i64, i64, usize)> = None;
    for (index, rra) in definition.rra.iter().enumerate() {
        if !answers(rra, cf) {
            continue;
        }
        let span = rra.span(definition.step);
        let oldest = oldest_time(rra, span, last_update);
        let off = (span - wish).abs();
        if oldest <= range.start {
            if best_full.is_none_or(|(best, _)| off < best) {
                best_full = Some((off, index));
            }
        } else {
            let covered = range.end - range.start - (oldest - range.start);
            let better = |(most, nearest, _): (i64, i64, usize)| {
                covered > most || covered == most && off < nearest
            };
            if best_part.is_none_or(better) {
                best_part = Some((covered, off, index));
            }
        }
    }
    best_full.map(|(_, index)| index).or(best_part.map(|(_, _, index)| index))
}

/// An archive of one PDP a row holds the same numbers for all four plain functions.
fn answers(rra: &Rra, cf: Cf) -> bool {
    let plain = |cf| matches!(cf, Cf::Average | Cf::Min | Cf::Max | Cf::Last);
    let own = rra.cf.cf();
    own == cf || (rra.pdp_per_row == 1 && plain(own) && plain(cf))
}

/// One row before the archive's first row.
fn oldest_time(rra: &Rra, span: i64, last_update: i64) -> i64 {
    last_update.div_euclid(span) * span - span.saturating_mul(rra.row_count as i64)
}

/// The time of the first row of archive `rra`, in whole seconds; `last_update_whole` is in units.
///
/// # Errors
/// [`PlanError::ArchiveNumber`].
pub fn first(definition: &Definition, last_update_whole: i64, rra: usize) -> Result<i64, PlanError> {
    let archive = definition.rra.get(rra).ok_or(PlanError::ArchiveNumber)?;
    let span = archive.span(definition.step);
    let time = oldest_time(archive, span, last_update_whole) + span;
    Ok(time.div_euclid(i64::from(definition.units_per_second.max(1))))
}

/// The time of the last update, in whole seconds.
pub fn last(definition: &Definition, last_update_whole: i64) -> i64 {
    last_update_whole.div_euclid(i64::from(definition.units_per_second.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::text::{CreateOptions, Limits, parse_create};
    use crate::when::parse_step;

    fn definition(step: &str, rra: &[&str]) -> Definition {
        let step = parse_step(step, true).unwrap();
        let options = CreateOptions { step, limits: Limits::STORE, file_name: b"" };
        let words: Vec<&str> = ["DS:a:GAUGE:600:U:U"].iter().chain(rra).copied().collect();
        parse_create(&options, &words).unwrap()
    }

    #[test]
    fn a_range_that_ends_on_a_row_has_one_row_more() {
        let definition = definition("10", &["RRA:AVERAGE:0.5:1:100"]);
        let plan = plan(&definition, 1_000_000_034, Cf::Max, 1_000_000_000, 1_000_000_020, 1).unwrap();
        assert_eq!((plan.start, plan.end, plan.step), (1_000_000_000, 1_000_000_030, 10));
        assert_eq!(plan.rows, 100_000_001..100_000_004);
    }

    #[test]
    fn thousandths_are_planned_in_thousandths() {
        let definition = definition("100ms", &["RRA:AVERAGE:0.5:1:100", "RRA:AVERAGE:0.5:10:100"]);
        let plan = plan(&definition, 5_000_034, Cf::Average, 4995, 4999, 1).unwrap();
        assert_eq!((plan.rra, plan.start, plan.end, plan.step), (1, 4_995_000, 5_000_000, 1000));
        assert_eq!(first(&definition, 5_000_034, 1), Ok(4901));
        assert_eq!(last(&definition, 5_000_034), 5000);
    }

    #[test]
    fn hostile_ranges_are_refused() {
        fn check(start: i64, end: i64, want: PlanError) {
            let definition = definition("1", &["RRA:AVERAGE:0.5:1:100"]);
            assert_eq!(plan(&definition, 1_000_000_000, Cf::Average, start, end, 1), Err(want));
        }
        check(0, i64::MAX, PlanError::TooLarge);
        check(i64::MIN, i64::MAX, PlanError::TooLarge);
        check(100, 50, PlanError::TooLarge);
        let definition = definition("1", &["RRA:MIN:0.5:2:100"]);
        assert_eq!(plan(&definition, 10, Cf::Max, 0, 9, 1), Err(PlanError::NoArchive));
        assert_eq!(first(&definition, 10, 1), Err(PlanError::ArchiveNumber));
    }
}
