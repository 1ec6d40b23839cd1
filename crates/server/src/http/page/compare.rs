//! Several RRDs beside or on top of one another, and the graph language by hand.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use suggest::Together;

use super::figure::{Figure, LARGE, SMALL};
use super::{Frame, Range, Site, answer};
use crate::http::api::graphs::{Mode, RRDS_MAX, Wanted, mode, suggestions};
use crate::http::failure::Failure;

/// Graphs of one page.
const GRAPHS: usize = 48;

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparePage {
    frame: Frame,
    range: Range,
    names: Vec<String>,
    glob: String,
    mode: &'static str,
    figures: Vec<Figure>,
    more: bool,
    /// What went wrong, while the form stays.
    failure: Option<String>,
}

#[derive(Template)]
#[template(path = "expression.html")]
struct ExpressionPage {
    frame: Frame,
    range: Range,
    text: String,
    figures: Vec<Figure>,
}

/// `GET /compare`
pub async fn compare(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    let page = async {
        let mut query = crate::http::api::query(&uri)?;
        let range = Range::take(&mut query, site.api.service.now())?;
        let mode = mode(&mut query)?;
        let wanted = Wanted::take(&mut query);
        query.finish()?;
        site.api.work.run(|| Ok(compare_page(&site, range, mode, wanted))).await
    };
    answer(&headers, page.await)
}

fn compare_page(site: &Site, range: Range, mode: Mode, wanted: Wanted) -> ComparePage {
    let text = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
    let names = wanted.names.iter().map(text).collect();
    let glob = wanted.glob.as_ref().map(text).unwrap_or_default();
    let made = wanted
        .selection(&site.api.service, RRDS_MAX)
        .and_then(|selection| suggestions(&site.api, &selection, mode, GRAPHS));
    let (graphs, more, failure) = match made {
        Ok((graphs, more)) => (graphs, more, None),
        Err(failure) => (Vec::new(), false, Some(failure.to_string())),
    };
    let size = if mode == Mode::Each { SMALL } else { LARGE };
    let mode = match mode {
        Mode::Each => "each",
        Mode::Together(Together::Overlay) => "overlay",
        Mode::Together(Together::Stack) => "stack",
        Mode::Together(Together::Sum) => "sum",
    };
    let figures = graphs.iter().map(|graph| Figure::new(graph, &range, size)).collect();
    ComparePage { frame: Frame::new("compare", "Compare"), range, names, glob, mode, figures, more, failure }
}

/// Arguments that were typed, one in each line.
pub fn lines(texts: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let lines = texts.iter().flat_map(|text| text.split(|&byte| byte == b'\n'));
    lines.map(|line| line.trim_ascii().to_vec()).filter(|line| !line.is_empty()).collect()
}

/// `GET /expression`
pub async fn expression(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    let page = (|| {
        let mut query = crate::http::api::query(&uri)?;
        let range = Range::take(&mut query, site.api.service.now())?;
        let arguments = lines(query.take_all("arg"));
        query.finish()?;
        let text: Vec<_> = arguments.iter().map(|word| String::from_utf8_lossy(word)).collect();
        let text = text.join("\n");
        let figures = match arguments.is_empty() {
            true => Vec::new(),
            false => vec![Figure::of_arguments("Graph", arguments, &range, LARGE)],
        };
        Ok(ExpressionPage { frame: Frame::new("expression", "Expression"), text, figures, range })
    })();
    answer(&headers, page.map_err(|failure: Failure| failure))
}
