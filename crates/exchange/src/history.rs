//! History that other tools kept, into RRDs: series in the order of time become the updates of a newly made RRD, so that all
//! archives are consolidated by the same step as live.
//!
//! Series of the formats with labels get the RRDs that the table `[[create]]` gives them when they are pushed, so that what
//! is pushed afterwards goes on in the same RRD.

pub mod fill;
pub mod fuzzing;
pub mod influx;
pub mod merge;
pub mod openmetrics;
pub mod servers;
pub mod table;
pub mod whisper;

use std::collections::HashMap;
use std::fmt;

use ingest::sample::{Kind, Samples, SeriesError};

/// Samples of one import: a gigabyte. More are imported in parts, by series.
pub const SAMPLES_MAX: usize = 64 << 20;
/// Series of one import.
pub const SERIES_MAX: usize = 1 << 20;

/// Why a source cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryError {
    /// It has more samples than [`SAMPLES_MAX`].
    TooManySamples,
    /// It has more series than [`SERIES_MAX`].
    TooManySeries,
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, what) = match self {
            HistoryError::TooManySamples => (SAMPLES_MAX, "samples"),
            HistoryError::TooManySeries => (SERIES_MAX, "series"),
        };
        write!(f, "there are more than {count} {what}; import it in parts, each with some of the series")
    }
}

impl std::error::Error for HistoryError {}

/// One series with its history.
#[derive(Clone, Debug)]
pub struct Collected {
    /// What its values are.
    pub kind: Kind,
    /// Times in milliseconds since the epoch, and values, in the order in which they came.
    pub points: Vec<(i64, f64)>,
}

/// All series of a source.
#[derive(Debug)]
pub struct History {
    /// By [`ingest::sample::Series::key`].
    series: HashMap<Vec<u8>, Collected>,
    samples: usize,
    scratch: Samples,
    /// The last time that counts, in milliseconds since the epoch.
    latest: i64,
    ahead: u64,
}

impl Default for History {
    fn default() -> Self {
        History::until(i64::MAX)
    }
}

impl History {
    /// Takes samples up to `latest`, in milliseconds since the epoch: an RRD that had a later one would take nothing until then.
    pub fn until(latest: i64) -> Self {
        History { series: HashMap::new(), samples: 0, scratch: Samples::default(), latest, ahead: 0 }
    }

    /// How many samples were later than that.
    pub fn ahead(&self) -> u64 {
        self.ahead
    }

    /// Adds samples of a series.
    ///
    /// # Errors
    /// Inside, what is wrong with the series; outside, when there is no room.
    pub fn add<'a>(
        &mut self,
        name: &str,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        kind: Kind,
        points: &[(i64, f64)],
    ) -> Result<Result<(), SeriesError>, HistoryError> {
        let given = points.len() as u64;
        self.scratch.clear();
        let mut writer = self.scratch.begin(name);
        labels.into_iter().for_each(|(label, value)| writer.label(label, value));
        let number = match writer.end(kind) {
            Ok(number) => number,
            Err(error) => return Ok(Err(error)),
        };
        let counts = |point: &&(i64, f64)| point.0 <= self.latest;
        let points: Vec<(i64, f64)> = points.iter().filter(counts).copied().collect();
        self.ahead += given - points.len() as u64;
        self.samples += points.len();
        if self.samples > SAMPLES_MAX {
            return Err(HistoryError::TooManySamples);
        }
        let key = self.scratch.series(number).key();
        let is_full = self.series.len() >= SERIES_MAX;
        match self.series.get_mut(key) {
            Some(series) => series.points.extend(points),
            None if is_full => return Err(HistoryError::TooManySeries),
            None => {
                self.series.insert(key.to_vec(), Collected { kind, points });
            }
        }
        Ok(Ok(()))
    }

    /// Adds samples that were read as if they had been pushed; those without a time are left out.
    ///
    /// # Errors
    /// When there is no room.
    pub fn absorb(&mut self, samples: &Samples) -> Result<(), HistoryError> {
        for sample in samples.samples() {
            let Some(time) = sample.time else { continue };
            if time > self.latest {
                self.ahead += 1;
                continue;
            }
            self.samples += 1;
            if self.samples > SAMPLES_MAX {
                return Err(HistoryError::TooManySamples);
            }
            let (key, is_full) = (samples.series(sample.series).key(), self.series.len() >= SERIES_MAX);
            match self.series.get_mut(key) {
                Some(series) => series.points.push((time, sample.value)),
                None if is_full => return Err(HistoryError::TooManySeries),
                None => {
                    let (kind, points) = (samples.kind(sample.series), vec![(time, sample.value)]);
                    self.series.insert(key.to_vec(), Collected { kind, points });
                }
            }
        }
        Ok(())
    }

    /// The series in the order of their keys, each with its points in the order of time. Of points for the same time the first
    /// one stays.
    pub fn into_series(self) -> Vec<(Vec<u8>, Collected)> {
        let mut series: Vec<_> = self.series.into_iter().collect();
        series.sort_by(|one, other| one.0.cmp(&other.0));
        for (_, collected) in &mut series {
            collected.points.sort_by_key(|(time, _)| *time);
            collected.points.dedup_by_key(|(time, _)| *time);
        }
        series
    }

    /// How many series there are.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }
}

/// A line or point of a source that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The line, from 1 on.
    pub line: usize,
    /// Why.
    pub why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}
