//! The numbers of the collectors that run, for `/metrics`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use collect::statistics::Statistic;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// What each collector published last, by its name.
#[derive(Clone, Debug, Default)]
pub struct CollectorStatistics(Arc<Mutex<BTreeMap<&'static str, Vec<Statistic>>>>);

impl CollectorStatistics {
    /// Replaces what `collector` published before.
    pub fn publish(&self, collector: &'static str, numbers: Vec<Statistic>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(collector, numbers);
    }
}

impl Collector for CollectorStatistics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (collector, numbers) in all.iter() {
            for number in numbers {
                let name = format!("{collector}_{}", number.name);
                if number.grows {
                    let metric = ConstCounter::new(number.value);
                    let one = encoder.encode_descriptor(&name, number.help, None, metric.metric_type())?;
                    metric.encode(one)?;
                } else {
                    let metric = ConstGauge::new(i64::try_from(number.value).unwrap_or(i64::MAX));
                    let one = encoder.encode_descriptor(&name, number.help, None, metric.metric_type())?;
                    metric.encode(one)?;
                }
            }
        }
        Ok(())
    }
}
