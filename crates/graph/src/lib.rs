//! The rrdgraph language: arguments in, data and texts out.
//!
//! The way of a graph: [`language`] makes typed elements of arguments, [`plan`] says which rows they need,
//! [`eval`] fetches them through [`plan::Rows`] and computes every CDEF and VDEF, and then [`xport`] writes
//! the rows, [`print`] the texts, [`picture`] what is drawn. Must not know where rows come from (a file, a store, a daemon), nor the
//! clock, the environment or the locale: all are arguments.

mod argument;
pub mod eval;
pub mod language;
pub mod missing;
pub mod picture;
pub mod plan;
mod portable;
pub mod print;
pub mod reduce;
pub mod xport;
