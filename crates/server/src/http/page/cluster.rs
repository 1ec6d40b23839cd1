//! The cluster that this server is a node of: what `roundel cluster status` shows, with its drain and fill, and `verify`.

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
use crate::cluster::ClusterView;
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
        Ok(ClusterPage {
            frame: Frame::new("cluster", "Cluster"),
            cluster: ClusterView::of(site.node()?),
            may_change,
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

/// `POST /cluster`: a form with `do`, which is `drain`, `fill` or `verify`. What differs is kept, to be looked at first.
pub async fn change(
    State(site): State<Site>,
    Extension(operating): Extension<Operating>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let change = || {
        let mut form = Query::parse(&body)?;
        let what = form.text("do").unwrap_or_default();
        form.finish()?;
        let node = site.node()?;
        may_operate(operating, &headers)?;
        match what.as_str() {
            "drain" => site.api.service.drain(node, true),
            "fill" => site.api.service.drain(node, false),
            "verify" => {
                let begun = node.verify(VerifyOptions { keeps: true, ..VerifyOptions::default() });
                begun.map_err(|why| Failure::new(StatusCode::CONFLICT, why))?;
                site.api.service.operated("cluster verify", None);
            }
            _ => return Err(Failure::bad("do is drain, fill or verify")),
        }
        Ok(())
    };
    match change() {
        Ok(()) => (StatusCode::SEE_OTHER, [(header::LOCATION, "/cluster")]).into_response(),
        Err(failure) => answer(&headers, Err::<ClusterPage, Failure>(failure)),
    }
}
