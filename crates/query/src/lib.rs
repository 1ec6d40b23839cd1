//! `roundel query`: the graph language over thousands of RRDs at once, and answers to other languages in the same forms.
//!
//! Owns wildcards in DEFs, the threads, the sources of rows (files, a daemon) and the output formats. The arguments are
//! parsed once. For every RRD that the wildcards match they are evaluated with that RRD's file, several at a time, and
//! the answers come out in the order of the names. An RRD costs one open, one or two positioned reads and the
//! arithmetic; memory is bounded by the RRDs in flight. An RRD that fails is reported after the others and hides none of
//! them.

#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
mod columnar;
mod error;
mod format;
mod names;
mod run;
mod series;
mod source;

pub use error::QueryError;
pub use format::Format;
pub use run::{Query, Report};
pub use series::{Series, write_series};

/// Requests per thread that are sent to a daemon before its first answer is read. Guessed; more would not hide more of a
/// local socket's delay.
pub(crate) const AHEAD: usize = 16;
