//! Which graphs RRDs suggest, as arguments of `rrdtool graph`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rrd::definition::Definition;
use serde_json::{Value, json};
use suggest::{Rrd, Suggestion, Together};

use super::names::{directory, name_list};
use super::rrds::JSON_HEADERS;
use super::{Api, query};
use crate::http::failure::Failure;
use crate::http::query::Query;
use crate::http::rows;
use crate::service::Service;

/// Default number of graphs in one answer.
const GRAPHS_DEFAULT: u64 = 20;
/// The most graphs in one answer.
const GRAPHS_MAX: u64 = 500;
/// The most RRDs whose definitions one request reads.
pub const RRDS_MAX: usize = 2_000;

/// How the graphs of several RRDs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each RRD its own, but what belongs together in one.
    Each,
    /// All in one.
    Together(Together),
}

/// What graphs are of.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The names of RRDs.
    pub names: Vec<Vec<u8>>,
    /// How many others there are.
    pub left_out: usize,
}

/// `GET /api/v1/graphs`
///
/// # Errors
/// 4xx and 503, as in `openapi.json`.
pub async fn graphs(State(api): State<Api>, uri: Uri) -> Result<Response, Failure> {
    let mut query = query(&uri)?;
    let mode = mode(&mut query)?;
    let limit = query.number("limit", GRAPHS_DEFAULT)?.clamp(1, GRAPHS_MAX) as usize;
    let wanted = Wanted::take(&mut query);
    query.finish()?;
    api.work
        .run(|| {
            let selection = wanted.selection(&api.service, RRDS_MAX)?;
            let (graphs, more) = suggestions(&api, &selection, mode, limit)?;
            let items: Vec<Value> = graphs.iter().map(item).collect();
            let answer = json!({ "graphs": items, "more": more });
            Ok((JSON_HEADERS, answer.to_string() + "\n").into_response())
        })
        .await
}

/// The parameters that select RRDs.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// By their names.
    pub names: Vec<Vec<u8>>,
    /// By a pattern.
    pub glob: Option<Vec<u8>>,
    /// Everything below a directory.
    pub directory: Option<Vec<u8>>,
}

impl Wanted {
    /// Takes them out of a request.
    pub fn take(query: &mut Query) -> Wanted {
        Wanted { names: query.take_all("name"), glob: query.take("glob"), directory: query.take("directory") }
    }

    /// The RRDs that they select, at most `limit`.
    ///
    /// # Errors
    /// 404 when there are none; errors of the store.
    pub fn selection(self, service: &Service, limit: usize) -> Result<Selection, Failure> {
        let mut all = Selection { names: self.names, left_out: 0 };
        if let Some(glob) = self.glob {
            let list = name_list(service)?;
            let found = list.matching(&glob, limit);
            all.left_out += found.total - found.hits.len();
            all.names.extend(found.hits.iter().map(|name| name.to_vec()));
        }
        if let Some(path) = self.directory {
            let list = name_list(service)?;
            let below = list.below(&directory(&path));
            all.left_out += below.len().saturating_sub(limit);
            all.names.extend(below.take(limit).map(|index| list.name(index).to_vec()));
        }
        if all.names.is_empty() {
            return Err(Failure::new(
                axum::http::StatusCode::NOT_FOUND,
                "no RRD is selected: give name=, glob= or directory=, and names that are there",
            ));
        }
        all.left_out += all.names.len().saturating_sub(limit);
        all.names.truncate(limit);
        Ok(all)
    }
}

/// Takes `mode`.
///
/// # Errors
/// 400 for an unknown one.
pub fn mode(query: &mut Query) -> Result<Mode, Failure> {
    mode_of(query.text("mode").as_deref())
}

/// The mode called `text`.
///
/// # Errors
/// 400 for an unknown one.
pub fn mode_of(text: Option<&str>) -> Result<Mode, Failure> {
    match text {
        None | Some("each") => Ok(Mode::Each),
        Some("overlay") => Ok(Mode::Together(Together::Overlay)),
        Some("stack") => Ok(Mode::Together(Together::Stack)),
        Some("sum") => Ok(Mode::Together(Together::Sum)),
        Some(text) => Err(Failure::bad(format!("mode={text}: give each, overlay, stack or sum"))),
    }
}

/// At most `limit` graphs, and whether others were left out.
///
/// # Errors
/// That one RRD was asked for, and there is none.
pub fn suggestions(
    api: &Api,
    selection: &Selection,
    mode: Mode,
    limit: usize,
) -> Result<(Vec<Suggestion>, bool), Failure> {
    let mut more = selection.left_out > 0;
    let mut definitions: Vec<(&[u8], Arc<Definition>)> = Vec::new();
    for name in &selection.names {
        let found = rows::name(&api.service, name).and_then(|known| {
            api.service.engine.status(&known).map_err(|error| Failure::of_store(name, &error))
        });
        match found {
            Ok(status) => definitions.push((name, status.definition)),
            Err(error) if selection.names.len() == 1 => return Err(error),
            // One that is gone meanwhile does not hide the others.
            Err(_) => {}
        }
        // Each RRD gives a graph, or joins one.
        if mode == Mode::Each && definitions.len() >= limit * suggest::LINES_MAX {
            more = true;
            break;
        }
    }
    let labels: Vec<_> =
        definitions.iter().map(|(name, _)| api.service.collecting.labels.get(name)).collect();
    let rrds = definitions.iter().zip(&labels);
    let rrds: Vec<Rrd<'_>> =
        rrds.map(|((name, definition), label)| Rrd { name, definition, label: label.as_deref() }).collect();
    let mut graphs = match mode {
        Mode::Each => suggest::directory(&api.presets, &rrds),
        Mode::Together(how) => suggest::together(&api.presets, &rrds, how),
    };
    more |= graphs.len() > limit;
    graphs.truncate(limit);
    Ok((graphs, more))
}

fn item(graph: &Suggestion) -> Value {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    json!({
        "title": graph.title,
        "unit": graph.unit,
        "names": graph.names.iter().map(text).collect::<Vec<_>>(),
        "arg": graph.arguments.iter().map(text).collect::<Vec<_>>(),
    })
}
