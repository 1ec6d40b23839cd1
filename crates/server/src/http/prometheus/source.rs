//! Rows of the store for PromQL.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use promql::value::ABSENT;
use promql::{Matcher, RowKind, Selected, Source, SourceError, SourceSeries, Wanted};
use rrd::definition::Cf;
use rrd::grid;
use store::engine::KeptBlocks;
use suggest::{MetricKind, MetricRules};

use super::archive::{Archive, Need, archives, cf_of, choose};
use super::index::{CF_LABEL, CandidateSeries, FoundSeries, MetricIndex};
use crate::http::failure::Failure;
use crate::http::rows::Budget;
use crate::parallel::map_parts;
use crate::service::Service;

/// The most series of one selector.
pub const SERIES_MAX: usize = 200_000;
/// Series that a thread is worth: it costs as much as reading a day of a few of them.
const SERIES_OF_THREAD: usize = 64;
/// Functions for which rows of several readings are not what single readings are.
const OF_SINGLE_READINGS: [&str; 6] =
    ["quantile_over_time", "stddev_over_time", "stdvar_over_time", "mad_over_time", "changes", "resets"];

/// The store of a request.
pub struct StoreSource<'a> {
    /// The part of the store that the client sees.
    pub service: &'a Service,
    /// Names and labels.
    pub rules: &'a MetricRules,
    /// The series.
    pub index: Arc<MetricIndex>,
    /// What the request may take.
    pub budget: &'a Budget,
    /// Rows must not be longer (`max_source_resolution`), in milliseconds.
    pub row_max: Option<i64>,
}

/// What was read for a selector by one thread.
#[derive(Default)]
struct Reading {
    selected: Selected,
    /// The rows that were read last: data sources of one RRD are read together.
    last: Option<LastRows>,
    /// The times of the rows that were read last, which most series have.
    times: Option<RowTimes>,
}

/// The times of rows, in milliseconds.
struct RowTimes {
    /// Units between two rows, and in a second.
    span: (i64, i64),
    numbers: Range<i64>,
    times: Arc<[i64]>,
}

/// Rows of all data sources of an RRD.
struct LastRows {
    rrd: u32,
    rra: usize,
    numbers: Range<i64>,
    values: Vec<f64>,
}

/// A choice of archive that the query does not make itself.
struct Implied {
    cf: Cf,
    archive: Option<Archive>,
    /// What it could not be.
    warning: Option<String>,
}

impl Source for StoreSource<'_> {
    fn select(&mut self, wanted: &Wanted<'_>) -> Result<Selected, SourceError> {
        let all = self.index.candidates(self.service, wanted.matchers);
        let count = AtomicUsize::new(0);
        let read = |part: &[CandidateSeries<'_>]| -> Result<Selected, Failure> {
            // Series come in the order of names, which is often that of their making.
            let _kept = KeptBlocks::begin();
            let mut reading = Reading::default();
            let mut finder = self.index.finder(self.service, self.rules, wanted.matchers);
            for (index, candidate) in part.iter().enumerate() {
                if index % 1024 == 0 {
                    self.budget.count(0)?;
                }
                let Some(found) = finder.find(*candidate) else { continue };
                if count.fetch_add(1, Ordering::Relaxed) >= SERIES_MAX {
                    return Err(too_many());
                }
                self.add(wanted, &found, &mut reading)?;
            }
            Ok(reading.selected)
        };
        let mut selected = Selected::default();
        for part in map_parts(&all, SERIES_OF_THREAD, read) {
            let part = part?;
            add_series(&mut selected.series, part.series);
            part.warnings.into_iter().for_each(|text| note(&mut selected.warnings, text));
            part.infos.into_iter().for_each(|text| note(&mut selected.infos, text));
        }
        match selected.series.len() > SERIES_MAX {
            true => Err(too_many().into()),
            false => Ok(selected),
        }
    }

    fn reserve(&mut self, bytes: u64) -> Result<(), SourceError> {
        self.budget.count(0)?;
        match bytes {
            0 => Ok(()),
            bytes => Ok(self.budget.hold(bytes)?),
        }
    }

    fn run(&self, count: usize, least: usize, work: &(dyn Fn(usize) + Sync)) -> Result<(), SourceError> {
        let numbers: Vec<usize> = (0..count).collect();
        let in_turn = |part: &[usize]| {
            part.iter().try_for_each(|number| {
                work(*number);
                self.budget.count(0)
            })
        };
        Ok(map_parts(&numbers, least, in_turn).into_iter().collect::<Result<(), Failure>>()?)
    }
}

fn too_many() -> Failure {
    Failure::too_much(format!("more than {SERIES_MAX} series: select fewer"))
}

impl StoreSource<'_> {
    /// Adds the rows of a series.
    fn add(&self, wanted: &Wanted<'_>, found: &FoundSeries, reading: &mut Reading) -> Result<(), Failure> {
        let conditions: Vec<&Matcher> =
            wanted.matchers.iter().filter(|matcher| matcher.name == CF_LABEL).collect();
        if conditions.is_empty() {
            let Implied { cf, archive, warning } = self.implied(wanted, found);
            let Some(archive) = archive else { return Ok(()) };
            let before = reading.selected.series.len();
            self.read(wanted, found, archive, (cf, false), reading)?;
            if let Some(warning) = warning.filter(|_| reading.selected.series.len() > before) {
                note(&mut reading.selected.warnings, warning);
            }
            return Ok(());
        }
        for cf in Cf::ALL {
            let is_timed = !matches!(cf, Cf::Seasonal | Cf::DevSeasonal);
            if !is_timed || !conditions.iter().all(|matcher| matcher.matches(cf.name())) {
                continue;
            }
            if let Some(archive) = self.archive(wanted, found, cf) {
                self.read(wanted, found, archive, (cf, true), reading)?;
            }
        }
        Ok(())
    }

    fn need(&self, wanted: &Wanted<'_>) -> Need {
        Need { start: wanted.after(), step: wanted.step, window: wanted.range, row_max: self.row_max }
    }

    fn archive(&self, wanted: &Wanted<'_>, found: &FoundSeries, cf: Cf) -> Option<Archive> {
        let all = archives(&found.status.definition, cf, found.status.last_update.whole);
        choose(&all, self.need(wanted))
    }

    /// The consolidation function that the query implies, with its archive.
    fn implied(&self, wanted: &Wanted<'_>, found: &FoundSeries) -> Implied {
        let implied_cf = cf_of(wanted.function);
        let definition = &found.status.definition;
        let first = definition.rra.first().map_or(Cf::Average, |rra| rra.cf.cf());
        let average = self.archive(wanted, found, Cf::Average);
        let (cf, archive) = match average {
            Some(archive) => (Cf::Average, Some(archive)),
            None => (first, self.archive(wanted, found, first)),
        };
        let fallback = Implied { cf, archive, warning: None };
        // In rows of one reading, all consolidation functions are equal.
        if implied_cf == Cf::Average || average.is_some_and(|archive| archive.points == 1) {
            return fallback;
        }
        let need = self.need(wanted);
        let fits = |archive: &Archive| {
            archive.begin <= need.start && need.window.is_none_or(|window| archive.row <= window)
        };
        match self.archive(wanted, found, implied_cf).filter(fits) {
            Some(archive) => Implied { cf: implied_cf, archive: Some(archive), warning: None },
            None if implied_cf == Cf::Last || cf == implied_cf => fallback,
            None => {
                let (name, implied_cf, cf) = (found.labels.name(), implied_cf.name(), cf.name());
                let warning =
                    format!("{name}: {implied_cf} is not kept for all of this range, {cf} was used");
                Implied { warning: Some(warning), ..fallback }
            }
        }
    }

    fn read(
        &self,
        wanted: &Wanted<'_>,
        found: &FoundSeries,
        archive: Archive,
        (cf, is_named): (Cf, bool),
        reading: &mut Reading,
    ) -> Result<(), Failure> {
        let definition = &found.status.definition;
        let units = i64::from(definition.units_per_second.max(1));
        let rra = &definition.rra[archive.rra];
        let span = grid::row_span(definition.step, rra.pdp_per_row);
        // A value is looked for as far as two rows, and a counter is interested in the row that the end is in.
        let lookback = if wanted.range.is_none() { 2 * archive.row } else { 0 };
        let after = wanted.after().min(wanted.first.saturating_sub(lookback));
        let until = wanted.until().saturating_add(if found.entry.is_counter { archive.row } else { 0 });
        let number = |time: i64| grid::row_number(time.saturating_mul(units).div_euclid(1000), span);
        let newest = grid::row_number(found.status.last_update.whole, span);
        let begin = (number(after) + 1).max(newest.saturating_sub(rra.row_count as i64) + 1);
        let end = number(until).min(newest) + 1;
        if begin >= end {
            return Ok(());
        }
        let column = self.column(found, archive.rra, begin..end, &mut reading.last)?;
        self.budget.hold(column.len() as u64 * 16)?;
        let source = &definition.ds[usize::from(found.entry.ds)];
        let kind = match (found.entry.is_counter, MetricKind::of(&source.kind)) {
            (true, _) => RowKind::Counter { row: archive.row },
            (false, MetricKind::Rate) => RowKind::Rates,
            (false, MetricKind::Gauge) => RowKind::Points,
        };
        if archive.points > 1
            && wanted.function.is_some_and(|function| OF_SINGLE_READINGS.contains(&function))
        {
            let row = promql::number::duration_text(archive.row);
            note(&mut reading.selected.infos, format!("{} is over rows of {row}", found.labels.name()));
        }
        let labels = &found.labels;
        let times = reading.row_times((span, units), begin..end);
        reading.selected.series.push(SourceSeries {
            labels: if is_named { labels.with(CF_LABEL, cf.name()) } else { labels.clone() },
            times,
            values: column,
            kind,
            lookback: 2 * archive.row,
            weight: archive.points as f64,
        });
        Ok(())
    }

    /// Rows of a data source by their numbers.
    fn column(
        &self,
        found: &FoundSeries,
        rra: usize,
        numbers: Range<i64>,
        last: &mut Option<LastRows>,
    ) -> Result<Vec<f64>, Failure> {
        let known = |value: f64| if value.is_nan() { ABSENT } else { value };
        let sources = found.status.definition.ds.len();
        if sources == 1 {
            let mut values = self.rows(found, rra, numbers)?;
            values.iter_mut().for_each(|value| *value = known(*value));
            return Ok(values);
        }
        let is_it =
            |last: &&mut LastRows| last.rrd == found.entry.rrd && last.rra == rra && last.numbers == numbers;
        let rows = match last.as_mut().filter(is_it) {
            Some(rows) => rows,
            None => {
                let values = self.rows(found, rra, numbers.clone())?;
                last.insert(LastRows { rrd: found.entry.rrd, rra, numbers, values })
            }
        };
        let column = rows.values.iter().skip(usize::from(found.entry.ds)).step_by(sources.max(1));
        Ok(column.map(|value| known(*value)).collect())
    }

    /// Rows by their numbers, of all data sources.
    fn rows(&self, found: &FoundSeries, rra: usize, numbers: Range<i64>) -> Result<Vec<f64>, Failure> {
        let definition = &found.status.definition;
        let count = (numbers.end - numbers.start) as u64 * definition.ds.len() as u64;
        self.budget.count(count)?;
        match self.service.engine.rows(&found.name, definition, rra, numbers) {
            Ok(values) => Ok(values),
            // It was removed, or has changed its archives, since it was found.
            Err(store::engine::StoreError::NoSuchRrd(_)) => Ok(vec![f64::NAN; count as usize]),
            Err(error) => Err(Failure::of_store(found.name.as_bytes(), &error)),
        }
    }
}

impl Reading {
    /// The ends of rows of `span` units, of which `units` are a second.
    fn row_times(&mut self, span: (i64, i64), numbers: Range<i64>) -> Arc<[i64]> {
        if let Some(last) = &self.times
            && (last.span, &last.numbers) == (span, &numbers)
        {
            return Arc::clone(&last.times);
        }
        let time = |number: i64| grid::row_time(number, span.0).saturating_mul(1000).div_euclid(span.1);
        let times: Arc<[i64]> = numbers.clone().map(time).collect();
        self.times = Some(RowTimes { span, numbers, times: Arc::clone(&times) });
        times
    }
}

/// Adds the series of another thread; those with equal times share them from then on.
fn add_series(all: &mut Vec<SourceSeries>, mut more: Vec<SourceSeries>) {
    if let (Some(times), Some(of_more)) =
        (all.first().map(|series| &series.times), more.first().map(|series| Arc::clone(&series.times)))
        && *times == of_more
    {
        let equal = more.iter_mut().filter(|series| Arc::ptr_eq(&series.times, &of_more));
        equal.for_each(|series| series.times = Arc::clone(times));
    }
    all.append(&mut more);
}

/// Adds a note, each once, and not too many.
fn note(notes: &mut Vec<String>, text: String) {
    if notes.len() < 10 && !notes.contains(&text) {
        notes.push(text);
    }
}
