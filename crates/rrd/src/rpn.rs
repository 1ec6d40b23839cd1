//! Reverse Polish notation, as `rrdgraph_rpn(1)` defines it.
//!
//! Owns the operators, with their numbers in `.rrd` files, and three languages over them: the programs of
//! COMPUTE sources (`compute`, `evaluate`), CDEFs over complete series (`expression`, `rows`), and VDEFs. All
//! split their text with `tokens`; all but VDEFs run on the stack of `machine`.
//!
//! A program is plain data. It comes from a command line or from a file that may be damaged, so every operand,
//! depth and count is checked where it is used, and the work of one evaluation is bounded.

mod compute;
pub mod error;
mod evaluate;
pub mod expression;
mod machine;
mod operator;
mod rows;
pub mod series;
mod sets;
mod tokens;
pub mod vdef;
mod windows;

pub use compute::{CompileError, NODES_MAX, compile, decompile};
pub use error::{EvaluateError, RpnError};
pub use evaluate::{Context, evaluate};
pub use expression::{EvalContext, Expression, Symbol};
pub use machine::{DEPTH_MAX, WORK_MAX};
pub use operator::Operator;
pub use series::Series;
pub use vdef::{Vdef, VdefValue};

#[cfg(test)]
mod tests;
