//! The request as JSON: names in lowerCamelCase, 64-bit numbers as texts or numbers, times as texts, unknown keys ignored.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::{Giver, Metric, MetricKind, OtlpAnswer, OtlpError, POINTS_MAX, Point, Temporality};
use crate::number::Number;
use crate::refusal::Sink;

/// Braces and brackets of a body at most: each may be a message in memory.
const BRACES_MAX: usize = POINTS_MAX * 5;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Request<'a> {
    #[serde(borrow)]
    resource_metrics: Vec<ResourceMetrics<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ResourceMetrics<'a> {
    #[serde(borrow)]
    resource: Resource<'a>,
    #[serde(borrow)]
    scope_metrics: Vec<ScopeMetrics<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Resource<'a> {
    #[serde(borrow)]
    attributes: Vec<KeyValue<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ScopeMetrics<'a> {
    #[serde(borrow)]
    metrics: Vec<MetricJson<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct MetricJson<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    gauge: Option<DataJson<'a>>,
    #[serde(borrow)]
    sum: Option<DataJson<'a>>,
    #[serde(borrow)]
    histogram: Option<DataJson<'a>>,
    #[serde(borrow)]
    exponential_histogram: Option<DataJson<'a>>,
    #[serde(borrow)]
    summary: Option<DataJson<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct DataJson<'a> {
    #[serde(borrow)]
    data_points: Vec<PointJson<'a>>,
    #[serde(deserialize_with = "temporality")]
    aggregation_temporality: Temporality,
    is_monotonic: bool,
}

/// The points of all kinds: their keys do not contradict each other.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PointJson<'a> {
    #[serde(borrow)]
    attributes: Vec<KeyValue<'a>>,
    #[serde(deserialize_with = "whole")]
    time_unix_nano: u64,
    flags: u32,
    as_double: Option<Double>,
    as_int: Option<Int>,
    #[serde(deserialize_with = "whole")]
    count: u64,
    sum: Option<Double>,
    bucket_counts: Vec<serde::de::IgnoredAny>,
    positive: Option<serde::de::IgnoredAny>,
    negative: Option<serde::de::IgnoredAny>,
    quantile_values: Vec<QuantileJson>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct QuantileJson {
    quantile: Double,
    value: Double,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KeyValue<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    value: AnyValue<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AnyValue<'a> {
    #[serde(borrow)]
    string_value: Option<Cow<'a, str>>,
    bool_value: Option<bool>,
    int_value: Option<Int>,
    double_value: Option<Double>,
}

/// A 64-bit number: protobuf's JSON has it as a text, and some write a number.
#[derive(Clone, Copy, Default)]
struct Int(i64);

/// A float: `"NaN"` and `"Infinity"` are texts.
#[derive(Clone, Copy, Default)]
struct Double(f64);

/// A number, or the text of one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

impl Written<'_> {
    fn number(self) -> Option<Number> {
        match self {
            Written::Unsigned(number) => Some(Number::Unsigned(number)),
            Written::Signed(number) => Some(Number::Signed(number)),
            Written::Float(number) => Some(Number::Float(number)),
            Written::Text(text) => Number::of_text(text.as_bytes()),
        }
    }
}

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Written::deserialize(deserializer)?.number();
        let whole = match number {
            Some(Number::Unsigned(number)) => i64::try_from(number).ok(),
            Some(Number::Signed(number)) => Some(number),
            _ => None,
        };
        whole.map(Int).ok_or_else(|| D::Error::custom("a whole number of 64 bits is needed"))
    }
}

impl<'de> Deserialize<'de> for Double {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Written::deserialize(deserializer)?.number();
        number.map(|number| Double(number.to_f64())).ok_or_else(|| D::Error::custom("a number is needed"))
    }
}

fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match Written::deserialize(deserializer)?.number() {
        Some(Number::Unsigned(number)) => Ok(number),
        _ => Err(D::Error::custom("a whole number of 64 bits, not negative, is needed")),
    }
}

/// By number, as the specification has it, or by name, as some write it.
fn temporality<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Temporality, D::Error> {
    Ok(match Written::deserialize(deserializer)? {
        Written::Text(name) if name == "AGGREGATION_TEMPORALITY_DELTA" => Temporality::Delta,
        Written::Text(name) if name == "AGGREGATION_TEMPORALITY_CUMULATIVE" => Temporality::Cumulative,
        Written::Unsigned(number) => Temporality::of_number(number),
        _ => Temporality::Unspecified,
    })
}

/// Reads a request.
///
/// # Errors
/// When its form is broken; then nothing has been given.
pub fn read_json(body: &[u8], sink: &mut dyn Sink) -> Result<OtlpAnswer, OtlpError> {
    if memchr::memchr2_iter(b'{', b'[', body).count() > BRACES_MAX {
        return Err(OtlpError::TooManyPoints);
    }
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(OtlpError::Json("it is no object".to_string()));
    }
    let request: Request<'_> =
        serde_json::from_slice(body).map_err(|error| OtlpError::Json(error.to_string()))?;
    let mut giver = Giver::new(sink);
    for resource in &request.resource_metrics {
        let shared = attributes(&resource.resource.attributes);
        for metric in resource.scope_metrics.iter().flat_map(|scope| &scope.metrics) {
            let kinds = [
                (MetricKind::Gauge, &metric.gauge),
                (MetricKind::Sum, &metric.sum),
                (MetricKind::Histogram, &metric.histogram),
                (MetricKind::ExponentialHistogram, &metric.exponential_histogram),
                (MetricKind::Summary, &metric.summary),
            ];
            for (kind, data) in kinds {
                if let Some(data) = data {
                    points(&metric.name, kind, data, &shared, &mut giver)?;
                }
            }
        }
    }
    Ok(giver.answer)
}

fn points(
    name: &str,
    kind: MetricKind,
    data: &DataJson<'_>,
    shared: &[super::Attribute<'_>],
    giver: &mut Giver<'_>,
) -> Result<(), OtlpError> {
    let metric = Metric { name, temporality: data.aggregation_temporality, is_monotonic: data.is_monotonic };
    for json in &data.data_points {
        giver.begin_point()?;
        let double = json.as_double.map(|number| Number::Float(number.0));
        let point = Point {
            time: json.time_unix_nano,
            flags: json.flags,
            value: json.as_int.map(|number| Number::from(number.0)).or(double),
            count: json.count,
            sum: json.sum.map(|sum| sum.0),
            has_buckets: !json.bucket_counts.is_empty() || json.positive.is_some() || json.negative.is_some(),
        };
        let own = attributes(&json.attributes);
        let quantiles: Vec<_> =
            json.quantile_values.iter().map(|pair| (pair.quantile.0, pair.value.0)).collect();
        giver.give(&metric, kind, &point, [&own, shared], &quantiles);
    }
    Ok(())
}

fn attributes<'a>(attributes: &'a [KeyValue<'a>]) -> Vec<super::Attribute<'a>> {
    let label = |attribute: &'a KeyValue<'a>| {
        let value = &attribute.value;
        let text: Cow<'a, str> = if let Some(text) = &value.string_value {
            Cow::Borrowed(text)
        } else if let Some(truth) = value.bool_value {
            Cow::Borrowed(if truth { "true" } else { "false" })
        } else if let Some(number) = value.int_value {
            Cow::Owned(number.0.to_string())
        } else {
            Cow::Owned(value.double_value?.0.to_string())
        };
        Some((Cow::Borrowed(&*attribute.key), text))
    };
    attributes.iter().filter_map(label).collect()
}
