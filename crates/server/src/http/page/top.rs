//! The RRDs with the largest values.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use rrd::when::at::resolve_pair;

use super::figure::{Figure, LARGE};
use super::{Frame, Range, Site, answer};
use crate::http::api::graphs::{Mode, Selection, Wanted, suggestions};
use crate::http::api::top::{Asked, BY, By, Top, find};
use crate::http::failure::Failure;
use crate::http::page::tree::short;
use crate::http::{percent, rows};
use suggest::Together;

/// Rows of the table.
const ITEMS: usize = 50;
/// The first ones are drawn in one graph.
const DRAWN: usize = 10;

/// A row of the table.
struct Row {
    name: String,
    link: String,
    ds: String,
    value: String,
}

#[derive(Template)]
#[template(path = "top.html")]
struct TopPage {
    frame: Frame,
    range: Range,
    glob: String,
    ds: String,
    by: Vec<(&'static str, bool)>,
    rows: Vec<Row>,
    examined: usize,
    skipped: usize,
    figures: Vec<Figure>,
    failure: Option<String>,
}

/// `GET /top`
pub async fn top(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    let page = async {
        let mut query = crate::http::api::query(&uri)?;
        let now = site.api.service.now();
        let range = Range::take(&mut query, now)?;
        let by = By::take(&mut query)?;
        let ds = query.text("ds").unwrap_or_default();
        let glob =
            query.take("glob").filter(|glob| !glob.trim_ascii().is_empty()).unwrap_or_else(|| b"*".to_vec());
        query.finish()?;
        site.api.work.run(|| top_page(&site, range, by, &ds, glob)).await
    };
    answer(&headers, page.await)
}

fn top_page(site: &Site, range: Range, by: By, ds: &str, glob: Vec<u8>) -> Result<TopPage, Failure> {
    let service = &site.api.service;
    let seconds =
        resolve_pair(&range.start, &range.end, service.now(), &localtime::Local).map_err(Failure::bad)?;
    let asked = Asked {
        wanted: Wanted { glob: Some(glob.clone()), ..Wanted::default() },
        ds: Some(ds.to_string()).filter(|ds| !ds.is_empty()),
        cf: rows::cf("AVERAGE")?,
        by,
        range: seconds,
        limit: ITEMS,
    };
    let (top, failure) = match find(service, asked) {
        Ok(top) => (top, None),
        Err(failure) => (Top::default(), Some(failure.to_string())),
    };
    let mut names: Vec<Vec<u8>> = Vec::new();
    for item in top.items.iter().filter(|item| top.items.first().is_some_and(|first| first.ds == item.ds)) {
        if names.len() < DRAWN && !names.contains(&item.name) {
            names.push(item.name.clone());
        }
    }
    let figures = match top.items.first() {
        None => Vec::new(),
        Some(first) => {
            let mode = Mode::Together(Together::Overlay);
            let (graphs, _) = suggestions(&site.api, &Selection { names, left_out: 0 }, mode, ITEMS)?;
            let shows = format!(":{}:", first.ds);
            let is_it = |graph: &&suggest::Suggestion| {
                graph.arguments.iter().any(|word| String::from_utf8_lossy(word).contains(&shows))
            };
            graphs.iter().find(is_it).map(|graph| Figure::new(graph, &range, LARGE)).into_iter().collect()
        }
    };
    let rows = top.items.iter().map(|item| {
        let stem = item.name.strip_suffix(b".rrd").unwrap_or(&item.name);
        Row {
            name: String::from_utf8_lossy(stem).into_owned(),
            link: format!("/rrd/{}?{}", percent::encode(stem), range.query()),
            ds: item.ds.clone(),
            value: short(item.value),
        }
    });
    Ok(TopPage {
        frame: Frame::new("top", "Top"),
        glob: String::from_utf8_lossy(&glob).into_owned(),
        ds: ds.to_string(),
        by: BY.iter().map(|(name, one)| (*name, *one == by)).collect(),
        rows: rows.collect(),
        examined: top.examined,
        skipped: top.skipped,
        figures,
        failure,
        range,
    })
}
