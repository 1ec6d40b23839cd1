//! OpenTelemetry's metrics as OTLP sends them over HTTP: an `ExportMetricsServiceRequest`, as protobuf or as JSON.
//!
//! A gauge is a level; a monotonic sum is a count, or what was added if its temporality is delta; another cumulative sum is a
//! level. Of a histogram, count and sum are kept (`NAME_count`, `NAME_sum`), of a summary its quantiles, too (label `quantile`).
//! Labels are the attributes of the point, then those of the resource: of equal ones the point's count.

mod answer;
mod json;
mod protobuf;
mod reader;

use std::borrow::Cow;
use std::fmt;

pub use answer::{OtlpAnswer, error_json, error_protobuf};
pub use json::read_json;
pub use reader::read_protobuf;

use crate::fault::Fault;
use crate::number::Number;
use crate::pushed::Pushed;
use crate::refusal::{Refusal, Sink};
use crate::sample::Kind;

/// Data points of a request at most.
pub const POINTS_MAX: usize = 200_000;
/// Attributes of a point and its resource at most.
const ATTRIBUTES_MAX: usize = 64;
/// The flag of a point without a value.
const NO_RECORDED_VALUE: u32 = 1;

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtlpError {
    /// The protobuf is broken at a byte.
    Protobuf {
        /// Where.
        offset: usize,
    },
    /// The JSON is broken, or not of the form of the request.
    Json(String),
    /// More data points than [`POINTS_MAX`].
    TooManyPoints,
}

impl fmt::Display for OtlpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OtlpError::Protobuf { offset } => {
                write!(
                    f,
                    "the body is no ExportMetricsServiceRequest: its protobuf is broken at byte {offset}"
                )
            }
            OtlpError::Json(cause) => {
                write!(f, "the body is no ExportMetricsServiceRequest as JSON: {cause}")
            }
            OtlpError::TooManyPoints => {
                write!(f, "the request has more than {POINTS_MAX} data points: send smaller ones")
            }
        }
    }
}

impl std::error::Error for OtlpError {}

/// What a metric says of all its points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Metric<'a> {
    name: &'a str,
    temporality: Temporality,
    is_monotonic: bool,
}

/// How the values of a sum or histogram follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Temporality {
    #[default]
    Unspecified,
    Delta,
    Cumulative,
}

impl Temporality {
    fn of_number(number: u64) -> Temporality {
        match number {
            1 => Temporality::Delta,
            2 => Temporality::Cumulative,
            _ => Temporality::Unspecified,
        }
    }
}

/// What a data point of any kind says.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    /// In nanoseconds; 0 is none.
    time: u64,
    flags: u32,
    /// Of a gauge or sum.
    value: Option<Number>,
    /// Of a histogram or summary.
    count: u64,
    sum: Option<f64>,
    /// It has buckets.
    has_buckets: bool,
}

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetricKind {
    Gauge,
    Sum,
    Histogram,
    ExponentialHistogram,
    Summary,
}

/// The name of an attribute and its value as text.
type Attribute<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Makes samples of points, and counts what is not kept.
struct Giver<'s> {
    sink: &'s mut dyn Sink,
    answer: OtlpAnswer,
    points: usize,
    /// The name of what is given, where it is not that of the metric.
    name: String,
    /// The text of a quantile.
    quantile: String,
}

impl<'s> Giver<'s> {
    fn new(sink: &'s mut dyn Sink) -> Self {
        let (name, quantile) = (String::new(), String::new());
        Giver { sink, answer: OtlpAnswer::default(), points: 0, name, quantile }
    }

    /// Counts a data point that follows.
    fn begin_point(&mut self) -> Result<(), OtlpError> {
        self.points += 1;
        if self.points > POINTS_MAX { Err(OtlpError::TooManyPoints) } else { Ok(()) }
    }

    fn give(
        &mut self,
        metric: &Metric<'_>,
        kind: MetricKind,
        point: &Point,
        attributes: [&[Attribute<'_>]; 2],
        quantiles: &[(f64, f64)],
    ) {
        if point.flags & NO_RECORDED_VALUE != 0 {
            return;
        }
        let mut labels = Vec::new();
        for (key, value) in attributes.into_iter().flatten() {
            add_label(&mut labels, key, value);
        }
        let labels = labels.as_slice();
        let result = match kind {
            _ if metric.name.is_empty() => Err(Fault::NoName),
            _ if labels.len() > ATTRIBUTES_MAX => Err(Fault::TooManyTags),
            MetricKind::Gauge => self.give_number(metric, Kind::Gauge, point, labels),
            MetricKind::Sum => {
                sum_kind(metric).and_then(|kind| self.give_number(metric, kind, point, labels))
            }
            MetricKind::Histogram | MetricKind::ExponentialHistogram => {
                let kind = match metric.temporality {
                    Temporality::Unspecified => Err(Fault::NoTemporality),
                    Temporality::Delta => Ok(Kind::Delta),
                    Temporality::Cumulative => Ok(Kind::Counter),
                };
                self.answer.without_buckets += u64::from(point.has_buckets && kind.is_ok());
                kind.and_then(|kind| self.give_distribution(metric, kind, point, labels))
            }
            MetricKind::Summary => {
                let given = self.give_distribution(metric, Kind::Counter, point, labels);
                self.give_quantiles(metric, point, labels, quantiles);
                given
            }
        };
        if let Err(fault) = result {
            self.answer.rejected += 1;
            self.answer.first_fault.get_or_insert_with(|| (metric.name.to_string(), fault));
            self.sink.refused(Refusal { line: self.points, text: metric.name.as_bytes(), fault });
        }
    }

    fn give_number(
        &mut self,
        metric: &Metric<'_>,
        kind: Kind,
        point: &Point,
        labels: &[(&str, &str)],
    ) -> Result<(), Fault> {
        let value = point.value.ok_or(Fault::NoValue)?;
        if !value.is_finite() {
            return Err(Fault::NotFinite);
        }
        let time = time_of(point)?;
        self.sink.pushed(&Pushed { name: metric.name, labels, time, value, kind });
        Ok(())
    }

    fn give_distribution(
        &mut self,
        metric: &Metric<'_>,
        kind: Kind,
        point: &Point,
        labels: &[(&str, &str)],
    ) -> Result<(), Fault> {
        let time = time_of(point)?;
        let sum = point.sum.filter(|sum| sum.is_finite()).map(Number::Float);
        for (end, value) in [("_count", Some(Number::Unsigned(point.count))), ("_sum", sum)] {
            self.name.clear();
            self.name.push_str(metric.name);
            self.name.push_str(end);
            if let Some(value) = value {
                self.sink.pushed(&Pushed { name: &self.name, labels, time, value, kind });
            }
        }
        Ok(())
    }

    fn give_quantiles(
        &mut self,
        metric: &Metric<'_>,
        point: &Point,
        labels: &[(&str, &str)],
        quantiles: &[(f64, f64)],
    ) {
        use fmt::Write as _;
        let Ok(time) = time_of(point) else { return };
        for (quantile, value) in quantiles.iter().filter(|(_, value)| value.is_finite()) {
            self.quantile.clear();
            // Writing to a text cannot fail.
            let _ = write!(self.quantile, "{quantile}");
            let mut labels: Vec<_> = labels.iter().copied().filter(|(key, _)| *key != "quantile").collect();
            labels.push(("quantile", &self.quantile));
            let (value, kind) = (Number::Float(*value), Kind::Gauge);
            self.sink.pushed(&Pushed { name: metric.name, labels: &labels, time, value, kind });
        }
    }
}

fn sum_kind(metric: &Metric<'_>) -> Result<Kind, Fault> {
    match (metric.temporality, metric.is_monotonic) {
        (Temporality::Unspecified, _) => Err(Fault::NoTemporality),
        (Temporality::Delta, _) => Ok(Kind::Delta),
        (Temporality::Cumulative, true) => Ok(Kind::Counter),
        (Temporality::Cumulative, false) => Ok(Kind::Gauge),
    }
}

fn time_of(point: &Point) -> Result<Option<i64>, Fault> {
    match point.time {
        0 => Ok(None),
        time => i64::try_from(time).map(Some).map_err(|_| Fault::BadTime),
    }
}

/// Adds an attribute as a label: of equal keys, the first counts; one more than may be shows that there are too many.
fn add_label<'a>(labels: &mut Vec<(&'a str, &'a str)>, key: &'a str, value: &'a str) {
    let is_new = || labels.iter().all(|(other, _)| *other != key);
    if !key.is_empty() && !value.is_empty() && labels.len() <= ATTRIBUTES_MAX && is_new() {
        labels.push((key, value));
    }
}

#[cfg(test)]
mod tests;
