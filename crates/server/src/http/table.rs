//! Tables of rows as JSON, CSV and Arrow, written as their client reads them.
//!
//! Numbers are written with the fewest digits that read back to the same double. Unknown values are `null` in
//! JSON and empty in CSV; infinities, which JSON does not have, are `null` in JSON and `inf` and `-inf` in
//! CSV.

#[cfg(feature = "arrow")]
mod arrow;
#[cfg(not(feature = "arrow"))]
#[path = "table/arrow_absent.rs"]
mod arrow;

use std::io::Write;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use rrd::info::{InfoItem, Value as InfoValue};
use serde_json::{Map, Value, json};

use self::arrow::ArrowStream;
use super::body::{self, PIECE_BYTES, Pieces};
use super::failure::Failure;
use crate::budget::Share;

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
    /// Text.
    Text(TextForm),
    /// An Arrow IPC stream.
    Arrow,
}

/// The format of a table of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
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
            None | Some("json") => Ok(Form::Text(TextForm::Json)),
            Some("csv") => Ok(Form::Text(TextForm::Csv)),
            Some("arrow") if cfg!(feature = "arrow") => Ok(Form::Arrow),
            Some("arrow") => Err(Failure::missing("format=arrow", "arrow")),
            Some(text) => Err(Failure::bad(format!("format={text}: give json, csv or arrow"))),
        }
    }
}

impl TextForm {
    fn content_type(self) -> &'static str {
        match self {
            TextForm::Json => "application/json",
            TextForm::Csv => "text/csv; charset=utf-8; header=present",
        }
    }
}

/// The rows of a table, which it reads one after the other.
pub trait TableRows: Send + Unpin + 'static {
    /// Hands the next rows to `row`, the time at which each ends and its values, until that returns false; false when
    /// no row is left.
    fn each(&mut self, row: impl FnMut(i64, &[f64]) -> bool) -> bool;
}

/// A table.
pub struct Table<R> {
    /// Members before `columns` and `rows` in JSON.
    pub head: Map<String, Value>,
    /// Names of the columns, without the time.
    pub columns: Vec<String>,
    /// Units per second of the rows' times.
    pub units_per_second: u32,
    /// The rows.
    pub rows: R,
    /// Seconds for which the answer may be cached.
    pub fresh_seconds: u64,
    /// The format.
    pub form: Form,
}

impl<R: TableRows> Table<R> {
    /// The response, which keeps `share` of the memory for clients for its rows.
    ///
    /// # Errors
    /// 500 when Arrow does not take the columns.
    pub fn respond(self, share: Share) -> Result<Response, Failure> {
        let caching = format!("private, max-age={}", self.fresh_seconds);
        let (content, body) = match self.form {
            Form::Text(form) => (form.content_type(), body::of(self.text(form), share)),
            Form::Arrow => {
                let failed = |error| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error);
                let stream = ArrowStream::new(self).map_err(failed)?;
                ("application/vnd.apache.arrow.stream", body::of(stream, share))
            }
        };
        let headers = [(header::CONTENT_TYPE, content), (header::CACHE_CONTROL, &caching)];
        Ok((headers, body).into_response())
    }

    fn text(mut self, form: TextForm) -> TableText<R> {
        let head = match form {
            TextForm::Json => {
                self.head.insert("columns".to_string(), self.columns.into());
                let mut head = Value::Object(self.head).to_string().into_bytes();
                head.pop();
                head.extend_from_slice(b",\"rows\":[");
                head
            }
            TextForm::Csv => {
                let mut head = b"time".to_vec();
                for column in &self.columns {
                    head.push(b',');
                    push_field(&mut head, column);
                }
                head.extend_from_slice(b"\r\n");
                head
            }
        };
        TableText { head: Some(head), rows: self.rows, form, units: self.units_per_second }
    }
}

/// The text of a table.
struct TableText<R> {
    /// What stands before the rows, until it is written.
    head: Option<Vec<u8>>,
    rows: R,
    form: TextForm,
    /// Units per second.
    units: u32,
}

impl<R: TableRows> Pieces for TableText<R> {
    fn push(&mut self, out: &mut Vec<u8>) -> bool {
        let mut is_first = self.head.is_some();
        out.extend(self.head.take().unwrap_or_default());
        let (form, units) = (self.form, self.units);
        let more = self.rows.each(|time, values| {
            match form {
                TextForm::Json => push_json(out, is_first, (time, units), values),
                TextForm::Csv => push_csv(out, (time, units), values),
            }
            is_first = false;
            out.len() < PIECE_BYTES
        });
        if !more && form == TextForm::Json {
            out.extend_from_slice(b"\n]}\n");
        }
        more
    }
}

fn push_json(out: &mut Vec<u8>, is_first: bool, (time, units): (i64, u32), values: &[f64]) {
    out.extend_from_slice(if is_first { b"\n[" } else { b",\n[" });
    push_time(out, time, units);
    for &value in values {
        out.push(b',');
        if value.is_finite() {
            push_number(out, value);
        } else {
            out.extend_from_slice(b"null");
        }
    }
    out.push(b']');
}

fn push_csv(out: &mut Vec<u8>, (time, units): (i64, u32), values: &[f64]) {
    push_time(out, time, units);
    for &value in values {
        out.push(b',');
        if value.is_finite() {
            push_number(out, value);
        } else if value.is_infinite() {
            out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
        }
    }
    out.extend_from_slice(b"\r\n");
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

    struct Rows(std::vec::IntoIter<(i64, Vec<f64>)>);

    impl TableRows for Rows {
        fn each(&mut self, mut row: impl FnMut(i64, &[f64]) -> bool) -> bool {
            for (time, values) in self.0.by_ref() {
                if !row(time, &values) {
                    break;
                }
            }
            self.0.len() > 0
        }
    }

    pub(super) fn table_of(units_per_second: u32, rows: Vec<(i64, Vec<f64>)>) -> Table<impl TableRows> {
        let mut head = Map::new();
        head.insert("step".to_string(), 10.into());
        let columns = vec!["a".to_string(), "b \"x\",\n".to_string()];
        let rows = Rows(rows.into_iter());
        Table { head, columns, units_per_second, rows, fresh_seconds: 1, form: Form::Arrow }
    }

    fn table(form: TextForm, rows: Vec<(i64, Vec<f64>)>) -> TableText<impl TableRows> {
        table_of(1, rows).text(form)
    }

    fn written(form: TextForm) -> String {
        let rows = vec![(10, vec![0.1, f64::NAN]), (20, vec![f64::NEG_INFINITY, 1e300])];
        let mut out = Vec::new();
        assert!(!table(form, rows).push(&mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_long_table_comes_in_pieces_that_make_the_same_text() {
        for form in [TextForm::Json, TextForm::Csv] {
            let rows = (0..20_000).map(|row| (row, vec![1.5, row as f64])).collect();
            let mut table = table(form, rows);
            let (mut whole, mut count) = (Vec::new(), 0);
            loop {
                let mut piece = Vec::new();
                let more = table.push(&mut piece);
                assert!(piece.len() < PIECE_BYTES + 1000);
                whole.append(&mut piece);
                count += 1;
                if !more {
                    break;
                }
            }
            assert!(count > 3);
            let text = String::from_utf8(whole).unwrap();
            match form {
                TextForm::Json => {
                    let value: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(value["rows"].as_array().unwrap().len(), 20_000);
                    assert_eq!(value["rows"][19_999], json!([19_999, 1.5, 19_999.0]));
                }
                TextForm::Csv => {
                    assert_eq!(text.matches("\r\n").count(), 20_001);
                    assert!(text.ends_with("19999,1.5,19999.0\r\n"));
                }
            }
        }
    }

    #[test]
    fn numbers_are_short_and_exact() {
        assert_eq!(
            written(TextForm::Json),
            "{\"columns\":[\"a\",\"b \\\"x\\\",\\n\"],\"step\":10,\"rows\":[\n[10,0.1,null],\n[20,null,1e+300]\n]}\n"
        );
        assert_eq!(written(TextForm::Csv), "time,a,\"b \"\"x\"\",\n\"\r\n10,0.1,\r\n20,-inf,1e+300\r\n");
    }
}
