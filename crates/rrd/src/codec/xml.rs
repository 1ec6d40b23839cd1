//! The XML of `rrdtool dump` and `rrdtool restore`.
//!
//! The XML has eleven digits per value, so a dump loses bits that a file has; but dumping what was restored
//! gives the same text. Ring positions and the microseconds of the last update are not in it. For an RRD with
//! a step below one second, counts of time carry the suffix `ms`, and a tag of our own says so: RRDtool would read them
//! as seconds, and refuses the unknown tag.

mod dump;
mod restore;

pub use dump::{Dumper, Header, TimeText, dump};
pub use restore::{RestoreError, RestoreOptions, restore};

/// Follows counts of time where a unit is a thousandth of a second.
const FINE_SUFFIX: &str = "ms";

/// The tag of our own: what a count of time counts, if not seconds.
const UNITS_TAG: &str = "units_per_second";

#[cfg(test)]
mod tests;
