//! STATS.

use protocol::rrdcached::reply::Statistics;

use crate::service::Service;

/// The counters, with the meaning rrdcached gives them.
pub fn statistics(service: &Service) -> Statistics {
    let stats = service.engine.stats();
    Statistics {
        queue_length: stats.queue_length,
        updates_received: service.metrics.updates_received.get(),
        flushes_received: service.metrics.flushes_received.get(),
        updates_written: stats.updates_written,
        data_sets_written: stats.data_sets_written,
        tree_nodes: stats.rrd_count,
        // The depth of a balanced tree with as many nodes: there is no tree, but existing graphs show this
        // number.
        tree_depth: u64::from(u64::BITS - stats.rrd_count.leading_zeros()),
        journal_bytes: stats.log_bytes_written,
        journal_rotations: stats.journal_rotations,
    }
}
