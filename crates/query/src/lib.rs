//! `roundel query`: the graph language over thousands of RRDs at once.
//!
//! Owns wildcards in DEFs, the threads, the sources (files in place, a daemon) and the forms of the answer. One
//! script is read once; for every RRD that the wildcards find it is run with that RRD's file in place, several
//! at a time, and the answers come out in the order of the names. What an RRD costs is one open, one or two
//! positioned reads and the arithmetic; memory is bounded by the RRDs in flight. An RRD that fails is reported
//! behind the others and hides none of them.

#[cfg(feature = "arrow")]
mod columnar;
mod daemon;
mod error;
mod form;
mod names;
mod run;
mod source;

pub use error::QueryError;
pub use form::Form;
pub use run::{Query, Report};

/// RRDs that are asked of a daemon before the first answer is read, per thread. Guessed; more hides no more of
/// a local socket's delay.
pub(crate) const AHEAD: usize = 16;
