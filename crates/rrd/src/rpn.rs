//! Reverse Polish notation, as `rrdgraph_rpn(1)` defines it.
//!
//! Owns the operators with the numbers they have in `.rrd` files, the compiler from text, the way back to
//! text, and the evaluator of COMPUTE sources. A program is plain data: it comes from a command line or out
//! of a file that may be damaged, so the evaluator checks every operand and every depth itself.

mod compute;
pub mod error;
mod evaluate;
pub mod expression;
mod operator;
pub mod series;
pub mod vdef;

pub use compute::{CompileError, NODES_MAX, compile, decompile};
pub use error::RpnError;
pub use evaluate::{Context, EvaluateError, evaluate};
pub use expression::{Expression, Surroundings, Symbol};
pub use operator::Operator;
pub use series::Series;
pub use vdef::{Vdef, VdefValue};
