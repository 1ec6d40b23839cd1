//! `bench/AGAINST.md`: two builds of ours, and which rows have become slower.

use std::fmt::Write as _;

use super::Row;
use crate::figures::{Goal, Unit};

/// Below this part of the other build's a row counts as slower.
const FLOOR: f64 = 0.97;

pub(super) const HEAD: &str = "# Roundel against another build of it

Written by `make bench AGAINST=DIR`; both builds measured in one run, in turn, with the same client. Median
[min..max]. Ratio: how many times as good as before, whether the figure is a rate, a time or a size; below 0.97 it
is marked. How each row is measured: see RESULTS.md.

";
pub(super) const COLUMNS: &str = "\
| figure | before | after | ratio | |
|---|---|---|---|---|
";

/// How many times as good as before; NaN where a side has nothing.
fn ratio(row: &Row) -> f64 {
    let (before, after) = (row.peer.median(), row.ours.median());
    if more_is_better(row) { after / before } else { before / after }
}

fn more_is_better(row: &Row) -> bool {
    match (row.goal, row.aim) {
        (Goal::Times(_), _) | (Goal::None, Goal::Times(_)) => true,
        (Goal::None, Goal::None) => row.unit == Unit::PerSecond,
        _ => false,
    }
}

fn is_slower(row: &Row) -> bool {
    ratio(row) < FLOOR
}

/// A row's line of the table.
pub(super) fn line(row: &Row) -> String {
    let mark = if is_slower(row) { "**below 0.97**" } else { "" };
    let (before, after) = (row.peer.text(row.unit), row.ours.text(row.unit));
    format!("| {} | {before} | {after} | {:.2}x | {mark} |", row.figure, ratio(row))
}

/// The rows below the floor, worst first, in a few lines.
pub(super) fn verdict(rows: &[Row]) -> String {
    let mut slower: Vec<&Row> = rows.iter().filter(|row| is_slower(row)).collect();
    slower.sort_by(|left, right| ratio(left).total_cmp(&ratio(right)));
    let mut text = format!("{} of {} rows below {FLOOR}", slower.len(), rows.len());
    for row in slower {
        write!(text, "\n  {:.2}x {}", ratio(row), row.figure).ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Runs;

    fn row(unit: Unit, goal: Goal, before: f64, after: f64) -> Row {
        let (peer, ours) = (Runs::one(before), Runs::one(after));
        Row { figure: format!("{unit:?} {goal:?}"), peer, ours, unit, goal, aim: Goal::None }
    }

    #[test]
    fn worse_is_less_of_a_rate_and_more_of_the_rest() {
        let cases = [
            (row(Unit::PerSecond, Goal::None, 100.0, 96.0), true),
            (row(Unit::PerSecond, Goal::None, 100.0, 98.0), false),
            (row(Unit::Seconds, Goal::None, 100.0, 104.0), true),
            (row(Unit::Seconds, Goal::Part(4.0), 100.0, 50.0), false),
            // Requests to a device: a rate of which less is better.
            (row(Unit::PerSecond, Goal::Part(100.0), 1.0, 2.0), true),
            (row(Unit::Number, Goal::AtMost(5.0, Unit::Number), 2.0, 3.0), true),
            (row(Unit::Bytes, Goal::None, 0.0, 0.0), false),
        ];
        for (row, slower) in &cases {
            assert_eq!(is_slower(row), *slower, "{}", line(row));
        }
        let rows: Vec<Row> = cases.into_iter().map(|(row, _)| row).collect();
        let text = verdict(&rows);
        assert!(text.starts_with("4 of 7 rows below 0.97\n  0.50x PerSecond Part"), "{text}");
        assert!(line(&rows[0]).ends_with("| 0.96x | **below 0.97** |"));
    }
}
