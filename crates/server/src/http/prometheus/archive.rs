//! Which archive answers: one for each series and query.

use rrd::definition::{Cf, Definition};

/// An archive in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Its place among the archives of its RRD.
    pub rra: usize,
    /// The length of a row.
    pub row: i64,
    /// Its oldest row begins then.
    pub begin: i64,
    /// Primary data points of a row.
    pub points: u64,
}

/// What is asked of an archive, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Rows are needed after this.
    pub start: i64,
    /// The distance of the times of the answer; 0: there is only one.
    pub step: i64,
    /// The range of a function.
    pub window: Option<i64>,
    /// Rows must not be longer, if there are any that are not.
    pub row_max: Option<i64>,
}

/// The archives of a consolidation function.
pub fn archives(definition: &Definition, cf: Cf, last_update: i64) -> Vec<Archive> {
    let units = i64::from(definition.units_per_second.max(1));
    let of_cf = definition.rra.iter().enumerate().filter(|(_, rra)| rra.cf.cf() == cf);
    of_cf
        .map(|(rra, archive)| {
            let span = rrd::grid::row_span(definition.step, archive.pdp_per_row);
            let newest = rrd::grid::row_number(last_update, span);
            let oldest = newest.saturating_sub(archive.row_count as i64);
            let milliseconds = |time: i64| time.saturating_mul(1000) / units;
            Archive {
                rra,
                row: milliseconds(span).max(1),
                begin: milliseconds(oldest.saturating_mul(span)),
                points: archive.pdp_per_row,
            }
        })
        .collect()
}

/// Of those that reach back far enough, the one with the longest rows that are not longer than the step and the window; if there is
/// none, the one with the shortest. If none reaches back, the one that reaches furthest.
pub fn choose(archives: &[Archive], need: Need) -> Option<Archive> {
    let is_short = |archive: &&Archive| need.row_max.is_none_or(|most| archive.row <= most);
    let mut all: Vec<Archive> = archives.iter().filter(is_short).copied().collect();
    if all.is_empty() {
        all = archives.to_vec();
    }
    let covering: Vec<Archive> = all.iter().filter(|archive| archive.begin <= need.start).copied().collect();
    let Some(finest) = covering.iter().min_by_key(|archive| archive.row) else {
        return all.into_iter().min_by_key(|archive| (archive.begin, archive.row));
    };
    let longest = need.window.map_or(need.step, |window| need.step.min(window));
    let fitting = covering.iter().filter(|archive| archive.row <= longest);
    Some(*fitting.max_by_key(|archive| archive.row).unwrap_or(finest))
}

/// The consolidation function that a function of PromQL is about.
pub fn cf_of(function: Option<&str>) -> Cf {
    match function {
        Some("min_over_time") => Cf::Min,
        Some("max_over_time") => Cf::Max,
        Some("last_over_time") => Cf::Last,
        _ => Cf::Average,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const DAY: i64 = 1440 * MINUTE;

    fn three() -> [Archive; 3] {
        [
            Archive { rra: 0, row: 5 * MINUTE, begin: -DAY, points: 1 },
            Archive { rra: 1, row: 60 * MINUTE, begin: -30 * DAY, points: 12 },
            Archive { rra: 2, row: DAY, begin: -365 * DAY, points: 288 },
        ]
    }

    fn chosen(start: i64, step: i64, window: Option<i64>, row_max: Option<i64>) -> usize {
        choose(&three(), Need { start, step, window, row_max }).unwrap().rra
    }

    #[test]
    fn the_longest_rows_that_fit_are_taken() {
        assert_eq!(chosen(-DAY, 5 * MINUTE, None, None), 0);
        assert_eq!(chosen(-DAY, 60 * MINUTE, None, None), 1);
        assert_eq!(chosen(-DAY, 2 * DAY, None, None), 2);
        assert_eq!(chosen(-DAY, 2 * DAY, Some(60 * MINUTE), None), 1);
        // A single time, and a step shorter than any row: as fine as there is.
        assert_eq!(chosen(-DAY, 0, Some(DAY), None), 0);
        assert_eq!(chosen(-DAY, MINUTE, None, None), 0);
    }

    #[test]
    fn what_reaches_back_comes_first() {
        assert_eq!(chosen(-2 * DAY, 5 * MINUTE, None, None), 1);
        assert_eq!(chosen(-100 * DAY, 5 * MINUTE, None, None), 2);
        assert_eq!(chosen(-1000 * DAY, 5 * MINUTE, None, None), 2);
        assert_eq!(chosen(-DAY, 2 * DAY, None, Some(5 * MINUTE)), 0);
        assert_eq!(chosen(-DAY, 2 * DAY, None, Some(1)), 2);
        assert_eq!(choose(&[], Need { start: 0, step: 1, window: None, row_max: None }), None);
    }
}
