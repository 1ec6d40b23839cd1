//! In place of `prometheus.rs` in a build without the feature `http-client`.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use client::daemon::ClientIdentity;
use store::engine::Engine;

use super::batch::ForwardBatch;
use super::target::{Away, ForwardRefusal, ForwardTarget};
use crate::ingest::Ingest;

/// Never exists.
pub struct PrometheusTarget(Infallible);

impl PrometheusTarget {
    /// Refuses.
    ///
    /// # Errors
    /// Always: this build lacks the feature.
    pub fn new(
        url: &str,
        _identity: &ClientIdentity,
        _here: (Arc<dyn Engine>, Arc<Ingest>),
        _stop: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        Err(args::feature::missing(&format!("[[forward]] to {url}"), "http-client"))
    }
}

impl ForwardTarget for PrometheusTarget {
    fn reach(&mut self) -> Result<(), Away> {
        match self.0 {}
    }

    fn send(
        &mut self,
        _batch: &ForwardBatch,
        _refused: &mut dyn FnMut(ForwardRefusal<'_>),
    ) -> Result<u64, Away> {
        match self.0 {}
    }
}
