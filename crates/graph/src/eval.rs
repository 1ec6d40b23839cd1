//! From a script and rows to data: every DEF, CDEF and VDEF computed.
//!
//! Fetches come first, in the order of the DEFs, then CDEFs and VDEFs in the order of the arguments, as in
//! RRDtool; so of several errors the same one is told.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;

use rrd::definition::Cf;
use rrd::rpn::{EvaluateError, Series, Surroundings, VdefValue};

use crate::argument::lossy;
use crate::language::drawn::{Drawn, Plotted, Shift};
use crate::language::{Def, Element, Script};
use crate::plan::{Fetched, Frame, Question, Rows, plan};
use crate::reduce::reduce;

/// Why there is no data.
#[derive(Debug)]
pub enum EvalError {
    /// A fetch failed; the source's text.
    Rows(Box<dyn Error + Send + Sync>),
    /// The RRD has no such data source.
    NoSuchDs {
        /// The data source.
        ds: String,
        /// The RRD.
        file: String,
    },
    /// The range lies within one row of the wanted step.
    CannotReduce {
        /// Rows in a wide row.
        factor: u64,
    },
    /// A CDEF.
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
            EvalError::Rpn(error) => error.fmt(f),
        }
    }
}

impl Error for EvalError {}

/// The variables of a script, computed.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Every DEF and CDEF, by number of series.
    pub series: Vec<Series>,
    /// Every VDEF, by number of scalar.
    pub scalars: Vec<VdefValue>,
}

/// Fetches and computes.
///
/// # Errors
/// [`EvalError`]: the first that there is.
pub fn evaluate(
    script: &Script,
    frame: Frame,
    rows: &mut dyn Rows,
    surroundings: &Surroundings<'_>,
) -> Result<Data, EvalError> {
    let mut series = fetch(script, frame, rows)?;
    let mut scalars: Vec<VdefValue> = Vec::with_capacity(script.scalar_count());
    let mut shifts = Shifts::new();
    for element in &script.elements {
        match element {
            Element::Cdef(cdef) => {
                let inputs: Vec<&Series> = series.iter().collect();
                let values: Vec<f64> = scalars.iter().map(|scalar| scalar.value).collect();
                let expression = &cdef.expression;
                let count = expression.result_rows(&inputs).map_err(EvalError::Rpn)?;
                let computation = rows.compute(count, expression.word_count()).map_err(EvalError::Rows)?;
                let result = match computation.work_max {
                    Some(work) => expression.evaluate_within(work, &inputs, &values, surroundings),
                    None => expression.evaluate(&inputs, &values, surroundings),
                };
                series[cdef.series] = result.map_err(EvalError::Rpn)?;
            }
            Element::Vdef(vdef) => {
                scalars.push(vdef.vdef.evaluate(&series[vdef.vdef.series()]));
            }
            Element::Drawn(Drawn::Shift(moved)) => shift(&mut shifts, *moved, &mut series, &scalars),
            _ => {}
        }
    }
    Ok(Data { series, scalars })
}

/// By how many seconds each series is shifted that ever was.
type Shifts = HashMap<usize, i64>;

/// Shifts a series in time: what is computed of it from here on is shifted with it, and so is what is drawn of it.
///
/// Compat: by whole rows, towards zero; of two shifts of a series the last counts. A shift by an unknown value or
/// beyond the range of times is none.
fn shift(shifts: &mut Shifts, shift: Shift, series: &mut [Series], scalars: &[VdefValue]) {
    let seconds = match shift.offset {
        Plotted::Number(number) => number,
        Plotted::Scalar(scalar) => scalars[scalar].value,
        Plotted::Series(_) => return,
    };
    let target = &mut series[shift.series];
    let step = i64::try_from(target.step).unwrap_or(i64::MAX).max(1);
    let seconds = seconds as i64 / step * step;
    let before = shifts.insert(shift.series, seconds).unwrap_or(0);
    target.start = target.start.saturating_sub(before).saturating_add(seconds);
}

/// The series of all DEFs; those of CDEFs are still empty.
fn fetch(script: &Script, frame: Frame, rows: &mut dyn Rows) -> Result<Vec<Series>, EvalError> {
    let plan = plan(script, frame);
    let mut fetched: Vec<Option<Fetched>> = vec![None; plan.requests.len()];
    let mut series = vec![Series { start: frame.start, step: 1, values: Vec::new() }; script.series_count()];
    let mut done: HashMap<(Question<'_>, Cf), Reduced> = HashMap::new();
    let defs = script.elements.iter().filter_map(|element| match element {
        Element::Def(def) => Some(def),
        _ => None,
    });
    for (def, &request) in defs.zip(&plan.of_def) {
        let asked = &plan.requests[request];
        // Compat: RRDtool takes what it has reduced for a DEF to a step for what another DEF wants in that step,
        // whichever archive would have answered.
        let same = done.get(&(Question::of(def, asked.step), given_reduction(def)));
        let reduced = same.copied().unwrap_or(Reduced {
            request,
            step: def.step.unwrap_or(0).max(frame.step),
            cf: def.reduce.unwrap_or(def.cf),
        });
        let source = match &mut fetched[reduced.request] {
            Some(source) => source,
            empty => empty.insert(rows.fetch(asked).map_err(EvalError::Rows)?),
        };
        let made = column(def, source, reduced)?;
        done.entry((Question::of(def, made.step), given_reduction(def))).or_insert(reduced);
        series[def.series] = made;
    }
    Ok(series)
}

/// How a fetch was reduced.
#[derive(Clone, Copy)]
struct Reduced {
    /// The fetch, by index.
    request: usize,
    /// The step that was wanted.
    step: u64,
    cf: Cf,
}

/// The function by which a DEF is reduced, as RRDtool compares it: none is AVERAGE, though it is not used so.
fn given_reduction(def: &Def) -> Cf {
    def.reduce.unwrap_or(Cf::Average)
}

/// The rows of one DEF out of what was fetched for it, reduced.
fn column(def: &Def, source: &Fetched, reduced: Reduced) -> Result<Series, EvalError> {
    let ds = source.names.iter().position(|name| *name == def.ds);
    let missing = || EvalError::NoSuchDs { ds: lossy(&def.ds), file: lossy(&def.file) };
    // RRDtool reduces before it looks for the data source, so that error comes first.
    let values = source.column(ds.unwrap_or(0));
    let series = Series { start: source.start, step: source.step.max(1), values };
    let series = reduce(series, reduced.step, reduced.cf)?;
    ds.map(|_| series).ok_or_else(missing)
}
