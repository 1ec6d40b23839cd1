//! What Graphite's `/render?format=json` and Prometheus' `/api/v1/query_range` answer.

use ingest::sample::Kind;
use serde::Deserialize;

use super::fill::Filler;
use super::{History, HistoryError};
use crate::rows::MS;

/// A series of `/render?format=json`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct RenderSeries {
    /// Its name, with tags after semicolons.
    pub target: String,
    /// Values, `None` = unknown, and the times in seconds at which they begin.
    pub datapoints: Vec<(Option<f64>, i64)>,
}

impl RenderSeries {
    /// Seconds between points: the smallest distance of two; `None` with less than two.
    pub fn step(&self) -> Option<i64> {
        let distances = self.datapoints.windows(2).map(|pair| pair[1].1.saturating_sub(pair[0].1));
        distances.filter(|distance| *distance > 0).min()
    }

    /// Makes these points updates: each holds from its time to the next one's.
    pub fn fill(&self, filler: &mut Filler, step: i64) {
        for (value, time) in &self.datapoints {
            if let Some(value) = value {
                filler.interval(
                    time.saturating_mul(MS),
                    time.saturating_add(step).saturating_mul(MS),
                    *value,
                );
            }
        }
    }
}

/// The series of an answer of `/render?format=json`.
///
/// # Errors
/// Why it is none.
pub fn render(body: &[u8]) -> Result<Vec<RenderSeries>, String> {
    serde_json::from_slice(body).map_err(|error| format!("the answer is not Graphite's: {error}"))
}

/// Names that `/metrics/index.json` answers with.
///
/// # Errors
/// Why it is no list of names.
pub fn index(body: &[u8]) -> Result<Vec<String>, String> {
    serde_json::from_slice(body).map_err(|error| format!("the answer is no list of metrics: {error}"))
}

#[derive(Debug, Deserialize)]
struct QueryAnswer {
    status: String,
    #[serde(default)]
    error: Option<String>,
    data: Option<Matrix>,
}

#[derive(Debug, Deserialize)]
struct Matrix {
    result: Vec<MatrixSeries>,
}

#[derive(Debug, Deserialize)]
struct MatrixSeries {
    metric: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// Adds the series of an answer of `/api/v1/query_range`, or of `/api/v1/query` of a range.
///
/// # Errors
/// Inside, why it is none or how it names an error; outside, when there is no room.
pub fn add_matrix(body: &[u8], history: &mut History) -> Result<Result<(), String>, HistoryError> {
    let answer: QueryAnswer = match serde_json::from_slice(body) {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(format!("the answer is not Prometheus': {error}"))),
    };
    let Some(data) = answer.data.filter(|_| answer.status == "success") else {
        return Ok(Err(answer.error.unwrap_or_else(|| "the answer has no data".to_string())));
    };
    for series in data.result {
        let name = series.metric.get("__name__").cloned().unwrap_or_default();
        let labels = series.metric.iter().filter(|(label, _)| *label != "__name__");
        let labels = labels.map(|(label, value)| (label.as_str(), value.as_str()));
        let point =
            |(time, value): &(f64, String)| Some(((time * MS as f64).round() as i64, value.parse().ok()?));
        let points: Vec<(i64, f64)> = series.values.iter().filter_map(point).collect();
        let counts = ["_total", "_count", "_sum", "_bucket"].iter().any(|ending| name.ends_with(ending));
        let kind = if counts { Kind::Counter } else { Kind::Gauge };
        if let Err(error) = history.add(&name, labels, kind, &points)? {
            return Ok(Err(format!("{name}: {error}")));
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ingest::sample::Series;

    #[test]
    fn answers_are_read() {
        let series = render(br#"[{"target":"a.b","tags":{},"datapoints":[[1.5,60],[null,120],[3,180]]}]"#)
            .expect("series");
        assert_eq!((series[0].step(), series[0].datapoints[1]), (Some(60), (None, 120)));
        assert!(render(b"{}").is_err());
        let mut history = History::default();
        let body = br#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"__name__":"up_total","job":"x"},"values":[[1.5,"1"],[2,"+Inf"]]}]}}"#;
        add_matrix(body, &mut history).expect("room").expect("an answer");
        let series = history.into_series();
        assert_eq!(Series::of_key(&series[0].0).to_string(), "up_total{job=\"x\"}");
        assert_eq!(series[0].1.points, [(1500, 1.0), (2000, f64::INFINITY)]);
        let error = br#"{"status":"error","errorType":"bad_data","error":"exceeded 11,000 points"}"#;
        let refused = add_matrix(error, &mut History::default()).expect("room");
        assert_eq!(refused, Err("exceeded 11,000 points".to_string()));
    }
}
