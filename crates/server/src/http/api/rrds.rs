//! Lists RRDs, describes one, and returns its rows.

use axum::extract::State;
use axum::http::{HeaderName, Uri, header};
use axum::response::{IntoResponse, Response};
use rrd::fetch::FetchRequest;
use rrd::info;
use serde_json::{Map, Value, json};
use store::engine::{Hold, StoreError};

use super::{Api, path_rest, query, range};
use crate::http::body::{self, PIECE_BYTES, Pieces};
use crate::http::failure::Failure;
use crate::http::percent;
use crate::http::rows::{self, Budget, Fetched};
use crate::http::table::{self, Form, Table};

/// Default number of names in one answer.
const NAMES_DEFAULT: u64 = 1_000;
/// The most names in one answer.
const NAMES_MAX: u64 = 100_000;

/// Bytes that one data source in one archive takes while it is described.
const INFO_CELL_BYTES: u64 = 600;
/// Data sources times archives that are described without asking for memory.
const INFO_CELLS_SMALL: u64 = 1_000;

pub(super) const JSON_HEADERS: [(HeaderName, &str); 2] =
    [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")];

/// `GET /api/v1/list[/DIRECTORY]`
///
/// # Errors
/// 4xx and 503, as in `openapi.json`.
pub async fn list(State(api): State<Api>, uri: Uri) -> Result<Response, Failure> {
    let mut query = query(&uri)?;
    let recursive = query.flag("recursive")?;
    let limit = query.number("limit", NAMES_DEFAULT)?.clamp(1, NAMES_MAX) as usize;
    let after = query.take("after").unwrap_or_default();
    query.finish()?;
    let directory = path_rest(&uri)?;
    api.work
        .run(|| {
            let directory = match directory.as_slice() {
                b"" => Vec::new(),
                word => rows::name(&api.service, word)?.as_bytes().to_vec(),
            };
            let mut share = api.service.memory.share();
            let list = |hold: Hold<'_>| api.service.engine.list_within(&directory, recursive, hold);
            let names = list(&mut |bytes| share.try_grow(bytes)).map_err(|error| match error {
                StoreError::TooLarge(_) => Failure::no_memory("this list", share.bytes(), &share),
                error => Failure::of_store(&directory, &error),
            })?;
            let from = names.partition_point(|name| *name <= after);
            let from = if after.is_empty() { 0 } else { from };
            let page = names[from..].iter().take(limit).cloned().collect::<Vec<_>>();
            let next = if from + page.len() < names.len() { page.last().cloned() } else { None };
            drop(names);
            share.resize(page.iter().map(|name| (name.len() + size_of::<Vec<u8>>()) as u64).sum());
            let list = ListText { names: page.into_iter(), next, is_first: true };
            Ok((JSON_HEADERS, body::of(list, share)).into_response())
        })
        .await
}

/// The text of a list.
struct ListText {
    names: std::vec::IntoIter<Vec<u8>>,
    /// The last name, if others follow.
    next: Option<Vec<u8>>,
    is_first: bool,
}

impl Pieces for ListText {
    fn push(&mut self, out: &mut Vec<u8>) -> bool {
        if self.is_first {
            out.extend_from_slice(b"{\"items\":[");
        }
        for name in self.names.by_ref() {
            if !self.is_first {
                out.push(b',');
            }
            self.is_first = false;
            out.extend_from_slice(item(&name).to_string().as_bytes());
            if out.len() >= PIECE_BYTES {
                return true;
            }
        }
        let next = json!(self.next.as_deref().map(percent::encode));
        out.extend_from_slice(format!("],\"next\":{next}}}\n").as_bytes());
        false
    }
}

fn item(name: &[u8]) -> Value {
    let (path, is_directory) = match name.strip_suffix(b"/") {
        Some(directory) => (directory, true),
        None => (name, false),
    };
    json!({
        "name": String::from_utf8_lossy(path),
        "path": percent::encode(path),
        "directory": is_directory,
    })
}

/// `GET /api/v1/info/NAME`
///
/// # Errors
/// 4xx and 503, as in `openapi.json`.
pub async fn info(State(api): State<Api>, uri: Uri) -> Result<Response, Failure> {
    query(&uri)?.finish()?;
    let word = path_rest(&uri)?;
    let service = &api.service;
    let name = rows::name(service, &word)?;
    let snapshot = service.calls.run(true, || service.engine.snapshot(&name));
    let snapshot = snapshot.map_err(|error| Failure::of_store(&word, &error).similar_to(service, &word))?;
    // Most definitions are small.
    let cells = snapshot.definition.ds.len().saturating_mul(snapshot.definition.rra.len() + 1) as u64;
    let bytes = if cells > INFO_CELLS_SMALL { cells.saturating_mul(INFO_CELL_BYTES) } else { 0 };
    let mut share = service.memory.share();
    if !share.try_resize(bytes) {
        return Err(Failure::no_memory("this answer", bytes, &share));
    }
    let path = service.names.path(&word);
    let items = info::info(&snapshot.definition, &snapshot.live, &snapshot.current_rows, &path);
    Ok((JSON_HEADERS, table::items(items).to_string() + "\n").into_response())
}

/// `GET /api/v1/fetch/NAME`
///
/// # Errors
/// 4xx and 503, as in `openapi.json`.
pub async fn fetch(State(api): State<Api>, uri: Uri) -> Result<Response, Failure> {
    let mut query = query(&uri)?;
    let cf = rows::cf(&query.text("cf").unwrap_or_else(|| "AVERAGE".to_string()))?;
    let form = Form::from_name(query.text("format").as_deref())?;
    let step = query.number("step", 1)?.max(1);
    let (start, end) = range(&mut query, api.service.now())?;
    query.finish()?;
    let word = path_rest(&uri)?;
    api.work
        .run(|| {
            let request = FetchRequest::new(cf, start, end, step);
            let budget = Budget::new(&api.service.memory);
            let rows = rows::fetch(&api.service, &budget, &word, request);
            let rows = rows.map_err(|failure| failure.similar_to(&api.service, &word))?;
            let unit = f64::from(rows.units_per_second.max(1));
            let seconds = |time: f64| if unit == 1.0 { json!(time as i64) } else { json!(time / unit) };
            let mut head = Map::new();
            head.insert("name".to_string(), String::from_utf8_lossy(&word).into());
            head.insert("cf".to_string(), cf.name().into());
            head.insert("start".to_string(), seconds(rows.start as f64));
            head.insert("end".to_string(), seconds(rows.end as f64));
            head.insert("step".to_string(), seconds(rows.step as f64));
            let table = Table {
                head,
                columns: rows.ds_names.clone(),
                units_per_second: rows.units_per_second,
                fresh_seconds: (rows.step as f64 / unit) as u64,
                rows: Fetched::new(rows),
                form,
            };
            table.respond(budget.into_share())
        })
        .await
}
