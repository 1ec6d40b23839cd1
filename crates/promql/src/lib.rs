//! PromQL over series that come through a trait: text to expression ([`parse()`]), expression and series to values
//! ([`evaluate`]), expression to text ([`pretty`]).
//!
//! Rows of a series count as samples; where there is no value, the series ends until the next one. Every part of an expression is
//! computed for all times of a query at once: a column of values for each series, 8 bytes a value. Time, memory and rows are the
//! source's ([`Source`]); there is no clock, and no thread.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod ast;
pub mod calendar;
mod eval;
mod format;
mod functions;
pub mod fuzzing;
mod labels;
mod matcher;
mod notes;
pub mod number;
mod parse;
mod source;
pub mod value;

pub use eval::{Answer, Data, EvalError, Options, RangeSeries, evaluate};
pub use format::{format, pretty};
pub use functions::{FUNCTIONS, Function, find as function};
pub use labels::{Labels, NAME, is_plain_name};
pub use matcher::{Matcher, Operator};
pub use notes::Notes;
pub use parse::{DEPTH_MAX, ParseError, TEXT_BYTES_MAX, parse, selector};
pub use source::{RowKind, Selected, Source, SourceError, SourceSeries, Wanted};
pub use value::{Column, Grid};
