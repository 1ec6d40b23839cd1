//! The page: what the store knows, for people with a browser.
//!
//! Every page is whole without script: forms, links, and graphs as pictures of `/graph`. The scripts of `crates/server/assets`
//! replace the pictures by live charts. Pages use nothing that `/api/v1` does not offer to everyone.

mod assets;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "page/cluster_absent.rs"]
mod cluster;
mod compare;
mod figure;
mod home;
mod rrd;
mod search;
mod top;
mod tree;
mod view;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;

use super::api::Api;
use super::failure::Failure;
use super::graph::GraphState;
use super::query::Query;
use super::{packed, percent};
use crate::status::StatusWatch;

/// What a page may load: only what this daemon serves.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; \
                      frame-ancestors 'self'; base-uri 'none'; form-action 'self'";

/// What all pages need.
#[derive(Clone)]
pub struct Site {
    /// The store and its limits.
    pub api: Api,
    /// Draws pictures.
    pub graphs: GraphState,
    /// How the daemon is doing.
    pub status: Arc<StatusWatch>,
    /// The directory of this host's own metrics, if it collects them.
    pub host: Option<Arc<str>>,
}

/// The routes.
pub fn router(site: Site) -> Router {
    Router::new()
        .route("/", get(home::home))
        .route("/status", get(home::status))
        .route("/cluster", get(cluster::cluster).post(cluster::change))
        .route("/api/v1/cluster", get(cluster::json))
        .route("/tree", get(tree::tree))
        .route("/tree/", get(tree::tree))
        .route("/tree/{*directory}", get(tree::tree))
        .route("/rrd/{*name}", get(rrd::rrd))
        .route("/compare", get(compare::compare))
        .route("/expression", get(compare::expression))
        .route("/views", get(view::views).post(view::add_graph))
        .route("/view/{name}", get(view::view).post(view::save))
        .route("/wall", get(view::wall))
        .route("/search", get(search::search))
        .route("/top", get(top::top))
        .route("/licenses", get(licenses))
        .route("/assets/{hash}/{*name}", get(assets::asset))
        .route("/api/v1/status", get(status))
        .fallback(nothing_there)
        .with_state(site)
}

/// What the head of every page shows.
pub struct Frame {
    /// Which page it is.
    pub page: &'static str,
    /// What stands in the title.
    pub title: String,
    /// The text of the search box.
    pub query: String,
}

impl Frame {
    pub(super) fn new(page: &'static str, title: impl Into<String>) -> Frame {
        Frame { page, title: title.into(), query: String::new() }
    }

    /// The hash in the URLs of scripts and styles.
    pub fn hash(&self) -> &'static str {
        assets::HASH
    }

    /// The scripts to load early.
    pub fn modules(&self) -> Vec<&'static str> {
        assets::modules().collect()
    }

    /// This host's time zone, as an IANA name; UTC when it has none.
    pub fn zone(&self) -> String {
        let zone = std::env::var("TZ").ok().or_else(|| {
            let link = std::fs::read_link("/etc/localtime").ok()?;
            Some(link.to_str()?.split_once("zoneinfo/")?.1.to_string())
        });
        let zone = zone.map(|zone| zone.trim_start_matches(':').to_string());
        zone.filter(|zone| !zone.is_empty() && !zone.starts_with('/')).unwrap_or_else(|| "UTC".to_string())
    }
}

/// What the executable is made of, and under which licences.
#[derive(Template)]
#[template(path = "licenses.html")]
struct LicensesPage {
    frame: Frame,
}

/// `GET /licenses`
async fn licenses(headers: HeaderMap, uri: Uri) -> Response {
    let page = super::api::query(&uri).and_then(|query| query.finish());
    answer(&headers, page.map(|()| LicensesPage { frame: Frame::new("licenses", "Licences") }))
}

/// Paths that nothing answers: JSON below `/api`, a page elsewhere.
async fn nothing_there(headers: HeaderMap, uri: Uri) -> Response {
    let path = uri.path();
    if path.starts_with("/api/") {
        let text = format!("nothing answers \"{path}\": /api/v1/openapi.json describes what there is");
        return Failure::new(StatusCode::NOT_FOUND, text).into_response();
    }
    let text = format!("nothing answers \"{path}\": names of RRDs begin with /rrd/, directories with /tree/");
    answer(&headers, Err::<FailurePage, _>(Failure::new(StatusCode::NOT_FOUND, text)))
}

/// A page that says what went wrong.
#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage {
    frame: Frame,
    status: StatusCode,
    text: String,
    similar: Vec<Similar>,
}

/// What may have been meant.
struct Similar {
    name: String,
    link: String,
}

impl Similar {
    fn new(name: &[u8]) -> Similar {
        let (plain, link) = match name.strip_suffix(b"/") {
            Some(plain) => (plain, format!("/tree/{}/", percent::encode(plain))),
            None => {
                let plain = name.strip_suffix(b".rrd").unwrap_or(name);
                (plain, format!("/rrd/{}", percent::encode(plain)))
            }
        };
        Similar { name: String::from_utf8_lossy(plain).into_owned(), link }
    }
}

/// The answer of a page.
pub(super) fn answer(headers: &HeaderMap, page: Result<impl Template, Failure>) -> Response {
    let (status, text) = match page {
        Ok(page) => (StatusCode::OK, page.render()),
        Err(failure) => {
            let (status, text) = (failure.status(), failure.to_string());
            let frame = Frame::new("failure", "That did not work");
            let similar = failure.similar().iter().map(|name| Similar::new(name)).collect();
            (status, FailurePage { frame, status, text, similar }.render())
        }
    };
    match text {
        Ok(text) => {
            let head = [
                (header::CONTENT_TYPE, "text/html; charset=utf-8"),
                (header::CONTENT_SECURITY_POLICY, POLICY),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
                (header::REFERRER_POLICY, "same-origin"),
                (header::CACHE_CONTROL, "no-cache"),
            ];
            packed::pack(headers, (status, head).into_response(), text.into_bytes())
        }
        Err(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error).into_response(),
    }
}

/// The range that a page shows, as it was written: RRDtool's words or seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The start.
    pub start: String,
    /// The end.
    pub end: String,
}

impl Range {
    /// Takes `start` and `end` out of a request.
    ///
    /// # Errors
    /// 400 when they are no times.
    fn take(query: &mut Query, now: i64) -> Result<Range, Failure> {
        Range::take_or(query, "end-1d", "now", now)
    }

    /// The same with other defaults.
    fn take_or(
        query: &mut Query,
        default_start: &str,
        default_end: &str,
        now: i64,
    ) -> Result<Range, Failure> {
        let text = |word: Option<String>, default: &str| {
            word.filter(|word| !word.trim().is_empty()).unwrap_or_else(|| default.to_string())
        };
        let start = text(query.text("start"), default_start);
        let end = text(query.text("end"), default_end);
        ::rrd::when::at::resolve_pair(&start, &end, now, &localtime::Local).map_err(Failure::bad)?;
        Ok(Range { start, end })
    }
}

/// `GET /api/v1/status`
async fn status(State(site): State<Site>, uri: Uri) -> Result<Response, Failure> {
    super::api::query(&uri)?.finish()?;
    let status = site.api.work.run(|| Ok(site.status.status())).await?;
    let text = serde_json::to_value(&status).unwrap_or(Value::Null).to_string() + "\n";
    Ok(([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], text)
        .into_response())
}
