//! A reading: the time and the texts of one `time:value:value...` word of an update.

use crate::time::Timestamp;

/// One update of one RRD, already split at its colons and mapped through its template.
///
/// The texts stay texts: the last one of each source is kept verbatim in the live head, and a COUNTER's
/// digits must not pass through a double.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// When, in the RRD's own units ([`crate::definition::Definition::units_per_second`]).
    pub time: Timestamp,
    /// One text per data source that clients feed (COMPUTE left out), in the order of the definition.
    pub values: &'a [&'a [u8]],
}
