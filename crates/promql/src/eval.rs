//! The evaluation of an expression: every part is computed for all times at once, a column of values per series.

mod absent;
mod aggregate;
mod binary;
mod call;
mod fold;
mod histogram;
mod info;
mod label;
mod matching;
mod over_time;
mod pick;
mod rate;
mod scalar;
mod select;
mod window;

use std::fmt;
use std::sync::OnceLock;

use crate::ast::{Expr, Kind, Length, Type};
use crate::labels::Labels;
use crate::notes::Notes;
use crate::source::{Source, SourceError};
use crate::value::{Column, Grid, Value};

/// Why a query has no answer.
#[derive(Debug)]
pub enum EvalError {
    /// The query asks for what cannot be.
    Refused(String),
    /// The query asks for too much.
    Limit(String),
    /// The source has no more time or memory, or cannot read.
    Source(SourceError),
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Refused(text) | EvalError::Limit(text) => f.write_str(text),
            EvalError::Source(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EvalError {}

impl From<SourceError> for EvalError {
    fn from(error: SourceError) -> Self {
        EvalError::Source(error)
    }
}

/// Values that a thread is worth: it costs as much as computing with them.
const VALUES_OF_THREAD: usize = 1 << 16;

pub(crate) type Result<T> = std::result::Result<T, EvalError>;

pub(crate) fn refuse<T>(text: impl Into<String>) -> Result<T> {
    Err(EvalError::Refused(text.into()))
}

/// How queries are evaluated, and what they may take.
#[derive(Clone, Debug)]
pub struct Options {
    /// How far a value is looked for, in milliseconds.
    pub lookback: i64,
    /// The step of subqueries that name none, in milliseconds.
    pub subquery_step: i64,
    /// Whether names of metrics stay until the end, as Prometheus' flag `promql-delayed-name-removal` says.
    pub delayed_names: bool,
    /// Where the query ends, if that is later than its last time: what `end()` and `range()` say.
    pub end: Option<i64>,
    /// The most times of a query or subquery.
    pub points_max: usize,
    /// The most values of all series of one part of a query.
    pub values_max: u64,
    /// The most series of one part of a query.
    pub series_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            lookback: 300_000,
            subquery_step: 60_000,
            delayed_names: false,
            end: None,
            points_max: 1_000_000,
            values_max: 50_000_000,
            series_max: 1_000_000,
        }
    }
}

/// A series of a range vector.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeSeries {
    /// Its labels.
    pub labels: Labels,
    /// Times and values.
    pub points: Vec<(i64, f64)>,
}

/// What a query answers.
#[derive(Clone, Debug)]
pub enum Data {
    /// A number for each time.
    Scalar(Vec<f64>),
    /// A text.
    Text(String),
    /// Series with a value for each time.
    Vector(Vec<Column>),
    /// Series with values over a range.
    Matrix(Vec<RangeSeries>),
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The times.
    pub grid: Grid,
    /// What was asked for.
    pub data: Data,
    /// Warnings and infos.
    pub notes: Notes,
}

/// Evaluates an expression at the times of `grid`. `is_range` says whether the answer is a line of values for each series, in the
/// order of labels, or one value of each, in an order that the query may choose.
///
/// # Errors
/// When the query cannot be answered, or takes too much.
pub fn evaluate(
    expr: &Expr,
    grid: Grid,
    is_range: bool,
    options: &Options,
    source: &mut dyn Source,
) -> std::result::Result<Answer, EvalError> {
    if grid.count > options.points_max {
        return Err(EvalError::Limit(format!("more than {} points per series", options.points_max)));
    }
    let end = options.end.unwrap_or(grid.last());
    let query = Context { start: grid.start, end, step: if is_range { grid.step } else { 0 } };
    let mut evaluator = Evaluator { query, is_range, options, source, notes: Notes::default() };
    let kind = expr.value_type();
    if is_range && !matches!(kind, Type::Scalar | Type::Vector) {
        return refuse(format!(
            "invalid expression type {:?} for range query, must be Scalar or instant Vector",
            kind.name()
        ));
    }
    if kind == Type::Matrix {
        let data = Data::Matrix(evaluator.matrix(expr, grid)?);
        return Ok(Answer { grid, data, notes: evaluator.notes });
    }
    let data = match evaluator.value(expr, grid)? {
        Value::Text(text) => Data::Text(text),
        Value::Scalar(values) => Data::Scalar(values),
        Value::Vector(columns) => {
            let mut columns = evaluator.finish(columns)?;
            if is_range {
                columns.sort_by(|a, b| a.labels.cmp(&b.labels));
            }
            Data::Vector(columns)
        }
    };
    Ok(Answer { grid, data, notes: evaluator.notes })
}

/// The times of the whole query, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub start: i64,
    pub end: i64,
    /// 0 when there is only one time.
    pub step: i64,
}

pub(crate) struct Evaluator<'a> {
    pub query: Context,
    pub is_range: bool,
    pub options: &'a Options,
    pub source: &'a mut dyn Source,
    pub notes: Notes,
}

impl Evaluator<'_> {
    /// The value of an expression that is not a range vector.
    pub(crate) fn value(&mut self, expr: &Expr, grid: Grid) -> Result<Value> {
        self.source.reserve(0)?;
        match &expr.kind {
            Kind::Number(number) => self.repeated(*number, grid).map(Value::Scalar),
            Kind::Text(text) => Ok(Value::Text(text.clone())),
            Kind::Paren(inner) | Kind::Plus(inner) => self.value(inner, grid),
            Kind::Negate(inner) => match self.value(inner, grid)? {
                Value::Scalar(values) => Ok(Value::Scalar(values.iter().map(|value| -value).collect())),
                Value::Vector(columns) => self.map(columns, |_, value| -value).map(Value::Vector),
                Value::Text(_) => refuse("a text has no sign"),
            },
            Kind::Selector(selector) => self.instants(selector, grid).map(Value::Vector),
            Kind::Call(function, arguments) => self.call(expr, function.name, arguments, grid),
            Kind::Aggregate(aggregate) => self.aggregate(aggregate, grid).map(Value::Vector),
            Kind::Binary(binary) => self.binary(binary, grid),
            Kind::Subquery(_) => refuse("a range vector stands where a value should"),
        }
    }

    /// The series of an expression.
    pub(crate) fn vector(&mut self, expr: &Expr, grid: Grid) -> Result<Vec<Column>> {
        match self.value(expr, grid)? {
            Value::Vector(columns) => Ok(columns),
            _ => refuse("expected an instant vector"),
        }
    }

    /// The numbers of an expression.
    pub(crate) fn scalar(&mut self, expr: &Expr, grid: Grid) -> Result<Vec<f64>> {
        match self.value(expr, grid)? {
            Value::Scalar(values) => Ok(values),
            _ => refuse("expected a scalar"),
        }
    }

    /// The text of an expression.
    pub(crate) fn text(&mut self, expr: &Expr, grid: Grid) -> Result<String> {
        match self.value(expr, grid)? {
            Value::Text(text) => Ok(text),
            _ => refuse("expected a string"),
        }
    }

    /// A number at every time.
    pub(crate) fn repeated(&mut self, number: f64, grid: Grid) -> Result<Vec<f64>> {
        self.reserve(1, grid)?;
        Ok(vec![number; grid.count])
    }

    /// Takes memory for so many columns.
    pub(crate) fn reserve(&mut self, columns: usize, grid: Grid) -> Result<()> {
        let values = columns as u64 * grid.count as u64;
        if values > self.options.values_max {
            return Err(EvalError::Limit(format!(
                "query processing would load too many samples into memory in query execution: {values}"
            )));
        }
        self.source.reserve(values * 8 + columns as u64 * 64)?;
        Ok(())
    }

    /// What `work` makes of each of several series with as many values as `grid` has times, in their order.
    pub(crate) fn of_each<S: Sync, T: Send + Sync>(
        &self,
        series: &[S],
        grid: Grid,
        work: impl Fn(&S) -> T + Sync,
    ) -> Result<Vec<T>> {
        self.of_many(series.len(), grid.count, |index| work(&series[index]))
    }

    /// What `work` makes of each number below `count`, in their order, where each takes about so many values.
    pub(crate) fn of_many<T: Send + Sync>(
        &self,
        count: usize,
        values: usize,
        work: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>> {
        let made: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
        self.source.run(count, VALUES_OF_THREAD.div_ceil(values.max(1)), &|index| {
            made[index].get_or_init(|| work(index));
        })?;
        Ok(made.into_iter().filter_map(OnceLock::into_inner).collect())
    }

    /// Each value changed, which takes the names away.
    pub(crate) fn map(
        &mut self,
        columns: Vec<Column>,
        change: impl Fn(i64, f64) -> f64,
    ) -> Result<Vec<Column>> {
        let mut columns = columns;
        for column in &mut columns {
            for (index, value) in column.values.iter_mut().enumerate() {
                if !crate::value::is_absent(*value) {
                    *value = change(index as i64, *value);
                }
            }
        }
        self.unname(columns)
    }

    /// Columns without names: at once, or at the end.
    pub(crate) fn unname(&mut self, mut columns: Vec<Column>) -> Result<Vec<Column>> {
        if self.options.delayed_names {
            columns.iter_mut().for_each(|column| column.unnamed = true);
            return Ok(columns);
        }
        for column in &mut columns {
            column.labels = column.labels.without_name();
        }
        merge(columns)
    }

    /// Columns with the labels that they are answered with.
    pub(crate) fn finish(&mut self, mut columns: Vec<Column>) -> Result<Vec<Column>> {
        columns.retain(|column| !column.is_empty());
        for column in columns.iter_mut().filter(|column| column.unnamed) {
            column.labels = column.labels.without_name();
            column.unnamed = false;
        }
        merge(columns)
    }

    /// A duration in milliseconds.
    pub(crate) fn length(&self, length: &Length) -> Result<i64> {
        let seconds = self.seconds(length)?;
        if !seconds.is_finite() || seconds.abs() >= 9.2e15 {
            return refuse("duration out of range");
        }
        Ok((seconds * 1000.0).round() as i64)
    }

    /// A duration that must be longer than nothing.
    pub(crate) fn positive(&self, length: &Length) -> Result<i64> {
        let milliseconds = self.length(length)?;
        if milliseconds <= 0 { refuse("duration must be greater than 0") } else { Ok(milliseconds) }
    }

    fn seconds(&self, length: &Length) -> Result<f64> {
        Ok(match length {
            Length::Seconds(seconds, _) => *seconds,
            Length::Step => self.query.step as f64 / 1000.0,
            Length::Range => (self.query.end - self.query.start) as f64 / 1000.0,
            Length::Negate(inner) => -self.seconds(inner)?,
            Length::Paren(inner) => self.seconds(inner)?,
            Length::Min(a, b) => self.seconds(a)?.min(self.seconds(b)?),
            Length::Max(a, b) => self.seconds(a)?.max(self.seconds(b)?),
            Length::Binary(operator, a, b) => {
                let (a, b) = (self.seconds(a)?, self.seconds(b)?);
                match operator {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    '^' => a.powf(b),
                    '/' if b == 0.0 => return refuse("division by zero"),
                    '/' => a / b,
                    _ if b == 0.0 => return refuse("modulo by zero"),
                    _ => a % b,
                }
            }
        })
    }
}

/// Joins columns with the same labels; two with a value at the same time cannot be joined.
pub(crate) fn merge(columns: Vec<Column>) -> Result<Vec<Column>> {
    let mut places: hashbrown::HashMap<(Labels, bool), usize, foldhash::fast::FixedState> =
        hashbrown::HashMap::with_capacity_and_hasher(columns.len(), foldhash::fast::FixedState::default());
    let mut merged: Vec<Column> = Vec::with_capacity(columns.len());
    for column in columns {
        let place = *places.entry((column.labels.clone(), column.unnamed)).or_insert(merged.len());
        let Some(first) = merged.get_mut(place) else {
            merged.push(column);
            continue;
        };
        for (value, other) in first.values.iter_mut().zip(&column.values) {
            match (crate::value::is_absent(*value), crate::value::is_absent(*other)) {
                (_, true) => {}
                (true, false) => *value = *other,
                (false, false) => return refuse("vector cannot contain metrics with the same labelset"),
            }
        }
    }
    Ok(merged)
}
