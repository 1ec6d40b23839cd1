//! In place of `arrow.rs` in a build without the feature `arrow`: [`super::Form::from_name`] refuses the format before.

use std::convert::Infallible;

use super::{Table, TableRows};
use crate::http::body::Pieces;

/// Never exists.
pub struct ArrowStream(Infallible);

impl ArrowStream {
    /// Refuses.
    ///
    /// # Errors
    /// Always: this build lacks the feature.
    pub fn new<R: TableRows>(_table: Table<R>) -> Result<Self, String> {
        Err(args::feature::missing("format=arrow", "arrow"))
    }
}

impl Pieces for ArrowStream {
    fn push(&mut self, _out: &mut Vec<u8>) -> bool {
        match self.0 {}
    }
}
