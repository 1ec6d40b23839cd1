//! In place of `cluster.rs` in a build without the feature `cluster`.

use protocol::rrdcached::words::Words;

use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::service::Service;

/// Refuses CLUSTER.
///
/// # Errors
/// Always: this build lacks the feature.
pub fn cluster(_service: &Service, _words: Words<'_>, _out: &mut Vec<u8>) -> Result<(), Refusal> {
    Err(Refusal::new(DropReason::Refused, args::feature::missing("CLUSTER", "cluster")))
}
