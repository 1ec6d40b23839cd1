//! Graphite's render language over series that come through a trait: target to expression ([`parse()`]), expression and series to
//! series ([`Evaluator`]), series to answers ([`output`]), times as Graphite writes them ([`time::parse`]).
//!
//! What graphite-web 1.1 answers is the measure, down to the bits of values and the bytes of JSON. There is no store, clock, zone or
//! thread here: rows, time and memory are the source's ([`Source`]), the zone is a calendar's.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod aggregate;
mod args;
mod ast;
mod eval;
mod functions;
pub mod fuzzing;
pub mod glob;
pub mod number;
pub mod output;
mod parse;
mod pattern;
mod series;
mod source;
pub mod time;

pub use aggregate::Aggregation;
pub use ast::{Expr, Number};
pub use eval::{Context, EvalError, Evaluator};
pub use functions::{Function, Kind, Param, all as functions, describe, find as function};
pub use parse::{DEPTH_MAX, ParseError, TEXT_BYTES_MAX, parse};
pub use series::{Consolidation, Series, Style, limit_points};
pub use source::{Select, Source, SourceError, SourceSeries, TagCondition, Wanted};
