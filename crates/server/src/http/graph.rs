//! `GET /graph`: what `rrdtool graph` draws, from the same arguments, within limits.
//!
//! Arguments come as repeated `arg=`, or from a template that the operator provides (`template`). No command
//! is run and no file is written; RRDs are the store's.

mod template;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use graph::picture::compose::Picture;
use graph::picture::options::ImageFormat;
use rrdgraph::{Graph, GraphContext, Limits, Renderer};

use super::api::{Api, arguments, of_graph, query};
use super::failure::Failure;
use super::packed;
use super::query::{QUERY_BYTES_MAX, Query};
use super::rows::{Budget, Source, VALUES_MAX};
use super::table;

/// The most pixels of an image: 64 MB at four bytes each. Four 4K screens would be twice that.
const PIXELS_MAX: f64 = 16_777_216.0;
/// Bytes of a pixel, while it is painted and encoded.
const PIXEL_BYTES: u64 = 8;
/// Bytes of one value of a line, as a point of the scene.
const POINT_BYTES: u64 = 16;
/// The longest time in seconds for which an image may be cached.
const FRESH_MAX: u64 = 3600;

/// Shared by all requests.
#[derive(Clone)]
pub struct GraphState {
    api: Api,
    renderer: Arc<Renderer>,
    templates: Option<Arc<PathBuf>>,
}

impl GraphState {
    /// `templates` is the directory of saved graphs, if there is one.
    pub fn new(api: Api, templates: Option<PathBuf>) -> GraphState {
        GraphState { api, renderer: Arc::default(), templates: templates.map(Arc::new) }
    }
}

/// The routes.
pub fn router(state: GraphState) -> Router {
    Router::new()
        .route("/graph", get(by_query).post(by_form))
        .layer(DefaultBodyLimit::max(QUERY_BYTES_MAX))
        .with_state(state)
}

async fn by_query(
    State(state): State<GraphState>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    answer(&state, query(&uri)?, &headers).await
}

async fn by_form(
    State(state): State<GraphState>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    answer(&state, Query::parse(&body)?, &headers).await
}

async fn answer(state: &GraphState, mut query: Query, headers: &HeaderMap) -> Result<Response, Failure> {
    let describe = query.flag("describe")?;
    let words = match query.take("template") {
        Some(name) => {
            let directory = state.templates.as_deref();
            template::arguments(directory.map(PathBuf::as_path), &name, query)?
        }
        None => {
            let words = arguments(&mut query)?;
            query.finish()?;
            words
        }
    };
    respond(state, words, headers, describe).await
}

/// Draws the graph of these arguments.
///
/// # Errors
/// 4xx and 503, as `/graph`.
pub async fn draw(state: &GraphState, words: Vec<Vec<u8>>, headers: &HeaderMap) -> Result<Response, Failure> {
    respond(state, words, headers, false).await
}

async fn respond(
    state: &GraphState,
    words: Vec<Vec<u8>>,
    headers: &HeaderMap,
    describe: bool,
) -> Result<Response, Failure> {
    state
        .api
        .work
        .run(|| {
            let budget = Budget::new(&state.api.service.memory);
            let drawing = Drawing::new(state, &words, &budget)?;
            if describe { Ok(drawing.describe()) } else { drawing.image(state, headers, &budget) }
        })
        .await
}

/// A graph that is drawn but not rendered.
struct Drawing {
    picture: Picture,
    format: ImageFormat,
    /// Seconds until a new image can differ.
    fresh_seconds: u64,
}

impl Drawing {
    fn new(state: &GraphState, words: &[Vec<u8>], budget: &Budget) -> Result<Drawing, Failure> {
        let service = &state.api.service;
        let limits = Limits {
            values_max: VALUES_MAX,
            pixels_max: Some(PIXELS_MAX),
            deadline: Some(budget.deadline()),
        };
        // The first argument is the file, which is never written.
        let words: Vec<&[u8]> = std::iter::once(&b"-"[..]).chain(words.iter().map(Vec::as_slice)).collect();
        let graph = Graph::parse(&words, GraphContext::at(service.now()), limits).map_err(of_graph)?;
        if graph.daemon().is_some() {
            return Err(Failure::refused("a graph over HTTP cannot name a daemon"));
        }
        let data = graph.evaluate(&mut Source { service, budget }).map_err(of_graph)?;
        budget.hold(graph.value_count().saturating_mul(POINT_BYTES))?;
        let picture = graph.draw(&data, &state.renderer, true).map_err(of_graph)?;
        let fresh_seconds = graph.range().step.clamp(1, FRESH_MAX);
        Ok(Drawing { picture, format: graph.options().format, fresh_seconds })
    }

    /// What `graphv` prints, as JSON.
    fn describe(self) -> Response {
        let body = table::items(self.picture.report).to_string() + "\n";
        let caching = format!("private, max-age={}", self.fresh_seconds);
        let content = (header::CONTENT_TYPE, "application/json".to_string());
        ([content, (header::CACHE_CONTROL, caching)], body).into_response()
    }

    fn image(self, state: &GraphState, headers: &HeaderMap, budget: &Budget) -> Result<Response, Failure> {
        let content = match self.format {
            ImageFormat::Png => "image/png",
            ImageFormat::Svg => "image/svg+xml",
            ImageFormat::Pdf => "application/pdf",
            ImageFormat::Eps => "application/postscript",
            _ => return Err(Failure::refused("no image: ask /api/v1/xport for rows")),
        };
        let Some(scene) = &self.picture.scene else {
            return Err(Failure::refused("nothing to draw: give a LINE, an AREA or another element"));
        };
        if self.format == ImageFormat::Png {
            let pixels = scene.width * scene.height * (scene.zoom * scene.zoom).max(1.0);
            budget.hold(pixels as u64 * PIXEL_BYTES)?;
        }
        let image = state.renderer.paint(scene, self.format).map_err(|error| of_graph(error.into()))?;
        let tag = format!("\"{:016x}\"", xxhash_rust::xxh3::xxh3_64(&image));
        let caching = format!("private, max-age={}", self.fresh_seconds);
        let head = [(header::ETAG, tag.clone()), (header::CACHE_CONTROL, caching)];
        let known = headers.get(header::IF_NONE_MATCH);
        let unchanged = known.is_some_and(|known| {
            known.as_bytes().split(|&byte| byte == b',').any(|one| {
                let one = one.trim_ascii();
                one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == tag.as_bytes()
            })
        });
        if unchanged {
            return Ok((StatusCode::NOT_MODIFIED, head).into_response());
        }
        // Labels may contain markup; it must not be executed, even when an SVG is opened on its own.
        let safety = [
            (header::CONTENT_TYPE, content),
            (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        let response = (head, safety).into_response();
        Ok(match self.format {
            ImageFormat::Svg | ImageFormat::Eps => packed::pack(headers, response, image),
            _ => (response.into_parts().0, image).into_response(),
        })
    }
}
