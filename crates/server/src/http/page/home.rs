//! The first page, and the state of the daemon.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;

use super::figure::{Figure, Histories, SMALL};
use super::{Frame, Range, Site, answer};
use crate::http::api::graphs::{Mode, Selection, suggestions};
use crate::http::api::names::name_list;
use crate::http::failure::Failure;
use crate::status::Status;

/// Graphs on the first page.
const GRAPHS: usize = 8;
/// What of a host is shown first, by the beginnings of names.
const FIRST: [&str; 6] = ["cpu.rrd", "load.rrd", "memory.rrd", "interface-", "disk-", "swap.rrd"];

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    range: Range,
    figures: Vec<Figure>,
    place: String,
    /// This host is collected, and its first readings are yet to come.
    is_waiting: bool,
    status: Status,
    histories: Option<Histories>,
}

#[derive(Template)]
#[template(path = "status.html")]
struct StatusPage {
    frame: Frame,
    status: Status,
    histories: Option<Histories>,
    in_cluster: bool,
}

/// `GET /`
pub async fn home(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    let page = async {
        let mut query = crate::http::api::query(&uri)?;
        let now = site.api.service.now();
        // A machine that has just begun has nothing older.
        let range = Range::take_or(&mut query, "end-1h", "now", now)?;
        query.finish()?;
        site.api.work.run(|| home_page(&site, range)).await
    };
    answer(&headers, page.await)
}

fn home_page(site: &Site, range: Range) -> Result<HomePage, Failure> {
    let place = site.host.as_deref().unwrap_or_default().to_string();
    let names = first_names(site, &place)?;
    let figures = match names.is_empty() {
        true => Vec::new(),
        false => {
            let selection = Selection { names, left_out: 0 };
            let (graphs, _) = suggestions(&site.api, &selection, Mode::Each, GRAPHS * 4)?;
            let mut figures: Vec<Figure> = Vec::new();
            let mut shown: &[Vec<u8>] = &[];
            // One graph of each RRD is enough here.
            for graph in graphs.iter().filter(|graph| !graph.unit.is_empty()) {
                if figures.len() < GRAPHS && graph.names != shown {
                    shown = &graph.names;
                    figures.push(Figure::new(graph, &range, SMALL));
                }
            }
            figures
        }
    };
    let is_waiting = figures.is_empty() && !place.is_empty();
    let status = site.status.status();
    let histories = Histories::of(&site.api.service);
    Ok(HomePage { frame: Frame::new("home", "Home"), range, figures, place, is_waiting, status, histories })
}

/// The RRDs of this host, the most telling first; of any directory when this host is not collected.
fn first_names(site: &Site, place: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let list = name_list(&site.api.service)?;
    let directory = if place.is_empty() { Vec::new() } else { format!("{place}/").into_bytes() };
    let below = list.below(&directory);
    let mut names: Vec<(usize, &[u8])> = below
        .take(200)
        .filter_map(|index| {
            let name = list.name(index);
            let rest = &name[directory.len()..];
            let place = FIRST.iter().position(|first| rest.starts_with(first.as_bytes()));
            place.map(|place| (place, name))
        })
        .collect();
    names.sort();
    Ok(names.into_iter().take(GRAPHS).map(|(_, name)| name.to_vec()).collect())
}

/// `GET /status`
pub async fn status(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    let page = async {
        crate::http::api::query(&uri)?.finish()?;
        let page = || {
            let histories = Histories::of(&site.api.service);
            let in_cluster = site.api.service.node.get().is_some();
            let frame = Frame::new("status", "Status");
            Ok(StatusPage { frame, status: site.status.status(), histories, in_cluster })
        };
        site.api.work.run(page).await
    };
    answer(&headers, page.await)
}
