//! The operators that read many rows of one variable: TREND and PREDICT.

use super::Operator;
use super::error::EvaluateError;
use super::machine::{Machine, integer, known};
use super::series::Series;
use crate::live::UNKNOWN;

/// A position in a series: the row that counts for the current row of the result.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    values: &'a [f64],
    next: usize,
    step: u64,
}

impl<'a> Cursor<'a> {
    /// The row that begins at `start` or contains it.
    pub(super) fn at(series: &'a Series, start: i64) -> Cursor<'a> {
        let seconds = u64::try_from(start.saturating_sub(series.start)).unwrap_or(0);
        let next = usize::try_from(seconds / series.step.max(1)).unwrap_or(usize::MAX);
        Cursor { values: &series.values, next, step: series.step.max(1) }
    }

    /// The current value.
    #[inline]
    pub(super) fn value(&self) -> f64 {
        self.values.get(self.next).copied().unwrap_or(UNKNOWN)
    }

    /// The value `rows` before the current one.
    #[inline]
    pub(super) fn back(&self, rows: usize) -> f64 {
        let index = self.next.checked_sub(rows);
        index.and_then(|index| self.values.get(index)).copied().unwrap_or(UNKNOWN)
    }

    /// Advances if the row of the result that ends at `end` is the last that this value counts for.
    #[inline]
    pub(super) fn pass(&mut self, end: i64) {
        if end.rem_euclid(self.step as i64) == 0 {
            self.next += 1;
        }
    }
}

/// TREND and TRENDNAN: the mean of the newest rows of `cursor`, which has just advanced.
///
/// A window is as many complete rows of the variable as cover the seconds. It is unknown as long as the result
/// has fewer rows than that, even where the variable has them.
///
/// Compat: for a variable with wider rows than the result's, the newest row is the last that has ended, not the
/// current one. In the first rows RRDtool then reads before its data; we take that for unknown
/// (`tests/rpn_oracle.rs`).
pub(super) fn trend(
    operator: Operator,
    cursor: &Cursor<'_>,
    number: u64,
    machine: &mut Machine,
) -> Result<(), EvaluateError> {
    let seconds = integer(machine.pop()?);
    machine.pop()?;
    let rows = u64::try_from(seconds).unwrap_or(0).div_ceil(cursor.step).max(1);
    // RRDtool hangs on a time that does not fit in an `int`; an unknown time does not either.
    if seconds == i32::MIN || number < rows {
        machine.push(UNKNOWN);
        return Ok(());
    }
    machine.spend(rows)?;
    let (mut sum, mut count) = (0.0, 0.0);
    for back in 1..=rows as usize {
        let value = cursor.back(back);
        if !value.is_nan() {
            sum += value;
            count += 1.0;
        } else if operator == Operator::Trend {
            machine.push(UNKNOWN);
            return Ok(());
        }
    }
    machine.push(if count > 0.0 { known(sum / count) } else { UNKNOWN });
    Ok(())
}

/// `shift n,...,shift 1,n,window,[percent,]x,PREDICT..`, or `shift,-n,window,[percent,]x`.
///
/// For each shift it takes the rows of a window, and one more. Rows further back than the result has rows are left
/// out, even where the variable has them. Without a `cursor` (the previous token is not a variable) there is
/// nothing to take.
pub(super) fn predict(
    operator: Operator,
    cursor: Option<&Cursor<'_>>,
    number: u64,
    machine: &mut Machine,
) -> Result<(), EvaluateError> {
    machine.pop()?;
    let percent = if operator == Operator::PredictPercent { machine.pop()? } else { 0.0 };
    if !(-100.0..=100.0).contains(&percent) {
        return Err(EvaluateError::UnsupportedPercentile(percent.to_bits()));
    }
    let window = integer(machine.pop()?);
    let count = integer(machine.pop()?);
    machine.aside().clear();
    machine.need(if count < 0 { 1 } else { count as usize })?;
    if count == i32::MIN {
        return Err(EvaluateError::NegativeShift(count));
    }
    if count < 0 {
        let seconds = machine.pop()?;
        for index in 0..count.unsigned_abs() {
            gather(cursor, shift(f64::from(index) * seconds)?, window, number, machine)?;
        }
    } else {
        // In the order of the text, which is that of RRDtool's additions.
        for index in 0..count as usize {
            let shift = shift(machine.below(count as usize - 1 - index)?)?;
            gather(cursor, shift, window, number, machine)?;
        }
        machine.drop(count as usize)?;
    }
    let values = machine.aside();
    let result = match operator {
        Operator::Predict => mean(values),
        Operator::PredictSigma => sigma(values),
        _ => percentile(values, percent),
    };
    machine.push(result);
    Ok(())
}

fn shift(seconds: f64) -> Result<u64, EvaluateError> {
    let seconds = integer(seconds);
    u64::try_from(seconds).map_err(|_| EvaluateError::NegativeShift(seconds))
}

/// Most values that one PREDICT may collect for one row: 128 MiB. RRDtool uses all the memory there is.
const GATHERED_MAX: u64 = 1 << 24;

/// The work that a shift counts for, even one that collects nothing.
const SHIFT_COST: u64 = 16;

/// Adds the known values of one shifted window to the machine's memory, newest first.
fn gather(
    cursor: Option<&Cursor<'_>>,
    shift: u64,
    window: i32,
    number: u64,
    machine: &mut Machine,
) -> Result<(), EvaluateError> {
    machine.spend(SHIFT_COST)?;
    let Some(cursor) = cursor else { return Ok(()) };
    // A negative window within one row rounds to none, and one row is always taken besides those of the window.
    if u64::from(window.min(0).unsigned_abs()) >= cursor.step {
        return Ok(());
    }
    let rows = u64::from(window.max(0).unsigned_abs()).div_ceil(cursor.step);
    let nearest = shift.div_ceil(cursor.step);
    let end = (nearest + rows + 1).min(number - 1);
    if end <= nearest {
        return Ok(());
    }
    machine.spend(end - nearest)?;
    if machine.aside().len() as u64 + (end - nearest) > GATHERED_MAX {
        return Err(EvaluateError::TooMuchWork);
    }
    for back in nearest..end {
        let value = cursor.back(back as usize);
        if !value.is_nan() {
            machine.aside().push(value);
        }
    }
    Ok(())
}

fn mean(values: &[f64]) -> f64 {
    let mut sum = 0.0;
    for value in values {
        sum += value;
    }
    if values.is_empty() { UNKNOWN } else { known(sum / values.len() as f64) }
}

/// The deviation of a sample.
fn sigma(values: &[f64]) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for value in values {
        sum += value;
        squares += value * value;
    }
    let count = values.len() as f64;
    if values.len() < 2 {
        return UNKNOWN;
    }
    known(((count * squares - sum * sum) / (count * (count - 1.0))).sqrt())
}

/// Interpolates for a positive percentage, takes the nearest value for a negative one.
fn percentile(values: &mut [f64], percent: f64) -> f64 {
    if values.is_empty() {
        return UNKNOWN;
    }
    values.sort_unstable_by(f64::total_cmp);
    let rank = percent.abs() / 100.0 * (values.len() - 1) as f64;
    if percent < 0.0 {
        return values[rank.round() as usize];
    }
    let below = rank.floor();
    let low = values[below as usize];
    let high = values[rank.ceil() as usize];
    known(low + (high - low) * (rank - below))
}
