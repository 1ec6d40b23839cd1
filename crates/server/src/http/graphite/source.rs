//! Rows of the store for Graphite's functions.

use std::sync::Arc;

use graphite::{Select, Source, SourceError, SourceSeries, TagCondition, Wanted};
use promql::{Labels, Matcher, NAME, Operator};
use rrd::definition::{Cf, Definition};
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::plan::{Plan, PlanError, plan};
use store::engine::{KeptBlocks, RrdStatus, StoreError};
use store::name::RrdName;
use suggest::MetricRules;

use super::nodes::{self, Candidate, FOUND_MAX};
use crate::http::api::names::name_list;
use crate::http::failure::Failure;
use crate::http::prometheus::index::{FoundSeries, Indexes};
use crate::http::rows::Budget;
use crate::parallel::map_parts;
use crate::service::Service;

/// The most series of a pattern.
const SERIES_MAX: usize = 200_000;
/// Series that a thread is worth: it costs as much as reading a day of a few of them.
const SERIES_OF_THREAD: usize = 32;

/// The store of a request.
pub struct GraphiteSource<'a> {
    /// The part of the store that the client sees.
    pub service: &'a Service,
    /// Which RRDs have which tags.
    pub rules: &'a MetricRules,
    /// The index of tags.
    pub indexes: &'a Indexes,
    /// What the request may take.
    pub budget: &'a Budget,
}

/// Rows of an RRD, with what it was when they were read.
struct Read {
    definition: Arc<Definition>,
    rows: FetchRows,
}

impl Source for GraphiteSource<'_> {
    fn fetch(&mut self, wanted: &Wanted<'_>) -> Result<Vec<SourceSeries>, SourceError> {
        Ok(match wanted.select {
            Select::Path(pattern) => self.by_path(pattern, wanted)?,
            Select::Tags(conditions) => self.by_tags(conditions, wanted)?,
        })
    }

    fn reserve(&mut self, bytes: u64) -> Result<(), SourceError> {
        self.budget.count(0)?;
        match bytes {
            0 => Ok(()),
            bytes => Ok(self.budget.hold(bytes)?),
        }
    }
}

impl GraphiteSource<'_> {
    fn by_path(&self, pattern: &str, wanted: &Wanted<'_>) -> Result<Vec<SourceSeries>, Failure> {
        let list = name_list(self.service)?;
        let candidates = nodes::candidates(self.service, &list, self.budget, pattern, true)?;
        let read = |part: &[Candidate]| -> Result<Vec<SourceSeries>, Failure> {
            let _kept = KeptBlocks::begin();
            let mut all = Vec::new();
            for candidate in part {
                let Some(name) = &candidate.rrd else { continue };
                let is_meant =
                    |definition: &Definition| candidates.leaves(candidate, definition).next().is_some();
                let Some(Read { definition, mut rows }) = self.rows(name, wanted, is_meant)? else {
                    continue;
                };
                for (ds, path) in candidates.leaves(candidate, &definition) {
                    self.budget.hold((rows.row_count() * 8 + path.len()) as u64)?;
                    let values = match rows.ds_names.len() {
                        // All of them, without a copy.
                        1 => std::mem::take(&mut rows.values),
                        _ => values_of(&rows, ds),
                    };
                    all.push(SourceSeries { name: path, ..column(&rows, values) });
                }
                if all.len() > FOUND_MAX {
                    return Err(nodes::too_many());
                }
            }
            Ok(all)
        };
        let all = self.of_parts(&candidates.all, read)?;
        match all.len() > FOUND_MAX {
            true => Err(nodes::too_many()),
            false => Ok(nodes::in_order(all, |series| &series.name)),
        }
    }

    /// What `read` makes of the parts that threads take.
    fn of_parts<T: Sync>(
        &self,
        all: &[T],
        read: impl Fn(&[T]) -> Result<Vec<SourceSeries>, Failure> + Sync,
    ) -> Result<Vec<SourceSeries>, Failure> {
        let mut together = Vec::with_capacity(all.len());
        for part in map_parts(all, SERIES_OF_THREAD, read) {
            together.extend(part?);
        }
        Ok(together)
    }

    fn by_tags(
        &self,
        conditions: &[TagCondition],
        wanted: &Wanted<'_>,
    ) -> Result<Vec<SourceSeries>, Failure> {
        let matchers = matchers(conditions)?;
        let mut found = Vec::new();
        let index = self.indexes.current(self.service, self.rules)?;
        index.matching(self.service, self.rules, &matchers, |series| {
            if found.len() >= SERIES_MAX {
                return Err(Failure::too_much(format!("more than {SERIES_MAX} series: select fewer")));
            }
            self.budget.hold(series.labels.bytes())?;
            found.push(series);
            Ok(true)
        })?;
        let mut all = self.of_parts(&found, |part| self.tagged_series(part, wanted))?;
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    fn tagged_series(&self, part: &[FoundSeries], wanted: &Wanted<'_>) -> Result<Vec<SourceSeries>, Failure> {
        let _kept = KeptBlocks::begin();
        let mut all = Vec::new();
        // Data sources of one RRD are read together.
        let mut last: Option<(&RrdName, Option<Read>)> = None;
        for one in part {
            if last.as_ref().is_none_or(|(name, _)| **name != one.name) {
                last = Some((&one.name, self.rows(&one.name, wanted, |_| true)?));
            }
            let Some((_, Some(Read { rows, .. }))) = &last else { continue };
            // It may have been tuned since it was found.
            let source = one.status.definition.ds.get(usize::from(one.entry.ds));
            let ds = source.and_then(|source| rows.ds_names.iter().position(|name| *name == source.name));
            let Some(ds) = ds else { continue };
            self.budget.hold(rows.row_count() as u64 * 8)?;
            let mut series = column(rows, values_of(rows, ds));
            if one.entry.is_counter {
                let (mut sum, step) = (0.0, series.step as f64);
                for value in series.values.iter_mut().filter(|value| !value.is_nan()) {
                    sum += *value * step;
                    *value = sum;
                }
            }
            (series.name, series.tags) = tagged(&one.labels);
            all.push(series);
        }
        Ok(all)
    }

    /// The rows of an RRD that `is_meant`; `None` if it is not, was removed since it was found, or is unreadable.
    fn rows(
        &self,
        name: &RrdName,
        wanted: &Wanted<'_>,
        is_meant: impl Fn(&Definition) -> bool,
    ) -> Result<Option<Read>, Failure> {
        let mut planned = None;
        let read = self.service.engine.chosen_rows(name, &mut |status| {
            let plan = is_meant(&status.definition).then(|| self.plan(status, wanted));
            let rows =
                plan.as_ref().and_then(|plan| plan.as_ref().ok()).map(|plan| (plan.rra, plan.rows.clone()));
            planned = Some((Arc::clone(&status.definition), plan));
            rows
        });
        match (read, planned) {
            (_, Some((_, Some(Err(failure))))) => Err(failure),
            (Ok(Some(values)), Some((definition, Some(Ok(plan))))) => {
                Ok(Some(Read { rows: FetchRows::new(&definition, &plan, values), definition }))
            }
            (Ok(_), _) | (Err(StoreError::NoSuchRrd(_)), _) => Ok(None),
            (Err(error @ StoreError::TooFast(_)), _) | (Err(error), Some(_)) => {
                Err(Failure::of_store(name.as_bytes(), &error))
            }
            (Err(_), None) => Ok(None),
        }
    }

    /// The rows to read of an RRD, within the budget.
    fn plan(&self, status: &RrdStatus, wanted: &Wanted<'_>) -> Result<Plan, Failure> {
        let definition = &status.definition;
        let request =
            FetchRequest::new(archive_cf(status, wanted), wanted.from.max(0), wanted.until.max(1), 1);
        let plan = plan(definition, status.last_update.whole, &request).map_err(|error| match error {
            PlanError::TooMany { .. } => Failure::too_much(error),
            error => Failure::refused(error),
        })?;
        let count = plan.rows.end.saturating_sub(plan.rows.start).max(0) as u64;
        self.budget.take(count.saturating_mul(definition.ds.len() as u64))?;
        Ok(plan)
    }
}

/// The values of a data source.
fn values_of(rows: &FetchRows, ds: usize) -> Vec<f64> {
    rows.values.iter().skip(ds).step_by(rows.ds_names.len().max(1)).copied().collect()
}

/// A data source's rows with these values. A row is shown at its start; the last one, in which the end of the range is, is left out.
fn column(rows: &FetchRows, mut values: Vec<f64>) -> SourceSeries {
    values.pop();
    let units = i64::from(rows.units_per_second.max(1));
    let step = i64::try_from(rows.step).unwrap_or(i64::MAX);
    let (start, end) = (rows.start.div_euclid(units), rows.end.div_euclid(units));
    if units == 1 {
        return SourceSeries { start, end, step: step.max(1), values, ..SourceSeries::default() };
    }
    // Times here are whole seconds: rows that are none are averaged over the least number of seconds that is.
    let seconds = (1..=units).find(|seconds| (seconds * units) % step.max(1) == 0).unwrap_or(units);
    let count = (seconds * units / step.max(1)).max(1) as usize;
    let average = |chunk: &[f64]| {
        let known: Vec<f64> = chunk.iter().copied().filter(|value| !value.is_nan()).collect();
        known.iter().sum::<f64>() / known.len() as f64
    };
    // Chunks begin at multiples of their length.
    let number = rows.start.div_euclid(step.max(1));
    let lead = (number.rem_euclid(count as i64) as usize).min(values.len());
    let first = (lead > 0)
        .then(|| values.drain(..count.saturating_sub(lead).min(values.len())).collect::<Vec<f64>>());
    let mut averaged: Vec<f64> = first.iter().map(|chunk| average(chunk)).collect();
    averaged.extend(values.chunks(count).map(average));
    let start = start - start.rem_euclid(seconds);
    SourceSeries {
        start,
        end: end.max(start + seconds),
        step: seconds,
        values: averaged,
        ..SourceSeries::default()
    }
}

/// The consolidation function of the rows that are read: the wished one, if it is kept for the whole range and differs from AVERAGE.
fn archive_cf(status: &RrdStatus, wanted: &Wanted<'_>) -> Cf {
    let definition: &Definition = &status.definition;
    let first = definition.rra.first().map_or(Cf::Average, |rra| rra.cf.cf());
    let has = |cf: Cf| definition.rra.iter().any(|rra| rra.cf.cf() == cf);
    let usual = if has(Cf::Average) { Cf::Average } else { first };
    let Some(wished) = wanted.cf.filter(|cf| *cf != usual && has(*cf)) else { return usual };
    let last = status.last_update.whole;
    let chosen = |cf: Cf| {
        let request = FetchRequest::new(cf, wanted.from.max(0), wanted.until.max(1), 1);
        let rra = definition.rra.get(plan(definition, last, &request).ok()?.rra)?;
        let span = rrd::grid::row_span(definition.step, rra.pdp_per_row);
        let oldest = rrd::grid::row_number(last, span).saturating_sub(rra.row_count as i64);
        Some((rra.pdp_per_row, oldest.saturating_mul(span)))
    };
    match (chosen(usual), chosen(wished)) {
        // In rows of one reading, all consolidation functions are equal.
        (Some((1, _)), _) | (_, None) => usual,
        (Some((_, usual_begin)), Some((_, begin))) => {
            let from = wanted.from.saturating_mul(i64::from(definition.units_per_second.max(1)));
            if begin <= from || begin <= usual_begin { wished } else { usual }
        }
        (None, Some(_)) => wished,
    }
}

/// Conditions of tags as conditions of labels. A regular expression need not fit a value's end here.
pub fn matchers(conditions: &[TagCondition]) -> Result<Vec<Matcher>, Failure> {
    let one = |condition: &TagCondition| {
        let operator = match (condition.is_regex, condition.is_not) {
            (false, false) => Operator::Equal,
            (false, true) => Operator::NotEqual,
            (true, false) => Operator::Regex,
            (true, true) => Operator::NotRegex,
        };
        let value = match condition.is_regex {
            true => format!("(?:{})(?s:.*)", condition.value),
            false => condition.value.clone(),
        };
        let label = if condition.tag == "name" { NAME } else { &condition.tag };
        Matcher::new(label, operator, &value)
            .map_err(|error| Failure::bad(format!("{}: {error}", condition.tag)))
    };
    conditions.iter().map(one).collect()
}

/// The path and the tags of a series, its name first.
pub fn tagged(labels: &Labels) -> (String, Vec<(String, String)>) {
    let name = labels.name().to_owned();
    let mut path = name.clone();
    let mut tags = vec![("name".to_owned(), name)];
    for (tag, value) in labels.iter().filter(|(tag, _)| *tag != NAME) {
        path.push_str(&format!(";{tag}={value}"));
        tags.push((tag.to_owned(), value.to_owned()));
    }
    (path, tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_no_whole_seconds_are_averaged() {
        let rows = FetchRows {
            start: 1_500,
            end: 4_500,
            step: 500,
            units_per_second: 1000,
            ds_names: vec!["a".to_owned(), "b".to_owned()],
            values: [1.0, 2.0, 4.0, f64::NAN, 3.0, 9.0].iter().flat_map(|value| [*value, 0.0]).collect(),
        };
        let series = column(&rows, values_of(&rows, 0));
        // The first second has one row, and the last row is left out.
        assert_eq!((series.start, series.step), (1, 1));
        assert_eq!(series.values, [1.0, 3.0, 3.0]);
    }
}
