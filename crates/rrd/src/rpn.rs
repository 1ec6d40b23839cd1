//! Reverse Polish notation, as `rrdgraph_rpn(1)` defines it.
//!
//! Owns the operators with the numbers they have in `.rrd` files and three languages over them: the programs
//! of COMPUTE sources (`compute`, `evaluate`), CDEFs over whole series (`expression`, `rows`), and VDEFs. All
//! read their words with `words` and, but for VDEFs, work on the stack of `machine`.
//!
//! A program is plain data: it comes from a command line or out of a file that may be damaged, so every
//! operand, depth and count is checked where it is used, and the work of one evaluation is bounded.

mod compute;
pub mod error;
mod evaluate;
pub mod expression;
mod machine;
mod operator;
mod rows;
pub mod series;
mod sets;
pub mod vdef;
mod windows;
mod words;

pub use compute::{CompileError, NODES_MAX, compile, decompile};
pub use error::{EvaluateError, RpnError};
pub use evaluate::{Context, evaluate};
pub use expression::{Expression, Surroundings, Symbol};
pub use machine::{DEPTH_MAX, WORK_MAX};
pub use operator::Operator;
pub use series::Series;
pub use vdef::{Vdef, VdefValue};

#[cfg(test)]
mod tests;
