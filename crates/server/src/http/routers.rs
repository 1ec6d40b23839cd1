//! The routes as each client's rights show them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Router};
use suggest::{MetricRules, Presets};

use super::failure::Failure;
use super::{Common, Operating, Saving, SiteSettings, public};
use crate::access::Principal;
use crate::service::Service;
use crate::status::StatusWatch;

/// Clients whose routes are kept.
const KEPT_MAX: usize = 1000;
/// What tells of the whole store and daemon.
const OPERATORS_ONLY: [&str; 6] =
    ["/metrics", "/status", "/api/v1/status", "/cluster", "/api/v1/cluster", "/api/v1/ingest"];

/// Routes for those who may do everything, and for others once they come.
pub struct Routers {
    service: Arc<Service>,
    common: Common,
    /// For those who have not said who they are.
    whole: Router,
    /// For accounts.
    known: Router,
    parts: Mutex<HashMap<u64, Router>>,
}

impl Routers {
    /// Those of a store.
    pub fn new(service: Arc<Service>, mut settings: SiteSettings, status: Arc<StatusWatch>) -> Self {
        let own_rules = std::mem::take(&mut settings.metrics);
        let common = Common {
            settings,
            status,
            work: Arc::default(),
            presets: Arc::new(Presets::shipped()),
            metric_rules: Arc::new(own_rules.before(MetricRules::shipped())),
        };
        // For those of whom nothing is known, only the place of the listener speaks.
        let local = match common.settings.saving {
            Saving::Local => Saving::Local,
            Saving::Off | Saving::On => Saving::Off,
        };
        let all = public(Arc::clone(&service), &common);
        let known = all.clone().layer(Extension(Operating(Saving::On)));
        let whole = all.layer(Extension(Operating(local)));
        Routers { service, common, whole, known, parts: Mutex::default() }
    }

    /// The routes of a client.
    pub fn of(&self, who: &Arc<Principal>) -> Router {
        let service = self.service.seen_by(who);
        if Arc::ptr_eq(&service, &self.service) {
            return if who.account().is_some() { self.known.clone() } else { self.whole.clone() };
        }
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(router) = parts.get(&who.id) {
            return router.clone();
        }
        if parts.len() >= KEPT_MAX {
            parts.clear();
        }
        // Others do not get so far.
        let operating = if who.account().is_some() { Saving::On } else { Saving::Off };
        let router = public(Arc::clone(&service), &self.common).layer(Extension(Operating(operating)));
        let router = match who.rights.operate {
            true => router,
            false => router.layer(middleware::from_fn_with_state(service, without_operation)),
        };
        parts.insert(who.id, router.clone());
        router
    }
}

/// Refuses what tells of the whole daemon; the first page, which does, leads to the tree.
async fn without_operation(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path == "/" {
        return Redirect::to("/tree/").into_response();
    }
    if OPERATORS_ONLY.contains(&path) {
        service.refused_command(path);
        let text = "this tells of the whole store, and takes an account with operate = true";
        return Failure::new(StatusCode::FORBIDDEN, text).into_response();
    }
    next.run(request).await
}
