//! Saved views, and the wall that shows one after the other.

use askama::Template;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::compare::lines;
use super::figure::{Figure, LARGE, SMALL, form};
use super::{Frame, Range, Site, answer};
use crate::http::api::graphs::{Mode, RRDS_MAX, Wanted, mode_of, suggestions};
use crate::http::api::views::add;
use crate::http::failure::Failure;
use crate::http::query::Query;
use crate::http::views::{Saved, View, ViewGraph};

/// Graphs that RRDs suggest, of one group.
const GRAPHS: usize = 24;
/// Seconds for which the wall shows a view, and the fewest.
const WALL_SECONDS: u64 = 30;
const WALL_SECONDS_MIN: u64 = 2;

#[derive(Template)]
#[template(path = "views.html")]
struct ViewsPage {
    frame: Frame,
    views: Vec<Listed>,
    /// Why none can be saved.
    unsaved: Option<String>,
}

/// A view in the list of all.
struct Listed {
    name: String,
    title: String,
    graphs: String,
}

#[derive(Template)]
#[template(path = "view.html")]
struct ViewPage {
    frame: Frame,
    range: Range,
    name: String,
    title: String,
    text: String,
    groups: Vec<Group>,
    /// The text of its file, and the tag of the text that is in the file.
    file: Saved,
    /// Why it cannot be saved.
    unsaved: Option<String>,
    /// Why its text is no view.
    failure: Option<String>,
    /// On a wall: after so many seconds comes this URL.
    wall: Option<(u64, String)>,
}

/// Graphs under one title.
struct Group {
    title: String,
    text: String,
    figures: Vec<Figure>,
    class: &'static str,
    failure: Option<String>,
}

/// `GET /views`
pub async fn views(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    let page = async {
        crate::http::api::query(&uri)?.finish()?;
        let views = &site.api.views;
        let unsaved = views.may_save(&headers).err().map(|failure| failure.to_string());
        let views = site
            .api
            .work
            .run(|| Ok(views.names().into_iter().map(|name| listed(&site, name)).collect()))
            .await?;
        Ok(ViewsPage { frame: Frame::new("views", "Views"), views, unsaved })
    };
    answer(&headers, page.await)
}

fn listed(site: &Site, name: String) -> Listed {
    match site.api.views.view(&name) {
        Ok(view) => Listed { title: title(&view, &name), graphs: view.graph.len().to_string(), name },
        Err(_) => Listed { title: name.clone(), graphs: "its file has an error".to_string(), name },
    }
}

fn title(view: &View, name: &str) -> String {
    if view.title.is_empty() { name.to_string() } else { view.title.clone() }
}

/// `GET /view/NAME`
pub async fn view(
    State(site): State<Site>,
    Path(name): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let page = async {
        let query = crate::http::api::query(&uri)?;
        site.api.work.run(|| saved_page(&site, &name, &headers, query)).await
    };
    answer(&headers, page.await)
}

/// `POST /views`: adds a graph to the view that the form names
pub async fn add_graph(State(site): State<Site>, headers: HeaderMap, body: Bytes) -> Response {
    let done = async {
        let mut form = Query::parse(&body)?;
        let name = form.text("view").unwrap_or_default();
        let form = form.replace("arg", lines);
        site.api.work.run(|| add(&site.api, &name, form, &headers)).await?;
        Ok(name)
    };
    match done.await {
        Ok(name) => see(&name),
        Err(failure) => answer(&headers, Err::<ViewsPage, Failure>(failure)),
    }
}

/// `POST /view/NAME`: the text of its file
pub async fn save(
    State(site): State<Site>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let page = async {
        let mut form = Query::parse(&body)?;
        // As files have it, not as forms do.
        let text = form.text("file").unwrap_or_default().replace("\r\n", "\n");
        let was = form.text("was");
        form.finish()?;
        site.api.views.may_save(&headers)?;
        site.api
            .work
            .run(|| {
                let failure = match site.api.views.save(&name, &text, was.as_deref()) {
                    Ok(change) => {
                        site.api.service.operated(change.what(), Some(&name));
                        return Ok(None);
                    }
                    Err(failure) => failure,
                };
                // What was typed is not lost.
                let file = Saved { text: text.clone(), tag: was.clone().unwrap_or_default() };
                view_page(
                    &site,
                    &name,
                    &headers,
                    file,
                    Some(failure),
                    Range { start: "end-1d".into(), end: "now".into() },
                )
                .map(Some)
            })
            .await
    };
    match page.await {
        Ok(None) if site.api.views.saved(&name).is_ok() => see(&name),
        Ok(None) => (StatusCode::SEE_OTHER, [(header::LOCATION, "/views")]).into_response(),
        Ok(Some(page)) => answer(&headers, Ok(page)),
        Err(failure) => answer(&headers, Err::<ViewPage, Failure>(failure)),
    }
}

/// `GET /wall?view=NAME&view=NAME&seconds=30`: one view after the other; without names, all
pub async fn wall(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    let page = async {
        let mut query = crate::http::api::query(&uri)?;
        let seconds = query.number("seconds", WALL_SECONDS)?.max(WALL_SECONDS_MIN);
        let at = query.number("at", 0)? as usize;
        let asked = query.take_all("view");
        site.api
            .work
            .run(|| {
                let asked: Vec<String> =
                    asked.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
                let names = if asked.is_empty() { site.api.views.names() } else { asked.clone() };
                let missing =
                    || Failure::new(StatusCode::NOT_FOUND, "There is no view to show. Save one first.");
                let name = names.get(at % names.len().max(1)).ok_or_else(missing)?;
                let next =
                    format!("/wall?seconds={seconds}&at={}&{}", (at + 1) % names.len(), form("view", &asked));
                let page = saved_page(&site, name, &headers, query)?;
                Ok(ViewPage {
                    frame: Frame::new("wall", page.title.clone()),
                    wall: Some((seconds, next)),
                    ..page
                })
            })
            .await
    };
    answer(&headers, page.await)
}

fn see(name: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/view/{name}"))]).into_response()
}

/// The page of a view in its own range, or in that of the request.
fn saved_page(site: &Site, name: &str, headers: &HeaderMap, mut query: Query) -> Result<ViewPage, Failure> {
    let file = site.api.views.saved(name)?;
    let (view, failure) = match View::parse(&file.text) {
        Ok(view) => (view, None),
        Err(failure) => (View::default(), Some(failure)),
    };
    let range = Range::take_or(&mut query, &view.start, &view.end, site.api.service.now())?;
    query.finish()?;
    view_page(site, name, headers, file, failure, range)
}

fn view_page(
    site: &Site,
    name: &str,
    headers: &HeaderMap,
    file: Saved,
    failure: Option<Failure>,
    range: Range,
) -> Result<ViewPage, Failure> {
    let view = View::parse(&file.text).unwrap_or_default();
    let title = title(&view, name);
    Ok(ViewPage {
        frame: Frame::new("view", title.clone()),
        groups: view.graph.iter().map(|graph| group(site, graph, &range)).collect(),
        name: name.to_string(),
        title,
        text: view.text,
        range,
        file,
        unsaved: site.api.views.may_save(headers).err().map(|failure| failure.to_string()),
        failure: failure.map(|failure| failure.to_string()),
        wall: None,
    })
}

fn group(site: &Site, graph: &ViewGraph, range: &Range) -> Group {
    let (figures, class, failure) = match figures(site, graph, range) {
        Ok((figures, class)) => (figures, class, None),
        Err(failure) => (Vec::new(), "large", Some(failure.to_string())),
    };
    Group { title: graph.title.clone(), text: graph.text.clone(), figures, class, failure }
}

/// The graphs of a group, and how large they are.
fn figures(site: &Site, graph: &ViewGraph, range: &Range) -> Result<(Vec<Figure>, &'static str), Failure> {
    let bytes = |text: &String| text.clone().into_bytes();
    let mut own = Vec::new();
    for (option, value) in [("--start", &graph.start), ("--end", &graph.end)] {
        own.extend(value.iter().flat_map(|value| [option.as_bytes().to_vec(), bytes(value)]));
    }
    if !graph.arg.is_empty() {
        own.extend(graph.arg.iter().map(bytes));
        return Ok((vec![Figure::of_arguments(&graph.title, own, range, LARGE)], "large"));
    }
    let wanted = Wanted {
        names: graph.name.iter().map(bytes).collect(),
        glob: graph.glob.as_ref().map(bytes),
        directory: graph.directory.as_ref().map(bytes),
    };
    let mode = mode_of(graph.mode.as_deref())?;
    let selection = wanted.selection(&site.api.service, RRDS_MAX)?;
    let (mut graphs, _) = suggestions(&site.api, &selection, mode, GRAPHS)?;
    let (size, class) =
        if mode == Mode::Each && graphs.len() > 1 { (SMALL, "small") } else { (LARGE, "large") };
    for graph in &mut graphs {
        graph.arguments.splice(0..0, own.iter().cloned());
    }
    Ok((graphs.iter().map(|graph| Figure::new(graph, range, size)).collect(), class))
}
