//! In place of `sink.rs` in a build without the feature `exchange`: there are no sinks, as no configuration with `[[sink]]` is
//! accepted.

use std::convert::Infallible;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use store::engine::Engine;

/// Never exists.
#[derive(Clone, Debug)]
pub struct SinkSettings(Infallible);

/// Nothing.
pub type SinkStatuses = Arc<()>;

/// No sinks.
#[derive(Debug, Default)]
pub struct Sinks;

impl Sinks {
    /// Starts none.
    ///
    /// # Errors
    /// Never.
    pub fn start(
        _engine: &Arc<dyn Engine>,
        sinks: Vec<SinkSettings>,
        _statuses: &SinkStatuses,
    ) -> std::io::Result<Self> {
        match sinks.into_iter().next() {
            None => Ok(Sinks),
            Some(SinkSettings(never)) => match never {},
        }
    }

    /// Does nothing.
    pub fn stop(self) {}
}

/// Figures of no sinks.
#[derive(Debug)]
pub struct SinkCollector(pub SinkStatuses);

impl Collector for SinkCollector {
    fn encode(&self, _encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        Ok(())
    }
}
