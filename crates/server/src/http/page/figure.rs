//! Graphs on pages.

use serde_json::json;
use suggest::Suggestion;

use super::Range;
use crate::collectors::daemon;
use crate::http::{percent, rows};
use crate::service::Service;

/// A graph on a page: a picture, and what the script needs to draw it itself.
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// `{"arg": [...], "title": ..., "unit": ...}` for the script; `None` where a name is not UTF-8, which JSON cannot hold: then
    /// there is the picture only.
    pub data: Option<String>,
    /// The URL of the picture.
    pub light: String,
    /// The same on a dark ground.
    pub dark: String,
    /// The page of its expression.
    pub link: String,
    /// Width of the picture's graph.
    pub width: u32,
    /// Height of the picture's graph.
    pub height: u32,
}

/// Width and height of the graphs of a page.
#[derive(Clone, Copy)]
pub struct Size(pub u32, pub u32);

/// Large graphs, one below the other.
pub const LARGE: Size = Size(800, 240);
/// The history of a number, beside it.
const HISTORY: Size = Size(72, 16);
/// Small ones, side by side.
pub const SMALL: Size = Size(400, 130);

impl Figure {
    /// A graph that was written as arguments.
    pub fn of_arguments(title: &str, arguments: Vec<Vec<u8>>, range: &Range, size: Size) -> Figure {
        let title = if title.is_empty() { "Graph" } else { title }.to_string();
        let graph = Suggestion { title, unit: String::new(), names: Vec::new(), arguments };
        Figure::new(&graph, range, size)
    }

    /// The graph of a suggestion.
    pub fn new(graph: &Suggestion, range: &Range, size: Size) -> Figure {
        let arg: Option<Vec<&str>> =
            graph.arguments.iter().map(|word| std::str::from_utf8(word).ok()).collect();
        let light = picture(&graph.arguments, range, size, "SVG", &[]);
        Figure {
            title: graph.title.clone(),
            data: arg.map(|arg| json!({ "arg": arg, "title": graph.title, "unit": graph.unit }).to_string()),
            dark: format!("{light}&arg=--theme&arg=dark"),
            light,
            link: format!("/expression?{}&{}", form("arg", &graph.arguments), range.query()),
            width: size.0,
            height: size.1,
        }
    }
}

/// Small pictures of what the daemon's own numbers were.
pub struct Histories {
    /// The RRD of these numbers.
    rrd: String,
}

impl Histories {
    /// Those of a daemon that records its numbers.
    pub fn of(service: &Service) -> Option<Histories> {
        let rrd = format!("roundel/{}.rrd", daemon::rrd(&service.collecting()));
        let name = rows::name(service, rrd.as_bytes()).ok()?;
        service.engine.status(&name).ok().map(|_| Histories { rrd })
    }

    /// The picture of a number, a data source of the daemon's own RRD, over the last hour; `dark`: on a dark ground.
    pub fn picture(&self, source: &str, dark: bool) -> String {
        let range = Range { start: "end-1h".to_string(), end: "now".to_string() };
        let (name, colour) = (&self.rrd, suggest::colour(0));
        let arguments = [
            format!("DEF:a={name}:{source}:AVERAGE"),
            format!("AREA:a#{colour}60"),
            format!("LINE1:a#{colour}"),
        ];
        let arguments: Vec<Vec<u8>> = arguments.map(String::into_bytes).into();
        let theme = if dark { "dark" } else { "light" };
        let options = [
            "--only-graph",
            // For screens of two dots a pixel.
            "--zoom",
            "2",
            "--lower-limit",
            "0",
            "--color",
            "BACK#00000000",
            "--color",
            "CANVAS#00000000",
            "--theme",
            theme,
        ];
        // A browser takes 4 to 8 ms for an SVG, which is a document of its own, however small; there are several on the first page.
        picture(&arguments, &range, HISTORY, "PNG", &options)
    }
}

/// The URL of a picture; `options` are further options.
pub fn picture(arguments: &[Vec<u8>], range: &Range, size: Size, format: &str, options: &[&str]) -> String {
    let (width, height) = (size.0.to_string(), size.1.to_string());
    let range = ["--imgformat", format, "--start", &range.start, "--end", &range.end];
    let size = ["--width", &width, "--height", &height];
    // Options stand before elements.
    let words: Vec<&[u8]> = range.iter().chain(&size).chain(options).map(|word| word.as_bytes()).collect();
    format!("/graph?{}&{}", form("arg", &words), form("arg", arguments))
}

/// `key=value` pairs as in the query of a URL.
pub fn form<V: AsRef<[u8]>>(key: &str, values: &[V]) -> String {
    let pairs: Vec<String> =
        values.iter().map(|value| format!("{key}={}", percent::encode(value.as_ref()))).collect();
    pairs.join("&")
}

impl Range {
    /// The range as in the query of a URL.
    pub fn query(&self) -> String {
        format!("{}&{}", form("start", &[&self.start]), form("end", &[&self.end]))
    }
}
