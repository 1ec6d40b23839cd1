//! `/grafana`: what Grafana provisions, as this client may see it. `docs/grafana.md` is for its operators.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::uri::Authority;
use axum::http::{Extensions, HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use suggest::MetricRules;

use super::api::query;
use super::failure::Failure;
use super::login;
use super::origin::CameEncrypted;
use super::prometheus::index::Indexes;
use super::work::Work;
use crate::grafana::{DataSources, checked_url, dashboards, interval_text};
use crate::service::Service;

/// State of the endpoints.
#[derive(Clone)]
pub struct Grafana {
    /// The store.
    pub service: Arc<Service>,
    /// The queue for long requests.
    pub work: Arc<Work>,
    /// What RRDs are called.
    pub rules: Arc<MetricRules>,
    /// The index of metrics, which knows the steps of the RRDs.
    pub indexes: Arc<Indexes>,
}

/// The routes.
pub fn router(state: Grafana) -> Router {
    Router::new()
        .route("/grafana/datasources.yaml", get(sources))
        .route("/grafana/dashboards", get(list))
        .route("/grafana/dashboards/{file}", get(dashboard))
        .with_state(state)
}

/// `GET /grafana/datasources.yaml`
async fn sources(
    State(state): State<Grafana>,
    uri: Uri,
    headers: HeaderMap,
    extensions: Extensions,
) -> Result<Response, Failure> {
    let mut query = query(&uri)?;
    let given = query.text("url");
    query.finish()?;
    let url = match given {
        Some(url) => checked_url(&url).map_err(Failure::bad)?,
        None => asked_url(&headers, &extensions)?,
    };
    // Who has to say who it is here has to say it as Grafana, too.
    let has_token = headers.contains_key(header::AUTHORIZATION) || login::has_cookie(&headers);
    let interval = interval(&state).await?;
    let text = DataSources { url, interval, has_token, authority: None }.yaml();
    let content = [(header::CONTENT_TYPE, "application/yaml"), (header::CACHE_CONTROL, "no-cache")];
    Ok((content, text).into_response())
}

/// The address by which this client reached the daemon.
fn asked_url(headers: &HeaderMap, extensions: &Extensions) -> Result<String, Failure> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // A user and a password are no part of the header.
    let is_host =
        host.parse::<Authority>().is_ok_and(|authority| !authority.host().is_empty()) && !host.contains('@');
    if !is_host {
        return Err(Failure::bad(
            "the request does not say which host it asks (Host); give url=http://HOST:PORT",
        ));
    }
    let is_encrypted = extensions.get::<CameEncrypted>().is_some_and(|encrypted| encrypted.0);
    Ok(format!("{}://{host}", if is_encrypted { "https" } else { "http" }))
}

/// The interval of most rows.
async fn interval(state: &Grafana) -> Result<Option<std::time::Duration>, Failure> {
    state.work.run(|| Ok(state.indexes.current(&state.service, &state.rules)?.interval())).await
}

/// `GET /grafana/dashboards`
async fn list(State(state): State<Grafana>, uri: Uri) -> Result<Response, Failure> {
    query(&uri)?.finish()?;
    let interval = interval(&state).await?.map(interval_text);
    let item = |dashboard: &crate::grafana::Dashboard| {
        json!({
            "name": dashboard.name, "uid": dashboard.uid(), "title": dashboard.title, "needs": dashboard.needs,
            "path": format!("/grafana/dashboards/{}.json", dashboard.name),
        })
    };
    let items: Vec<_> = dashboards().iter().map(item).collect();
    let answer = json!({ "interval": interval, "items": items });
    Ok(([(header::CONTENT_TYPE, "application/json")], answer.to_string() + "\n").into_response())
}

/// `GET /grafana/dashboards/NAME.json`
async fn dashboard(Path(file): Path<String>, uri: Uri) -> Result<Response, Failure> {
    query(&uri)?.finish()?;
    let name = file.strip_suffix(".json").unwrap_or_default();
    let Some(dashboard) = dashboards().iter().find(|dashboard| dashboard.name == name) else {
        let names: Vec<String> = dashboards().iter().map(|one| format!("{}.json", one.name)).collect();
        let text = format!("no dashboard is called \"{file}\"; there are {}", names.join(", "));
        return Err(Failure::new(StatusCode::NOT_FOUND, text));
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], dashboard.json()).into_response())
}
