//! Fetch planning: which archive answers a fetch, and which of its rows, as RRDtool chooses them.
//!
//! The rules are those of `docs/format/rrd.md`. Requests come in seconds, as in every RRDtool command; plans are in units of the RRD. Nothing here reads a
//! row: rows outside the archive are part of a plan, and the caller leaves them unknown.

use std::fmt;
use std::ops::Range;

use crate::definition::{Cf, Definition, Rra};
use crate::fetch::FetchRequest;
use crate::grid;
use crate::reading::TIME_MAX;

/// Most values (rows times data sources) a fetch may return: 128 MiB of doubles. RRDtool's only limit is
/// memory; one source has 31 million seconds in a year.
pub const FETCH_VALUES_MAX: u64 = 16 << 20;

/// What a fetch reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The archive's index.
    pub rra: usize,
    /// Start in units, on the archive's grid. The first row's time is `start + step`.
    pub start: i64,
    /// Time of the last row in units, on the archive's grid.
    pub end: i64,
    /// Units per row.
    pub step: u64,
    /// The row numbers (see [`grid`]). Rows that the archive does not hold are unknown.
    pub rows: Range<i64>,
}

/// Why there is no plan. `Display` is RRDtool's text where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// No archive can answer for the function.
    NoSuchCf,
    /// `rrdfirst --rraindex` beyond the last archive.
    NoSuchRra,
    /// A time further than [`TIME_MAX`] units from the epoch.
    TimeTooFar {
        /// Seconds since the epoch.
        seconds: i64,
    },
    /// More values than the request takes ([`FetchRequest::values_max`]).
    TooMany {
        /// Rows requested.
        rows: u64,
        /// Data sources per row.
        ds_count: usize,
        /// Values that the request takes.
        values_max: u64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::NoSuchCf => f.write_str("the RRD does not contain an RRA matching the chosen CF"),
            PlanError::NoSuchRra => f.write_str("invalid rraindex number"),
            PlanError::TimeTooFar { seconds } => {
                write!(f, "cannot fetch at time {seconds}: too far from now")
            }
            PlanError::TooMany { rows, ds_count, values_max } => write!(
                f,
                "cannot fetch {rows} rows of {ds_count} data sources: more than {values_max} values; \
                 ask for a shorter range or a coarser resolution"
            ),
        }
    }
}

impl std::error::Error for PlanError {}

/// Plans a fetch; `last_update_whole` is in units of the RRD.
///
/// A step of 0 or 1 asks for the finest rows, even where the RRD's step is a fraction of a second. The caller checks
/// that the start is not before 1980 and the end not before the start; an end before the start plans at most no rows.
///
/// # Errors
/// [`PlanError`].
pub fn plan(
    definition: &Definition,
    last_update_whole: i64,
    request: &FetchRequest,
) -> Result<Plan, PlanError> {
    let &FetchRequest { cf, start, end, step, values_max } = request;
    let unit = i64::from(definition.units_per_second);
    let in_units = |seconds: i64| match seconds.checked_mul(unit) {
        Some(units) if units.unsigned_abs() <= TIME_MAX as u64 => Ok(units),
        _ => Err(PlanError::TimeTooFar { seconds }),
    };
    let (start, end) = (in_units(start)?, in_units(end)?);
    let resolution = if step <= 1 { 1 } else { step.saturating_mul(unit as u64) };
    let rra = choose(definition, last_update_whole, cf, start, end, resolution).ok_or(PlanError::NoSuchCf)?;

    let span = definition.rra[rra].span(definition.step);
    let first = grid::row_number(start, span) + 1;
    // An end on the grid moves one row further, so that the plan includes a row after the last update.
    let last = grid::row_number(end, span) + 1;
    let rows = first..(last + 1).max(first);
    let count = (rows.end - rows.start) as u64;
    let ds_count = definition.ds.len();
    if count.saturating_mul(ds_count as u64) > values_max {
        return Err(PlanError::TooMany { rows: count, ds_count, values_max });
    }
    let time = |row| grid::row_time(row, span);
    Ok(Plan { rra, start: time(first - 1), end: time(rows.end - 1), step: span as u64, rows })
}

/// The time of the oldest row of archive `rra` in units, as `rrdfirst(1)` gives it.
///
/// # Errors
/// [`PlanError::NoSuchRra`].
pub fn first(definition: &Definition, last_update_whole: i64, rra: usize) -> Result<i64, PlanError> {
    let archive = definition.rra.get(rra).ok_or(PlanError::NoSuchRra)?;
    let oldest = definition.newest_row(rra, last_update_whole) - (archive.row_count as i64 - 1);
    Ok(grid::row_time(oldest, archive.span(definition.step)))
}

/// The archive that answers: among those that reach back to `start`, the one nearest to the resolution;
/// otherwise the one that covers most of the range, the nearest to the resolution among equals. The first wins
/// ties.
fn choose(
    definition: &Definition,
    last_update: i64,
    cf: Cf,
    start: i64,
    end: i64,
    resolution: u64,
) -> Option<usize> {
    let mut best_full: Option<(u64, usize)> = None;
    let mut best_partial: Option<(i64, u64, usize)> = None;
    let candidates = definition.rra.iter().enumerate().filter(|(_, rra)| serves(rra, cf));
    for (index, rra) in candidates {
        let span = rra.span(definition.step);
        let difference = resolution.abs_diff(span as u64);
        let covered_to = grid::row_time(grid::row_number(last_update, span), span);
        let covered_from = covered_to.saturating_sub(span.saturating_mul(rra.row_count as i64));
        if covered_from <= start {
            if best_full.is_none_or(|(best, _)| difference < best) {
                best_full = Some((difference, index));
            }
            continue;
        }
        // Only the start counts: an archive that ends before the range does loses nothing by it.
        let overlap = end - start - (covered_from - start);
        let better = best_partial
            .is_none_or(|(best, distance, _)| overlap > best || (overlap == best && difference < distance));
        if better {
            best_partial = Some((overlap, difference, index));
        }
    }
    best_full.map(|(_, index)| index).or(best_partial.map(|(_, _, index)| index))
}

/// Whether the archive can answer for the function: it has that function, or it keeps every PDP (which all
/// four plain functions keep alike) and both functions are plain.
fn serves(rra: &Rra, wanted: Cf) -> bool {
    let plain = |cf: Cf| matches!(cf, Cf::Average | Cf::Min | Cf::Max | Cf::Last);
    let own = rra.cf.cf();
    own == wanted || (rra.pdp_per_row == 1 && plain(own) && plain(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Consolidation, Ds, DsKind, DsType, PlainCf};

    const EPOCH: i64 = 1_000_000_000;

    /// Step 10 (in units), one source, archives of (function, PDPs per row, rows).
    fn definition(units_per_second: u32, archives: &[(PlainCf, u64, u64)]) -> Definition {
        let kind = DsKind::Fed { ds_type: DsType::Gauge, heartbeat: 20, min: f64::NAN, max: f64::NAN };
        let rra = |&(cf, pdp_per_row, row_count)| Rra {
            cf: Consolidation::Plain { cf, xff: 0.5 },
            pdp_per_row,
            row_count,
        };
        Definition {
            version: 3,
            units_per_second,
            step: 10,
            ds: vec![Ds { name: "a".to_string(), kind }],
            rra: archives.iter().map(rra).collect(),
        }
    }

    #[test]
    fn the_archive_and_its_grid_follow_the_request() {
        let plain =
            definition(1, &[(PlainCf::Average, 1, 10), (PlainCf::Average, 6, 10), (PlainCf::Max, 6, 20)]);
        let check = |cf, start: i64, end: i64, resolution, want: (usize, i64, i64, u64)| {
            let plan =
                plan(&plain, EPOCH, &FetchRequest::new(cf, EPOCH + start, EPOCH + end, resolution)).unwrap();
            let (rra, start, end, step) = want;
            assert_eq!((plan.rra, plan.step), (rra, step));
            assert_eq!((plan.start, plan.end), (EPOCH + start, EPOCH + end));
            assert_eq!(plan.rows.start * step as i64, plan.start + step as i64);
            assert_eq!((plan.rows.end - 1) * step as i64, plan.end);
        };
        check(Cf::Average, -50, -5, 1, (0, -50, 0, 10));
        check(Cf::Average, -50, 0, 1, (0, -50, 10, 10));
        check(Cf::Average, -100, 0, 1, (0, -100, 10, 10));
        // Reaching back to the start counts before the resolution.
        check(Cf::Average, -101, 0, 1, (1, -160, 20, 60));
        check(Cf::Average, -50, 0, 55, (1, -100, 20, 60));
        // Rows of one PDP also serve LAST.
        check(Cf::Max, -700, 0, 1, (2, -700, 20, 60));
        check(Cf::Last, -5000, 0, 60, (0, -5000, 10, 10));
    }

    #[test]
    fn a_step_below_a_second_is_planned_in_thousandths() {
        let fine = definition(1000, &[(PlainCf::Average, 1, 1000), (PlainCf::Average, 100, 1000)]);
        let check = |resolution, want: (usize, i64, u64)| {
            let request = FetchRequest::new(Cf::Average, EPOCH - 2, EPOCH - 1, resolution);
            let plan = plan(&fine, EPOCH * 1000, &request).unwrap();
            assert_eq!((plan.rra, plan.end - plan.start, plan.step), want);
        };
        check(0, (0, 1010, 10));
        check(1, (0, 1010, 10));
        check(2, (1, 2000, 1000));
    }

    #[test]
    fn what_cannot_be_fetched_is_refused() {
        let one = definition(1, &[(PlainCf::Max, 6, 10)]);
        let check = |cf, start, end, want: &str| {
            let request = FetchRequest::new(cf, start, end, 1);
            assert_eq!(plan(&one, EPOCH, &request).unwrap_err().to_string(), want);
        };
        check(Cf::Average, 0, 1, "the RRD does not contain an RRA matching the chosen CF");
        check(
            Cf::Max,
            0,
            EPOCH * 2,
            "cannot fetch 33333334 rows of 1 data sources: more than 16777216 values; \
             ask for a shorter range or a coarser resolution",
        );
        check(Cf::Max, 0, i64::MAX, "cannot fetch at time 9223372036854775807: too far from now");
        check(Cf::Max, i64::MIN, 0, "cannot fetch at time -9223372036854775808: too far from now");
        let backwards = FetchRequest::new(Cf::Max, EPOCH, EPOCH - 1000, 1);
        assert_eq!(plan(&one, EPOCH, &backwards).unwrap().rows.count(), 0);
        let few =
            |values_max| FetchRequest { values_max, ..FetchRequest::new(Cf::Max, EPOCH - 120, EPOCH - 1, 1) };
        assert_eq!(plan(&one, EPOCH, &few(3)).map(|plan| plan.rows.count()), Ok(3));
        let too_many = PlanError::TooMany { rows: 3, ds_count: 1, values_max: 2 };
        assert_eq!(plan(&one, EPOCH, &few(2)), Err(too_many));
        assert_eq!(first(&one, EPOCH, 0), Ok(EPOCH - 40 - 540));
        assert_eq!(first(&one, EPOCH, 1).unwrap_err().to_string(), "invalid rraindex number");
    }
}
