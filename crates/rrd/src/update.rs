//! One step of an RRD: `(definition, live head, reading) -> (live head, completed rows)`.
//!
//! The one function that decides and applies an update, live and on replay, in stripes and in files.
//! It refuses without changing anything and allocates nothing once its scratch is warm.

use crate::live::CdpPrep;

/// Takes the rows an update completes.
pub trait RowSink {
    /// `count` rows of archive `rra`, oldest first, numbered from `first_row` (see [`crate::grid`]).
    ///
    /// The first row holds each cell's `primary`, all further ones its `secondary`; `cells` has one entry
    /// per data source. `count` is at most the archive's row count. Not called for SEASONAL and
    /// DEVSEASONAL, whose rows are in [`crate::live::Season`].
    fn rows(&mut self, rra: usize, first_row: i64, count: u64, cells: &[CdpPrep]);
}

/// Why an update was refused. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateError {}

impl std::fmt::Display for UpdateError {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {}
    }
}

impl std::error::Error for UpdateError {}
