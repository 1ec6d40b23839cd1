//! Consolidates fine rows to the step of a graph.
//!
//! Coarse rows lie on multiples of their own step. Unknown rows are left out; a coarse row that is not covered from
//! end to end is unknown.

use rrd::definition::Cf;
use rrd::live::UNKNOWN;
use rrd::rpn::Series;
use rrd::when::Step;

use crate::eval::EvalError;
use crate::xport::gcd;

/// Consolidates `series` by `cf` to rows of at least `step` seconds; rows that are as coarse already stay.
///
/// # Errors
/// [`EvalError::CannotReduce`].
pub fn reduce(series: Series, step: u64, cf: Cf) -> Result<Series, EvalError> {
    if series.step == 0 || series.step >= step {
        return Ok(series);
    }
    let factor = step.div_ceil(series.step);
    merge(series, factor, cf)
}

/// Consolidates a series whose times are in `1/units` seconds by `cf`, to the shortest rows of whole seconds and at least
/// `step` seconds; the times of the result are in seconds.
///
/// # Errors
/// [`EvalError::NoWholeSeconds`] if the series does not reach from one multiple of such a row to the next.
pub fn reduce_to_seconds(series: Series, units: u32, step: u64, cf: Cf) -> Result<Series, EvalError> {
    let unit = u64::from(units.max(1));
    // The fewest rows that are whole seconds, and as many times that as the step needs.
    let fewest = unit / gcd(series.step.max(1), unit);
    let seconds = series.step.saturating_mul(fewest) / unit;
    let factor = fewest.saturating_mul(step.max(1).div_ceil(seconds.max(1)));
    let wide = i64::try_from(series.step.saturating_mul(factor)).unwrap_or(i64::MAX);
    let first = series.start.div_euclid(wide) + i64::from(series.start.rem_euclid(wide) != 0);
    if series.end().div_euclid(wide) <= first {
        let row = Step { units: series.step, units_per_second: units };
        return Err(EvalError::NoWholeSeconds { row, seconds: wide as u64 / unit });
    }
    let merged = merge(series, factor, cf)?;
    Ok(Series { start: merged.start / unit as i64, step: merged.step / unit, values: merged.values })
}

/// Merges each `factor` rows into one.
fn merge(series: Series, factor: u64, cf: Cf) -> Result<Series, EvalError> {
    let wide = series.step.saturating_mul(factor) as i64;
    let (start, end) = (series.start.div_euclid(wide) * wide, series.end());
    // The first boundary at or after the start, the last one at or before the end.
    let first = series.start + (wide - series.start.rem_euclid(wide)) % wide;
    let last = end.div_euclid(wide) * wide;
    if last < first {
        // Compat: RRDtool's unsigned count of rows wraps below zero here and must be divisible by the factor.
        return if factor.is_power_of_two() {
            Ok(Series { start, step: wide as u64, values: vec![UNKNOWN] })
        } else {
            Err(EvalError::CannotReduce { factor })
        };
    }
    let mut values = Vec::with_capacity(((end - start) / wide) as usize + 2);
    if first > start {
        values.push(UNKNOWN);
    }
    let skipped = ((first - series.start) / series.step as i64) as usize;
    let whole = ((last - first) / wide) as usize * factor as usize;
    let covered = series.values.get(skipped..skipped + whole).unwrap_or_default();
    values.extend(covered.chunks_exact(factor as usize).map(|rows| one(rows, cf)));
    if last < end {
        values.push(UNKNOWN);
    }
    Ok(Series { start, step: wide as u64, values })
}

/// Consolidates the known values among `rows` into one.
fn one(rows: &[f64], cf: Cf) -> f64 {
    let mut known = rows.iter().copied().filter(|value| !value.is_nan());
    let Some(first) = known.next() else { return UNKNOWN };
    match cf {
        Cf::Min => known.fold(first, |least, value| if value < least { value } else { least }),
        Cf::Max | Cf::Failures => known.fold(first, |most, value| if value > most { value } else { most }),
        Cf::Last => known.next_back().unwrap_or(first),
        _ => {
            let (sum, count) = known.fold((first, 1.0), |(sum, count), value| (sum + value, count + 1.0));
            sum / count
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(start: i64, values: &[f64], want_start: i64, want: &[f64]) {
        let series = Series { start, step: 10, values: values.to_vec() };
        let got = reduce(series, 25, Cf::Average).unwrap();
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!((got.start, got.step, bits(&got.values)), (want_start, 30, bits(want)));
    }

    #[test]
    fn wide_rows_are_whole_or_unknown() {
        check(300, &[1.0, 2.0, 6.0], 300, &[3.0]);
        check(310, &[1.0, 2.0, 6.0, 7.0, 8.0], 300, &[UNKNOWN, 7.0]);
        check(300, &[1.0, UNKNOWN, 6.0, 7.0], 300, &[3.5, UNKNOWN]);
        check(320, &[1.0, UNKNOWN, UNKNOWN, UNKNOWN, 3.0], 300, &[UNKNOWN, UNKNOWN, UNKNOWN]);
    }

    #[test]
    fn a_range_inside_one_wide_row_is_refused_as_rrdtool_does() {
        let series = Series { start: 310, step: 10, values: vec![1.0] };
        let error = reduce(series, 25, Cf::Max).unwrap_err();
        assert_eq!(error.to_string(), "SANITY CHECK: 18446744073709551613 rows cannot be reduced by 3 \n");
    }

    #[test]
    fn fine_rows_make_rows_of_whole_seconds() {
        let check = |step: u64, start: i64, count: usize, wanted: u64, want: (i64, u64, &[f64])| {
            let values = (1..=count).map(|row| row as f64).collect();
            let got = reduce_to_seconds(Series { start, step, values }, 1000, wanted, Cf::Last).unwrap();
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert_eq!((got.start, got.step, bits(&got.values)), (want.0, want.1, bits(want.2)), "{step}");
        };
        check(100, 50_000, 21, 0, (50, 1, &[10.0, 20.0, UNKNOWN]));
        check(100, 50_000, 40, 2, (50, 2, &[20.0, 40.0]));
        check(250, 49_500, 10, 1, (49, 1, &[UNKNOWN, 6.0, 10.0]));
        check(300, 51_000, 20, 1, (51, 3, &[10.0, 20.0]));
        check(400, 52_000, 10, 3, (52, 4, &[10.0]));
        check(1500, 51_000, 4, 1, (51, 3, &[2.0, 4.0]));
    }

    #[test]
    fn every_fine_step_makes_the_rows_of_an_archive_of_whole_seconds() {
        for step in 1..1000u64 {
            let fewest = 1000 / gcd(step, 1000);
            let seconds = (step * fewest / 1000) as i64;
            let start = 1_700_000_000_i64.div_euclid(seconds) * seconds;
            let values: Vec<f64> = (0..3 * fewest).map(|row| row as f64).collect();
            for (cf, of_row) in [
                (Cf::Average, (fewest - 1) as f64 / 2.0),
                (Cf::Min, 0.0),
                (Cf::Max, (fewest - 1) as f64),
                (Cf::Last, (fewest - 1) as f64),
            ] {
                let series = Series { start: start * 1000, step, values: values.clone() };
                let got = reduce_to_seconds(series, 1000, 1, cf).unwrap();
                let want: Vec<f64> = (0..3).map(|row| (row * fewest) as f64 + of_row).collect();
                assert_eq!((got.start, got.step as i64, got.values), (start, seconds, want), "{step} {cf:?}");
            }
        }
    }

    #[test]
    fn a_range_without_a_row_of_whole_seconds_is_refused_with_a_way_out() {
        let series = Series { start: 1_000_020, step: 33, values: vec![1.0; 900] };
        let error = reduce_to_seconds(series, 1000, 1, Cf::Average).unwrap_err().to_string();
        assert!(
            error.starts_with("rows of 0.033 s make whole seconds only every 33 s; take a longer"),
            "{error}"
        );
        let far = Series { start: 0, step: 100, values: vec![1.0; 20] };
        assert!(reduce_to_seconds(far, 1000, u64::MAX, Cf::Average).is_err());
    }
}
