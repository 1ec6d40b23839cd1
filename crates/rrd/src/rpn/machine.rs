//! The stack, and the operators that need only their operands.
//!
//! Values stay in the stack's memory after they are popped, as in RRDtool: ROLL and INDEX read above the top
//! (see [`Machine::roll`]), so those values are part of the result. The memory starts as zeroes, so that the
//! result depends on the arguments alone; between the rows of a series it is kept.
//!
//! NaN keeps its sign as in RRDtool on amd64: an operand's NaN passes through, a new one is [`UNKNOWN`]. SIN,
//! COS, ATAN, ATAN2, LOG, EXP, SQRT and POW are those of the system's C library.

use super::{EvaluateError, Operator, sets};
use crate::live::UNKNOWN;

/// Most values on a stack. RRDtool uses all the memory there is: `1,COPY,2,COPY,4,COPY,...` doubles the stack
/// with every token. 8 MiB is beyond any expression written by hand.
pub const DEPTH_MAX: usize = 1 << 20;

/// Most values that the sets and windows of one evaluation may touch. At 1.5 ns each (`benches/rpn.rs`) that is
/// about ten seconds. RRDtool has no limit, but an expression from a network must come to an end.
pub const WORK_MAX: u64 = 1 << 33;

/// A running stack machine.
pub(super) struct Machine {
    memory: Vec<f64>,
    depth: usize,
    /// Memory for sorting and rotating.
    aside: Vec<f64>,
    work_left: u64,
}

impl Machine {
    /// An empty stack in `memory`, which must be empty or zeroes.
    pub(super) fn new(memory: Vec<f64>, work_max: u64) -> Machine {
        Machine { memory, depth: 0, aside: Vec::new(), work_left: work_max }
    }

    /// Returns the memory for reuse.
    pub(super) fn into_memory(self) -> Vec<f64> {
        self.memory
    }

    /// The single remaining value. The stack is then empty for the next row.
    #[inline]
    pub(super) fn finish(&mut self) -> Result<f64, EvaluateError> {
        if self.depth != 1 {
            return Err(EvaluateError::FinalSize);
        }
        self.depth = 0;
        Ok(self.memory[0])
    }

    /// Deducts `values` from what remains of [`WORK_MAX`].
    pub(super) fn spend(&mut self, values: u64) -> Result<(), EvaluateError> {
        self.work_left = self.work_left.checked_sub(values).ok_or(EvaluateError::TooMuchWork)?;
        Ok(())
    }

    /// Memory for operators that collect values.
    pub(super) fn aside(&mut self) -> &mut Vec<f64> {
        &mut self.aside
    }

    #[inline]
    pub(super) fn push(&mut self, value: f64) {
        match self.memory.get_mut(self.depth) {
            Some(slot) => *slot = value,
            None => self.memory.push(value),
        }
        self.depth += 1;
    }

    #[inline]
    pub(super) fn need(&self, count: usize) -> Result<(), EvaluateError> {
        if self.depth >= count { Ok(()) } else { Err(EvaluateError::Underflow) }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Result<f64, EvaluateError> {
        self.need(1)?;
        self.depth -= 1;
        Ok(self.memory[self.depth])
    }

    /// The value that has `above` others on top of it.
    pub(super) fn below(&self, above: usize) -> Result<f64, EvaluateError> {
        self.need(above + 1)?;
        Ok(self.memory[self.depth - 1 - above])
    }

    /// Pops `count` values.
    pub(super) fn drop(&mut self, count: usize) -> Result<(), EvaluateError> {
        self.need(count)?;
        self.depth -= count;
        Ok(())
    }

    #[inline]
    fn unary(&mut self, function: impl Fn(f64) -> f64) -> Result<(), EvaluateError> {
        self.need(1)?;
        let top = &mut self.memory[self.depth - 1];
        *top = if top.is_nan() { *top } else { known(function(*top)) };
        Ok(())
    }

    /// Replaces the two topmost values; the popped one stays in memory above the top.
    #[inline]
    fn binary(&mut self, function: impl Fn(f64, f64) -> f64) -> Result<(), EvaluateError> {
        self.need(2)?;
        self.depth -= 1;
        let (below, top) = (self.memory[self.depth - 1], self.memory[self.depth]);
        self.memory[self.depth - 1] = function(below, top);
        Ok(())
    }

    #[inline]
    pub(super) fn apply(&mut self, operator: Operator) -> Result<(), EvaluateError> {
        use Operator as O;
        match operator {
            O::Add => self.binary(|a, b| strict(a, b, |a, b| a + b)),
            O::Subtract => self.binary(|a, b| strict(a, b, |a, b| a - b)),
            O::Multiply => self.binary(|a, b| strict(a, b, |a, b| a * b)),
            O::Divide => self.binary(|a, b| strict(a, b, |a, b| a / b)),
            O::Modulo => self.binary(|a, b| strict(a, b, |a, b| a % b)),
            O::Atan2 => self.binary(f64::atan2),
            // The C library's rules for unknown operands, signs included.
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
            // Rounds halves away from zero, like C's `round`.
            O::Round => self.unary(f64::round),
            // The factors are RRDtool's, with ten digits.
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
                let (values, aside) = self.set(count, SORTING)?;
                sets::sort(values, aside);
                Ok(())
            }
            O::Reverse => {
                let count = self.count()?;
                self.set(count, 1)?.0.reverse();
                Ok(())
            }
            O::Average | O::Median | O::StDev | O::SetMin | O::SetMax | O::Deviation => self.reduce(operator),
            O::Percent => self.percent(),
            _ => Err(EvaluateError::Unsupported),
        }
    }

    /// The three operators that examine a value even when it is unknown.
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
                self.spend(count as u64)?;
                if self.depth + count > DEPTH_MAX {
                    return Err(EvaluateError::OutOfMemory(count as i32));
                }
                for index in self.depth - count..self.depth {
                    self.push(self.memory[index]);
                }
            }
            Operator::Index => {
                let index = integer(self.pop()?);
                let slot = self.depth as i64 - i64::from(index);
                let slot = usize::try_from(slot).map_err(|_| EvaluateError::Underflow)?;
                let value = self.memory.get(slot).copied().unwrap_or(0.0);
                self.push(value);
            }
            _ => self.roll()?,
        }
        Ok(())
    }

    /// `n,m,ROLL`.
    ///
    /// Compat: RRDtool does not rotate the n values below the top but the top and the n-1 memory cells *above*
    /// it, which still hold `n` and `m` themselves (`tests/compute_oracle.rs`).
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
        self.spend(count as u64)?;
        let top = self.depth - 1;
        let cell = |index: usize| self.memory.get(top + index).copied().unwrap_or(0.0);
        let by = (i64::from(by).rem_euclid(count as i64)) as usize;
        self.aside.clear();
        self.aside.resize(count, 0.0);
        for index in 0..count {
            self.aside[(count - 1 - index + by) % count] = cell(index);
        }
        self.memory[self.depth - count..self.depth].copy_from_slice(&self.aside);
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

    /// Pops a count. A negative one, with which RRDtool reads outside its stack, is an underflow.
    fn count(&mut self) -> Result<usize, EvaluateError> {
        usize::try_from(integer(self.pop()?)).map_err(|_| EvaluateError::Underflow)
    }

    /// The `count` topmost values, and memory to work in; `cost` is the work that one of them counts for.
    fn set(&mut self, count: usize, cost: u64) -> Result<(&mut [f64], &mut Vec<f64>), EvaluateError> {
        self.need(count)?;
        self.spend(count as u64 * cost)?;
        Ok((&mut self.memory[self.depth - count..self.depth], &mut self.aside))
    }

    fn reduce(&mut self, operator: Operator) -> Result<(), EvaluateError> {
        let count = self.count()?;
        let (values, aside) = self.set(count, SORTING)?;
        let result = match operator {
            Operator::Average => sets::mean(values),
            Operator::StDev => sets::deviation(values),
            Operator::Median => sets::median(values, aside),
            Operator::Deviation => sets::median_deviation(values, aside),
            Operator::SetMin => sets::fold(values, |value, best| value < best),
            _ => sets::fold(values, |value, best| value > best),
        };
        self.depth -= count;
        self.push(result);
        Ok(())
    }

    fn percent(&mut self) -> Result<(), EvaluateError> {
        self.need(2)?;
        let count = self.count();
        let percent = self.pop()?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(EvaluateError::Percentile);
        }
        let count = count?;
        let (values, aside) = self.set(count, SORTING)?;
        sets::sort(values, aside);
        let rank = (percent * count as f64 / 100.0).round() as usize;
        // Compat: for a small percentage RRDtool takes the value below the set (`tests/rpn_oracle.rs`). Where
        // there is none, take the smallest, which was meant.
        let slot = match (self.depth - count + rank.min(count)).checked_sub(1) {
            Some(slot) => slot,
            None if count > 0 => 0,
            None => return Err(EvaluateError::Underflow),
        };
        let result = self.memory[slot];
        self.depth -= count;
        self.push(result);
        Ok(())
    }
}

/// The work that one value of a set to be sorted counts for: the merges of a million of them.
const SORTING: u64 = 20;

/// On amd64 the processor's NaN has the sign bit set; a NaN from the compiler may not.
pub(super) fn known(value: f64) -> f64 {
    if value.is_nan() { UNKNOWN } else { value }
}

pub(super) fn truth(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

/// What IF considers true.
fn truthy(value: f64) -> bool {
    !value.is_nan() && value != 0.0
}

/// Converts a double to `int` as C does on amd64.
pub(super) fn integer(value: f64) -> i32 {
    if value > -2_147_483_649.0 && value < 2_147_483_648.0 { value as i32 } else { i32::MIN }
}

/// The first unknown operand, otherwise the function's value.
fn strict(a: f64, b: f64, function: impl Fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() {
        a
    } else if b.is_nan() {
        b
    } else {
        known(function(a, b))
    }
}

/// The known operand when one is unknown (the second when both are), otherwise the function's value.
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
