//! The rrdgraph language: arguments in; data, texts and a scene out.
//!
//! [`language`] parses arguments into typed elements, [`plan`] says which rows they need, [`eval`] fetches them
//! through [`plan::Rows`] and computes every CDEF and VDEF. Then [`xport`] writes the rows, [`mod@print`] the texts, and
//! [`picture`] draws.
//!
//! The crate never learns where rows come from (a file, a store, a daemon), and it reads no clock, environment or
//! locale: all of these are arguments.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod argument;
pub mod eval;
pub mod language;
pub mod missing;
pub mod picture;
pub mod plan;
pub mod print;
pub mod reduce;
pub mod xport;
