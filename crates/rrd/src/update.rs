//! One update of an RRD: `(definition, live head, reading) -> (live head, completed rows)`.
//!
//! [`Updater`] is the only code that decides and applies an update: live and on replay, in stripes and in
//! files. A refused update changes nothing. Nothing is allocated once the scratch memory is warm.
//!
//! This module does not know where heads or rows are stored, or what time it is. The order of floating-point
//! operations is RRDtool's and must not change: no reassociation, no fused multiply-add. Pinned by
//! `tests/update_oracle.rs`.
//!
//! Cost, from `benches/step.rs` (AMD EPYC shared with other work, best rounds, warm): W1, 15 archives of one
//! source, 96 ns, of which parsing the argument takes 16; W2, 8 archives of two sources, 132 ns, of it 25.

pub(crate) mod cdp;
mod error;
mod hw;
mod pdp;
mod season;

pub use error::UpdateError;

use crate::definition::{Consolidation, Definition, DsKind};
use crate::live::{CdpPrep, HeadMut, HeadShape, PdpPrep, Season};
use crate::reading::Reading;
use crate::rpn;
use crate::time::Timestamp;
use cdp::RowCut;
use pdp::Span;

/// The first format version that keeps fractions of a second.
const VERSION_FRACTIONS: u8 = 3;

/// Receives the rows an update completes.
pub trait RowSink {
    /// `count` rows of archive `rra`, oldest first, numbered from `first_row` (see [`crate::grid`]).
    ///
    /// The first row holds each cell's `primary`, all later ones its `secondary`; `cells` has one entry
    /// per data source. `count` is at most the archive's row count. Not called for SEASONAL and
    /// DEVSEASONAL, whose rows are in [`crate::live::Season`].
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]);

    /// A row of a SEASONAL or DEVSEASONAL archive. Its season already holds it; only sinks that list rows
    /// need this.
    fn season_row(&mut self, _rra: usize, _cells: &[CdpPrep]) {}

    /// The rows that follow belong to one span of time, which ends at `until_whole`. A reading that is cut
    /// in two has two spans.
    fn span_begins(&mut self, _until_whole: i64) {}
}

impl<S: RowSink> RowSink for &mut S {
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]) {
        (**self).rows(rra, first_row, count, cells);
    }

    fn season_row(&mut self, rra: usize, cells: &[CdpPrep]) {
        (**self).season_row(rra, cells);
    }

    fn span_begins(&mut self, until_whole: i64) {
        (**self).span_begins(until_whole);
    }
}

/// Memory that [`Updater`] works in. Keep one and reuse it for every RRD.
#[derive(Debug, Default)]
pub struct Scratch {
    /// For each source, the sum of rate x time its reading stands for.
    sums: Vec<f64>,
    /// The same for the second part of a span that is cut in two.
    rest_sums: Vec<f64>,
    /// The PDPs of the current span.
    points: Points,
    /// Copies of the open PDPs, on which COMPUTE sources are tried before anything changes.
    trial: Vec<PdpPrep>,
    /// True when a season is due to be smoothed; then all are, at the end of the update.
    smooth: bool,
    /// The smoothed values of one source.
    smoothed: Vec<f64>,
}

/// One PDP per source, and the memory to compute them.
#[derive(Debug, Default)]
struct Points {
    /// For each source, its PDP.
    values: Vec<f64>,
    /// The stack of the COMPUTE evaluator.
    stack: Vec<f64>,
}

impl Points {
    /// Closes the open PDPs of all sources. Fails only for a COMPUTE source.
    #[inline]
    fn close(
        &mut self,
        definition: &Definition,
        pdp: &mut [PdpPrep],
        sums: &[f64],
        span: &Span,
        context: rpn::Context,
    ) -> Result<(), UpdateError> {
        self.values.clear();
        for ((ds, pdp), &sum) in definition.ds.iter().zip(pdp).zip(sums) {
            let point = match &ds.kind {
                DsKind::Fed { heartbeat, .. } => pdp::close(pdp, sum, span, *heartbeat, definition.step),
                DsKind::Compute(program) => {
                    // Its own PDP is never known; closing it only counts the unknown time.
                    pdp::close(pdp, sum, span, u64::MAX, definition.step);
                    rpn::evaluate(program, &self.values, context, &mut self.stack)
                        .map_err(UpdateError::Compute)?
                }
            };
            self.values.push(point);
        }
        Ok(())
    }
}

/// One RRD while it is updated.
#[derive(Debug)]
pub struct Updater<'a, S> {
    /// What the RRD is.
    pub definition: &'a Definition,
    /// The shape of heads of this definition.
    pub shape: &'a HeadShape,
    /// Its live head.
    pub head: HeadMut<'a>,
    /// Its seasons, one for each SEASONAL and DEVSEASONAL archive.
    pub seasons: &'a mut [Season],
    /// Memory to work in.
    pub scratch: &'a mut Scratch,
    /// Receives the completed rows.
    pub sink: S,
}

impl<S: RowSink> Updater<'_, S> {
    /// Applies one reading.
    ///
    /// # Errors
    /// [`UpdateError`] when the time is not later than the last update or a value cannot be read. Nothing
    /// has changed then. (RRDtool has by then changed `last_ds` of the sources before the bad one.)
    pub fn apply(&mut self, reading: &Reading<'_>) -> Result<(), UpdateError> {
        self.scratch.smooth = false;
        self.apply_unsmoothed(reading)?;
        self.smooth();
        Ok(())
    }

    /// Applies one of several readings. Seasons that come due wait for [`Updater::smooth`], as RRDtool
    /// smooths at the end of an update of several readings.
    ///
    /// # Errors
    /// As [`Updater::apply`].
    pub fn apply_unsmoothed(&mut self, reading: &Reading<'_>) -> Result<(), UpdateError> {
        let definition = self.definition;
        let last = *self.head.last_update;
        let time = later(definition, last, reading.time)?;
        let seconds = |time: Timestamp| time.in_seconds(definition.units_per_second);
        let scratch = &mut *self.scratch;
        let span = Span::between(last, time, definition.step);
        pdp::read(definition, self.head.pdp, reading.values, span.interval, &mut scratch.sums)?;

        let context = rpn::Context { now: seconds(time).whole };
        let spans = match span.split_open(definition.step) {
            None => [Some(span), None],
            Some((left, rest)) => {
                pdp::split_sums(&mut scratch.sums, span.interval, &left, &mut scratch.rest_sums);
                [Some(left), Some(rest)]
            }
        };
        if span.elapsed > 0 && definition.fed_count() < definition.ds.len() {
            try_compute(definition, self.head.pdp, &spans, context, scratch)?;
        }

        keep_texts(definition, self.head.pdp, reading, definition.ds.len());
        if span.elapsed == 0 {
            for (pdp, &sum) in self.head.pdp.iter_mut().zip(&scratch.sums) {
                pdp::accumulate(pdp, sum, span.interval);
            }
        } else {
            for (nth, part) in spans.iter().flatten().enumerate() {
                let scratch = &mut *self.scratch;
                if nth == 1 {
                    std::mem::swap(&mut scratch.sums, &mut scratch.rest_sums);
                }
                let cut_off = nth == 0 && spans[1].is_some();
                self.sink.span_begins(if cut_off { last.whole + part.interval as i64 } else { time.whole });
                scratch.points.close(definition, self.head.pdp, &scratch.sums, part, context)?;
                self.consolidate(part);
            }
        }
        *self.head.last_update = time;
        Ok(())
    }

    /// Smooths the seasons when one has come due since the last call.
    pub fn smooth(&mut self) {
        if std::mem::take(&mut self.scratch.smooth) {
            for season in &mut *self.seasons {
                season::smooth(
                    self.definition,
                    self.shape,
                    &mut self.head,
                    season,
                    &mut self.scratch.smoothed,
                );
            }
        }
    }

    /// Forgets that seasons are due, for callers that will not call [`Updater::smooth`].
    pub fn forget_smoothing(&mut self) {
        self.scratch.smooth = false;
    }

    /// Compat: keeps what RRDtool keeps of a reading that was refused for one of its values: the texts of
    /// the sources before the bad one. Call it right after the refusal. True when it kept any.
    pub fn keep_refused(&mut self, reading: &Reading<'_>, error: &UpdateError) -> bool {
        let count = match error {
            UpdateError::NotANumber { .. }
            | UpdateError::Trailing { .. }
            | UpdateError::NotUnsigned { .. }
            | UpdateError::NotSigned { .. } => self.scratch.sums.len(),
            _ => 0,
        };
        keep_texts(self.definition, self.head.pdp, reading, count);
        count > 0
    }

    /// Consolidates the PDPs of a span and hands the completed rows to the sink.
    fn consolidate(&mut self, span: &Span) {
        // Nearly always one PDP of one source: half of the work is not needed then, which the compiler sees.
        match (span.elapsed, self.shape.ds_count()) {
            (1, 1) => self.consolidate_plain(span, 1, 1),
            (1, ds_count) => self.consolidate_plain(span, 1, ds_count),
            (elapsed, ds_count) => self.consolidate_plain(span, elapsed, ds_count),
        }
        if self.shape.has_holt_winters() {
            self.consolidate_holt_winters(span);
        }
    }

    /// The part of the archives of AVERAGE, MIN, MAX and LAST, of a span of `elapsed` PDPs and `ds_count` sources.
    #[inline(always)]
    fn consolidate_plain(&mut self, span: &Span, elapsed: u64, ds_count: usize) {
        let archives = self.definition.rra.iter().zip(self.shape.dividers());
        let cells = self.head.cdp.chunks_exact_mut(ds_count);
        for (index, ((rra, divider), cells)) in archives.zip(cells).enumerate() {
            let Consolidation::Plain { cf, xff } = rra.cf else { continue };
            let (open_row, pdp_in_row) = divider.divide(span.pdp_number);
            let cut = RowCut::new(rra.pdp_per_row, pdp_in_row, elapsed);
            let cells_and_points = cells.iter_mut().zip(&self.scratch.points.values);
            if cut.rows == 0 {
                for (cell, &point) in cells_and_points {
                    cdp::accumulate(cf, cell, point, elapsed);
                }
                continue;
            }
            if rra.pdp_per_row > 1 {
                for (cell, &point) in cells_and_points {
                    cdp::complete(cf, xff, cell, point, &cut);
                }
            } else {
                // Rows of one PDP: nothing to consolidate, and xff does not matter.
                for (cell, &point) in cells_and_points {
                    cell.primary = point;
                    if elapsed > 1 {
                        cell.secondary = point;
                    }
                }
            }
            let count = cut.rows.min(rra.row_count);
            let newest = open_row + cut.rows as i64;
            self.sink.rows(index, newest - count as i64 + 1, count, cells);
        }
    }

    /// The Holt-Winters archives' part of [`Updater::consolidate`].
    fn consolidate_holt_winters(&mut self, span: &Span) {
        let (definition, shape, head) = (self.definition, self.shape, &mut self.head);
        hw::Forecast { definition, shape, head, seasons: self.seasons }
            .advance(&self.scratch.points.values, span.elapsed);
        let ds_count = shape.ds_count();
        for (index, rra) in definition.rra.iter().enumerate() {
            let Some(hw) = shape.hw_index(index) else { continue };
            let cells = &self.head.cdp[index * ds_count..(index + 1) * ds_count];
            if let Consolidation::Seasonal { smooth_index, .. } = rra.cf {
                let burn_in = season::burn_in(&mut self.head.hw[hw * ds_count].words);
                for season in self.seasons.iter_mut().filter(|season| season.rra == index) {
                    self.scratch.smooth |= season::write(season, cells, burn_in, smooth_index, span.elapsed);
                }
                if span.elapsed == 1 {
                    self.sink.season_row(index, cells);
                }
            } else {
                let count = span.elapsed.min(rra.row_count);
                let newest = span.pdp_number + span.elapsed as i64;
                self.sink.rows(index, newest - count as i64 + 1, count, cells);
            }
        }
    }
}

/// Whether [`Updater::apply`] will accept a reading after an update at `last`, decided without the live head. Returns
/// the time the reading counts with.
///
/// One thing needs the live head and is not checked here: a DCOUNTER or DDERIVE whose last value is unknown accepts
/// any text; here it must be a number.
///
/// # Errors
/// As [`Updater::apply`].
pub fn check(
    definition: &Definition,
    last: Timestamp,
    reading: &Reading<'_>,
) -> Result<Timestamp, UpdateError> {
    let time = later(definition, last, reading.time)?;
    pdp::check(definition, reading.values, pdp::interval(last, time))?;
    Ok(time)
}

/// The time a reading counts with: RRDs of versions 1 and 2 only have whole units.
pub fn effective_time(definition: &Definition, time: Timestamp) -> Timestamp {
    if definition.version < VERSION_FRACTIONS { Timestamp::whole(time.whole) } else { time }
}

/// [`effective_time`]; an error when it is not after `last`.
#[inline]
fn later(definition: &Definition, last: Timestamp, time: Timestamp) -> Result<Timestamp, UpdateError> {
    let time = effective_time(definition, time);
    if time > last {
        return Ok(time);
    }
    let units_per_second = definition.units_per_second;
    let seconds = |time: Timestamp| time.in_seconds(units_per_second);
    Err(UpdateError::NotLater { time: seconds(time), last_update: seconds(last), units_per_second })
}

/// Keeps each text as the last reading of its source, for the first `count` sources.
fn keep_texts(definition: &Definition, pdp: &mut [PdpPrep], reading: &Reading<'_>, count: usize) {
    let mut texts = reading.values.iter();
    for (ds, pdp) in definition.ds.iter().zip(pdp).take(count) {
        match ds.kind {
            DsKind::Fed { .. } => pdp.last_ds.set(texts.next().expect("`pdp::read` found a text per source")),
            DsKind::Compute(_) => pdp.last_ds.set(b"U"),
        }
    }
}

/// Runs the COMPUTE sources on copies of the PDPs.
fn try_compute(
    definition: &Definition,
    pdp: &[PdpPrep],
    spans: &[Option<Span>; 2],
    context: rpn::Context,
    scratch: &mut Scratch,
) -> Result<(), UpdateError> {
    scratch.trial.clear();
    scratch.trial.extend_from_slice(pdp);
    for (span, sums) in spans.iter().flatten().zip([&scratch.sums, &scratch.rest_sums]) {
        scratch.points.close(definition, &mut scratch.trial, sums, span, context)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
