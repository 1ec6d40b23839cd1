//! What a search found.

use args::pattern;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;

use super::figure::form;
use super::tree::Entry;
use super::{Frame, Site, answer};
use crate::http::api::names::{Hits, find};
use crate::http::failure::Failure;
use crate::http::rows::Budget;

/// Hits of one page.
const HITS: usize = 200;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    entries: Vec<Entry>,
    total: usize,
    /// Where all RRDs that a pattern takes are in one graph.
    together: Option<String>,
}

/// `GET /search?q=TEXT`
pub async fn search(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    let page = async {
        let mut query = crate::http::api::query(&uri)?;
        let text = query.take("q").unwrap_or_default();
        query.finish()?;
        site.api.work.run(|| search_page(&site, &text)).await
    };
    answer(&headers, page.await)
}

fn search_page(site: &Site, text: &[u8]) -> Result<SearchPage, Failure> {
    let Hits { hits, total } = find(&site.api.service, text, HITS)?;
    let budget = Budget::new(&site.api.service.memory);
    let entry = |(name, count): &(Vec<u8>, usize)| match name.ends_with(b"/") {
        true => Entry::directory(name, *count),
        false => Entry::rrd(site, &budget, name),
    };
    let entries = hits.iter().map(entry).collect();
    let is_glob = pattern::has_wildcards(text);
    let query = String::from_utf8_lossy(text).into_owned();
    let together = (is_glob && total > 0).then(|| format!("/compare?{}&mode=overlay", form("glob", &[text])));
    let frame = Frame { query, ..Frame::new("search", "Search") };
    Ok(SearchPage { frame, entries, total, together })
}
