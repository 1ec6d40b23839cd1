//! A new RRD filled with rates of stretches of time, as another program's logs have them.

use super::{Forecasts, POINT_XFF, open_cell, prefill};
use crate::content::Rrd;
use crate::definition::{Consolidation, Definition, PlainCf};
use crate::grid;
use crate::live::{LastDs, PdpPrep, UNKNOWN};

/// The rates of `N` data sources over a stretch of time. NaN is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch<const N: usize> {
    /// It begins after this time, in seconds.
    pub from: i64,
    /// It ends with this time.
    pub to: i64,
    /// Mean rates, per second.
    pub mean: [f64; N],
    /// The largest of the rates that the means were made of.
    pub max: [f64; N],
}

/// A new RRD of `definition`, which has `N` data sources, none of them computed, and counts whole seconds; as of the end of the last
/// stretch.
///
/// `stretches` follow one another; what lies between them is unknown. `last` are the readings at the end of the last one, from
/// which counters go on: at most 29 bytes, `U` when unknown. Archives of forecasts begin unknown.
pub fn prefill_rates<const N: usize>(
    definition: Definition,
    stretches: &[Stretch<N>],
    last: [LastDs; N],
) -> Rrd {
    let now = stretches.last().map_or(0, |stretch| stretch.to);
    let mut rrd = prefill(definition, now, &[], &[], Forecasts::Fresh);
    let (point, _) = grid::divide(now, rrd.definition.step);
    for (ds, last) in last.into_iter().enumerate() {
        let rates = Rates { stretches, ds };
        let pdp = rates.open_point(point * rrd.definition.step as i64, now, last);
        let shape = rrd.shape();
        shape.split_mut(&mut rrd.live.words).pdp[ds] = pdp;
        for rra in 0..rrd.definition.rra.len() {
            if let Consolidation::Plain { cf, xff } = rrd.definition.rra[rra].cf {
                fill(&mut rrd, rra, &rates, (cf, xff), now);
            }
        }
    }
    rrd
}

/// Fills an archive's rows and its open row.
fn fill<const N: usize>(
    rrd: &mut Rrd,
    rra: usize,
    rates: &Rates<'_, N>,
    (cf, xff): (PlainCf, f64),
    now: i64,
) {
    let step = rrd.definition.step as i64;
    let newest = rrd.definition.newest_row(rra, now);
    let archive = &rrd.definition.rra[rra];
    let (span, count, per_row) =
        (archive.span(rrd.definition.step), archive.row_count as i64, archive.pdp_per_row);
    for (row, values) in rrd.archives[rra].chunks_exact_mut(N).enumerate() {
        let end = (newest - count + 1 + row as i64) * span;
        values[rates.ds] = rates.consolidate(cf, xff, end - span, end);
    }
    let point = |number: i64| rates.consolidate(cf, POINT_XFF, (number - 1) * step, number * step);
    let cell = open_cell(cf, xff, per_row, grid::divide(now, rrd.definition.step).0, point);
    let shape = rrd.shape();
    shape.split_mut(&mut rrd.live.words).cdp[rra * N + rates.ds] = cell;
}

/// Those of one data source.
struct Rates<'a, const N: usize> {
    stretches: &'a [Stretch<N>],
    ds: usize,
}

impl<const N: usize> Rates<'_, N> {
    /// The known rates after `from` up to `to`, mean and largest, with how many seconds they hold.
    fn known(&self, from: i64, to: i64) -> impl Iterator<Item = (f64, f64, i64)> {
        let first = self.stretches.partition_point(|stretch| stretch.to <= from);
        let within = self.stretches[first..].iter().take_while(move |stretch| stretch.from < to);
        let one = move |stretch: &Stretch<N>| {
            let seconds = stretch.to.min(to) - stretch.from.max(from);
            (stretch.mean[self.ds], stretch.max[self.ds], seconds)
        };
        within.map(one).filter(|(_, _, seconds)| *seconds > 0)
    }

    /// The value of a row from `from` to `to`, of which at most the fraction `xff` may be unknown.
    fn consolidate(&self, cf: PlainCf, xff: f64, from: i64, to: i64) -> f64 {
        let (mut value, mut sum, mut known) = (UNKNOWN, 0.0, 0);
        for (mean, max, seconds) in self.known(from, to) {
            let rate = if cf == PlainCf::Max { max } else { mean };
            if rate.is_nan() {
                continue;
            }
            known += seconds;
            sum += rate * seconds as f64;
            value = match cf {
                PlainCf::Average => sum / known as f64,
                PlainCf::Min => rate.min(value),
                PlainCf::Max => rate.max(value),
                PlainCf::Last => rate,
            };
        }
        let unknown = (to - from - known) as f64;
        if unknown > xff * (to - from) as f64 { UNKNOWN } else { value }
    }

    /// The primary point that is open since `from`.
    fn open_point(&self, from: i64, now: i64, last_ds: LastDs) -> PdpPrep {
        let known = self.known(from, now).filter(|(mean, _, _)| !mean.is_nan());
        let (sum, units) =
            known.fold((0.0, 0), |(sum, units), (mean, _, more)| (sum + mean * more as f64, units + more));
        let value = if units == 0 && now > from { UNKNOWN } else { sum };
        PdpPrep { last_ds, value, unknown_units: (now - from - units) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::text::{CreateOptions, Limits, parse_create};
    use crate::when::Step;

    fn definition() -> Definition {
        let step = Step { units: 300, units_per_second: 1 };
        let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
        let args =
            ["DS:ds0:COUNTER:600:0:U", "RRA:AVERAGE:0.5:1:5", "RRA:AVERAGE:0.5:3:3", "RRA:MAX:0.5:3:3"];
        parse_create(&options, &args).unwrap()
    }

    fn stretch(from: i64, to: i64, mean: f64) -> Stretch<1> {
        Stretch { from, to, mean: [mean], max: [mean * 2.0] }
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    #[test]
    fn rows_open_rows_and_the_open_point_are_consolidated() {
        let stretches = [
            stretch(0, 900, 10.0),
            stretch(900, 1800, UNKNOWN),
            stretch(1800, 2400, 20.0),
            stretch(2400, 2700, 50.0),
            stretch(2700, 3000, 30.0),
            stretch(3000, 3040, 7.0),
        ];
        let rrd = prefill_rates(definition(), &stretches, [LastDs::new(b"12345")]);
        let unknown = UNKNOWN;
        assert_eq!(bits(&rrd.archives[0]), bits(&[unknown, 20.0, 20.0, 50.0, 30.0]));
        assert_eq!(bits(&rrd.archives[1]), bits(&[10.0, unknown, 30.0]));
        assert_eq!(bits(&rrd.archives[2]), bits(&[20.0, unknown, 100.0]));
        let shape = rrd.shape();
        let head = shape.split(&rrd.live.words);
        assert_eq!(head.last_update.whole, 3040);
        assert_eq!((head.pdp[0].value, head.pdp[0].unknown_units), (280.0, 0));
        assert_eq!(head.pdp[0].last_ds.as_bytes(), b"12345");
        assert_eq!((head.cdp[1].value, head.cdp[2].value), (30.0, 60.0));
        assert_eq!(head.cdp[1].unknown_pdps, 0);
    }

    #[test]
    fn what_no_stretch_holds_is_unknown() {
        let stretches = [stretch(2000, 2300, 10.0), stretch(2999, 3040, UNKNOWN)];
        let rrd = prefill_rates(definition(), &stretches, [LastDs::new(b"U")]);
        // The row that ends at 2100 has a third, that at 2400 two thirds.
        let unknown = UNKNOWN;
        assert_eq!(bits(&rrd.archives[0]), bits(&[unknown, unknown, 10.0, unknown, unknown]));
        assert_eq!(bits(&rrd.archives[1]), bits(&[unknown, unknown, unknown]));
        let shape = rrd.shape();
        let point = shape.split(&rrd.live.words).pdp[0];
        assert!(point.value.is_nan());
        assert_eq!(point.unknown_units, 40);
    }
}
