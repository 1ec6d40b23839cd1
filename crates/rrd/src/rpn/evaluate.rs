//! Runs a COMPUTE program on the values of the sources before it.
//!
//! The stack is one slice of memory that words stay in after they are popped, as in RRDtool: ROLL and
//! INDEX read above the top there (see [`Machine::roll`]), so what stands there is part of the result. It
//! starts as zeroes at every call, which keeps the result a function of the arguments.
//!
//! NaN keeps its sign as RRDtool on amd64 gives it: an operand's NaN passes through, a new one is
//! [`UNKNOWN`]. SIN, COS, ATAN, ATAN2, LOG, EXP, SQRT and POW are those of the system's C library.

use std::fmt;

use super::Operator;
use crate::definition::ComputeProgram;
use crate::live::UNKNOWN;

/// What a program can ask for beside its sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Context {
    /// What NOW gives: seconds since the epoch. RRDtool takes the clock; whoever wants equal results from
    /// equal logs passes a time out of the log.
    pub now: i64,
}

/// Why a program has no result. `Display` is RRDtool's text, without the file's name in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluateError {
    /// An operator wants more than the stack holds.
    Underflow,
    /// Not exactly one value is left.
    FinalSize,
    /// PERCENT of something below 0 or above 100.
    Percentile,
    /// ROLL of a negative count.
    OutOfMemory(i32),
    /// An operator no COMPUTE source can have; only `PREV(..)` or a damaged file brings one here.
    Unsupported,
    /// A CDEF that reads no DEF or CDEF: it has no rows.
    NoSeries,
}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvaluateError::Underflow => f.write_str("RPN stack underflow"),
            EvaluateError::FinalSize => f.write_str("RPN final stack size != 1"),
            EvaluateError::Percentile => f.write_str("percentile argument must be between 0 and 100"),
            EvaluateError::OutOfMemory(count) => {
                write!(f, "RPN out of memory (allocating {count} objects)")
            }
            EvaluateError::NoSeries => {
                f.write_str("rpn expressions without DEF or CDEF variables are not supported")
            }
            EvaluateError::Unsupported => f.write_str("VDEF made it into rpn_calc... aborting"),
        }
    }
}

impl std::error::Error for EvaluateError {}

/// The value of `program` where the sources before it have `values`; `stack` is only memory to reuse.
///
/// # Errors
/// [`EvaluateError`]; RRDtool then refuses the update.
pub fn evaluate(
    program: &ComputeProgram,
    values: &[f64],
    context: Context,
    stack: &mut Vec<f64>,
) -> Result<f64, EvaluateError> {
    stack.clear();
    let mut machine = Machine { memory: stack, depth: 0 };
    for node in &program.nodes {
        let operator = Operator::from_number(node.op).ok_or(EvaluateError::Unsupported)?;
        match operator {
            Operator::Number => machine.push(f64::from(node.operand)),
            Operator::Variable => {
                let index = usize::try_from(node.operand).map_err(|_| EvaluateError::Unsupported)?;
                machine.push(*values.get(index).ok_or(EvaluateError::Unsupported)?);
            }
            Operator::Now => machine.push(context.now as f64),
            Operator::Inf => machine.push(f64::INFINITY),
            Operator::NegInf => machine.push(f64::NEG_INFINITY),
            Operator::Unknown => machine.push(UNKNOWN),
            _ => machine.apply(operator)?,
        }
    }
    if machine.depth == 1 { Ok(machine.memory[0]) } else { Err(EvaluateError::FinalSize) }
}

struct Machine<'a> {
    memory: &'a mut Vec<f64>,
    depth: usize,
}

impl Machine<'_> {
    fn push(&mut self, value: f64) {
        match self.memory.get_mut(self.depth) {
            Some(place) => *place = value,
            None => self.memory.push(value),
        }
        self.depth += 1;
    }

    fn need(&self, count: usize) -> Result<(), EvaluateError> {
        if self.depth >= count { Ok(()) } else { Err(EvaluateError::Underflow) }
    }

    fn pop(&mut self) -> Result<f64, EvaluateError> {
        self.need(1)?;
        self.depth -= 1;
        Ok(self.memory[self.depth])
    }

    fn unary(&mut self, function: impl Fn(f64) -> f64) -> Result<(), EvaluateError> {
        self.need(1)?;
        let top = &mut self.memory[self.depth - 1];
        *top = if top.is_nan() { *top } else { known(function(*top)) };
        Ok(())
    }

    /// Replaces the two topmost values; what is popped stays in memory above.
    fn binary(&mut self, function: impl Fn(f64, f64) -> f64) -> Result<(), EvaluateError> {
        self.need(2)?;
        self.depth -= 1;
        let (below, top) = (self.memory[self.depth - 1], self.memory[self.depth]);
        self.memory[self.depth - 1] = function(below, top);
        Ok(())
    }

    fn apply(&mut self, operator: Operator) -> Result<(), EvaluateError> {
        use Operator as O;
        match operator {
            O::Add => self.binary(|a, b| strict(a, b, |a, b| a + b)),
            O::Subtract => self.binary(|a, b| strict(a, b, |a, b| a - b)),
            O::Multiply => self.binary(|a, b| strict(a, b, |a, b| a * b)),
            O::Divide => self.binary(|a, b| strict(a, b, |a, b| a / b)),
            O::Modulo => self.binary(|a, b| strict(a, b, |a, b| a % b)),
            O::Atan2 => self.binary(|a, b| strict(a, b, f64::atan2)),
            // The C library's own rules for unknown operands, signs included.
            O::Pow => self.binary(f64::powf),
            O::AddNan => self.binary(|a, b| either(a, b, |a, b| known(a + b))),
            O::Sin => self.unary(f64::sin),
            O::Cos => self.unary(f64::cos),
            O::Log => self.unary(f64::ln),
            O::Exp => self.unary(f64::exp),
            O::Sqrt => self.unary(f64::sqrt),
            O::Atan => self.unary(f64::atan),
            O::Floor => self.unary(f64::floor),
            O::Ceil => self.unary(f64::ceil),
            // The factors are RRDtool's own, of ten digits.
            O::RadToDeg => self.unary(|value| 57.29577951 * value),
            O::DegToRad => self.unary(|value| 0.0174532952 * value),
            O::Lt => self.binary(|a, b| strict(a, b, |a, b| truth(a < b))),
            O::Le => self.binary(|a, b| strict(a, b, |a, b| truth(a <= b))),
            O::Gt => self.binary(|a, b| strict(a, b, |a, b| truth(a > b))),
            O::Ge => self.binary(|a, b| strict(a, b, |a, b| truth(a >= b))),
            O::Eq => self.binary(|a, b| strict(a, b, |a, b| truth(a == b))),
            O::Ne => self.binary(|a, b| strict(a, b, |a, b| truth(a != b))),
            O::Min => self.binary(|a, b| strict(a, b, smaller)),
            O::Max => self.binary(|a, b| strict(a, b, larger)),
            O::MinNan => self.binary(|a, b| either(a, b, smaller)),
            O::MaxNan => self.binary(|a, b| either(a, b, larger)),
            O::Abs | O::Un | O::IsInf => self.classify(operator),
            O::Dup | O::Exc | O::Pop | O::Depth | O::Copy | O::Index | O::Roll => self.shuffle(operator),
            O::If => self.choose(),
            O::Limit => self.limit(),
            O::Sort => {
                let count = self.count()?;
                sort(self.top(count)?);
                Ok(())
            }
            O::Reverse => {
                let count = self.count()?;
                self.top(count)?.reverse();
                Ok(())
            }
            O::Average | O::Median | O::StDev | O::SetMin | O::SetMax => self.reduce(operator),
            O::Percent => self.percent(),
            _ => Err(EvaluateError::Unsupported),
        }
    }

    /// The three that look at a value even when it is unknown.
    fn classify(&mut self, operator: Operator) -> Result<(), EvaluateError> {
        self.need(1)?;
        let top = &mut self.memory[self.depth - 1];
        *top = match operator {
            Operator::Abs => f64::from_bits(top.to_bits() & !(1 << 63)),
            Operator::Un => truth(top.is_nan()),
            _ => truth(top.is_infinite()),
        };
        Ok(())
    }

    fn shuffle(&mut self, operator: Operator) -> Result<(), EvaluateError> {
        match operator {
            Operator::Dup => {
                self.need(1)?;
                self.push(self.memory[self.depth - 1]);
            }
            Operator::Exc => {
                self.need(2)?;
                self.memory.swap(self.depth - 1, self.depth - 2);
            }
            Operator::Pop => {
                self.pop()?;
            }
            Operator::Depth => self.push(self.depth as f64),
            Operator::Copy => {
                let count = self.count()?;
                self.need(count)?;
                for index in self.depth - count..self.depth {
                    self.push(self.memory[index]);
                }
            }
            Operator::Index => {
                let index = integer(self.pop()?);
                let place = self.depth as i64 - i64::from(index);
                let place = usize::try_from(place).map_err(|_| EvaluateError::Underflow)?;
                let value = self.memory.get(place).copied().unwrap_or(0.0);
                self.push(value);
            }
            _ => self.roll()?,
        }
        Ok(())
    }

    /// `n,m,ROLL`.
    ///
    /// Compat: RRDtool turns not the n values below the top but the top and the n-1 memory cells *above*
    /// it, where `n` and `m` themselves still stand (`tests/compute_oracle.rs`).
    fn roll(&mut self) -> Result<(), EvaluateError> {
        let by = integer(self.pop()?);
        let count = integer(self.pop()?);
        if count < 0 {
            return Err(if count == i32::MIN {
                EvaluateError::Underflow
            } else {
                EvaluateError::OutOfMemory(count)
            });
        }
        let count = count as usize;
        self.need(count)?;
        if count == 0 {
            return Ok(());
        }
        let top = self.depth - 1;
        let cell = |index: usize| self.memory.get(top + index).copied().unwrap_or(0.0);
        let by = (i64::from(by).rem_euclid(count as i64)) as usize;
        let mut turned = vec![0.0; count];
        for index in 0..count {
            turned[(count - 1 - index + by) % count] = cell(index);
        }
        self.memory[self.depth - count..self.depth].copy_from_slice(&turned);
        Ok(())
    }

    /// `A,B,C,IF`: if A then B else C.
    fn choose(&mut self) -> Result<(), EvaluateError> {
        self.need(3)?;
        self.depth -= 2;
        let chosen = if truthy(self.memory[self.depth - 1]) { self.depth } else { self.depth + 1 };
        self.memory[self.depth - 1] = self.memory[chosen];
        Ok(())
    }

    fn limit(&mut self) -> Result<(), EvaluateError> {
        self.need(3)?;
        self.depth -= 2;
        let [value, low, high] = std::array::from_fn(|index| self.memory[self.depth - 1 + index]);
        self.memory[self.depth - 1] = if value.is_nan() {
            value
        } else if low.is_nan() {
            low
        } else if high.is_nan() {
            high
        } else if value < low || value > high {
            UNKNOWN
        } else {
            value
        };
        Ok(())
    }

    /// Pops a count; a negative one (RRDtool reads outside its stack then) counts as none at hand.
    fn count(&mut self) -> Result<usize, EvaluateError> {
        usize::try_from(integer(self.pop()?)).map_err(|_| EvaluateError::Underflow)
    }

    fn top(&mut self, count: usize) -> Result<&mut [f64], EvaluateError> {
        self.need(count)?;
        Ok(&mut self.memory[self.depth - count..self.depth])
    }

    fn reduce(&mut self, operator: Operator) -> Result<(), EvaluateError> {
        let count = self.count()?;
        let values = self.top(count)?;
        if count == 0 {
            return Ok(());
        }
        let result = match operator {
            Operator::Average => mean(values),
            Operator::StDev => deviation(values),
            Operator::Median => median(values),
            Operator::SetMin => fold(values, |value, kept| value < kept),
            _ => fold(values, |value, kept| value > kept),
        };
        self.depth -= count;
        self.push(result);
        Ok(())
    }

    fn percent(&mut self) -> Result<(), EvaluateError> {
        self.need(2)?;
        let count = self.count()?;
        let percent = self.pop()?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(EvaluateError::Percentile);
        }
        let values = self.top(count)?;
        if count == 0 {
            return Ok(());
        }
        sort(values);
        // RRDtool reads in front of its array for a small percentage; the smallest value is what was meant.
        let rank = (percent * count as f64 / 100.0).round() as usize;
        let result = values[rank.clamp(1, count) - 1];
        self.depth -= count;
        self.push(result);
        Ok(())
    }
}

/// A NaN the processor makes has the sign bit set on amd64; the compiler's own may not.
fn known(value: f64) -> f64 {
    if value.is_nan() { UNKNOWN } else { value }
}

fn truth(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

/// What IF takes for true.
fn truthy(value: f64) -> bool {
    !value.is_nan() && value != 0.0
}

/// As C converts a double to `int` on amd64.
fn integer(value: f64) -> i32 {
    if value > -2_147_483_649.0 && value < 2_147_483_648.0 { value as i32 } else { i32::MIN }
}

/// The first unknown operand, else the function.
fn strict(a: f64, b: f64, function: impl Fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() {
        a
    } else if b.is_nan() {
        b
    } else {
        known(function(a, b))
    }
}

/// The known operand when one is unknown (the second when both are), else the function.
fn either(a: f64, b: f64, function: impl Fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() {
        a
    } else {
        function(a, b)
    }
}

fn smaller(a: f64, b: f64) -> f64 {
    if a > b { b } else { a }
}

fn larger(a: f64, b: f64) -> f64 {
    if a < b { b } else { a }
}

/// Whether RRDtool puts `a` behind `b`.
///
/// Compat: unknown comes first; an infinite number decides by its own sign alone, whichever side it is on,
/// so this is no order and the result depends on the way of sorting (`tests/compute_oracle.rs`).
fn goes_behind(a: f64, b: f64) -> bool {
    if a.is_nan() {
        false
    } else if b.is_nan() {
        true
    } else if a.is_infinite() {
        a > 0.0
    } else if b.is_infinite() {
        b > 0.0
    } else {
        a > b
    }
}

/// Merge sort by halves, the first half rounded down: `qsort` of the C library on such small arrays.
fn sort(values: &mut [f64]) {
    if values.len() < 2 {
        return;
    }
    let (first, second) = values.split_at_mut(values.len() / 2);
    sort(first);
    sort(second);
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let (mut i, mut j) = (0, 0);
    while i < first.len() && j < second.len() {
        if goes_behind(first[i], second[j]) {
            merged.push(second[j]);
            j += 1;
        } else {
            merged.push(first[i]);
            i += 1;
        }
    }
    merged.extend_from_slice(&first[i..]);
    merged.extend_from_slice(&second[j..]);
    values.copy_from_slice(&merged);
}

/// From the top of the stack down, in which order the additions round.
fn mean(values: &[f64]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for &value in values.iter().rev().filter(|value| !value.is_nan()) {
        sum += value;
        count += 1.0;
    }
    if count > 0.0 { known(sum / count) } else { UNKNOWN }
}

/// Of a sample (n - 1), unknown below two values.
fn deviation(values: &[f64]) -> f64 {
    let average = mean(values);
    let (mut squares, mut count) = (0.0, 0.0);
    for &value in values.iter().rev().filter(|value| !value.is_nan()) {
        let off = value - average;
        squares += off * off;
        count += 1.0;
    }
    if count > 1.0 { known((squares / (count - 1.0)).sqrt()) } else { UNKNOWN }
}

/// An unknown value's place is taken by the last one before sorting, as in RRDtool.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    let mut index = 0;
    while index < values.len() {
        if values[index].is_nan() {
            values.swap_remove(index);
        } else {
            index += 1;
        }
    }
    sort(&mut values);
    match values.len() {
        0 => UNKNOWN,
        count if count % 2 == 1 => values[count / 2],
        count => known((values[count / 2 - 1] + values[count / 2]) / 2.0),
    }
}

fn fold(values: &[f64], better: impl Fn(f64, f64) -> bool) -> f64 {
    let mut kept = values[0];
    for &value in &values[1..] {
        if !value.is_nan() && (kept.is_nan() || better(value, kept)) {
            kept = value;
        }
    }
    kept
}
