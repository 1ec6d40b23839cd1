//! HTTP: the pages, `/graph`, `/api/v1` with Prometheus' and Graphite's APIs beside ours, `/grafana`, `/metrics` and `/healthz`.

pub mod access;
mod age;
mod api;
mod body;
pub(crate) mod failure;
mod grafana;
mod graph;
#[cfg(feature = "graphite")]
mod graphite;
#[cfg(not(feature = "graphite"))]
#[path = "http/graphite_absent.rs"]
mod graphite;
mod login;
pub(crate) mod origin;
mod packed;
mod page;
pub(crate) mod percent;
mod prometheus;
pub(crate) mod query;
mod routers;
pub(crate) mod rows;
pub mod server;
pub mod slow;
mod table;
mod views;
mod work;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use suggest::{MetricRules, Presets};

pub use routers::Routers;
pub use views::Saving;
use views::Views;

use self::work::Work;
use crate::service::Service;
use crate::status::StatusWatch;

#[derive(Clone)]
struct Public {
    service: Arc<Service>,
    registry: Arc<Registry>,
}

/// What the pages show besides the store.
#[derive(Clone, Debug, Default)]
pub struct SiteSettings {
    /// The directory of saved graphs.
    pub templates: Option<PathBuf>,
    /// Who may save views there over HTTP.
    pub saving: Saving,
    /// The directory of this host's own metrics, if they are collected.
    pub host: Option<String>,
    /// What RRDs are called as metrics, before the rules that are shipped.
    pub metrics: MetricRules,
}

/// Who of the clients of some routes may do to the daemon what concerns no RRD; an extension of requests.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only a cluster's page changes the daemon"))]
struct Operating(Saving);

/// What all clients of HTTP share.
#[derive(Clone)]
struct Common {
    settings: SiteSettings,
    status: Arc<StatusWatch>,
    /// The queue for long requests.
    work: Arc<Work>,
    presets: Arc<Presets>,
    /// What RRDs are called as metrics.
    metric_rules: Arc<MetricRules>,
}

/// The pages, `/graph`, `/api/v1`, `/metrics` and `/healthz`, of the part of a store that `service` is.
fn public(service: Arc<Service>, common: &Common) -> Router {
    let Common { mut settings, status, work, presets, metric_rules } = common.clone();
    if service.rights().is_some_and(|rights| !rights.reads_all()) {
        // They name RRDs.
        settings.templates = None;
    }
    if service.rights().is_some_and(|rights| !rights.operate) {
        settings.saving = Saving::Off;
    }
    let registry =
        Arc::new(service.metrics.registry(Arc::clone(&service.engine), Arc::clone(&service.memory)));
    let slow = Arc::clone(&status.slow);
    let views = Arc::new(Views::new(settings.templates.clone(), settings.saving));
    let api = api::Api { service: Arc::clone(&service), work, presets, views };
    let indexes: Arc<prometheus::index::Indexes> = Arc::default();
    let graphite_api = graphite::router(graphite::Graphite {
        service: Arc::clone(&service),
        work: Arc::clone(&api.work),
        rules: Arc::clone(&metric_rules),
        indexes: Arc::clone(&indexes),
        renderer: Arc::default(),
    });
    let provisioned = grafana::router(grafana::Grafana {
        service: Arc::clone(&service),
        work: Arc::clone(&api.work),
        rules: Arc::clone(&metric_rules),
        indexes: Arc::clone(&indexes),
    });
    let metrics_api = prometheus::router(Arc::clone(&service), Arc::clone(&api.work), metric_rules, indexes);
    let push_service = Arc::clone(&api.service);
    let pushed = crate::ingest::routes::router(Arc::clone(&api.service));
    let graphs = graph::GraphState::new(api.clone(), settings.templates);
    let site =
        page::Site { api: api.clone(), graphs: graphs.clone(), status, host: settings.host.map(Arc::from) };
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .with_state(Public { service, registry })
        .merge(api::router(api))
        .merge(metrics_api)
        .merge(graphite_api)
        .merge(provisioned)
        .merge(pushed)
        .merge(crate::push::http::router(push_service))
        .merge(graph::router(graphs))
        .merge(page::router(site))
        .layer(axum::middleware::from_fn_with_state(slow, slow::watch))
}

async fn metrics(State(public): State<Public>) -> Response {
    let mut text = String::new();
    let content = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match prometheus_client::encoding::text::encode(&mut text, &public.registry) {
        Ok(()) => ([(header::CONTENT_TYPE, content)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// 200 while updates are taken, 503 while the store takes none.
async fn healthz(State(public): State<Public>) -> Response {
    if public.service.engine.stats().read_only == 0 {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the store takes no updates; see the log\n").into_response()
    }
}
