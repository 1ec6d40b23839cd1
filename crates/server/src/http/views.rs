//! Saved views: pages of graphs as files, `NAME.view`, in the directory of templates. A view is TOML, to be written by hand, kept in
//! git, or made by clicking (`docs/page.md`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::origin::{is_foreign, is_this_machine};
use crate::durable;

/// The largest view in bytes.
pub const BYTES_MAX: usize = 256 * 1024;
/// The most graphs, or groups of them, of a view.
const GRAPHS_MAX: usize = 200;
/// The most views that are listed.
const VIEWS_MAX: usize = 10_000;
/// The longest name in bytes.
const NAME_BYTES_MAX: usize = 100;

/// Who may save views over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Saving {
    /// No client.
    #[default]
    Off,
    /// Those who name this machine by an address or as localhost: a page of another site cannot.
    Local,
    /// All who reach the listener.
    On,
}

/// The views of a directory.
pub struct Views {
    directory: Option<PathBuf>,
    saving: Saving,
    /// Held while a file is changed.
    changing: Mutex<()>,
}

/// A page of graphs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct View {
    /// Its title; the name of the file if it is empty.
    pub title: String,
    /// A text above the graphs.
    pub text: String,
    /// Where its range starts, in RRDtool's words or seconds.
    pub start: String,
    /// Where it ends.
    pub end: String,
    /// Its graphs.
    pub graph: Vec<ViewGraph>,
}

impl Default for View {
    fn default() -> Self {
        let (title, text) = (String::new(), String::new());
        View { title, text, start: "end-1d".to_string(), end: "now".to_string(), graph: Vec::new() }
    }
}

/// A graph of a view, or those that RRDs suggest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ViewGraph {
    /// Its title.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// A text above it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Arguments of `rrdtool graph`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arg: Vec<String>,
    /// RRDs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub name: Vec<String>,
    /// A pattern of RRDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// All RRDs below a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// How RRDs are drawn: `each`, `overlay`, `stack` or `sum`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// A start of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// An end of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

impl View {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// 422 with line and reason.
    pub fn parse(text: &str) -> Result<View, Failure> {
        let view: View =
            toml::from_str(text).map_err(|error| Failure::refused(error.to_string().trim_end()))?;
        if view.graph.len() > GRAPHS_MAX {
            return Err(Failure::refused(format!("more than {GRAPHS_MAX} graphs")));
        }
        for (index, graph) in view.graph.iter().enumerate() {
            let selects = !graph.name.is_empty() || graph.glob.is_some() || graph.directory.is_some();
            if graph.arg.is_empty() != selects {
                let text = "give either arg, or what selects RRDs: name, glob or directory";
                return Err(Failure::refused(format!("graph {}: {text}", index + 1)));
            }
        }
        Ok(view)
    }
}

/// What became of a view that was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewChange {
    /// There is one more.
    Added,
    /// It was there.
    Changed,
    /// It is gone.
    Removed,
}

impl ViewChange {
    /// What the audit log calls it.
    pub fn what(self) -> &'static str {
        match self {
            ViewChange::Added => "add view",
            ViewChange::Changed => "change view",
            ViewChange::Removed => "remove view",
        }
    }
}

/// A view as it stands in its file.
pub struct Saved {
    /// Its text.
    pub text: String,
    /// What changes when the text does.
    pub tag: String,
}

impl Saved {
    fn new(text: String) -> Saved {
        Saved { tag: format!("{:016x}", xxhash_rust::xxh3::xxh3_64(text.as_bytes())), text }
    }
}

impl Views {
    /// The views of `directory`, if there is one.
    pub fn new(directory: Option<PathBuf>, saving: Saving) -> Views {
        Views { directory, saving, changing: Mutex::default() }
    }

    /// The names of all views, in order.
    pub fn names(&self) -> Vec<String> {
        let Some(entries) = self.directory.as_ref().and_then(|directory| fs::read_dir(directory).ok()) else {
            return Vec::new();
        };
        let name = |entry: fs::DirEntry| {
            let file = entry.file_name().into_string().ok()?;
            file.strip_suffix(".view").filter(|name| is_name(name)).map(str::to_string)
        };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok().and_then(name)).take(VIEWS_MAX).collect();
        names.sort();
        names
    }

    /// A view as it stands in its file.
    ///
    /// # Errors
    /// 404 when there is none.
    pub fn saved(&self, name: &str) -> Result<Saved, Failure> {
        let missing = || Failure::new(StatusCode::NOT_FOUND, format!("There is no view called \"{name}\"."));
        let path = self.path(name).map_err(|_| missing())?;
        let found = path.metadata().map_err(|_| missing())?;
        if !found.is_file() {
            return Err(missing());
        }
        if found.len() > BYTES_MAX as u64 {
            return Err(Failure::too_much(format!("the view {name} is larger than {BYTES_MAX} bytes")));
        }
        let text = fs::read_to_string(&path);
        text.map(Saved::new).map_err(|error| cannot("read", &path, &error))
    }

    /// A view.
    ///
    /// # Errors
    /// 404 when there is none, 422 when its file cannot be understood.
    pub fn view(&self, name: &str) -> Result<View, Failure> {
        View::parse(&self.saved(name)?.text)
    }

    /// Whether the client of a request may save views.
    ///
    /// # Errors
    /// 403 with the reason.
    pub fn may_save(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let forbidden = |text: &str| Err(Failure::new(StatusCode::FORBIDDEN, text));
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(header::HOST).unwrap_or_default();
        if self.directory.is_none() {
            return forbidden(
                "views are not saved: [http] templates in roundel.toml names no directory for them",
            );
        }
        // A page of another site makes browsers send its forms here, and says so.
        if is_foreign(headers) {
            return forbidden("views are only saved from this server's own pages");
        }
        match self.saving {
            Saving::On => Ok(()),
            Saving::Local if is_this_machine(host) => Ok(()),
            Saving::Local => forbidden(
                "views are saved by clients that name this machine as localhost or by its address; save_views = true in [http] lifts this",
            ),
            Saving::Off => forbidden(
                "views are not saved over HTTP: it listens beyond this machine, and [http] save_views = true is not set",
            ),
        }
    }

    /// Replaces the text of a view; an empty one removes it. `was`: the tag of the text that was changed.
    ///
    /// # Errors
    /// 400 for a name that is none, 404 when there is nothing to remove, 422 for a text that is none, 409 when the view has been changed meanwhile.
    pub fn save(&self, name: &str, text: &str, was: Option<&str>) -> Result<ViewChange, Failure> {
        let path = self.path(name)?;
        if text.len() > BYTES_MAX {
            return Err(Failure::too_much(format!("a view has at most {BYTES_MAX} bytes")));
        }
        View::parse(text)?;
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let saved = self.saved(name).map(|saved| saved.tag);
        let now = saved.as_deref().unwrap_or_default();
        if was.is_some_and(|was| was != now) {
            let text = format!("the view {name} has been changed meanwhile: load it again");
            return Err(Failure::new(StatusCode::CONFLICT, text));
        }
        let (done, change) = if text.trim().is_empty() {
            saved?;
            (fs::remove_file(&path), ViewChange::Removed)
        } else {
            let made = fs::create_dir_all(path.parent().unwrap_or(Path::new(".")));
            let change = if saved.is_ok() { ViewChange::Changed } else { ViewChange::Added };
            (made.and_then(|()| durable::replace(&path, text.as_bytes())), change)
        };
        done.map(|()| change).map_err(|error| cannot("write", &path, &error))
    }

    /// Adds a graph to the end of a view, which is made if there is none.
    ///
    /// # Errors
    /// As [`Views::save`].
    pub fn add(&self, name: &str, graph: ViewGraph) -> Result<ViewChange, Failure> {
        #[derive(Serialize)]
        struct Added {
            graph: [ViewGraph; 1],
        }
        let (text, tag) = match self.saved(name) {
            Ok(saved) => (saved.text, saved.tag),
            Err(failure) if failure.status() == StatusCode::NOT_FOUND => (String::new(), String::new()),
            Err(failure) => return Err(failure),
        };
        let added = toml::to_string(&Added { graph: [graph] }).map_err(Failure::refused)?;
        let text = if text.is_empty() { added } else { format!("{}\n\n{added}", text.trim_end()) };
        self.save(name, &text, Some(&tag))
    }

    fn path(&self, name: &str) -> Result<PathBuf, Failure> {
        if !is_name(name) {
            let text = "a view's name has letters, digits, - and _, at most 100";
            return Err(Failure::bad(format!("\"{name}\": {text}")));
        }
        let missing = || Failure::new(StatusCode::NOT_FOUND, "there is no directory of views");
        Ok(self.directory.as_ref().ok_or_else(missing)?.join(format!("{name}.view")))
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    let text = format!("cannot {what} \"{}\": {error}", path.display());
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, text)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn graph(title: &str) -> ViewGraph {
        let arg = ["DEF:a=x.rrd:a:AVERAGE", "LINE:a#f00:\"é\\\\"].map(String::from).into();
        ViewGraph { title: title.to_string(), arg, ..ViewGraph::default() }
    }

    #[test]
    fn graphs_are_added_and_what_was_written_by_hand_stays() {
        let place = tempfile::tempdir().unwrap();
        let views = Views::new(Some(place.path().join("views")), Saving::Local);
        assert!(views.names().is_empty());
        views.add("a-b", graph("first")).unwrap();
        let text = format!("# by hand\ntitle = 'T'\n\n{}", views.saved("a-b").unwrap().text);
        views.save("a-b", &text, None).unwrap();
        views.add("a-b", graph("second")).unwrap();
        assert!(views.saved("a-b").unwrap().text.starts_with("# by hand\n"));
        let view = views.view("a-b").unwrap();
        assert_eq!((view.title.as_str(), view.start.as_str()), ("T", "end-1d"));
        assert_eq!(view.graph, [graph("first"), graph("second")]);
        assert_eq!(views.names(), ["a-b"]);
        views.save("a-b", " \n", None).unwrap();
        assert!(views.names().is_empty());
    }

    #[test]
    fn what_is_no_view_changes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let views = Views::new(Some(place.path().to_path_buf()), Saving::On);
        views.save("v", "title = 'x'\n", None).unwrap();
        let tag = views.saved("v").unwrap().tag;
        let refused = |name: &str, text: &str, was: Option<&str>| {
            views.save(name, text, was).unwrap_err().status().as_u16()
        };
        for (text, status) in [
            ("titel = 'x'", 422),
            ("[[graph]]\ntitle = 'neither'", 422),
            ("[[graph]]\narg = ['LINE:1']\nglob = '*'", 422),
        ] {
            assert_eq!(refused("v", text, None), status, "{text}");
        }
        assert_eq!(refused("v", &"#".repeat(BYTES_MAX + 1), None), 413);
        assert_eq!(refused("v", "title = 'y'", Some("other")), 409);
        for name in ["", "../v", "a/b", "a.b", &"n".repeat(101)] {
            assert_eq!(refused(name, "title = 'y'", None), 400, "{name}");
            assert_eq!(views.saved(name).err().unwrap().status().as_u16(), 404, "{name}");
        }
        assert_eq!(views.saved("v").unwrap().tag, tag);
        views.save("v", "title = 'y'", Some(&tag)).unwrap();
    }

    #[test]
    fn pages_of_other_sites_save_nothing() {
        let asked = |saving, host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            Views::new(Some(PathBuf::from("/nowhere")), saving).may_save(&headers).is_ok()
        };
        assert!(asked(Saving::Local, "127.0.0.1:8080", Some("http://127.0.0.1:8080")));
        assert!(asked(Saving::Local, "[::1]:8080", None));
        assert!(asked(Saving::Local, "localhost", None));
        assert!(asked(Saving::On, "rrd.example", Some("https://rrd.example")));
        assert!(!asked(Saving::Local, "127.0.0.1:8080", Some("http://evil.example")));
        assert!(!asked(Saving::Local, "127.0.0.1:8080", Some("null")));
        assert!(!asked(Saving::Local, "evil.example", Some("http://evil.example")));
        assert!(!asked(Saving::On, "rrd.example", Some("https://evil.example")));
        assert!(!asked(Saving::Off, "127.0.0.1", None));
        assert!(Views::new(None, Saving::On).may_save(&HeaderMap::new()).is_err());
    }
}
