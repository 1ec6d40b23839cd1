//! Runs a COMPUTE program on the values of the earlier sources.

use super::machine::{Machine, WORK_MAX};
use super::{EvaluateError, Operator};
use crate::definition::ComputeProgram;
use crate::live::UNKNOWN;

/// What a program can read besides its sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Context {
    /// The value of NOW: seconds since the epoch. RRDtool asks the clock; to get equal results from equal logs,
    /// pass a time from the log.
    pub now: i64,
}

/// The value of `program`, given the `values` of the earlier sources; `stack` is memory to reuse.
///
/// # Errors
/// [`EvaluateError`]; RRDtool then refuses the update.
pub fn evaluate(
    program: &ComputeProgram,
    values: &[f64],
    context: Context,
    stack: &mut Vec<f64>,
) -> Result<f64, EvaluateError> {
    let mut memory = std::mem::take(stack);
    memory.clear();
    let mut machine = Machine::new(memory, WORK_MAX);
    let result = run(program, values, context, &mut machine);
    *stack = machine.into_memory();
    result
}

fn run(
    program: &ComputeProgram,
    values: &[f64],
    context: Context,
    machine: &mut Machine,
) -> Result<f64, EvaluateError> {
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
    machine.finish()
}
