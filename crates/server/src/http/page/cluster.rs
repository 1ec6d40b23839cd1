//! The cluster that this server is a node of: what `roundel cluster status` shows, and what `drain`, `fill`, `verify`, `seal` and `split` do.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use cluster::check::VerifyOptions;
use cluster::node::Node;
use serde_json::Value;

use super::{Frame, Site, answer};
use crate::cluster::{ClusterView, LogSettings, begin_move};
use crate::http::Operating;
use crate::http::failure::Failure;
use crate::http::origin::{is_foreign, is_this_machine};
use crate::http::query::Query;
use crate::http::views::Saving;

#[derive(Template)]
#[template(path = "cluster.html")]
struct ClusterPage {
    frame: Frame,
    cluster: ClusterView,
    may_change: bool,
    /// The present log, for who may have the cluster go on in another one.
    log: Option<LogSettings>,
    /// The cluster is on its way to another one.
    moves: bool,
}

impl Site {
    fn node(&self) -> Result<&Arc<Node>, Failure> {
        let text = "this server is no node of a cluster: roundel.toml has no [cluster]";
        self.api.service.node.get().ok_or_else(|| Failure::new(StatusCode::NOT_FOUND, text))
    }
}

/// Whether the client of a request may operate this node.
///
/// # Errors
/// 403 with the reason.
fn may_operate(Operating(clients): Operating, headers: &HeaderMap) -> Result<(), Failure> {
    let forbidden = |text: &str| Err(Failure::new(StatusCode::FORBIDDEN, text));
    // A page of another site makes browsers send its forms here, and says so.
    if is_foreign(headers) {
        return forbidden("a node is only operated from this server's own pages");
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match clients {
        Saving::On => Ok(()),
        Saving::Local if is_this_machine(host) => Ok(()),
        _ => forbidden(
            "a node is operated by accounts with operate = true, and by clients of this machine if HTTP listens nowhere else; roundel cluster does it, too",
        ),
    }
}

/// `GET /cluster`
pub async fn cluster(
    State(site): State<Site>,
    Extension(operating): Extension<Operating>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let page = || {
        crate::http::api::query(&uri)?.finish()?;
        let may_change = may_operate(operating, &headers).is_ok();
        let node = site.node()?;
        Ok(ClusterPage {
            frame: Frame::new("cluster", "Cluster"),
            cluster: ClusterView::of(node),
            may_change,
            log: site.api.service.cluster.get().filter(|_| may_change).map(|cluster| cluster.log.clone()),
            moves: node.members().succession().is_some(),
        })
    };
    answer(&headers, page())
}

/// `GET /api/v1/cluster`
pub async fn json(State(site): State<Site>, uri: Uri) -> Result<Response, Failure> {
    crate::http::api::query(&uri)?.finish()?;
    let view = ClusterView::of(site.node()?);
    let text = serde_json::to_value(&view).unwrap_or(Value::Null).to_string() + "\n";
    Ok(([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], text)
        .into_response())
}

/// `POST /cluster`: a form with `do`, which is `drain`, `fill`, `verify`, or, with the name of a `log`, `seal` or `split`. What differs is kept, to be
/// looked at first.
pub async fn change(
    State(site): State<Site>,
    Extension(operating): Extension<Operating>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let change = async || {
        let mut form = Query::parse(&body)?;
        let (whats, logs) = (form.take_all("do"), form.take_all("log"));
        form.finish()?;
        if whats.len() > 1 || logs.len() > 1 {
            return Err(Failure::bad("do and log are given once: there is no way back from a seal"));
        }
        let text = |all: Vec<Vec<u8>>| all.first().map(|one| String::from_utf8_lossy(one).into_owned());
        let (what, log) = (text(whats).unwrap_or_default(), text(logs));
        let node = site.node()?;
        may_operate(operating, &headers)?;
        match (what.as_str(), log) {
            ("drain", None) => site.api.service.drain(node, true),
            ("fill", None) => site.api.service.drain(node, false),
            ("verify", None) => {
                let begun = node.verify(VerifyOptions { keeps: true, ..VerifyOptions::default() });
                begun.map_err(conflict)?;
                site.api.service.operated("cluster verify", None);
            }
            ("seal", Some(log)) => site.api.work.run(|| go_on(&site, &log, false)).await?,
            ("split", Some(log)) => site.api.work.run(|| go_on(&site, &log, true)).await?,
            _ => return Err(Failure::bad("do is drain, fill or verify, or, with a log, seal or split")),
        }
        Ok(())
    };
    match change().await {
        Ok(()) => (StatusCode::SEE_OTHER, [(header::LOCATION, "/cluster")]).into_response(),
        Err(failure) => answer(&headers, Err::<ClusterPage, Failure>(failure)),
    }
}

fn conflict(why: String) -> Failure {
    Failure::new(StatusCode::CONFLICT, why)
}

/// Has the cluster go on in the log of a name.
fn go_on(site: &Site, log: &str, splits: bool) -> Result<(), Failure> {
    let service = &site.api.service;
    let present =
        service.cluster.get().ok_or_else(|| conflict("this node is still starting; try again".into()))?;
    let next = present.with_log_named(log).map_err(Failure::bad)?;
    begin_move(present, &next, splits).map_err(conflict)?;
    tracing::warn!(log, splits, "an operator has the cluster go on in another log");
    service.operated(if splits { "cluster split" } else { "cluster seal" }, Some(log));
    Ok(())
}
