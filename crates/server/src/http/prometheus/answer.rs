//! Answers as Prometheus writes them.

use std::fmt::Write;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use promql::value::is_absent;
use promql::{Answer, Data, Labels, number};

use crate::http::failure::Failure;

/// An answer that is none: `{"status":"error"}` with the kind of error.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    text: String,
}

impl ApiError {
    /// 400: the request is not one.
    pub fn bad(text: impl Into<String>) -> ApiError {
        ApiError { status: StatusCode::BAD_REQUEST, kind: "bad_data", text: text.into() }
    }

    /// 422: the query has no answer.
    pub fn execution(text: impl Into<String>) -> ApiError {
        ApiError { status: StatusCode::UNPROCESSABLE_ENTITY, kind: "execution", text: text.into() }
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        let text = failure.to_string();
        match failure.status() {
            StatusCode::BAD_REQUEST => ApiError::bad(text),
            StatusCode::SERVICE_UNAVAILABLE => {
                ApiError { status: StatusCode::SERVICE_UNAVAILABLE, kind: "timeout", text }
            }
            status if status.is_server_error() => ApiError { status, kind: "internal", text },
            _ => ApiError::execution(text),
        }
    }
}

impl From<promql::EvalError> for ApiError {
    fn from(error: promql::EvalError) -> Self {
        match error {
            promql::EvalError::Source(error) => match error.downcast::<Failure>() {
                Ok(failure) => ApiError::from(*failure),
                Err(error) => ApiError::execution(error.to_string()),
            },
            error => ApiError::execution(error.to_string()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut text = String::new();
        let _ = write!(
            text,
            "{{\"status\":\"error\",\"errorType\":\"{}\",\"error\":{}}}",
            self.kind,
            quoted(&self.text)
        );
        let mut response = json(self.status, text);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}

fn json(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response()
}

/// A text as JSON.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// `{"status":"success"}` with `data`, which is JSON, and what is worth knowing.
pub fn success(data: &str, warnings: &[String], infos: &[String]) -> Response {
    let mut text = String::with_capacity(data.len() + 64);
    text.push_str("{\"status\":\"success\",\"data\":");
    text.push_str(data);
    for (key, notes) in [("warnings", warnings), ("infos", infos)] {
        if !notes.is_empty() {
            let notes: Vec<String> = notes.iter().map(|note| quoted(note)).collect();
            let _ = write!(text, ",\"{key}\":[{}]", notes.join(","));
        }
    }
    text.push('}');
    json(StatusCode::OK, text)
}

/// Labels as JSON.
pub fn labels(out: &mut String, labels: &Labels) {
    out.push('{');
    for (index, (name, value)) in labels.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let _ = write!(out, "{}:{}", quoted(name), quoted(value));
    }
    out.push('}');
}

/// The data of an answer; of series, at most `limit`, and whether that is all.
pub fn data(answer: &Answer, is_range: bool, limit: usize) -> (String, bool) {
    let mut out = String::new();
    let first = answer.grid.start;
    let mut is_all = true;
    match &answer.data {
        Data::Text(text) => {
            let _ =
                write!(out, "{{\"resultType\":\"string\",\"result\":[{},{}]}}", time(first), quoted(text));
        }
        Data::Scalar(values) if !is_range => {
            let value = values.first().copied().unwrap_or(f64::NAN);
            out.push_str("{\"resultType\":\"scalar\",\"result\":");
            point(&mut out, first, value);
            out.push('}');
        }
        Data::Scalar(values) => {
            out.push_str("{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},\"values\":[");
            points(&mut out, answer.grid.times().zip(values.iter().copied()));
            out.push_str("]}]}");
        }
        Data::Vector(columns) => {
            let (kind, key) = if is_range { ("matrix", "values") } else { ("vector", "value") };
            let _ = write!(out, "{{\"resultType\":\"{kind}\",\"result\":[");
            is_all = columns.len() <= limit;
            for (index, column) in columns.iter().take(limit).enumerate() {
                out.push_str(if index > 0 { ",{\"metric\":" } else { "{\"metric\":" });
                labels(&mut out, &column.labels);
                let _ = write!(out, ",\"{key}\":{}", if is_range { "[" } else { "" });
                points(&mut out, answer.grid.times().zip(column.values.iter().copied()));
                out.push_str(if is_range { "]}" } else { "}" });
            }
            out.push_str("]}");
        }
        Data::Matrix(all) => {
            out.push_str("{\"resultType\":\"matrix\",\"result\":[");
            is_all = all.len() <= limit;
            for (index, series) in all.iter().take(limit).enumerate() {
                out.push_str(if index > 0 { ",{\"metric\":" } else { "{\"metric\":" });
                labels(&mut out, &series.labels);
                out.push_str(",\"values\":[");
                points(&mut out, series.points.iter().copied());
                out.push_str("]}");
            }
            out.push_str("]}");
        }
    }
    (out, is_all)
}

fn points(out: &mut String, points: impl Iterator<Item = (i64, f64)>) {
    let mut is_first = true;
    for (time, value) in points.filter(|(_, value)| !is_absent(*value)) {
        if !is_first {
            out.push(',');
        }
        is_first = false;
        point(out, time, value);
    }
}

fn point(out: &mut String, at: i64, value: f64) {
    out.push('[');
    match at % 1000 {
        0 => out.push_str(itoa::Buffer::new().format(at / 1000)),
        _ => out.push_str(&time(at)),
    }
    out.push_str(",\"");
    number::write(out, value);
    out.push_str("\"]");
}

/// A time in seconds, with thousandths if there are any.
fn time(milliseconds: i64) -> String {
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    match rest {
        0 => seconds.to_string(),
        rest => format!("{}{}.{:03}", if milliseconds < 0 { "-" } else { "" }, seconds.abs(), rest.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use promql::value::ABSENT;
    use promql::{Column, Grid, Notes};

    #[test]
    fn answers_are_written_as_prometheus_writes_them() {
        let column = Column::new(Labels::new([("a", "x\"y")]), vec![1.0, ABSENT, f64::INFINITY]);
        let grid = Grid::new(1500, 3500, 1000);
        let answer = Answer { grid, data: Data::Vector(vec![column]), notes: Notes::default() };
        let want = r#"{"resultType":"matrix","result":[{"metric":{"a":"x\"y"},"values":[[1.500,"1"],[3.500,"+Inf"]]}]}"#;
        assert_eq!(data(&answer, true, 10), (want.to_owned(), true));
        assert_eq!(data(&answer, true, 0).0, r#"{"resultType":"matrix","result":[]}"#);
        assert_eq!((time(-1), time(-1500), time(2000)), ("-0.001".into(), "-1.500".into(), "2".into()));
    }
}
