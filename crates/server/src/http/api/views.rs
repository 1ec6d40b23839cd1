//! Saved views: the list, one, and changing one.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::rrds::JSON_HEADERS;
use super::{Api, query};
use crate::http::failure::Failure;
use crate::http::query::Query;
use crate::http::views::{View, ViewGraph};

/// `GET /api/v1/views`
///
/// # Errors
/// 4xx, as in `openapi.json`.
pub async fn list(State(api): State<Api>, uri: Uri, headers: HeaderMap) -> Result<Response, Failure> {
    query(&uri)?.finish()?;
    api.work
        .run(|| {
            let item = |name: &String| match api.views.view(name) {
                Ok(view) => json!({ "name": name, "title": view.title, "graphs": view.graph.len() }),
                Err(failure) => json!({ "name": name, "error": failure.to_string() }),
            };
            let items: Vec<Value> = api.views.names().iter().map(item).collect();
            let saving = api.views.may_save(&headers).is_ok();
            Ok(respond(&json!({ "items": items, "saving": saving })))
        })
        .await
}

/// `GET /api/v1/views/NAME`
///
/// # Errors
/// 4xx, as in `openapi.json`.
pub async fn one(State(api): State<Api>, Path(name): Path<String>, uri: Uri) -> Result<Response, Failure> {
    query(&uri)?.finish()?;
    api.work
        .run(|| {
            let saved = api.views.saved(&name)?;
            let view = View::parse(&saved.text)?;
            Ok(respond(&json!({ "name": name, "tag": saved.tag, "text": saved.text, "view": view })))
        })
        .await
}

/// `PUT /api/v1/views/NAME`: the text of the file
///
/// # Errors
/// 4xx, as in `openapi.json`.
pub async fn put(
    State(api): State<Api>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let mut query = query(&uri)?;
    let was = query.text("was");
    query.finish()?;
    let text = str::from_utf8(&body).map_err(|_| Failure::bad("the text is not UTF-8"))?;
    api.work
        .run(|| {
            api.views.may_save(&headers)?;
            let change = api.views.save(&name, text, was.as_deref())?;
            api.service.operated(change.what(), Some(&name));
            Ok(respond(&json!({ "name": name })))
        })
        .await
}

/// `POST /api/v1/views/NAME`: adds a graph
///
/// # Errors
/// 4xx, as in `openapi.json`.
pub async fn post(
    State(api): State<Api>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let form = Query::parse(&body)?;
    api.work
        .run(|| {
            add(&api, &name, form, &headers)?;
            Ok(respond(&json!({ "name": name })))
        })
        .await
}

/// Adds the graph of a form to a view.
///
/// # Errors
/// 403 when the client may not, 4xx for a form or a name that is none.
pub fn add(api: &Api, name: &str, mut form: Query, headers: &HeaderMap) -> Result<(), Failure> {
    api.views.may_save(headers)?;
    let texts = |words: Vec<Vec<u8>>| {
        let text = |word| String::from_utf8(word).map_err(|_| Failure::bad("a parameter is not UTF-8"));
        words.into_iter().map(text).collect::<Result<Vec<_>, _>>()
    };
    let graph = ViewGraph {
        title: form.text("title").unwrap_or_default(),
        text: form.text("text").unwrap_or_default(),
        arg: texts(form.take_all("arg"))?,
        name: texts(form.take_all("name"))?,
        glob: form.text("glob"),
        directory: form.text("directory"),
        mode: form.text("mode"),
        start: form.text("start"),
        end: form.text("end"),
    };
    form.finish()?;
    let change = api.views.add(name, graph)?;
    api.service.operated(change.what(), Some(name));
    Ok(())
}

fn respond(answer: &Value) -> Response {
    (JSON_HEADERS, answer.to_string() + "\n").into_response()
}
