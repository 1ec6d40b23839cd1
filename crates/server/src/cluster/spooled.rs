//! What waits in a node's spool, for `/metrics` and the page.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cluster::spool::Spool;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;

use crate::metrics::encode_gauge;

/// From then on the page says that updates wait: a leader that changes takes less, and brokers that are replaced, too.
const LONG: Duration = Duration::from_secs(60);
/// From that part of a spool on, in percent, the page says how full it is.
const FULL_PERCENT: u64 = 80;

/// `roundel_cluster_spool_*`
#[derive(Clone)]
pub struct SpoolCollector(pub Arc<Spool>);

impl fmt::Debug for SpoolCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpoolCollector({:?})", self.0.figures())
    }
}

impl SpoolCollector {
    /// What is wrong, in words for the page.
    pub fn problem(&self) -> Option<String> {
        let figures = self.0.figures();
        let percent = figures.bytes.saturating_mul(100) / figures.bytes_max.max(1);
        let is_long = figures.age >= LONG;
        (is_long || percent >= FULL_PERCENT).then(|| {
            format!(
                "Updates wait in this node's spool for the replicated log: the oldest for {} s, {} bytes, {percent} % of what it takes",
                figures.age.as_secs(),
                figures.bytes
            )
        })
    }
}

impl Collector for SpoolCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let figures = self.0.figures();
        let gauges = [
            (
                "cluster_spool_bytes",
                "Bytes of this node's spool from the oldest update that waits for the log to the end",
                figures.bytes,
            ),
            ("cluster_spool_bytes_max", "Bytes from which on updates are refused", figures.bytes_max),
            (
                "cluster_spool_oldest_seconds",
                "How long the oldest update has waited; 0 = none waits",
                figures.age.as_secs(),
            ),
        ];
        for (name, help, value) in gauges {
            encode_gauge(&mut encoder, name, help, value)?;
        }
        let counters = [
            ("cluster_spooled", "Updates acknowledged from the spool", figures.spooled),
            ("cluster_spool_drained", "Spooled updates that the leaders have taken", figures.drained),
            ("cluster_spool_refused", "Spooled updates that the leaders refused", figures.refused),
        ];
        for (name, help, value) in counters {
            let metric = ConstCounter::new(value);
            let one = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
            metric.encode(one)?;
        }
        Ok(())
    }
}
