//! What there is: a directory page by page with last values, and search in all names.

use std::sync::Arc;

use args::pattern;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rrd::definition::{Cf, Definition, DsKind};
use rrd::fetch::FetchRequest;
use serde_json::{Value, json};

use super::rrds::JSON_HEADERS;
use super::{Api, path_rest, query};
use crate::http::failure::Failure;
use crate::http::percent;
use crate::http::rows::{self, Budget};
use crate::name_index::{Child, NameList};
use crate::service::Service;

/// Default number of entries of a directory in one answer: a few screens.
const ENTRIES_DEFAULT: u64 = 200;
/// The most entries in one answer: each RRD's last row is read.
const ENTRIES_MAX: u64 = 2_000;
/// Default number of names that a search answers.
const HITS_DEFAULT: u64 = 50;
/// The most names that a search answers.
const HITS_MAX: u64 = 1_000;
/// Names that are compared with one that is not there, and those of them that are offered.
const COMPARED: usize = 500;
const OFFERED: usize = 5;
/// Data sources whose values are shown; an RRD of more is one for its own page.
const VALUES_SHOWN: usize = 16;

/// `GET /api/v1/tree[/DIRECTORY]`
///
/// # Errors
/// 4xx and 503, as in `openapi.json`.
pub async fn tree(State(api): State<Api>, uri: Uri) -> Result<Response, Failure> {
    let mut query = query(&uri)?;
    let limit = query.number("limit", ENTRIES_DEFAULT)?.clamp(1, ENTRIES_MAX) as usize;
    let after = query.take("after").unwrap_or_default();
    query.finish()?;
    let directory = directory(&path_rest(&uri)?);
    api.work
        .run(|| {
            let service = &api.service;
            let list = name_list(service)?;
            let page = list.page(&directory, &after, limit);
            if page.count == 0 && !directory.is_empty() {
                let name = String::from_utf8_lossy(&directory);
                let text = format!("{name}: there is no such directory");
                let failure = Failure::new(axum::http::StatusCode::NOT_FOUND, text);
                return Err(failure.similar_to(service, &directory));
            }
            let budget = Budget::new(&service.memory);
            let items: Vec<Value> =
                page.children.iter().map(|child| entry(service, &budget, child)).collect();
            let next = page.children.last().filter(|_| page.more).map(|child| percent::encode(child.name()));
            let answer = json!({
                "directory": String::from_utf8_lossy(&directory),
                "count": page.count,
                "items": items,
                "next": next,
            });
            Ok((JSON_HEADERS, answer.to_string() + "\n").into_response())
        })
        .await
}

/// `GET /api/v1/search`
///
/// # Errors
/// 4xx and 503, as in `openapi.json`.
pub async fn search(State(api): State<Api>, uri: Uri) -> Result<Response, Failure> {
    let mut query = query(&uri)?;
    let limit = query.number("limit", HITS_DEFAULT)?.clamp(1, HITS_MAX) as usize;
    let text = query.take("q").ok_or_else(|| Failure::bad("give q=, words or a pattern with * or ?"))?;
    query.finish()?;
    api.work
        .run(|| {
            let found = find(&api.service, &text, limit)?;
            let item = |(name, count): &(Vec<u8>, usize)| {
                let mut item = hit(name, *count);
                item["title"] = json!(api.service.collecting.labels.title(name));
                item
            };
            let items: Vec<Value> = found.hits.iter().map(item).collect();
            let answer = json!({ "more": items.len() < found.total, "total": found.total, "items": items });
            Ok((JSON_HEADERS, answer.to_string() + "\n").into_response())
        })
        .await
}

/// What a search found.
pub struct Hits {
    /// Whole names, a directory's with a slash at its end, and how many RRDs they are.
    pub hits: Vec<(Vec<u8>, usize)>,
    /// How many hits there are in all.
    pub total: usize,
}

/// What a pattern takes, or the best hits of words: those in names before those in titles.
///
/// # Errors
/// As [`name_list`].
pub fn find(service: &Service, text: &[u8], limit: usize) -> Result<Hits, Failure> {
    let list = name_list(service)?;
    if pattern::has_wildcards(text) {
        let found = list.matching(text, limit);
        let hits = found.hits.iter().map(|name| (name.to_vec(), 1)).collect();
        return Ok(Hits { hits, total: found.total });
    }
    let found = list.search(text, limit);
    let mut all = Hits { total: found.total, hits: Vec::new() };
    all.hits.extend(found.hits.iter().map(|hit| (hit.name.to_vec(), hit.count)));
    let (titled, total) =
        service.collecting.labels.search(text, limit - all.hits.len(), |name| service.may_read(name));
    all.total += total;
    all.hits.extend(titled.into_iter().map(|name| (name, 1)));
    Ok(all)
}

/// Names spelt like `name`, the likest first: of its directory, or where that is not there, of anywhere. A directory's end with a
/// slash.
pub fn similar(service: &Service, name: &[u8]) -> Vec<Vec<u8>> {
    let Ok(list) = name_list(service) else { return Vec::new() };
    let stem = name.strip_suffix(b"/").unwrap_or(name);
    let from = stem.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let beside = list.page(&stem[..from], b"", COMPARED).children;
    let mut names: Vec<Vec<u8>> = beside.iter().map(|child| child.name().to_vec()).collect();
    if names.is_empty() {
        let mut words = stem.split(|byte| !byte.is_ascii_alphanumeric() && byte.is_ascii());
        let word = words.rfind(|word| word.len() > 1).unwrap_or(stem);
        names = list.search(word, COMPARED).hits.iter().map(|hit| hit.name.to_vec()).collect();
    }
    let plain = |name: &[u8]| {
        let name = name.strip_suffix(b"/").or_else(|| name.strip_suffix(b".rrd")).unwrap_or(name);
        String::from_utf8_lossy(name).into_owned()
    };
    let wanted = plain(stem);
    names.sort_by_cached_key(|name| strsim::levenshtein(&wanted, &plain(name)));
    names.truncate(OFFERED);
    names
}

/// The names of the store.
///
/// # Errors
/// 503 when there is no memory for them; errors of the store.
pub fn name_list(service: &Service) -> Result<Arc<NameList>, Failure> {
    service.name_index.list().map_err(|error| Failure::of_store(b"the list of all names", &error))
}

/// A directory as names begin with it: empty, or with one slash at its end.
pub fn directory(path: &[u8]) -> Vec<u8> {
    let path = path.trim_ascii_start();
    let path = &path[path.iter().take_while(|&&byte| byte == b'/').count()..];
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    if end == 0 { Vec::new() } else { [&path[..end], b"/"].concat() }
}

fn hit(name: &[u8], count: usize) -> Value {
    match name.strip_suffix(b"/") {
        Some(directory) => json!({
            "name": String::from_utf8_lossy(directory), "path": percent::encode(directory), "directory": true, "count": count,
        }),
        None => {
            json!({ "name": String::from_utf8_lossy(name), "path": percent::encode(name), "directory": false })
        }
    }
}

fn entry(service: &Service, budget: &Budget, child: &Child<'_>) -> Value {
    let name = match child {
        Child::Directory(name, count) => return hit(name, *count),
        Child::Rrd(name) => name,
    };
    let mut item = hit(name, 1);
    // It may be gone since the list was made, or unreadable: then its name is all that is said.
    if let Some(last) = LastRow::of(service, budget, name) {
        item["last_update"] = json!(last.update);
        item["step"] = json!(last.step);
        let values =
            last.values.iter().map(|(ds, kind, value)| json!({"ds": ds, "type": kind, "value": value}));
        item["values"] = values.collect();
    }
    item
}

/// The newest row of an RRD's finest archive.
pub struct LastRow {
    /// When the RRD was last updated, in seconds since the epoch.
    pub update: f64,
    /// Its step in seconds.
    pub step: f64,
    /// Its data sources: name, type, and newest known value (NaN: unknown). Empty when there are many.
    pub values: Vec<(String, &'static str, f64)>,
}

impl LastRow {
    /// Of the RRD called `name`; `None` when it cannot be read.
    pub fn of(service: &Service, budget: &Budget, name: &[u8]) -> Option<LastRow> {
        let status = service.engine.status(&rows::name(service, name).ok()?).ok()?;
        let definition = &status.definition;
        let unit = f64::from(definition.units_per_second.max(1));
        let (update, step) = (status.last_update.whole as f64 / unit, definition.step as f64 / unit);
        let values = match status.is_updated && definition.ds.len() <= VALUES_SHOWN {
            true => last_values(service, budget, name, definition, update as i64),
            false => Vec::new(),
        };
        Some(LastRow { update, step, values })
    }
}

fn last_values(
    service: &Service,
    budget: &Budget,
    name: &[u8],
    definition: &Definition,
    update: i64,
) -> Vec<(String, &'static str, f64)> {
    let step = (definition.step / u64::from(definition.units_per_second.max(1))).max(1) as i64;
    let cf = definition.rra.first().map_or(Cf::Average, |rra| rra.cf.cf());
    // The row before the last may be the newest that is known.
    let request = FetchRequest::new(cf, update - 2 * step, update, 1);
    let Ok(fetched) = rows::fetch(service, budget, name, request) else { return Vec::new() };
    let columns = fetched.ds_names.len().max(1);
    let newest = |ds: usize| {
        let column = fetched.values.iter().skip(ds).step_by(columns);
        column.copied().rfind(|value| !value.is_nan()).unwrap_or(f64::NAN)
    };
    let sources = definition.ds.iter().enumerate();
    sources.map(|(index, ds)| (ds.name.clone(), kind(&ds.kind), newest(index))).collect()
}

fn kind(kind: &DsKind) -> &'static str {
    match kind {
        DsKind::Fed { ds_type, .. } => ds_type.name(),
        _ => "COMPUTE",
    }
}
