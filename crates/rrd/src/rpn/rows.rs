//! Runs an expression row by row.

use super::Operator;
use super::error::EvaluateError;
use super::expression::{EvalContext, Expression, Node, Symbol};
use super::machine::{Machine, truth};
use super::series::Series;
use super::windows::{self, Cursor};
use crate::live::UNKNOWN;
use crate::when::calendar::{Calendar, Civil, Utc};

/// See [`Expression::evaluate_within`].
pub(super) fn evaluate(
    expression: &Expression,
    work_max: u64,
    series: &[&Series],
    scalars: &[f64],
    context: &EvalContext<'_>,
) -> Result<Series, EvaluateError> {
    let mut result = frame(expression.symbols(), series)?;
    let count = row_count(&result, expression.symbols(), series)?;
    let mut nodes = bind(expression, series, scalars, &result)?;
    let mut machine = Machine::new(Vec::new(), work_max);
    let mut row = Row { number: 0, end: result.start, step: result.step, previous: UNKNOWN };
    result.values.reserve_exact(count);
    for _ in 0..count {
        row.number += 1;
        row.end = row.end.saturating_add_unsigned(row.step);
        run(&mut nodes, &row, context, &mut machine)?;
        row.previous = machine.finish()?;
        result.values.push(row.previous);
    }
    Ok(result)
}

/// See [`Expression::result_rows`].
pub(super) fn result_rows(expression: &Expression, series: &[&Series]) -> Result<usize, EvaluateError> {
    row_count(&frame(expression.symbols(), series)?, expression.symbols(), series)
}

/// Step and start of the result, still without rows.
fn frame(symbols: &[Symbol], series: &[&Series]) -> Result<Series, EvaluateError> {
    let (mut step, mut start) = (0, i64::MIN);
    for rows in read(symbols, series) {
        let rows = rows?;
        step = greatest_divisor(rows.step, step);
        start = start.max(rows.start);
    }
    // A step of 0 means there was no series.
    if step == 0 { Err(EvaluateError::NoSeries) } else { Ok(Series { start, step, values: Vec::new() }) }
}

/// Most rows of a result: 1 GiB. Two wide steps without a common divisor make one row per second.
const ROWS_MAX: usize = 1 << 27;

fn row_count(frame: &Series, symbols: &[Symbol], series: &[&Series]) -> Result<usize, EvaluateError> {
    let mut end = i64::MAX;
    for rows in read(symbols, series) {
        end = end.min(rows?.end());
    }
    let seconds = u64::try_from(end.saturating_sub(frame.start)).unwrap_or(0);
    match usize::try_from(seconds / frame.step) {
        Ok(count) if count <= ROWS_MAX => Ok(count),
        _ => Err(EvaluateError::TooMuchWork),
    }
}

/// The series among the symbols.
fn read<'a>(
    symbols: &[Symbol],
    series: &[&'a Series],
) -> impl Iterator<Item = Result<&'a Series, EvaluateError>> {
    symbols.iter().filter_map(move |symbol| match *symbol {
        Symbol::Series(index) => Some(series.get(index).copied().ok_or(EvaluateError::NoSeries)),
        Symbol::Scalar(_) => None,
    })
}

/// The greatest common divisor of two steps; that of 0 and a step is the step.
fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A node with its variable resolved.
enum Bound<'a> {
    Number(f64),
    Variable(Cursor<'a>),
    Previous(Cursor<'a>),
    Apply(Operator),
}

fn bind<'a>(
    expression: &Expression,
    series: &[&'a Series],
    scalars: &[f64],
    frame: &Series,
) -> Result<Vec<Bound<'a>>, EvaluateError> {
    let scalar = |index: usize| scalars.get(index).copied().ok_or(EvaluateError::NoSeries);
    let cursor = |index: usize| -> Result<Cursor<'a>, EvaluateError> {
        let rows = series.get(index).ok_or(EvaluateError::NoSeries)?;
        Ok(Cursor::at(rows, frame.start))
    };
    let mut bound = Vec::with_capacity(expression.nodes.len());
    for node in &expression.nodes {
        bound.push(match *node {
            Node::Number(value) => Bound::Number(value),
            Node::Variable(Symbol::Series(index)) => Bound::Variable(cursor(index)?),
            Node::Previous(Symbol::Series(index)) => Bound::Previous(cursor(index)?),
            // A VDEF had the same value in the previous row.
            Node::Variable(Symbol::Scalar(index)) | Node::Previous(Symbol::Scalar(index)) => {
                Bound::Number(scalar(index)?)
            }
            Node::Apply(operator) => Bound::Apply(operator),
        });
    }
    Ok(bound)
}

/// The current row of the result.
struct Row {
    /// Counted from 1.
    number: u64,
    /// Its row time.
    end: i64,
    step: u64,
    /// The result of the previous row.
    previous: f64,
}

fn run(
    nodes: &mut [Bound<'_>],
    row: &Row,
    context: &EvalContext<'_>,
    machine: &mut Machine,
) -> Result<(), EvaluateError> {
    for index in 0..nodes.len() {
        let (before, here) = nodes.split_at_mut(index);
        match &mut here[0] {
            Bound::Number(value) => machine.push(*value),
            Bound::Variable(cursor) => {
                machine.push(cursor.value());
                cursor.pass(row.end);
            }
            Bound::Previous(cursor) => {
                machine.push(if row.number == 1 { UNKNOWN } else { cursor.back(1) });
                cursor.pass(row.end);
            }
            Bound::Apply(operator) => match *operator {
                Operator::Trend | Operator::TrendNan => {
                    trend(*operator, before, row, machine)?;
                }
                Operator::Predict | Operator::PredictSigma | Operator::PredictPercent => {
                    let cursor = match before.last() {
                        Some(Bound::Variable(cursor) | Bound::Previous(cursor)) => Some(cursor),
                        _ => None,
                    };
                    windows::predict(*operator, cursor, row.number, machine)?;
                }
                operator if operator.needs_series() => machine.push(of_row(operator, row, context)),
                Operator::Now => machine.push(context.now as f64),
                Operator::Inf => machine.push(f64::INFINITY),
                Operator::NegInf => machine.push(f64::NEG_INFINITY),
                Operator::Unknown => machine.push(UNKNOWN),
                operator => machine.apply(operator)?,
            },
        }
    }
    Ok(())
}

/// `name,seconds,TREND`: the seconds may be computed, the series must be a name.
fn trend(
    operator: Operator,
    before: &[Bound<'_>],
    row: &Row,
    machine: &mut Machine,
) -> Result<(), EvaluateError> {
    machine.need(2)?;
    match before.iter().rev().nth(1) {
        Some(Bound::Variable(cursor)) => windows::trend(operator, cursor, row.number, machine),
        _ => Err(EvaluateError::MalformedTrend),
    }
}

/// What the row itself provides: its time, its number, its step, the previous result.
fn of_row(operator: Operator, row: &Row, context: &EvalContext<'_>) -> f64 {
    let local = |time: i64| context.calendar.local(time);
    // Whether the row ends in another period than the previous row.
    let changes = |field: fn(&Civil) -> i32| {
        let begin = row.end.saturating_sub_unsigned(row.step);
        truth(field(&local(begin)) != field(&local(row.end)))
    };
    match operator {
        Operator::Time => row.end as f64,
        Operator::LocalTime => local_time(row.end, &local(row.end)),
        Operator::StepWidth => row.step as f64,
        Operator::Count => row.number as f64,
        Operator::NewDay => changes(|civil| civil.day),
        Operator::NewMonth => changes(|civil| civil.month),
        Operator::NewYear => changes(|civil| civil.year),
        Operator::NewWeek => {
            let first = |time: i64| local(time).weekday == context.first_weekday as i32;
            truth(first(row.end) && !first(row.end.saturating_sub_unsigned(row.step)))
        }
        _ => row.previous,
    }
}

/// The time of a row plus the offset of local time.
///
/// Compat: RRDtool adds two days where it is still last year west of Greenwich (`tests/rpn_time_oracle.rs`).
fn local_time(end: i64, local: &Civil) -> f64 {
    let last_year = local.utc_offset_seconds < 0 && local.year < Utc.local(end).year;
    let days = if last_year { 2 * 86_400 } else { 0 };
    end.saturating_add(i64::from(local.utc_offset_seconds) + days) as f64
}
