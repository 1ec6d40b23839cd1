//! Tables of rows as JSON and CSV.
//!
//! Numbers are written with the fewest digits that read back to the same double. Unknown values are `null` in
//! JSON and empty in CSV; infinities, which JSON does not have, are `null` in JSON and `inf` and `-inf` in
//! CSV.

use std::io::Write;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use rrd::info::{InfoItem, Value as InfoValue};
use serde_json::{Map, Value, json};

use super::failure::Failure;

/// Items of `rrdinfo(1)` or `graphv`, as an object with RRDtool's keys.
pub fn items(items: Vec<InfoItem>) -> Value {
    let value = |value: InfoValue| match value {
        InfoValue::Number(number) => json!(number),
        InfoValue::Count(count) => json!(count),
        InfoValue::Moment(moment) => json!(moment.as_f64()),
        InfoValue::Text(text) => json!(String::from_utf8_lossy(&text)),
    };
    Value::Object(items.into_iter().map(|item| (item.key, value(item.value))).collect())
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An object with `columns` and `rows`.
    Json,
    /// RFC 4180, with a header.
    Csv,
}

impl Form {
    /// The format called `text`; JSON by default.
    ///
    /// # Errors
    /// 400 for an unknown format.
    pub fn from_name(text: Option<&str>) -> Result<Form, Failure> {
        match text {
            None | Some("json") => Ok(Form::Json),
            Some("csv") => Ok(Form::Csv),
            Some(text) => Err(Failure::bad(format!("format={text}: give json or csv"))),
        }
    }
}

/// A table.
pub struct Table<'a, R> {
    /// Members before `columns` and `rows` in JSON.
    pub head: Map<String, Value>,
    /// Names of the columns, without the time.
    pub columns: Vec<String>,
    /// Units per second of the rows' times.
    pub units_per_second: u32,
    /// The rows: the time at which each ends, and its values.
    pub rows: R,
    /// Seconds for which the answer may be cached.
    pub fresh_seconds: u64,
    /// The format.
    pub form: &'a Form,
}

impl<R, V> Table<'_, R>
where
    R: Iterator<Item = (i64, V)>,
    V: Iterator<Item = f64>,
{
    /// Writes the response.
    pub fn respond(self) -> Response {
        let caching = format!("private, max-age={}", self.fresh_seconds);
        let (content, mut body) = match self.form {
            Form::Json => ("application/json", self.json()),
            Form::Csv => ("text/csv; charset=utf-8; header=present", self.csv()),
        };
        // It may have to wait for its client.
        body.shrink_to_fit();
        ([(header::CONTENT_TYPE, content), (header::CACHE_CONTROL, &caching)], body).into_response()
    }

    fn json(mut self) -> Vec<u8> {
        self.head.insert("columns".to_string(), self.columns.into());
        let mut out = Value::Object(self.head).to_string().into_bytes();
        out.pop();
        out.extend_from_slice(b",\"rows\":[");
        for (index, (time, values)) in self.rows.enumerate() {
            out.extend_from_slice(if index == 0 { b"\n[" } else { b",\n[" });
            push_time(&mut out, time, self.units_per_second);
            for value in values {
                out.push(b',');
                if value.is_finite() {
                    push_number(&mut out, value);
                } else {
                    out.extend_from_slice(b"null");
                }
            }
            out.push(b']');
        }
        out.extend_from_slice(b"\n]}\n");
        out
    }

    fn csv(self) -> Vec<u8> {
        let mut out = b"time".to_vec();
        for column in &self.columns {
            out.push(b',');
            push_field(&mut out, column);
        }
        out.extend_from_slice(b"\r\n");
        for (time, values) in self.rows {
            push_time(&mut out, time, self.units_per_second);
            for value in values {
                out.push(b',');
                if value.is_finite() {
                    push_number(&mut out, value);
                } else if value.is_infinite() {
                    out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
                }
            }
            out.extend_from_slice(b"\r\n");
        }
        out
    }
}

fn push(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    if out.write_fmt(arguments).is_err() {
        unreachable!("writing to a Vec does not fail");
    }
}

fn push_time(out: &mut Vec<u8>, time: i64, units_per_second: u32) {
    if units_per_second <= 1 {
        push(out, format_args!("{time}"));
    } else {
        push_number(out, time as f64 / f64::from(units_per_second));
    }
}

/// Writes a finite number as serde_json does.
fn push_number(out: &mut Vec<u8>, value: f64) {
    if serde_json::to_writer(&mut *out, &value).is_err() {
        unreachable!("writing to a Vec does not fail");
    }
}

fn push_field(out: &mut Vec<u8>, text: &str) {
    if text.contains(['"', ',', '\r', '\n']) {
        push(out, format_args!("\"{}\"", text.replace('"', "\"\"")));
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: Form) -> String {
        let rows = [(10, vec![0.1, f64::NAN]), (20, vec![f64::NEG_INFINITY, 1e300])];
        let rows = rows.into_iter().map(|(time, values)| (time, values.into_iter()));
        let mut head = Map::new();
        head.insert("step".to_string(), 10.into());
        let columns = vec!["a".to_string(), "b \"x\",\n".to_string()];
        let table = Table { head, columns, units_per_second: 1, rows, fresh_seconds: 1, form: &form };
        String::from_utf8(if form == Form::Json { table.json() } else { table.csv() }).unwrap()
    }

    #[test]
    fn numbers_are_short_and_exact() {
        assert_eq!(
            written(Form::Json),
            "{\"columns\":[\"a\",\"b \\\"x\\\",\\n\"],\"step\":10,\"rows\":[\n[10,0.1,null],\n[20,null,1e+300]\n]}\n"
        );
        assert_eq!(written(Form::Csv), "time,a,\"b \"\"x\"\",\n\"\r\n10,0.1,\r\n20,-inf,1e+300\r\n");
    }
}
