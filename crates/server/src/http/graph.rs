//! `GET /graph`: what `rrdtool graph` draws, from the same arguments, within bounds.
//!
//! Arguments come as repeated `arg=`, or from a template of the operator's (`template`). Nothing is run and no file
//! is written; RRDs are the store's.

mod template;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use graph::eval::evaluate;
use graph::language::{Script, Setting};
use graph::missing::MissingAsUnknown;
use graph::picture::compose::{Input, Picture, draw};
use graph::picture::options::ImageFormat;
use graph::picture::options::parse::{Asked, parse};
use graph::picture::scene::Scene;
use graph::plan::Frame;
use graph::print::TimeFormat;
use paint::ImageError;
use paint::Kit;
use rrd::rpn::Surroundings;
use rrd::when::calendar::{Calendar, Utc};
use words::times::Clock;

use super::api::{Api, arguments, of_eval, query};
use super::failure::Failure;
use super::query::{QUERY_BYTES_MAX, Query};
use super::rows::{Budget, Counted, Source, VALUES_MAX};
use super::table;

/// Most pixels of an image: 64 MB of them at four bytes. Four screens of 4K would be twice that.
const PIXELS_MAX: f64 = 16_777_216.0;
/// Longest time that a copy of an image is used for, in seconds.
const FRESH_MAX: u64 = 3600;

/// What drawing needs beside the store: fonts, and what painters leave for the next one.
#[derive(Default)]
struct Studio {
    fonts: paint::Fonts,
    kits: Mutex<Vec<Kit>>,
}

/// Shared by all requests.
#[derive(Clone)]
struct Drawing {
    api: Api,
    studio: Arc<Studio>,
    templates: Option<Arc<PathBuf>>,
}

/// The routes. `templates` is the directory of saved graphs, if there is one.
pub fn router(api: Api, templates: Option<PathBuf>) -> Router {
    let drawing = Drawing { api, studio: Arc::default(), templates: templates.map(Arc::new) };
    Router::new()
        .route("/graph", get(by_query).post(by_form))
        .layer(DefaultBodyLimit::max(QUERY_BYTES_MAX))
        .with_state(drawing)
}

async fn by_query(State(drawing): State<Drawing>, uri: Uri, headers: HeaderMap) -> Result<Response, Failure> {
    answer(&drawing, query(&uri)?, &headers).await
}

async fn by_form(
    State(drawing): State<Drawing>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    answer(&drawing, Query::parse(&body)?, &headers).await
}

async fn answer(drawing: &Drawing, mut query: Query, headers: &HeaderMap) -> Result<Response, Failure> {
    let describe = query.flag("describe")?;
    let words = match query.take("template") {
        Some(name) => {
            let directory = drawing.templates.as_deref();
            template::arguments(directory.map(PathBuf::as_path), &name, query)?
        }
        None => {
            let words = arguments(&mut query)?;
            query.finish()?;
            words
        }
    };
    let known = headers.get(header::IF_NONE_MATCH).map(|tag| tag.as_bytes().to_vec());
    drawing
        .api
        .work
        .run(|| {
            let drawn = Drawn::of(drawing, &words)?;
            if describe { Ok(drawn.describe()) } else { drawn.image(drawing, known.as_deref()) }
        })
        .await
}

/// A graph, drawn but not painted.
struct Drawn {
    picture: Picture,
    format: ImageFormat,
    /// Seconds until a new image can differ.
    fresh_seconds: u64,
}

/// The time of a request, and whose days are counted.
struct Moment {
    now: i64,
    utc: bool,
}

impl Clock for Moment {
    fn now(&self) -> i64 {
        self.now
    }

    fn calendar(&self) -> &dyn Calendar {
        if self.utc { &Utc } else { &localtime::Local }
    }
}

/// Dates of this host, or of Greenwich.
struct Dates {
    utc: bool,
}

impl TimeFormat for Dates {
    fn strftime(&self, format: &[u8], time: i64) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;
        let format = std::ffi::OsStr::from_bytes(format);
        let text =
            if self.utc { localtime::strftime_utc(format, time) } else { localtime::strftime(format, time) };
        text.unwrap_or_default()
    }
}

impl Drawn {
    fn of(drawing: &Drawing, words: &[Vec<u8>]) -> Result<Drawn, Failure> {
        let service = &drawing.api.service;
        let now = service.now();
        // The file's place: it is never written.
        let words: Vec<&[u8]> = std::iter::once(&b"-"[..]).chain(words.iter().map(Vec::as_slice)).collect();
        let read = |utc: bool| parse(&words, &Moment { now, utc }, None).map_err(Failure::bad);
        let mut asked = read(false)?;
        if asked.options.utc {
            asked = read(true)?;
        }
        let Asked { options, start, end, step, daemon, elements, .. } = asked;
        check_shapes(&elements, options.width)?;
        if daemon.is_some() {
            return Err(Failure::refused("a graph over HTTP cannot name a daemon"));
        }
        let zoom = if options.zoom.is_finite() { options.zoom.max(1.0) } else { 1.0 };
        check_size(f64::from(options.width), f64::from(options.height), zoom)?;
        let moment = Moment { now, utc: options.utc };
        let calendar = moment.calendar();
        let frame = Frame::new(start, end, step, u64::from(options.width));
        let script = Script::parse(&elements, Setting { start, end, now, calendar }).map_err(Failure::bad)?;
        let budget = Budget::default();
        let mut source = Source { service, budget: &budget };
        let surroundings = Surroundings { now, first_weekday: 0, calendar };
        let data = if options.missing_is_nan {
            let mut rows = MissingAsUnknown::new(&mut source, &script);
            evaluate(&script, frame, &mut Counted { rows: &mut rows, budget: &budget }, &surroundings)
        } else {
            evaluate(&script, frame, &mut source, &surroundings)
        };
        let data = data.map_err(of_eval)?;
        budget.check_time()?;
        let input = Input {
            script: &script,
            frame,
            data: &data,
            options: &options,
            typesetter: &drawing.studio.fonts,
            times: &Dates { utc: options.utc },
            calendar,
            first_weekday: 0,
            painted: true,
        };
        let picture = draw(&input).map_err(Failure::refused)?;
        let (width, height) = picture.size;
        check_size(width as f64, height as f64, zoom)?;
        budget.check_time()?;
        Ok(Drawn { picture, format: options.format, fresh_seconds: frame.step.clamp(1, FRESH_MAX) })
    }

    /// What `graphv` tells, as JSON.
    fn describe(self) -> Response {
        let body = table::items(self.picture.report).to_string() + "\n";
        let caching = format!("private, max-age={}", self.fresh_seconds);
        let content = (header::CONTENT_TYPE, "application/json".to_string());
        ([content, (header::CACHE_CONTROL, caching)], body).into_response()
    }

    fn image(self, drawing: &Drawing, known: Option<&[u8]>) -> Result<Response, Failure> {
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
        let image = drawing.studio.paint(scene, self.format)?;
        let tag = format!("\"{:016x}\"", xxhash_rust::xxh3::xxh3_64(&image));
        let caching = format!("private, max-age={}", self.fresh_seconds);
        let headers = [(header::ETAG, tag.clone()), (header::CACHE_CONTROL, caching)];
        let unchanged = known.is_some_and(|known| {
            known.split(|&byte| byte == b',').any(|one| {
                let one = one.trim_ascii();
                one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == tag.as_bytes()
            })
        });
        if unchanged {
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
        // A picture is a picture: what a label says is no script, even where an SVG is opened by itself.
        let safety = [
            (header::CONTENT_TYPE, content),
            (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        Ok((headers, safety, image).into_response())
    }
}

/// What is drawn needs a value for each column of each shape.
///
/// # Errors
/// 413 when those would be too many.
fn check_shapes(elements: &[&[u8]], width: u32) -> Result<(), Failure> {
    let values = u64::from(width).saturating_mul(elements.len() as u64);
    if values <= VALUES_MAX {
        return Ok(());
    }
    Err(Failure::too_much(format!("{} elements in {width} columns are too many", elements.len())))
}

/// # Errors
/// 413 when an image would be too large.
fn check_size(width: f64, height: f64, zoom: f64) -> Result<(), Failure> {
    let pixels = width * zoom * height * zoom;
    if pixels <= PIXELS_MAX {
        return Ok(());
    }
    Err(Failure::too_much(format!("an image of {width}x{height} pixels times {zoom} is too large")))
}

impl Studio {
    fn paint(&self, scene: &Scene, format: ImageFormat) -> Result<Vec<u8>, Failure> {
        // Each painter takes what others have left along, and brings it back.
        let lock = || self.kits.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kit = lock().pop().unwrap_or_default();
        let image = paint::image(scene, format, &mut kit);
        lock().push(kit);
        image.map_err(|error| match error {
            ImageError::TooBig(error) => Failure::too_much(error),
            error => Failure::refused(error),
        })
    }
}
