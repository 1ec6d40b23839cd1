//! One RRD: its graphs, its periods, its definition; and the same as files.

use ::graph::picture::options::ImageFormat;
use ::rrd::definition::{Definition, Ds, DsKind, Rra};
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use store::name::RrdName;
use suggest::Suggestion;

use super::figure::{Figure, LARGE, Size, form, picture};
use super::tree::duration;
use super::{Frame, Range, Site, answer};
use crate::http::api::graphs::{Mode, Selection, suggestions};
use crate::http::failure::Failure;
use crate::http::query::Query;
use crate::http::rows::{self, Budget};
use crate::http::{api, graph as drawing, percent};

/// The periods beside one another.
const PERIODS: [(&str, &str); 4] =
    [("Day", "end-1d"), ("Week", "end-1week"), ("Month", "end-1month"), ("Year", "end-1year")];
/// The size of their pictures.
const THUMBNAIL: Size = Size(240, 60);
/// Graphs of one page.
const GRAPHS: usize = 24;
/// The pictures that an RRD's URL may end in.
const PICTURES: [(&str, ImageFormat); 3] =
    [(".svg", ImageFormat::Svg), (".png", ImageFormat::Png), (".pdf", ImageFormat::Pdf)];

/// A period to change to.
struct Period {
    name: &'static str,
    link: String,
    light: String,
    dark: String,
}

/// A data source, for people.
struct Source {
    name: String,
    kind: &'static str,
    heartbeat: String,
    limits: String,
}

/// An archive, for people.
struct Archive {
    cf: &'static str,
    row: String,
    rows: u64,
    span: String,
}

#[derive(Template)]
#[template(path = "rrd.html")]
struct RrdPage {
    frame: Frame,
    range: Range,
    name: String,
    /// What its collector says that it is.
    title: Option<String>,
    /// The directory it is in.
    directory: String,
    /// The URL without its end.
    path: String,
    figures: Vec<Figure>,
    periods: Vec<Period>,
    step: String,
    updated: String,
    sources: Vec<Source>,
    archives: Vec<Archive>,
    /// Formats of files that are cargo features.
    has_pdf: bool,
    has_arrow: bool,
}

/// `GET /rrd/NAME`: a page; a file when `.svg`, `.png`, `.pdf`, `.csv`, `.json`, `.arrow` or `.rrd` follows the name
pub async fn rrd(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    let page = match respond(&site, &headers, &uri).await {
        Ok(Answer::File(response)) => return response,
        Ok(Answer::Page(page)) => Ok(*page),
        Err(failure) => Err(failure),
    };
    answer(&headers, page)
}

enum Answer {
    Page(Box<RrdPage>),
    File(Response),
}

async fn respond(site: &Site, headers: &HeaderMap, uri: &Uri) -> Result<Answer, Failure> {
    let mut query = crate::http::api::query(uri)?;
    let range = Range::take(&mut query, site.api.service.now())?;
    let encoded = uri.path().strip_prefix("/rrd/").unwrap_or_default();
    let path =
        percent::decode(encoded.as_bytes()).ok_or_else(|| Failure::bad("the name is not percent-encoded"))?;
    for (end, format) in PICTURES {
        if let Some(stem) = path.strip_suffix(end.as_bytes())
            && let Some(name) = find(site, stem)
        {
            let words = picture_words(site, &name, &range, format, query).await?;
            return drawing::draw(&site.graphs, words, headers).await.map(Answer::File);
        }
    }
    for (end, format) in [(".csv", "csv"), (".json", "json"), (".arrow", "arrow")] {
        if let Some(stem) = path.strip_suffix(end.as_bytes())
            && let Some(name) = find(site, stem)
        {
            let graph = suggested(site, &name, &mut query).await?;
            query.finish()?;
            let words = exports(&graph.arguments);
            let query = format!("format={format}&{}&{}", range.query(), form("arg", &words));
            return api::export(&site.api, Query::parse(query.as_bytes())?).await.map(Answer::File);
        }
    }
    if path.ends_with(b".rrd")
        && let Some(name) = find(site, &path)
    {
        query.finish()?;
        return site.api.work.run(|| whole(site, &name)).await.map(Answer::File);
    }
    query.finish()?;
    let name = find(site, &path).ok_or_else(|| missing(site, &path))?;
    site.api.work.run(|| rrd_page(site, range, &name)).await.map(Box::new).map(Answer::Page)
}

/// The RRD that a URL means: with or without `.rrd`.
fn find(site: &Site, path: &[u8]) -> Option<RrdName> {
    let service = &site.api.service;
    let known =
        |path: &[u8]| rows::name(service, path).ok().filter(|name| service.engine.status(name).is_ok());
    known(&[path, b".rrd"].concat()).or_else(|| known(path))
}

fn missing(site: &Site, path: &[u8]) -> Failure {
    let name = String::from_utf8_lossy(path);
    let text = format!("There is no RRD called {name}. The search box finds it by a part of its name.");
    Failure::new(StatusCode::NOT_FOUND, text).similar_to(&site.api.service, path)
}

/// The graph that `graph=N` asks for, from 0.
async fn suggested(site: &Site, name: &RrdName, query: &mut Query) -> Result<Suggestion, Failure> {
    let number = query.number("graph", 0)? as usize;
    let mut graphs = site.api.work.run(|| graphs_of(site, name)).await?;
    let count = graphs.len();
    match number < count {
        true => Ok(graphs.swap_remove(number)),
        false => Err(Failure::bad(format!("graph={number}: there are {count}, from 0"))),
    }
}

fn graphs_of(site: &Site, name: &RrdName) -> Result<Vec<Suggestion>, Failure> {
    let selection = Selection { names: vec![name.as_bytes().to_vec()], left_out: 0 };
    Ok(suggestions(&site.api, &selection, Mode::Each, GRAPHS)?.0)
}

async fn picture_words(
    site: &Site,
    name: &RrdName,
    range: &Range,
    format: ImageFormat,
    mut query: Query,
) -> Result<Vec<Vec<u8>>, Failure> {
    let graph = suggested(site, name, &mut query).await?;
    let width = query.number("width", 800)?.to_string();
    let height = query.number("height", 240)?.to_string();
    query.finish()?;
    let format = match format {
        ImageFormat::Svg => "SVG",
        ImageFormat::Pdf => "PDF",
        _ => "PNG",
    };
    let options = [
        "--imgformat",
        format,
        "--start",
        &range.start,
        "--end",
        &range.end,
        "--width",
        &width,
        "--height",
        &height,
    ];
    Ok(options.iter().map(|word| word.as_bytes().to_vec()).chain(graph.arguments).collect())
}

/// The values of a graph's lines and areas as XPORTs, and what they are computed from.
fn exports(arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    for word in arguments {
        let text = String::from_utf8_lossy(word);
        let (kind, rest) = text.split_once(':').unwrap_or((&text, ""));
        match kind {
            "DEF" | "CDEF" | "VDEF" => words.push(word.clone()),
            _ if kind.starts_with("LINE") || kind == "AREA" => {
                let (variable, rest) = rest.split_once('#').unwrap_or((rest, ""));
                // What has no colour or no legend is a help for others, as a band is.
                let legend = rest
                    .split_once(':')
                    .map_or("", |(_, legend)| legend)
                    .trim_end_matches(":STACK")
                    .trim_end();
                if !legend.is_empty() {
                    words.push(format!("XPORT:{variable}:{legend}").into_bytes());
                }
            }
            _ => {}
        }
    }
    words
}

/// The RRD as a file of RRDtool's format.
fn whole(site: &Site, name: &RrdName) -> Result<Response, Failure> {
    let service = &site.api.service;
    let failed = |error| Failure::of_store(name.as_bytes(), &error);
    let definition = service.engine.status(name).map_err(failed)?.definition;
    let budget = Budget::new(&service.memory);
    let cells: u64 = definition.rra.iter().map(|rra| rra.row_count * definition.ds.len() as u64).sum();
    // The rows, and the file.
    budget.hold(cells.saturating_mul(16))?;
    let current_rows = service.engine.snapshot(name).map_err(failed)?.current_rows;
    let rrd = service.engine.read(name).map_err(failed)?;
    let file = ::rrd::codec::file::encode(&rrd, &current_rows).map_err(Failure::refused)?;
    let last = name.as_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let disposition = format!("attachment; filename*=UTF-8''{}", percent::encode(last));
    let head =
        [(header::CONTENT_TYPE, "application/octet-stream"), (header::CONTENT_DISPOSITION, &disposition)];
    Ok((head, file).into_response())
}

fn rrd_page(site: &Site, range: Range, name: &RrdName) -> Result<RrdPage, Failure> {
    let failed = |error| Failure::of_store(name.as_bytes(), &error);
    let status = site.api.service.engine.status(name).map_err(failed)?;
    let graphs = graphs_of(site, name)?;
    let stem = name.as_bytes().strip_suffix(b".rrd").unwrap_or(name.as_bytes());
    let path = format!("/rrd/{}", percent::encode(stem));
    let period = |(period, start): &(&'static str, &str)| {
        let range = Range { start: start.to_string(), end: range.end.clone() };
        let words = graphs.first().map(|graph| graph.arguments.as_slice()).unwrap_or_default();
        let light = picture(words, &range, THUMBNAIL, "SVG", &["--only-graph"]);
        let dark = picture(words, &range, THUMBNAIL, "SVG", &["--only-graph", "--theme", "dark"]);
        Period { name: period, link: format!("{path}?{}", range.query()), light, dark }
    };
    let unit = f64::from(status.definition.units_per_second.max(1));
    let age = site.api.service.now() - (status.last_update.whole as f64 / unit) as i64;
    let from = stem.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    Ok(RrdPage {
        frame: Frame::new("rrd", String::from_utf8_lossy(stem)),
        name: String::from_utf8_lossy(stem).into_owned(),
        title: site.api.service.collecting.labels.title(name.as_bytes()),
        directory: percent::encode(&stem[..from]),
        periods: PERIODS.iter().map(period).collect(),
        figures: graphs.iter().map(|graph| Figure::new(graph, &range, LARGE)).collect(),
        step: seconds(status.definition.step as f64 / unit),
        updated: match status.is_updated {
            true => format!("updated {} ago", duration(age)),
            false => "never updated".to_string(),
        },
        sources: sources(&status.definition, unit),
        archives: archives(&status.definition, unit),
        has_pdf: cfg!(feature = "pdf"),
        has_arrow: cfg!(feature = "arrow"),
        path,
        range,
    })
}

/// The limits of a data source; NaN is none.
fn limits(min: f64, max: f64) -> String {
    match (min.is_nan(), max.is_nan()) {
        (true, true) => "none".to_string(),
        (true, false) => format!("up to {max}"),
        (false, true) => format!("from {min}"),
        (false, false) => format!("{min} to {max}"),
    }
}

fn sources(definition: &Definition, unit: f64) -> Vec<Source> {
    let source = |ds: &Ds| match ds.kind {
        DsKind::Fed { ds_type, heartbeat, min, max } => Source {
            name: ds.name.clone(),
            kind: ds_type.name(),
            heartbeat: seconds(heartbeat as f64 / unit),
            limits: limits(min, max),
        },
        _ => {
            Source { name: ds.name.clone(), kind: "COMPUTE", heartbeat: String::new(), limits: String::new() }
        }
    };
    definition.ds.iter().map(source).collect()
}

fn archives(definition: &Definition, unit: f64) -> Vec<Archive> {
    let archive = |rra: &Rra| {
        let row = definition.step as f64 / unit * rra.pdp_per_row as f64;
        Archive {
            cf: rra.cf.cf().name(),
            row: seconds(row),
            rows: rra.row_count,
            span: duration((row * rra.row_count as f64) as i64),
        }
    };
    definition.rra.iter().map(archive).collect()
}

/// A length of time; fractions of a second stay.
fn seconds(seconds: f64) -> String {
    if seconds.fract() == 0.0 { duration(seconds as i64) } else { format!("{seconds} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_graph_shows_is_exported() {
        let words = [
            "--title",
            "x",
            "DEF:a=f:b:AVERAGE",
            "CDEF:c=a,8,*",
            "AREA:n0",
            "AREA:band0#00000030::STACK",
            "LINE1.5:c#ff0000:in  ",
            "AREA:a#00ff00c0:out:STACK",
            "GPRINT:c:%lf",
        ];
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let got: Vec<String> =
            exports(&words).into_iter().map(|word| String::from_utf8(word).unwrap()).collect();
        assert_eq!(got, ["DEF:a=f:b:AVERAGE", "CDEF:c=a,8,*", "XPORT:c:in", "XPORT:a:out"]);
    }
}
