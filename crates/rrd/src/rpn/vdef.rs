//! A VDEF: one value, and perhaps a time, of a complete series.

use super::error::RpnError;
use super::expression::Symbol;
use super::series::Series;
use super::sets;
use crate::live::UNKNOWN;
use crate::number;

/// A compiled VDEF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vdef {
    series: usize,
    function: Function,
    percent: f64,
}

/// The result of a VDEF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VdefValue {
    /// The value; NaN is unknown.
    pub value: f64,
    /// The time of the value, in seconds since the epoch; `None` where there is none (RRDtool's "never").
    pub time: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Maximum,
    Minimum,
    Average,
    StDev,
    Last,
    First,
    Total,
    Percent,
    PercentNan,
    Slope,
    Intercept,
    Correlation,
}

const FUNCTIONS: [(&str, Function); 12] = [
    ("PERCENT", Function::Percent),
    ("PERCENTNAN", Function::PercentNan),
    ("MAXIMUM", Function::Maximum),
    ("AVERAGE", Function::Average),
    ("STDEV", Function::StDev),
    ("MINIMUM", Function::Minimum),
    ("TOTAL", Function::Total),
    ("FIRST", Function::First),
    ("LAST", Function::Last),
    ("LSLSLOPE", Function::Slope),
    ("LSLINT", Function::Intercept),
    ("LSLCORREL", Function::Correlation),
];

impl Function {
    fn from_name(name: &str) -> Option<Function> {
        FUNCTIONS.iter().find(|&&(text, _)| text == name).map(|&(_, function)| function)
    }

    fn takes_number(self) -> bool {
        matches!(self, Function::Percent | Function::PercentNan)
    }
}

impl Vdef {
    /// Compiles `text`, which is `series,[number,]FUNCTION`, for the VDEF `name`. `lookup` knows the variables
    /// that are already defined.
    ///
    /// # Errors
    /// [`RpnError`], whose `Display` is RRDtool's text.
    pub fn parse(name: &str, text: &str, lookup: impl Fn(&str) -> Option<Symbol>) -> Result<Vdef, RpnError> {
        let (variable, rest) = text.split_once(',').ok_or_else(|| RpnError::NoComma(text.to_string()))?;
        let series = match lookup(variable) {
            Some(Symbol::Series(series)) => series,
            Some(Symbol::Scalar(_)) => {
                return Err(RpnError::NotSeries(variable.to_string(), text.to_string()));
            }
            None => return Err(RpnError::NotValidName(variable.to_string(), text.to_string())),
        };
        let (function, percent) = function(name, rest)?;
        Ok(Vdef { series, function, percent })
    }

    /// The series it reads: the index that `lookup` gave.
    pub fn series(&self) -> usize {
        self.series
    }

    /// The value over all rows of `series`.
    pub fn evaluate(&self, series: &Series) -> VdefValue {
        evaluate(self, series)
    }
}

/// Most characters of a number that RRDtool reads; a longer one is not a number.
const NUMBER_LETTERS: usize = 40;
/// Most characters of a function that RRDtool reads.
const FUNCTION_LETTERS: usize = 29;

/// `[number,]FUNCTION`. After a number, anything that follows the capitals is ignored.
fn function(name: &str, text: &str) -> Result<(Function, f64), RpnError> {
    let of_number = |byte: u8| byte.is_ascii_digit() || b".e+-".contains(&byte);
    let digits = text.bytes().take(NUMBER_LETTERS).take_while(|byte| of_number(*byte)).count();
    let capitals =
        |text: &str| text.bytes().take(FUNCTION_LETTERS).take_while(u8::is_ascii_uppercase).count();
    let (percent, function_name) = match number::parse(&text.as_bytes()[..digits]) {
        Ok(percent) => match text[digits..].strip_prefix(',') {
            Some(rest) => (Some(percent), &rest[..capitals(rest)]),
            None => (None, ""),
        },
        Err(_) if capitals(text) == text.len() => (None, text),
        Err(_) => return Err(RpnError::FunctionString(text.to_string(), name.to_string())),
    };
    let names = || (function_name.to_string(), name.to_string());
    let Some(function) = Function::from_name(function_name) else {
        let (function, name) = names();
        return Err(RpnError::NoFunction(function, name));
    };
    match percent {
        None if function.takes_number() => {
            let (function, name) = names();
            Err(RpnError::NeedsParameter(function, name))
        }
        Some(_) if !function.takes_number() => {
            let (function, name) = names();
            Err(RpnError::NeedsNoParameter(function, name))
        }
        Some(percent) if !(0.0..=100.0).contains(&percent) => {
            Err(RpnError::OutOfRange(percent, name.to_string()))
        }
        percent => Ok((function, percent.unwrap_or(0.0))),
    }
}

fn evaluate(vdef: &Vdef, series: &Series) -> VdefValue {
    let rows = &series.values[..];
    let none = VdefValue { value: UNKNOWN, time: None };
    let value = |value: f64| VdefValue { value, time: None };
    let end =
        |index: usize| series.start.saturating_add_unsigned(series.step.saturating_mul(index as u64 + 1));
    let at = |found: Option<(usize, f64)>, time: fn(i64, u64) -> i64| match found {
        Some((index, value)) => VdefValue { value, time: Some(time(end(index), series.step)) },
        None => none,
    };
    let row_time: fn(i64, u64) -> i64 = |end, _| end;
    let row_begin: fn(i64, u64) -> i64 = |end, step| end.saturating_sub_unsigned(step);
    match vdef.function {
        Function::Maximum => at(first_best(rows, |value, best| value > best), row_time),
        Function::Minimum => at(first_best(rows, |value, best| value < best), row_time),
        Function::Last => at(known(rows).next_back(), row_time),
        Function::First => at(known(rows).next(), row_begin),
        Function::Percent => value(percent(rows, true, vdef.percent)),
        Function::PercentNan => value(percent(rows, false, vdef.percent)),
        Function::Average | Function::StDev | Function::Total => value(spread(vdef.function, series)),
        Function::Slope | Function::Intercept | Function::Correlation => {
            value(least_squares(vdef.function, rows))
        }
    }
}

/// The known rows with their index.
fn known(rows: &[f64]) -> impl DoubleEndedIterator<Item = (usize, f64)> {
    rows.iter().copied().enumerate().filter(|(_, value)| !value.is_nan())
}

/// The first known value, unless a better one follows that is finite.
///
/// Compat: an infinite value counts only where it is the first (`tests/rpn_oracle.rs`).
fn first_best(rows: &[f64], better: impl Fn(f64, f64) -> bool) -> Option<(usize, f64)> {
    known(rows).reduce(|best, row| if row.1.is_finite() && better(row.1, best.1) { row } else { best })
}

/// The value that `percent` of the others do not exceed; unknown is lower than everything, or does not count.
///
/// Selecting is several times as fast as sorting, and faster still on integers. It cannot tell which of two zeros,
/// or of two unknown values with different signs, the sort would put there, or how the sort orders infinities,
/// which RRDtool compares by their own sign alone; these cases are sorted.
fn percent(rows: &[f64], with_unknown: bool, percent: f64) -> f64 {
    let mut keys = Vec::with_capacity(rows.len());
    keys.extend(rows.iter().filter(|value| !value.is_nan()).map(|value| key(value.to_bits() as i64)));
    let unknown = if with_unknown { rows.len() - keys.len() } else { 0 };
    let count = unknown + keys.len();
    if count == 0 {
        return UNKNOWN;
    }
    let rank = (percent * (count - 1) as f64 / 100.0).round() as usize;
    let rank = rank.min(count - 1);
    // Without a negative zero all zeros are the same, and idle ports have many.
    let ambiguous = |value: &f64| value.is_infinite() || value.to_bits() == (-0.0f64).to_bits();
    if rank >= unknown && !rows.iter().any(ambiguous) {
        let (_, &mut found, _) = keys.select_nth_unstable(rank - unknown);
        return f64::from_bits(key(found) as u64);
    }
    let counts = |value: &f64| with_unknown || !value.is_nan();
    let mut values: Vec<f64> = rows.iter().copied().filter(counts).collect();
    sets::sort_turning(&mut values);
    values[rank]
}

/// Maps the bits of a known value to an integer with the same order, and back.
fn key(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// AVERAGE, STDEV (of the whole population) and TOTAL, over finite values.
fn spread(function: Function, series: &Series) -> f64 {
    let finite = || series.values.iter().copied().filter(|value| value.is_finite());
    let (mut sum, mut count) = (0.0, 0.0);
    for value in finite() {
        sum += value;
        count += 1.0;
    }
    if count == 0.0 {
        return UNKNOWN;
    }
    let average = sum / count;
    match function {
        Function::Total => sum * series.step as f64,
        Function::Average => average,
        _ => {
            let mut squares = 0.0;
            for value in finite() {
                squares += (value - average) * (value - average);
            }
            // The C library's `pow` sometimes rounds differently from `sqrt`; the compiler must not see that this
            // is a square root (`tests/rpn_oracle.rs`).
            (squares / count).powf(std::hint::black_box(0.5))
        }
    }
}

/// The line through the finite values over their row number, counted from 0.
fn least_squares(function: Function, rows: &[f64]) -> f64 {
    let (mut xs, mut xys, mut xxs, mut ys, mut yys, mut count) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (index, &y) in rows.iter().enumerate() {
        if y.is_finite() {
            let x = index as f64;
            xs += x;
            xxs += x * x;
            xys += x * y;
            ys += y;
            yys += y * y;
            count += 1.0;
        }
    }
    if count == 0.0 {
        return UNKNOWN;
    }
    let slope = (xs * ys - count * xys) / (xs * xs - count * xxs);
    match function {
        Function::Slope => slope,
        Function::Intercept => (ys - slope * xs) / count,
        _ => (xys - xs * ys / count) / ((xxs - xs * xs / count) * (yys - ys * ys / count)).sqrt(),
    }
}
