//! Which series are known, and where they go: bounded, by the time of their last use.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use foldhash::quality::RandomState;
use hashbrown::HashMap;

use crate::sample::Series;

/// A series whose RRD is there.
#[derive(Debug)]
pub struct KnownSeries {
    /// The name of its RRD, with `.rrd`.
    pub path: Box<str>,
    /// The time of its last sample in milliseconds; `i64::MIN`: none yet.
    last_time: AtomicI64,
    /// The bits of its last value.
    last_value: AtomicU64,
}

impl KnownSeries {
    /// One whose RRD has this name.
    pub fn new(path: &str) -> Self {
        KnownSeries { path: path.into(), last_time: AtomicI64::new(i64::MIN), last_value: AtomicU64::new(0) }
    }

    /// Notes a sample that the store has taken.
    pub fn took(&self, time: i64, value: f64) {
        // The newest counts, in whatever order threads say so.
        if self.last_time.fetch_max(time, Ordering::Relaxed) <= time {
            self.last_value.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    /// Whether this is the last sample that was taken: sent again.
    pub fn is_last(&self, time: i64, value: f64) -> bool {
        self.last_time.load(Ordering::Relaxed) == time
            && self.last_value.load(Ordering::Relaxed) == value.to_bits()
    }

    /// The time of the last sample that was taken.
    pub fn last_time(&self) -> Option<i64> {
        Some(self.last_time.load(Ordering::Relaxed)).filter(|time| *time != i64::MIN)
    }
}

type Map = HashMap<Box<[u8]>, Arc<KnownSeries>, RandomState>;

/// The series of a time. When half of what may be is new, what was not used since goes.
#[derive(Debug, Default)]
pub struct SeriesCache {
    young: Map,
    old: Map,
    max: usize,
}

impl SeriesCache {
    /// A cache of at most `max` series. Each takes some 150 bytes besides its name and labels.
    pub fn new(max: usize) -> Self {
        SeriesCache { max, ..SeriesCache::default() }
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// True when none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is known of a series.
    pub fn get(&mut self, series: Series<'_>) -> Option<Arc<KnownSeries>> {
        if let Some(known) = self.young.get(series.key()) {
            return Some(Arc::clone(known));
        }
        let (key, known) = self.old.remove_entry(series.key())?;
        self.insert(key, Arc::clone(&known));
        Some(known)
    }

    /// Remembers a series.
    pub fn add(&mut self, series: Series<'_>, known: Arc<KnownSeries>) {
        self.old.remove(series.key());
        self.insert(series.key().into(), known);
    }

    fn insert(&mut self, key: Box<[u8]>, known: Arc<KnownSeries>) {
        if self.young.len() >= self.max / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, known);
    }

    /// Forgets a series whose RRD is gone.
    pub fn forget(&mut self, series: Series<'_>) {
        self.young.remove(series.key());
        self.old.remove(series.key());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Kind, Samples};

    #[test]
    fn what_is_used_stays() {
        let mut samples = Samples::default();
        let numbers: Vec<u32> =
            (0..100).map(|number| samples.begin(&format!("s{number}")).end(Kind::Gauge).unwrap()).collect();
        let mut cache = SeriesCache::new(20);
        for &number in &numbers {
            let series = samples.series(number);
            assert!(cache.get(series).is_none());
            cache.add(series, Arc::new(KnownSeries::new(series.name())));
            assert!(cache.get(samples.series(0)).is_some());
            assert!(cache.len() <= 21);
        }
        assert_eq!(&*cache.get(samples.series(99)).unwrap().path, "s99");
        assert!(cache.get(samples.series(1)).is_none());
        cache.forget(samples.series(0));
        assert!(cache.get(samples.series(0)).is_none());
    }

    #[test]
    fn a_sample_sent_again_is_known() {
        let known = KnownSeries::new("x");
        assert_eq!(known.last_time(), None);
        known.took(5, 1.0);
        known.took(3, 9.0);
        assert!(known.is_last(5, 1.0) && !known.is_last(5, 2.0) && !known.is_last(4, 1.0));
        assert_eq!(known.last_time(), Some(5));
    }
}
