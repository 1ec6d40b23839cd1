//! The numbers of the collectors that run, for `/metrics`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use collect::statistics::Statistic;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// What each collector published last, by its name; one that runs several times publishes in as many parts.
#[derive(Clone, Debug, Default)]
pub struct CollectorStatistics(Arc<Mutex<Published>>);

/// The numbers of each collector's parts.
type Published = BTreeMap<&'static str, Vec<Vec<Statistic>>>;

impl CollectorStatistics {
    /// The number of a further part of `collector`, from 0; its numbers are added to those of the others.
    pub fn add_part(&self, collector: &'static str) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = all.entry(collector).or_default();
        parts.push(Vec::new());
        parts.len() - 1
    }

    /// Replaces what a part of `collector` published before.
    pub fn publish(&self, collector: &'static str, part: usize, numbers: Vec<Statistic>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = all.get_mut(collector).and_then(|parts| parts.get_mut(part)) {
            *place = numbers;
        }
    }

    /// What each collector published last, all its parts together.
    pub fn all(&self) -> Vec<(&'static str, Vec<Statistic>)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(collector, parts)| (*collector, sums(parts))).collect()
    }
}

impl Collector for CollectorStatistics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        for (collector, numbers) in self.all() {
            for number in &numbers {
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

/// The numbers of all parts together.
fn sums(parts: &[Vec<Statistic>]) -> Vec<Statistic> {
    let mut sums: Vec<Statistic> = Vec::new();
    for number in parts.iter().flatten() {
        match sums.iter_mut().find(|sum| sum.name == number.name) {
            Some(sum) => sum.value += number.value,
            None => sums.push(*number),
        }
    }
    sums
}
