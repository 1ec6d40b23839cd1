//! Consolidates fine rows to the step of a graph.
//!
//! Coarse rows lie on multiples of their own step. Unknown rows are left out; a coarse row that is not covered from
//! end to end is unknown.

use rrd::definition::Cf;
use rrd::live::UNKNOWN;
use rrd::rpn::Series;

use crate::eval::EvalError;

/// Consolidates `series` by `cf` to rows of at least `step` seconds; rows that are as coarse already stay.
///
/// # Errors
/// [`EvalError::CannotReduce`].
pub fn reduce(series: Series, step: u64, cf: Cf) -> Result<Series, EvalError> {
    if series.step == 0 || series.step >= step {
        return Ok(series);
    }
    let factor = step.div_ceil(series.step);
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
}
