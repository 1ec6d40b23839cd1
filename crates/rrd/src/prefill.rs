//! A new RRD filled with the past of others: `create --source`, and the archives that `tune` adds.
//!
//! Experiments with Debian's rrdtool showed which value comes from where; `tests/prefill_oracle.rs` keeps us to
//! it. A row comes from the first source that has it: unchanged, when an archive of the same function has rows
//! of the same length; otherwise it is assembled from AVERAGE archives, the finest first, and then from those of
//! its own function. The open row of each archive is made from primary points of the same origin, as an update
//! would make it. Compat: Holt-Winters archives are treated like any other, so a season may be filled with
//! averages; the state of their forecasts is copied where the same archive is at the same primary point.

mod past;
pub mod rates;

use crate::content::Rrd;
use crate::create::new_live;
use crate::definition::{Cf, Consolidation, Definition, DsKind, PlainCf};
use crate::grid;
use crate::live::{CdpPrep, HwPrep, UNKNOWN};
use crate::update::cdp::{RowCut, accumulate, complete};
use past::{Column, Past};

/// More than this fraction of a primary point must be known.
const POINT_XFF: f64 = 0.5;

/// Where a data source of the new RRD gets its past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the data source in the sources.
    pub name: String,
    /// The only source to use, counted from 1; `None` for all.
    pub source: Option<u64>,
}

/// The origins of a definition's data sources, as its arguments map them (`DS:name=other[1]:...`). Without a
/// mapping: the same name, in all sources.
pub fn origins<A: AsRef<str>>(definition: &Definition, args: &[A]) -> Vec<Origin> {
    let mapped = |name: &str| {
        let heads = args.iter().filter_map(|arg| arg.as_ref().strip_prefix("DS:")?.split(':').next());
        let (_, mapping) = heads.filter_map(|head| head.split_once('=')).find(|(ds, _)| *ds == name)?;
        let (name, index) = mapping.split_once('[').unwrap_or((mapping, ""));
        let source = (!index.is_empty()).then(|| index.trim_end_matches(']').parse().unwrap_or(u64::MAX));
        Some(Origin { name: name.to_string(), source })
    };
    let own = |name: &str| Origin { name: name.to_string(), source: None };
    definition.ds.iter().map(|ds| mapped(&ds.name).unwrap_or_else(|| own(&ds.name))).collect()
}

/// The time of the last update, in whole units.
fn last_update(rrd: &Rrd) -> i64 {
    rrd.shape().split(&rrd.live.words).last_update.whole
}

/// The start of an RRD that is filled from these sources, when none is given: the newest of their last
/// updates, in whole units of them all.
pub fn default_start(sources: &[&Rrd]) -> Option<i64> {
    sources.iter().map(|source| last_update(source)).max()
}

/// Why the source at an index cannot fill an RRD of `definition`: one of them counts thousandths of a second, the other
/// whole seconds.
pub fn unfit_source(definition: &Definition, sources: &[&Rrd]) -> Option<(usize, &'static str)> {
    let other = |source: &&Rrd| source.definition.units_per_second != definition.units_per_second;
    let why = match definition.units_per_second {
        1 => "it counts thousandths of a second; give the new RRD a step or heartbeat with decimals too",
        _ => "it counts whole seconds; give the new RRD no decimals",
    };
    sources.iter().position(other).map(|index| (index, why))
}

/// What Holt-Winters archives start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forecasts {
    /// The past, like all archives (`create --source`).
    Filled,
    /// Unknown values, except for the newest primary point (`tune`).
    Fresh,
}

/// A new RRD of `definition` as of `start` (units), filled with the past of `sources`.
///
/// `origins` has one entry per data source. Sources with other units than the definition's ([`unfit_source`]) are
/// skipped.
/// Without sources this is the RRD that `create` makes.
pub fn prefill(
    definition: Definition,
    start: i64,
    origins: &[Origin],
    sources: &[&Rrd],
    forecasts: Forecasts,
) -> Rrd {
    let live = new_live(&definition, start);
    let archives = definition.rra.iter().map(|rra| match rra.cf.is_season() {
        true => Vec::new(),
        false => vec![UNKNOWN; rra.row_count as usize * definition.ds.len()],
    });
    let archives = archives.collect();
    let mut rrd = Rrd { definition, live, archives };
    if sources.is_empty() {
        return rrd;
    }
    for (ds, origin) in origins.iter().enumerate() {
        let mut past = Past::default();
        for (index, source) in sources.iter().enumerate() {
            let wanted = origin.source.is_none_or(|number| number == index as u64 + 1);
            let same_units = source.definition.units_per_second == rrd.definition.units_per_second;
            if let (true, true, Some(there)) = (wanted, same_units, source.definition.ds_index(&origin.name))
            {
                past.add(source, index, there);
            }
        }
        adopt_points(&mut rrd, ds, &past, sources);
        let points = past.candidates(Cf::Average, rrd.definition.step as i64);
        let mut filler = Filler { rrd: &mut rrd, ds, start, past, points, forecasts };
        filler.rows();
        filler.open_rows(sources);
    }
    rrd
}

/// Copies the open primary point from the first source that rows could be made from.
fn adopt_points(rrd: &mut Rrd, ds: usize, past: &Past<'_>, sources: &[&Rrd]) {
    for rra in 0..rrd.definition.rra.len() {
        let cf = rrd.definition.rra[rra].cf.cf();
        past.sources_for(cf).for_each(|(source, there)| adopt_point(rrd, ds, sources[source], there));
    }
}

/// Copies the open primary point, if none has been copied yet, the types are the same, and the new RRD's open
/// point ends no earlier than the source's and begins before that one ends.
fn adopt_point(rrd: &mut Rrd, ds: usize, source: &Rrd, there: usize) {
    let same_type = match (&rrd.definition.ds[ds].kind, &source.definition.ds[there].kind) {
        (DsKind::Fed { ds_type, .. }, DsKind::Fed { ds_type: other, .. }) => ds_type == other,
        (DsKind::Compute(_), DsKind::Compute(_)) => true,
        _ => false,
    };
    let step = rrd.definition.step as i64;
    let begin = last_update(rrd).div_euclid(step) * step;
    let source_step = source.definition.step as i64;
    let source_end = (last_update(source).div_euclid(source_step) + 1) * source_step;
    let point = source.shape().split(&source.live.words).pdp[there];
    let shape = rrd.shape();
    let own = &mut shape.split_mut(&mut rrd.live.words).pdp[ds];
    let fresh = own.last_ds.as_bytes() == b"U";
    if fresh
        && same_type
        && begin + step >= source_end
        && begin < source_end
        && point.last_ds.as_bytes() != b"U"
    {
        *own = point;
    }
}

/// Fills one data source.
struct Filler<'r, 's> {
    rrd: &'r mut Rrd,
    ds: usize,
    start: i64,
    past: Past<'s>,
    /// What primary points are made from.
    points: Vec<Column<'s>>,
    forecasts: Forecasts,
}

impl Filler<'_, '_> {
    fn plain(&self, rra: usize) -> Option<(PlainCf, f64)> {
        match self.rrd.definition.rra[rra].cf {
            Consolidation::Plain { cf, xff } => Some((cf, xff)),
            _ => None,
        }
    }

    fn is_filled(&self, rra: usize) -> bool {
        self.forecasts == Forecasts::Filled || self.plain(rra).is_some()
    }

    fn rows(&mut self) {
        let ds_count = self.rrd.definition.ds.len();
        for rra in 0..self.rrd.definition.rra.len() {
            if !self.is_filled(rra) {
                continue;
            }
            let cf = self.rrd.definition.rra[rra].cf.cf();
            // Holt-Winters archives have no xff, which counts as 0.
            let xff = self.plain(rra).map_or(0.0, |(_, xff)| xff);
            let span = self.rrd.definition.rra[rra].span(self.rrd.definition.step);
            let candidates = self.past.candidates(cf, span);
            let newest = self.rrd.definition.newest_row(rra, self.start);
            let count = self.rrd.definition.rra[rra].row_count as i64;
            let season = self.rrd.live.seasons.iter_mut().find(|season| season.rra == rra);
            let (rows, oldest) = match season {
                Some(season) => (&mut season.values, season.current_row as usize + 1),
                None => (&mut self.rrd.archives[rra], 0),
            };
            for index in 0..count {
                let end = (newest - count + 1 + index) * span;
                let row = (oldest + index as usize) % count as usize;
                rows[row * ds_count + self.ds] = past::row(&candidates, cf, xff, end - span, end);
            }
        }
    }

    /// The archive of the new RRD whose rows are primary points, if it reaches back far enough for all.
    fn point_archive(&self) -> Option<usize> {
        let rra = &self.rrd.definition.rra;
        let longest = rra.iter().map(|rra| rra.pdp_per_row).max().unwrap_or(1);
        let average = |index: &usize| {
            rra[*index].pdp_per_row == 1 && self.plain(*index).is_some_and(|(cf, _)| cf == PlainCf::Average)
        };
        let most =
            (0..rra.len()).filter(average).min_by_key(|&index| std::cmp::Reverse(rra[index].row_count))?;
        (rra[most].row_count >= 2 * longest).then_some(most)
    }

    /// The primary point with this number.
    fn point(&self, archive: Option<usize>, number: i64) -> f64 {
        let step = self.rrd.definition.step as i64;
        match archive {
            None => past::row(&self.points, Cf::Average, POINT_XFF, (number - 1) * step, number * step),
            Some(rra) => {
                let count = self.rrd.definition.rra[rra].row_count as i64;
                let row = count - 1 - (self.rrd.definition.newest_row(rra, self.start) - number);
                self.rrd.archives[rra][row as usize * self.rrd.definition.ds.len() + self.ds]
            }
        }
    }

    /// The open row of each archive: copied from an archive of the same kind at the same primary point, or made
    /// from the points since the last row.
    fn open_rows(&mut self, sources: &[&Rrd]) {
        let archive = self.point_archive();
        let ds_count = self.rrd.definition.ds.len();
        for rra in 0..self.rrd.definition.rra.len() {
            let same = if self.is_filled(rra) { self.same_cell(rra, sources) } else { None };
            let cell = match (&same, self.plain(rra)) {
                (Some((cell, _)), _) => *cell,
                (None, Some((cf, xff))) => self.open_row(rra, cf, xff, archive),
                (None, None) => self.forecast_cell(rra, archive),
            };
            let shape = self.rrd.shape();
            let head = shape.split_mut(&mut self.rrd.live.words);
            head.cdp[rra * ds_count + self.ds] = cell;
            if let (Some(hw), Some((_, Some(learnt)))) = (shape.hw_index(rra), same) {
                head.hw[hw * ds_count + self.ds] = learnt;
            }
        }
    }

    /// The cell of a Holt-Winters archive: a fresh one, updated with the newest primary point.
    fn forecast_cell(&self, rra: usize, archive: Option<usize>) -> CdpPrep {
        let shape = self.rrd.shape();
        let index = rra * self.rrd.definition.ds.len() + self.ds;
        let fresh = shape.split(&self.rrd.live.words).cdp[index];
        let last = grid::divide(self.start, self.rrd.definition.step).0;
        CdpPrep { primary: known_or_unknown(self.point(archive, last)), ..fresh }
    }

    /// The cell of an archive of the same kind at the same primary point, and the state of its forecast.
    fn same_cell(&self, rra: usize, sources: &[&Rrd]) -> Option<(CdpPrep, Option<HwPrep>)> {
        let definition = &self.rrd.definition;
        let cf = definition.rra[rra].cf.cf();
        let span = definition.rra[rra].span(definition.step);
        let fits = |column: &&Column<'_>| {
            let source = sources[column.origin.0];
            source.definition.step == definition.step
                && grid::divide(last_update(source), definition.step).0
                    == grid::divide(self.start, definition.step).0
        };
        let column = self.past.same(cf, span).find(fits)?;
        let source = sources[column.origin.0];
        let shape = source.shape();
        let head = shape.split(&source.live.words);
        let index = |archive: usize| archive * source.definition.ds.len() + column.ds();
        let learnt = shape.hw_index(column.origin.1).map(|hw| head.hw[index(hw)]);
        Some((head.cdp[index(column.origin.1)], learnt))
    }

    fn open_row(&self, rra: usize, cf: PlainCf, xff: f64, archive: Option<usize>) -> CdpPrep {
        let per_row = self.rrd.definition.rra[rra].pdp_per_row;
        let last = grid::divide(self.start, self.rrd.definition.step).0;
        open_cell(cf, xff, per_row, last, |number| self.point(archive, number))
    }
}

/// The open row of an archive of `per_row` primary points a row, when the newest complete one has number `last`.
fn open_cell(cf: PlainCf, xff: f64, per_row: u64, last: i64, point: impl Fn(i64) -> f64) -> CdpPrep {
    let mut cell = CdpPrep { value: UNKNOWN, unknown_pdps: 0, primary: 0.0, secondary: 0.0 };
    if per_row == 1 {
        cell.primary = known_or_unknown(point(last));
        return cell;
    }
    let rows = grid::divide(last, per_row).0;
    for number in (rows - 1) * per_row as i64 + 1..=last {
        let point = point(number);
        match grid::divide(number, per_row).1 {
            0 => complete(cf, xff, &mut cell, point, &RowCut::new(per_row, per_row - 1, 1)),
            _ => accumulate(cf, &mut cell, point, 1),
        }
    }
    cell
}

/// Maps every NaN to the one RRDtool writes.
fn known_or_unknown(value: f64) -> f64 {
    if value.is_nan() { UNKNOWN } else { value }
}
