//! Remote read: rows as samples, or as a stream of chunks.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use promql::ast::Edges;
use promql::value::is_absent;
use promql::{Matcher, Operator, RowKind, Source, SourceSeries, Wanted};
use protocol::prometheus::{
    Condition, ConditionKind, ReadQuery, ReadRequest, Samples, chunk_frame, compress, decompress,
    samples_answer,
};

use super::source::StoreSource;
use super::{ApiError, Prometheus, VALUES_MAX};
use crate::http::rows::Budget;

/// The longest request, no longer compressed: ten thousand conditions.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// `read`
///
/// # Errors
/// 400 when the request is none; as a query otherwise.
pub fn read(state: &Prometheus, body: &Bytes) -> Result<Response, ApiError> {
    let bytes = decompress(body, REQUEST_BYTES_MAX).map_err(|error| ApiError::bad(error.to_string()))?;
    let request = ReadRequest::decode(&bytes).map_err(|error| ApiError::bad(error.to_string()))?;
    let budget = Budget::of(&state.service.memory, VALUES_MAX);
    let index = state.index()?;
    let mut results = Vec::with_capacity(request.queries.len());
    for query in &request.queries {
        let mut source = StoreSource {
            service: &state.service,
            rules: &state.rules,
            index: Arc::clone(&index),
            budget: &budget,
            row_max: None,
        };
        results.push(series(&mut source, query)?);
    }
    // A sample takes at most 20 bytes in the answer, which is there twice while it is compressed.
    let samples: usize = results.iter().flatten().map(|series: &Samples| series.samples.len()).sum();
    budget.hold(samples as u64 * 40)?;
    if !request.takes_chunks {
        let headers =
            [(header::CONTENT_TYPE, "application/x-protobuf"), (header::CONTENT_ENCODING, "snappy")];
        return Ok((headers, Body::from(compress(&samples_answer(&results)))).into_response());
    }
    let mut stream = Vec::new();
    for (query, series) in results.iter().enumerate() {
        series.iter().for_each(|series| stream.extend_from_slice(&chunk_frame(query, series)));
    }
    let content = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";
    Ok(([(header::CONTENT_TYPE, content)], Body::from(stream)).into_response())
}

fn matcher(condition: &Condition) -> Result<Matcher, ApiError> {
    let operator = match condition.kind {
        ConditionKind::Equal => Operator::Equal,
        ConditionKind::NotEqual => Operator::NotEqual,
        ConditionKind::Regex => Operator::Regex,
        ConditionKind::NotRegex => Operator::NotRegex,
    };
    Matcher::new(&condition.name, operator, &condition.value).map_err(ApiError::bad)
}

/// The series of a query, in the order of their labels.
fn series(source: &mut StoreSource<'_>, query: &ReadQuery) -> Result<Vec<Samples>, ApiError> {
    let matchers = query.conditions.iter().map(matcher).collect::<Result<Vec<_>, _>>()?;
    let step = if query.range > 0 { query.step.min(query.range) } else { query.step };
    let wanted = Wanted {
        matchers: &matchers,
        first: query.end,
        last: query.end,
        step: step.max(0),
        // Both ends belong to it.
        range: Some(query.end.saturating_sub(query.start).saturating_add(1).max(1)),
        lookback: 0,
        edges: Edges::Inside,
        function: promql::function(&query.function).map(|function| function.name),
    };
    let selected = source.select(&wanted).map_err(promql::EvalError::from)?;
    let mut all: Vec<SourceSeries> = selected.series;
    all.sort_by(|a, b| a.labels.cmp(&b.labels));
    Ok(all.into_iter().map(samples).filter(|series| !series.samples.is_empty()).collect())
}

/// A series as samples: where it ends, a staleness marker; a counter's rates added up.
fn samples(series: SourceSeries) -> Samples {
    let labels = series.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut samples = Vec::with_capacity(series.times.len());
    let mut is_known = false;
    let mut sum = 0.0;
    for (time, value) in series.times.iter().copied().zip(series.values) {
        let was_known = std::mem::replace(&mut is_known, !is_absent(value));
        match (series.kind, is_known) {
            (_, false) if !was_known => {}
            (RowKind::Counter { row }, true) => {
                sum += value * row as f64 / 1000.0;
                samples.push((time, sum));
            }
            _ => samples.push((time, value)),
        }
    }
    Samples { labels, samples }
}

#[cfg(test)]
mod tests {
    use super::*;
    use promql::value::ABSENT;

    #[test]
    fn a_series_ends_once() {
        let series = |kind| SourceSeries {
            times: [1, 2, 3, 4, 5].into(),
            values: vec![ABSENT, 1.0, ABSENT, ABSENT, 2.0],
            kind,
            ..SourceSeries::default()
        };
        let plain = samples(series(RowKind::Points)).samples;
        assert_eq!(plain.iter().map(|sample| sample.0).collect::<Vec<_>>(), [2, 3, 5]);
        assert!(is_absent(plain[1].1));
        assert_eq!(samples(series(RowKind::Counter { row: 2000 })).samples[2], (5, 6.0));
    }
}
