//! In place of `graphite.rs` in a build without the feature `graphite`: its endpoints answer 501.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use rrdgraph::Renderer;
use suggest::MetricRules;

use super::failure::Failure;
use super::prometheus::index::Indexes;
use super::work::Work;
use crate::service::Service;

/// As in the build with the feature; nothing reads it here.
#[expect(dead_code, reason = "the fields are for the build with the feature")]
pub struct Graphite {
    pub service: Arc<Service>,
    pub work: Arc<Work>,
    pub rules: Arc<MetricRules>,
    pub indexes: Arc<Indexes>,
    pub renderer: Arc<Renderer>,
}

/// The routes.
pub fn router(_state: Graphite) -> Router {
    let mut router = Router::new();
    for prefix in ["", "/graphite"] {
        for path in ["render", "functions", "version"] {
            for slash in ["", "/"] {
                router = router.route(&format!("{prefix}/{path}{slash}"), any(missing));
            }
        }
        for path in ["metrics", "functions", "events", "tags"] {
            router = router.route(&format!("{prefix}/{path}/{{*rest}}"), any(missing));
        }
    }
    router
}

async fn missing() -> Response {
    Failure::missing("Graphite's API", "graphite").into_response()
}
