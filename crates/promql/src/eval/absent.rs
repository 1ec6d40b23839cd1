//! `absent` and `absent_over_time`.

use crate::ast::{Expr, Kind};
use crate::labels::{Labels, NAME};
use crate::matcher::Operator;
use crate::value::{ABSENT, Column, Grid, is_absent};

use super::{Evaluator, Result};

impl Evaluator<'_> {
    pub(super) fn absent(&mut self, argument: &Expr, grid: Grid) -> Result<Vec<Column>> {
        let columns = self.vector(argument, grid)?;
        let is_present = |index: usize| columns.iter().any(|column| !is_absent(column.values[index]));
        let values = (0..grid.count).map(|index| if is_present(index) { ABSENT } else { 1.0 }).collect();
        Ok(vec![Column::new(labels_of(argument), values)])
    }

    pub(super) fn absent_over_time(&mut self, argument: &Expr, grid: Grid) -> Result<Vec<Column>> {
        let ranges = self.ranges(argument, grid, "absent_over_time")?;
        let mut values = vec![1.0; grid.count];
        for rows in &ranges.rows {
            ranges.windows(rows, |index, window| {
                if window.len() > 0 {
                    values[index] = ABSENT;
                }
            });
        }
        Ok(vec![Column::new(labels_of(argument), values)])
    }
}

/// Labels that the series would have, as far as a selector says so by one condition each.
fn labels_of(expr: &Expr) -> Labels {
    let Kind::Selector(selector) = &expr.inner().kind else { return Labels::default() };
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let mut twice: Vec<&str> = Vec::new();
    for matcher in &selector.matchers {
        if matcher.name == NAME {
            continue;
        }
        let is_known = pairs.iter().any(|(name, _)| *name == matcher.name);
        match matcher.operator {
            Operator::Equal if !is_known => pairs.push((&matcher.name, &matcher.value)),
            _ => twice.push(&matcher.name),
        }
    }
    Labels::new(pairs.into_iter().filter(|(name, _)| !twice.contains(name))).without_name()
}
