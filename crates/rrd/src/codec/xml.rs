//! The XML of `rrdtool dump` and `rrdtool restore`.
//!
//! Values have eleven digits there, so a dump loses bits that a file has, but dumping what was restored gives
//! the same text. Ring positions and microseconds of the last update are not in it. For an RRD whose step is
//! a fraction of a second, which RRDtool cannot read, counts of time carry the suffix `ms`.

mod dump;
mod number;
mod restore;

pub use dump::{Header, dump};
pub use restore::{RestoreError, RestoreOptions, restore};

/// Behind counts of time where a unit is a thousandth of a second.
const FINE_SUFFIX: &str = "ms";

#[cfg(test)]
mod tests;
