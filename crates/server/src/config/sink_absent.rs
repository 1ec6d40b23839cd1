//! In place of `sink.rs` in a build without the feature `exchange`.

use super::absent::{Absent, Section};
use super::{ConfigError, Reader};
use crate::sink::SinkSettings;

/// `[[sink]]`.
#[derive(Debug)]
pub(super) struct SinkSection;

impl Section for SinkSection {
    const NAME: &'static str = "[[sink]]";
    const FEATURE: &'static str = "exchange";
}

pub(super) type FileSink = Absent<SinkSection>;

impl Reader<'_> {
    /// No sinks.
    pub(super) fn sinks(&self, given: &[FileSink]) -> Result<Vec<SinkSettings>, ConfigError> {
        given.first().map_or(Ok(Vec::new()), Absent::never)
    }
}
