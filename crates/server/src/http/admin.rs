//! The administrator's end points, on a UNIX socket of mode 0600: whole RRDs in and out of a running store.
//!
//! `PUT /import/NAME` takes a `.rrd` file, `GET /export/NAME` gives one; `?no-overwrite` refuses to replace.
//! A name is percent-encoded, byte by byte, and may hold slashes.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use rrd::codec::file;
use store::engine::StoreError;
use store::name::RrdName;

use super::failure::status;
use super::percent;
use crate::limits::IMPORT_BYTES_MAX;
use crate::service::Service;

/// The routes.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/import/{*name}", put(import))
        .route("/export/{*name}", get(export))
        .layer(DefaultBodyLimit::max(IMPORT_BYTES_MAX))
        .with_state(service)
}

type Failure = (StatusCode, String);

fn bad(what: impl std::fmt::Display) -> Failure {
    (StatusCode::BAD_REQUEST, format!("{what}\n"))
}

fn name(uri: &Uri) -> Result<RrdName, Failure> {
    let path = uri.path();
    let encoded = path.splitn(3, '/').nth(2).unwrap_or("");
    let name = percent::decode(encoded.as_bytes()).ok_or_else(|| bad("the name is not percent-encoded"))?;
    RrdName::new(&name).map_err(|error| bad(format!("cannot use the name: {error}")))
}

async fn import(State(service): State<Arc<Service>>, uri: Uri, body: Bytes) -> Result<Response, Failure> {
    let name = name(&uri)?;
    let no_overwrite = uri.query() == Some("no-overwrite") || service.create.no_overwrite;
    tokio::task::block_in_place(|| {
        let parts = file::decode(&body).map_err(|error| bad(error.named(&name.to_string())))?;
        let imported = service.engine.import(name, parts.rrd, no_overwrite);
        imported.map_err(|error| (status(&error), format!("{error}\n")))?;
        Ok("imported\n".into_response())
    })
}

async fn export(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Failure> {
    let name = name(&uri)?;
    tokio::task::block_in_place(|| {
        let fail = |error: StoreError| (status(&error), format!("{error}\n"));
        let rrd = service.engine.read(&name).map_err(fail)?;
        let current_rows = vec![0; rrd.definition.rra.len()];
        let bytes = file::encode(&rrd, &current_rows).map_err(bad)?;
        Ok(bytes.into_response())
    })
}
