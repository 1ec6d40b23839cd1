//! Directories.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;

use super::figure::{Figure, SMALL, form};
use super::{Frame, Range, Site, answer};
use crate::http::api::graphs::{Mode, Selection, suggestions};
use crate::http::api::names::{LastRow, directory, name_list};
use crate::http::failure::Failure;
use crate::http::percent;
use crate::http::rows::Budget;
use crate::name_index::Child;

/// Entries of one page.
const ENTRIES: usize = 200;
/// A directory with more RRDs shows no graphs: they would be an arbitrary few.
const RRDS_WITH_GRAPHS: usize = 60;
/// Graphs of one page.
const GRAPHS: usize = 24;

/// An entry of a directory, or what a search found.
pub struct Entry {
    /// Its whole name.
    pub name: String,
    /// The last part of it.
    pub short: String,
    /// What its collector says that it is.
    pub title: Option<String>,
    /// Where it leads.
    pub link: String,
    /// RRDs below a directory; `None`: it is an RRD.
    pub count: Option<usize>,
    /// Seconds since the last update, where one is known.
    pub age: Option<i64>,
    /// The newest values, as text.
    pub values: String,
}

impl Entry {
    /// A directory of `count` RRDs; `name` ends with a slash.
    pub fn directory(name: &[u8], count: usize) -> Entry {
        let plain = name.strip_suffix(b"/").unwrap_or(name);
        Entry {
            name: String::from_utf8_lossy(plain).into_owned(),
            short: format!("{}/", last_part(plain)),
            title: None,
            link: format!("/tree/{}/", percent::encode(plain)),
            count: Some(count),
            age: None,
            values: String::new(),
        }
    }

    /// An RRD.
    pub fn rrd(site: &Site, budget: &Budget, name: &[u8]) -> Entry {
        let last = LastRow::of(&site.api.service, budget, name);
        let now = site.api.service.now();
        let stem = name.strip_suffix(b".rrd").unwrap_or(name);
        let known = |last: &LastRow| {
            let known = last.values.iter().filter(|(_, _, value)| !value.is_nan());
            let texts: Vec<String> =
                known.take(4).map(|(ds, _, value)| format!("{ds} {}", short(*value))).collect();
            texts.join("  ")
        };
        Entry {
            name: String::from_utf8_lossy(name).into_owned(),
            short: last_part(stem),
            title: site.api.service.collecting.labels.title(name),
            link: format!("/rrd/{}", percent::encode(stem)),
            count: None,
            age: last.as_ref().map(|last| now - last.update as i64),
            values: last.as_ref().map(known).unwrap_or_default(),
        }
    }

    /// The age for people.
    pub fn age_text(&self) -> String {
        match self.age {
            None => String::new(),
            Some(age) => duration(age),
        }
    }
}

/// Seconds for people.
pub fn duration(seconds: i64) -> String {
    match seconds {
        ..0 => "in the future".to_string(),
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn last_part(name: &[u8]) -> String {
    let from = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    String::from_utf8_lossy(&name[from..]).into_owned()
}

/// A value in few letters: `12.3 M`.
pub fn short(value: f64) -> String {
    let size = value.abs();
    let (factor, letter) = match size {
        _ if size >= 1e12 => (1e-12, " T"),
        _ if size >= 1e9 => (1e-9, " G"),
        _ if size >= 1e6 => (1e-6, " M"),
        _ if size >= 1e3 => (1e-3, " k"),
        _ => (1.0, ""),
    };
    let scaled = value * factor;
    let decimals = if scaled.fract() == 0.0 || scaled.abs() >= 100.0 { 0 } else { 2 };
    format!("{scaled:.decimals$}{letter}")
}

/// A directory above the shown one.
struct Above {
    name: String,
    link: String,
}

#[derive(Template)]
#[template(path = "tree.html")]
struct TreePage {
    frame: Frame,
    range: Range,
    above: Vec<Above>,
    name: String,
    count: usize,
    entries: Vec<Entry>,
    next: Option<String>,
    figures: Vec<Figure>,
}

/// `GET /tree/DIRECTORY/`
pub async fn tree(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    let page = async {
        let mut query = crate::http::api::query(&uri)?;
        let range = Range::take(&mut query, site.api.service.now())?;
        let after = query.take("after").unwrap_or_default();
        query.finish()?;
        let encoded = uri.path().strip_prefix("/tree").unwrap_or_default();
        let path = percent::decode(encoded.as_bytes())
            .ok_or_else(|| Failure::bad("the name of the directory is not percent-encoded"))?;
        site.api.work.run(|| tree_page(&site, range, &directory(&path), &after)).await
    };
    answer(&headers, page.await)
}

fn tree_page(site: &Site, range: Range, directory: &[u8], after: &[u8]) -> Result<TreePage, Failure> {
    let list = name_list(&site.api.service)?;
    let page = list.page(directory, after, ENTRIES);
    if page.count == 0 && !directory.is_empty() {
        let text = format!("There is no directory called {}.", String::from_utf8_lossy(directory));
        return Err(Failure::new(StatusCode::NOT_FOUND, text).similar_to(&site.api.service, directory));
    }
    let budget = Budget::new(&site.api.service.memory);
    let entry = |child: &Child<'_>| match child {
        Child::Directory(name, count) => Entry::directory(name, *count),
        Child::Rrd(name) => Entry::rrd(site, &budget, name),
    };
    let entries: Vec<Entry> = page.children.iter().map(entry).collect();
    let next = page.children.last().filter(|_| page.more);
    let next = next.map(|child| format!("?{}&{}", form("after", &[child.name()]), range.query()));
    let figures = match page.count {
        1..=RRDS_WITH_GRAPHS if !directory.is_empty() => {
            let names = list.below(directory).map(|index| list.name(index).to_vec()).collect();
            let (graphs, _) = suggestions(&site.api, &Selection { names, left_out: 0 }, Mode::Each, GRAPHS)?;
            graphs.iter().map(|graph| Figure::new(graph, &range, SMALL)).collect()
        }
        _ => Vec::new(),
    };
    let name = String::from_utf8_lossy(directory).into_owned();
    let title = if name.is_empty() { "All RRDs".to_string() } else { name.clone() };
    Ok(TreePage {
        frame: Frame::new("tree", title),
        above: above(directory),
        count: page.count,
        range,
        name,
        entries,
        next,
        figures,
    })
}

/// The directories on the way to `directory`, itself included.
fn above(directory: &[u8]) -> Vec<Above> {
    let slashes = directory.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    slashes
        .map(|at| Above {
            name: last_part(&directory[..at]),
            link: format!("/tree/{}/", percent::encode(&directory[..at])),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_ages_are_short() {
        for (value, want) in
            [(0.0, "0"), (12.345, "12.35"), (-1_234.0, "-1.23 k"), (5e6, "5 M"), (123_456_789_012.0, "123 G")]
        {
            assert_eq!(short(value), want);
        }
        for (seconds, want) in
            [(-5, "in the future"), (7, "7 s"), (600, "10 min"), (90_000, "25 h"), (200_000, "2 d")]
        {
            assert_eq!(duration(seconds), want);
        }
    }

    #[test]
    fn the_way_to_a_directory_has_a_link_for_each_part() {
        let way: Vec<_> = above(b"net/r 1/").into_iter().map(|one| (one.name, one.link)).collect();
        assert_eq!(way, [("net".into(), "/tree/net/".into()), ("r 1".into(), "/tree/net/r%201/".into())]);
        assert!(above(b"").is_empty());
    }
}
