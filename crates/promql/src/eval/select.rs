//! Selectors and subqueries: series of the source at times and over ranges.

use std::sync::Arc;

use crate::ast::{At, Edges, Expr, Kind, Selector, Subquery};
use crate::source::{RowKind, SourceSeries, Wanted};
use crate::value::{ABSENT, Column, Grid, is_absent};

use super::window::{Ranges, Rows};
use super::{EvalError, Evaluator, RangeSeries, Result, refuse};

impl Evaluator<'_> {
    /// The time in place of each time of `grid`, with `@` and `offset`.
    fn references(&self, at: Option<At>, offset: i64, grid: Grid) -> Vec<i64> {
        let fixed = match at {
            None => None,
            Some(At::Time(time)) => Some(time),
            Some(At::Start) => Some(self.query.start),
            Some(At::End) => Some(self.query.end),
        };
        let time = |time: i64| fixed.unwrap_or(time).saturating_sub(offset);
        grid.times().map(time).collect()
    }

    fn offset(&self, offset: Option<&crate::ast::Length>) -> Result<i64> {
        offset.map_or(Ok(0), |offset| self.length(offset))
    }

    fn fetch(&mut self, wanted: &Wanted<'_>) -> Result<Vec<SourceSeries>> {
        let selected = self.source.select(wanted)?;
        for text in selected.warnings {
            self.notes.warn(text, None);
        }
        for text in selected.infos {
            self.notes.inform(text, None);
        }
        if selected.series.len() > self.options.series_max {
            let most = self.options.series_max;
            return Err(EvalError::Limit(format!("more than {most} series: select fewer")));
        }
        Ok(selected.series)
    }

    /// A value of each series at each time.
    pub(super) fn instants(&mut self, selector: &Selector, grid: Grid) -> Result<Vec<Column>> {
        self.instants_with(selector, grid, None)
    }

    /// The same, of `pick` with the time and value of each row.
    pub(super) fn instants_with(
        &mut self,
        selector: &Selector,
        grid: Grid,
        pick: Option<fn(i64, f64) -> f64>,
    ) -> Result<Vec<Column>> {
        let offset = self.offset(selector.offset.as_ref())?;
        let references = self.references(selector.at, offset, grid);
        let (Some(&first), Some(&last)) = (references.first(), references.last()) else {
            return Ok(Vec::new());
        };
        let wanted = Wanted {
            matchers: &selector.matchers,
            first,
            last,
            step: if grid.count > 1 && selector.at.is_none() { grid.step } else { 0 },
            range: None,
            lookback: self.options.lookback,
            edges: selector.edges,
            function: None,
        };
        let all = self.fetch(&wanted)?;
        self.reserve(all.len(), grid)?;
        let all: Vec<SourceSeries> = all.into_iter().map(|series| self.counted(series)).collect();
        let lookback = self.options.lookback;
        let are_rows = rows_are_at(&all, &references);
        let values = self.of_each(&all, grid, |series| match (selector.edges, pick) {
            (Edges::Smoothed, _) => smoothed(series, &references, lookback),
            (_, Some(pick)) => latest(series, &references, lookback, pick),
            (_, None) if are_rows => Vec::new(),
            (_, None) => latest(series, &references, lookback, |_, value| value),
        })?;
        let columns = all.into_iter().zip(values).map(|(mut series, mut values)| {
            if are_rows && values.is_empty() {
                // As they are, without a copy.
                series.values.drain(..series.values.len() - references.len());
                values = series.values;
            }
            Column::new(series.labels, values)
        });
        Ok(columns.filter(|column| !column.is_empty()).collect())
    }

    /// A series whose counter is the sum of its rows so far, if it is the view of a counter.
    fn counted(&mut self, mut series: SourceSeries) -> SourceSeries {
        let RowKind::Counter { row } = series.kind else { return series };
        let text = format!(
            "{} counts from the first row of this query; only its rate() and increase() are the same in every query",
            crate::labels::quoted(series.labels.name())
        );
        self.notes.inform(text, None);
        let mut sum = 0.0;
        for value in series.values.iter_mut().filter(|value| !is_absent(**value)) {
            sum += *value * row as f64 / 1000.0;
            *value = sum;
        }
        series
    }

    /// Values of each series over the range of a selector or subquery.
    pub(super) fn ranges(&mut self, expr: &Expr, grid: Grid, function: &'static str) -> Result<Ranges> {
        match &expr.inner().kind {
            Kind::Selector(selector) => self.selected(selector, grid, function),
            Kind::Subquery(subquery) => self.subquery(subquery, grid),
            _ => refuse("expected a range vector"),
        }
    }

    fn selected(&mut self, selector: &Selector, grid: Grid, function: &'static str) -> Result<Ranges> {
        let Some(range) = &selector.range else { return refuse("expected a range vector") };
        let range = self.positive(range)?;
        let offset = self.offset(selector.offset.as_ref())?;
        let ends = self.references(selector.at, offset, grid);
        let (Some(&first), Some(&last)) = (ends.first(), ends.last()) else {
            return Ok(Ranges { rows: Vec::new(), range, ends, edges: selector.edges, lookback: 0 });
        };
        let wanted = Wanted {
            matchers: &selector.matchers,
            first,
            last,
            step: if grid.count > 1 && selector.at.is_none() { grid.step } else { 0 },
            range: Some(range),
            lookback: self.options.lookback,
            edges: selector.edges,
            function: Some(function).filter(|name| !name.is_empty()),
        };
        let all = self.fetch(&wanted)?;
        let mut rows = Vec::with_capacity(all.len());
        for series in all {
            let integrates = matches!(function, "rate" | "increase" | "irate");
            let series = if integrates { series } else { self.counted(series) };
            let (kind, weight) = (series.kind, series.weight.max(1.0));
            let column = Column::new(series.labels, Vec::new());
            rows.push(Rows { kind, weight, ..Rows::new(column, series.times, series.values) });
        }
        Ok(Ranges { rows, range, ends, edges: selector.edges, lookback: self.options.lookback })
    }

    fn subquery(&mut self, subquery: &Subquery, grid: Grid) -> Result<Ranges> {
        let range = self.positive(&subquery.range)?;
        let step = match &subquery.step {
            Some(step) => self.positive(step)?,
            None => self.options.subquery_step,
        };
        let offset = self.offset(subquery.offset.as_ref())?;
        let ends = self.references(subquery.at, offset, grid);
        let none = |ends| Ranges { rows: Vec::new(), range, ends, edges: Edges::Inside, lookback: 0 };
        let (Some(&first), Some(&last)) = (ends.iter().min(), ends.iter().max()) else {
            return Ok(none(ends));
        };
        // Times are multiples of the step, so that they are the same wherever the query begins; the first is after the start.
        let after = first.saturating_sub(range);
        let start = after.div_euclid(step).saturating_add(1).saturating_mul(step);
        let inner = Grid::new(start, last, step);
        if inner.count > self.options.points_max {
            let text = format!("a subquery of {} times, more than {}", inner.count, self.options.points_max);
            return Err(EvalError::Limit(text));
        }
        if inner.count == 0 {
            return Ok(none(ends));
        }
        let columns = self.vector(&subquery.expr, inner)?;
        self.reserve(columns.len(), inner)?;
        let times: Arc<[i64]> = inner.times().collect();
        let mut rows = Vec::with_capacity(columns.len());
        for mut column in columns {
            let values = std::mem::take(&mut column.values);
            rows.push(Rows::new(column, Arc::clone(&times), values));
        }
        Ok(Ranges { rows, range, ends, edges: Edges::Inside, lookback: 0 })
    }

    /// The answer of a query that is a range vector.
    pub(super) fn matrix(&mut self, expr: &Expr, grid: Grid) -> Result<Vec<RangeSeries>> {
        Ok(self.ranges(expr, grid, "")?.answer())
    }
}

/// Whether the last rows of all series are at the references, one at each.
fn rows_are_at(all: &[SourceSeries], references: &[i64]) -> bool {
    // Most series share their times.
    let mut known: Option<&Arc<[i64]>> = None;
    all.iter().all(|series| {
        let is_known = known.is_some_and(|known| Arc::ptr_eq(known, &series.times));
        known = Some(&series.times);
        is_known || series.times.ends_with(references)
    })
}

/// The newest row not older than the lookback at each reference.
fn latest(
    series: &SourceSeries,
    references: &[i64],
    lookback: i64,
    pick: impl Fn(i64, f64) -> f64,
) -> Vec<f64> {
    let lookback = lookback.max(series.lookback);
    let (mut next, mut before) = (0, i64::MIN);
    let value = |&reference: &i64| {
        if reference < before {
            next = 0;
        }
        before = reference;
        while next < series.times.len() && series.times[next] <= reference {
            next += 1;
        }
        let Some(at) = next.checked_sub(1) else { return ABSENT };
        let (time, value) = (series.times[at], series.values[at]);
        if time <= reference.saturating_sub(lookback) || is_absent(value) {
            return ABSENT;
        }
        pick(time, value)
    };
    references.iter().map(value).collect()
}

/// The value on the line between the rows around each reference. After the last row it is that one's, before the first there is none.
fn smoothed(series: &SourceSeries, references: &[i64], lookback: i64) -> Vec<f64> {
    let lookback = lookback.max(series.lookback);
    let rows = Rows::new(
        Column::new(series.labels.clone(), Vec::new()),
        Arc::clone(&series.times),
        series.values.clone(),
    );
    let value = |&reference: &i64| {
        let next = rows.times.partition_point(|time| *time <= reference);
        let before = next.checked_sub(1).filter(|at| rows.times[*at] > reference.saturating_sub(lookback));
        let after = Some(next)
            .filter(|at| rows.times.get(*at).is_some_and(|time| *time <= reference.saturating_add(lookback)));
        let Some(left) = before else { return ABSENT };
        let Some(right) = after else { return rows.values[left] };
        let share = (reference - rows.times[left]) as f64 / (rows.times[right] - rows.times[left]) as f64;
        rows.values[left] + (rows.values[right] - rows.values[left]) * share
    };
    references.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_value_is_looked_for_as_far_as_the_series_or_the_query_says() {
        let series = |lookback| SourceSeries {
            times: Arc::from([1000, 2000]),
            values: vec![1.0, 2.0],
            lookback,
            ..SourceSeries::default()
        };
        let near = [999, 1000, 1999, 2299];
        let far = [2300, 2499, 2500];
        for (own, of_query) in [(500, 300), (0, 500), (300, 500)] {
            let series = series(own);
            let values = |references: &[i64]| latest(&series, references, of_query, |_, value| value);
            let shown = |references: &[i64]| {
                values(references)
                    .iter()
                    .map(|value| (!is_absent(*value)).then_some(*value))
                    .collect::<Vec<_>>()
            };
            assert_eq!(shown(&near), [None, Some(1.0), None, Some(2.0)], "{own} {of_query}");
            assert_eq!(shown(&far), [Some(2.0), Some(2.0), None], "{own} {of_query}");
            let smooth = smoothed(&series, &[999, 1000, 1250, 1600, 2400, 2600], of_query);
            let is_absent = smooth.iter().map(|value| is_absent(*value)).collect::<Vec<_>>();
            assert_eq!(is_absent, [true, false, false, true, false, true], "{smooth:?}");
            assert_eq!([smooth[1], smooth[2], smooth[4]], [1.0, 1.0, 2.0]);
        }
    }
}
