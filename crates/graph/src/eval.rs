//! Computes the data of a script: every DEF, CDEF and VDEF.
//!
//! Fetches come first, in the order of the DEFs, then CDEFs and VDEFs in the order of the arguments. This is
//! RRDtool's order, so of several errors the same one is reported.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;

use rrd::definition::Cf;
use rrd::fetch::FetchRows;
use rrd::rpn::{EvalContext, EvaluateError, Series, VdefValue};
use rrd::when::Step;

use crate::argument::lossy;
use crate::language::graphic::{Graphic, PlotValue, Shift};
use crate::language::{Def, Element, Script};
use crate::plan::{FetchKey, Rows, TimeRange, plan};
use crate::reduce::{reduce, reduce_to_seconds};

/// Why there is no data.
#[derive(Debug)]
pub enum EvalError {
    /// A fetch failed; the error of [`Rows`].
    Rows(Box<dyn Error + Send + Sync>),
    /// The RRD has no such data source.
    NoSuchDs {
        /// The data source.
        ds: String,
        /// The RRD.
        file: String,
    },
    /// The range lies within one row of the requested step.
    CannotReduce {
        /// How many fine rows make a coarse one.
        factor: u64,
    },
    /// The range holds no row of whole seconds, and graphs and tables have no others.
    NoWholeSeconds {
        /// The length of the RRD's rows.
        row: Step,
        /// The seconds in the shortest row that can be made of them.
        seconds: u64,
    },
    /// A CDEF cannot be computed.
    Rpn(EvaluateError),
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Rows(error) => error.fmt(f),
            EvalError::NoSuchDs { ds, file } => write!(f, "No DS called '{ds}' in '{file}'"),
            // Compat: RRDtool's count of rows is unsigned and has gone below zero here.
            EvalError::CannotReduce { factor } => {
                let rows = 0u64.wrapping_sub(*factor);
                writeln!(f, "SANITY CHECK: {rows} rows cannot be reduced by {factor} ")
            }
            EvalError::NoWholeSeconds { row, seconds } => write!(
                f,
                "rows of {row} s make whole seconds only every {seconds} s; take a longer range that begins and \
                 ends on a multiple of that, or an archive with rows of whole seconds"
            ),
            EvalError::Rpn(error) => error.fmt(f),
        }
    }
}

impl Error for EvalError {}

/// The variables of a script, computed.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Every DEF and CDEF, by series number.
    pub series: Vec<Series>,
    /// Every VDEF, by scalar number.
    pub scalars: Vec<VdefValue>,
}

/// Fetches rows and computes every variable of `script`.
///
/// # Errors
/// The first [`EvalError`].
pub fn evaluate(
    script: &Script,
    range: TimeRange,
    rows: &mut dyn Rows,
    context: &EvalContext<'_>,
) -> Result<Data, EvalError> {
    let mut series = fetch(script, range, rows)?;
    let mut scalars: Vec<VdefValue> = Vec::with_capacity(script.scalar_count());
    let mut shifts = Shifts::new();
    for element in &script.elements {
        match element {
            Element::Cdef(cdef) => {
                let inputs: Vec<&Series> = series.iter().collect();
                let values: Vec<f64> = scalars.iter().map(|scalar| scalar.value).collect();
                let expression = &cdef.expression;
                let count = expression.result_rows(&inputs).map_err(EvalError::Rpn)?;
                let computation = rows.compute(count, expression.token_count()).map_err(EvalError::Rows)?;
                let result = match computation.work_max {
                    Some(work) => expression.evaluate_within(work, &inputs, &values, context),
                    None => expression.evaluate(&inputs, &values, context),
                };
                series[cdef.series] = result.map_err(EvalError::Rpn)?;
            }
            Element::Vdef(vdef) => {
                scalars.push(vdef.vdef.evaluate(&series[vdef.vdef.series()]));
            }
            Element::Graphic(Graphic::Shift(moved)) => shift(&mut shifts, *moved, &mut series, &scalars),
            _ => {}
        }
    }
    Ok(Data { series, scalars })
}

/// By how many seconds each shifted series is shifted.
type Shifts = HashMap<usize, i64>;

/// Shifts a series in time. Whatever is computed from it later is shifted too, and so is its line or area.
///
/// Compat: the shift is cut to whole rows; of two shifts of a series the last one counts. A shift by an unknown value
/// does nothing.
fn shift(shifts: &mut Shifts, shift: Shift, series: &mut [Series], scalars: &[VdefValue]) {
    let seconds = match shift.offset {
        PlotValue::Number(number) => number,
        PlotValue::Scalar(scalar) => scalars[scalar].value,
        PlotValue::Series(_) => return,
    };
    let target = &mut series[shift.series];
    let step = i64::try_from(target.step).unwrap_or(i64::MAX).max(1);
    let seconds = seconds as i64 / step * step;
    let before = shifts.insert(shift.series, seconds).unwrap_or(0);
    target.start = target.start.saturating_sub(before).saturating_add(seconds);
}

/// Fetches the series of all DEFs; those of CDEFs are still empty.
fn fetch(script: &Script, range: TimeRange, rows: &mut dyn Rows) -> Result<Vec<Series>, EvalError> {
    let plan = plan(script, range);
    let mut fetched: Vec<Option<FetchRows>> = vec![None; plan.requests.len()];
    let mut series = vec![Series { start: range.start, step: 1, values: Vec::new() }; script.series_count()];
    let mut done: HashMap<(FetchKey<'_>, Cf), Reduced> = HashMap::new();
    let defs = script.elements.iter().filter_map(|element| match element {
        Element::Def(def) => Some(def),
        _ => None,
    });
    for (def, &request) in defs.zip(&plan.of_def) {
        let planned = &plan.requests[request];
        // Compat: a DEF that wants the step to which the rows of an earlier DEF were consolidated gets those rows,
        // even if another archive would have answered.
        let same = done.get(&(FetchKey::of(def, planned.fetch.step), given_reduction(def)));
        let reduced = same.copied().unwrap_or(Reduced {
            request,
            step: def.step.unwrap_or(0).max(range.step),
            cf: def.reduce.unwrap_or(def.cf),
        });
        let source = match &mut fetched[reduced.request] {
            Some(source) => source,
            empty => empty.insert(rows.fetch(planned).map_err(EvalError::Rows)?),
        };
        let column = column(def, source, reduced)?;
        done.entry((FetchKey::of(def, column.step), given_reduction(def))).or_insert(reduced);
        series[def.series] = column;
    }
    Ok(series)
}

/// How a fetch was reduced.
#[derive(Clone, Copy)]
struct Reduced {
    /// The fetch, by index.
    request: usize,
    /// The requested step.
    step: u64,
    cf: Cf,
}

/// The reduce function of a DEF as RRDtool compares it: without one, AVERAGE, although the DEF's own function is used.
fn given_reduction(def: &Def) -> Cf {
    def.reduce.unwrap_or(Cf::Average)
}

/// The rows of one DEF out of a fetch, consolidated.
fn column(def: &Def, source: &FetchRows, reduced: Reduced) -> Result<Series, EvalError> {
    let name = String::from_utf8_lossy(&def.ds);
    let ds = source.ds_names.iter().position(|ds| *ds == name);
    let missing = || EvalError::NoSuchDs { ds: lossy(&def.ds), file: lossy(&def.file) };
    // RRDtool consolidates before it looks for the data source, so that error comes first.
    let values = source.column(ds.unwrap_or(0));
    let series = Series { start: source.start, step: source.step.max(1), values };
    let series = match source.units_per_second {
        0 | 1 => reduce(series, reduced.step, reduced.cf)?,
        units => reduce_to_seconds(series, units, reduced.step, reduced.cf)?,
    };
    ds.map(|_| series).ok_or_else(missing)
}
