//! One step of an RRD: `(definition, live head, reading) -> (live head, completed rows)`.
//!
//! The one function that decides and applies an update, live and on replay, in stripes and in files.
//! It refuses without changing anything and allocates nothing once its scratch is warm.
//!
//! Nothing here knows who stores heads or rows, or what time it is. The order of floating point operations
//! is RRDtool's and must stay: no reassociation, no fused multiply-add. Pinned by `tests/update_oracle.rs`.
//!
//! Cost, from `benches/step.rs` (AMD EPYC shared with other work, median of warm state): W1, 15 archives of
//! one source, 124 ns; W2, 8 archives of two, 141 ns; splitting the word before it 28 and 43 ns.

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

/// Takes the rows an update completes.
pub trait RowSink {
    /// `count` rows of archive `rra`, oldest first, numbered from `first_row` (see [`crate::grid`]).
    ///
    /// The first row holds each cell's `primary`, all further ones its `secondary`; `cells` has one entry
    /// per data source. `count` is at most the archive's row count. Not called for SEASONAL and
    /// DEVSEASONAL, whose rows are in [`crate::live::Season`].
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]);

    /// A row of a SEASONAL or DEVSEASONAL archive, which is in its season already; for those who list rows.
    fn season_row(&mut self, _rra: usize, _cells: &[CdpPrep]) {}

    /// What follows are the rows of one span of time, which lasts until `until_whole`. A reading that is cut
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

/// Room that [`step`] works in; keep one and use it for every RRD.
#[derive(Debug, Default)]
pub struct Scratch {
    /// For each source the sum of rate x time that its reading stands for.
    sums: Vec<f64>,
    /// The same for the second part of a span that is cut in two.
    rest_sums: Vec<f64>,
    /// For each source its PDP.
    points: Vec<f64>,
    /// What the PDPs would be: COMPUTE sources are tried before anything changes.
    trial: Vec<PdpPrep>,
    /// Memory of the COMPUTE evaluator.
    stack: Vec<f64>,
    /// True when a season is due to be smoothed; then all are, when the update is done.
    smooth: bool,
    /// The smoothed values of one source.
    smoothed: Vec<f64>,
}

impl Scratch {
    /// Forgets that seasons are due to be smoothed: what [`step_unsmoothed`] left to a [`smooth`] that is not
    /// to come.
    pub fn forget_smoothing(&mut self) {
        self.smooth = false;
    }
}

/// Applies one reading.
///
/// # Errors
/// [`UpdateError`] when the time is not later than the last update or a value cannot be read; nothing has
/// changed then. (RRDtool has by then changed `last_ds` of the sources before the bad one.)
pub fn step(
    definition: &Definition,
    shape: &HeadShape,
    mut head: HeadMut<'_>,
    seasons: &mut [Season],
    reading: &Reading<'_>,
    scratch: &mut Scratch,
    sink: &mut impl RowSink,
) -> Result<(), UpdateError> {
    scratch.smooth = false;
    step_unsmoothed(definition, shape, &mut head, seasons, reading, scratch, sink)?;
    smooth(definition, shape, &mut head, seasons, scratch);
    Ok(())
}

/// Applies one of several readings: seasons that come due are left to [`smooth`], as RRDtool leaves them to
/// the end of an update of several readings.
///
/// # Errors
/// As [`step`].
pub fn step_unsmoothed(
    definition: &Definition,
    shape: &HeadShape,
    head: &mut HeadMut<'_>,
    seasons: &mut [Season],
    reading: &Reading<'_>,
    scratch: &mut Scratch,
    sink: &mut impl RowSink,
) -> Result<(), UpdateError> {
    let mut time = reading.time;
    if definition.version < VERSION_FRACTIONS {
        time = Timestamp::whole(time.whole);
    }
    let last = *head.last_update;
    let seconds = |time: Timestamp| time.in_seconds(definition.units_per_second);
    if time <= last {
        return Err(UpdateError::NotLater { time: seconds(time), last_update: seconds(last) });
    }
    let span = Span::between(last, time, definition.step);
    pdp::read(definition, head.pdp, reading.values, span.interval, &mut scratch.sums)?;

    let context = rpn::Context { now: seconds(time).whole };
    let spans = match span.split_open(definition.step) {
        None => [Some(span), None],
        Some((left, rest)) => {
            pdp::split_sums(&mut scratch.sums, span.interval, &left, &mut scratch.rest_sums);
            [Some(left), Some(rest)]
        }
    };
    if span.elapsed > 0 && definition.fed_count() < definition.ds.len() {
        try_compute(definition, head.pdp, &spans, context, scratch)?;
    }

    keep_texts(definition, head, reading, definition.ds.len());
    if span.elapsed == 0 {
        for (pdp, &sum) in head.pdp.iter_mut().zip(&scratch.sums) {
            pdp::accumulate(pdp, sum, span.interval);
        }
    } else {
        for (nth, span) in spans.iter().flatten().enumerate() {
            if nth == 1 {
                std::mem::swap(&mut scratch.sums, &mut scratch.rest_sums);
            }
            let cut_off = nth == 0 && spans[1].is_some();
            sink.span_begins(if cut_off { last.whole + span.interval as i64 } else { time.whole });
            let (sums, points) = (&scratch.sums, &mut scratch.points);
            close_pdps(definition, head.pdp, sums, span, context, points, &mut scratch.stack)?;
            pass(definition, shape, head, seasons, span, scratch, sink);
        }
    }
    *head.last_update = time;
    Ok(())
}

/// Smooths the seasons when some came due since the last time.
pub fn smooth(
    definition: &Definition,
    shape: &HeadShape,
    head: &mut HeadMut<'_>,
    seasons: &mut [Season],
    scratch: &mut Scratch,
) {
    if std::mem::take(&mut scratch.smooth) {
        for season in seasons {
            season::smooth(definition, shape, head, season, &mut scratch.smoothed);
        }
    }
}

/// Compat: keeps what RRDtool keeps of a reading that was refused for one of its values, the texts of the
/// sources before that one. To be called right after [`step`] or [`step_unsmoothed`] refused it. True when
/// there are such.
pub fn keep_refused(
    definition: &Definition,
    head: &mut HeadMut<'_>,
    reading: &Reading<'_>,
    error: &UpdateError,
    scratch: &Scratch,
) -> bool {
    let count = match error {
        UpdateError::NotANumber { .. }
        | UpdateError::Trailing { .. }
        | UpdateError::NotUnsigned { .. }
        | UpdateError::NotSigned { .. } => scratch.sums.len(),
        _ => 0,
    };
    keep_texts(definition, head, reading, count);
    count > 0
}

/// Keeps each text as the last reading of its source, for the first `count` sources.
fn keep_texts(definition: &Definition, head: &mut HeadMut<'_>, reading: &Reading<'_>, count: usize) {
    let mut texts = reading.values.iter();
    for (ds, pdp) in definition.ds.iter().zip(head.pdp.iter_mut()).take(count) {
        match ds.kind {
            DsKind::Fed { .. } => pdp.last_ds.set(texts.next().expect("as many texts as sources read above")),
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
        let (points, stack) = (&mut scratch.points, &mut scratch.stack);
        close_pdps(definition, &mut scratch.trial, sums, span, context, points, stack)?;
    }
    Ok(())
}

/// Closes the open PDPs of all sources. Fails only for a COMPUTE source.
#[inline]
fn close_pdps(
    definition: &Definition,
    pdp: &mut [PdpPrep],
    sums: &[f64],
    span: &Span,
    context: rpn::Context,
    points: &mut Vec<f64>,
    stack: &mut Vec<f64>,
) -> Result<(), UpdateError> {
    points.clear();
    for ((ds, pdp), &sum) in definition.ds.iter().zip(pdp).zip(sums) {
        let point = match &ds.kind {
            DsKind::Fed { heartbeat, .. } => pdp::close(pdp, sum, span, *heartbeat, definition.step),
            DsKind::Compute(program) => {
                // Its own PDP is never known; it only counts how long.
                pdp::close(pdp, sum, span, u64::MAX, definition.step);
                rpn::evaluate(program, points, context, stack).map_err(UpdateError::Compute)?
            }
        };
        points.push(point);
    }
    Ok(())
}

/// Consolidates the PDPs of a span and hands on the rows.
fn pass(
    definition: &Definition,
    shape: &HeadShape,
    head: &mut HeadMut<'_>,
    seasons: &mut [Season],
    span: &Span,
    scratch: &mut Scratch,
    sink: &mut impl RowSink,
) {
    let archives =
        definition.rra.iter().zip(shape.dividers()).zip(head.cdp.chunks_exact_mut(shape.ds_count()));
    for (index, ((rra, divider), cells)) in archives.enumerate() {
        let Consolidation::Plain { cf, xff } = rra.cf else { continue };
        let (open_row, pdp_in_row) = divider.divide(span.pdp_number);
        let cut = RowCut::new(rra.pdp_per_row, pdp_in_row, span.elapsed);
        let cells_and_points = cells.iter_mut().zip(&scratch.points);
        if cut.rows == 0 {
            for (cell, &point) in cells_and_points {
                cdp::accumulate(cf, cell, point, span.elapsed);
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
                if span.elapsed > 1 {
                    cell.secondary = point;
                }
            }
        }
        let count = cut.rows.min(rra.row_count);
        let newest = open_row + cut.rows as i64;
        sink.rows(index, newest - count as i64 + 1, count, cells);
    }
    if shape.has_holt_winters() {
        pass_holt_winters(definition, shape, head, seasons, span, scratch, sink);
    }
}

/// The Holt-Winters archives' part of [`pass`].
fn pass_holt_winters(
    definition: &Definition,
    shape: &HeadShape,
    head: &mut HeadMut<'_>,
    seasons: &mut [Season],
    span: &Span,
    scratch: &mut Scratch,
    sink: &mut impl RowSink,
) {
    hw::advance(definition, shape, head, seasons, &scratch.points, span.elapsed);
    let ds_count = shape.ds_count();
    for (index, rra) in definition.rra.iter().enumerate() {
        let Some(hw) = shape.hw_index(index) else { continue };
        let cells = &head.cdp[index * ds_count..(index + 1) * ds_count];
        if let Consolidation::Seasonal { smooth_index, .. } = rra.cf {
            let burn_in = season::burn_in(&mut head.hw[hw * ds_count].words);
            for season in seasons.iter_mut().filter(|season| season.rra == index) {
                scratch.smooth |= season::write(season, cells, burn_in, smooth_index, span.elapsed);
            }
            if span.elapsed == 1 {
                sink.season_row(index, cells);
            }
        } else {
            let count = span.elapsed.min(rra.row_count);
            let newest = span.pdp_number + span.elapsed as i64;
            sink.rows(index, newest - count as i64 + 1, count, cells);
        }
    }
}

#[cfg(test)]
mod tests;
