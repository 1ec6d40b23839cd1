//! `rrdtool graph` and `graphv`: a picture or a table into a file, and what there is to tell about it.
//!
//! The way: the words are read ([`graph::picture::options::parse`]), rows fetched and computed with, then a
//! picture is drawn ([`image`]) or a table made ([`data`]). A file is replaced as a whole: whoever shows it
//! never sees half a picture.

mod data;
pub(crate) mod image;
mod lazy;

use std::io::Write;

use graph::eval::{Data, evaluate};
use graph::language::{Script, Setting};
use graph::missing::MissingAsUnknown;
use graph::picture::image_info::image_info;
use graph::picture::options::parse::{Asked, parse};
use graph::plan::Frame;
use rrd::info::{InfoItem, Value};
use rrd::rpn::Surroundings;
use rrd::when::calendar::{Calendar, Utc};
use store::direct::{Existing, write_bytes};
use words::times::Clock;

use super::info::text_of;
use crate::failure::{Done, Failure};
use crate::source::{Dates, Source};
use crate::{Tool, Words, print};

/// What it does and its syntax.
pub const SYNTAX: &str = concat!(
    "graph - draw RRDs\n\n\trrdtool graph filename [options] [elements]\n\n",
    include_str!("graph/syntax.txt")
);
/// The same of `graphv`.
pub const SYNTAX_VERBOSE: &str = concat!(
    "graphv - draw RRDs and say what was drawn\n\n\trrdtool graphv filename [options] [elements]\n\n",
    include_str!("graph/syntax.txt")
);

/// What a graph came to.
#[derive(Default)]
struct Made {
    /// The bytes of the image or table; `None` when nothing was drawn, or what is there is new enough.
    bytes: Option<Vec<u8>>,
    /// Why there are none, though something was drawn.
    unsaved: bool,
    /// Whether there is something to tell a size of.
    sized: bool,
    /// Width and height in pixels, before `--zoom`; 0 of what is no image.
    size: (i64, i64),
    /// What each PRINT printed.
    printed: Vec<Vec<u8>>,
    /// What `graphv` tells.
    report: Vec<InfoItem>,
}

/// A graph that is computed.
struct Computed<'a> {
    asked: &'a Asked<'a>,
    script: &'a Script,
    frame: Frame,
    data: &'a Data,
    dates: &'a Dates,
    calendar: &'a dyn Calendar,
    now: i64,
}

/// Universal time.
struct UtcClock(i64);

impl Clock for UtcClock {
    fn now(&self) -> i64 {
        self.0
    }

    fn calendar(&self) -> &dyn Calendar {
        &Utc
    }
}

/// A graph, drawn and saved.
pub struct Graph {
    /// The file's name as it was given; `-` = none was written.
    pub file: Vec<u8>,
    /// The bytes of the image or table; `None` when nothing was drawn, or what is there is new enough.
    pub bytes: Option<Vec<u8>>,
    /// Width and height in pixels, before `--zoom`; 0 of what is no image.
    pub size: (i64, i64),
    /// What each PRINT printed.
    pub printed: Vec<Vec<u8>>,
    /// What `graphv` tells, but for the image and its info.
    pub report: Vec<InfoItem>,
    /// The text of `--imginfo`.
    pub info: Option<Vec<u8>>,
    /// Whether there is something to tell a size of.
    sized: bool,
    /// Whether it could not be saved.
    unsaved: bool,
}

impl Graph {
    /// Draws a graph and saves it.
    ///
    /// # Errors
    /// In RRDtool's words; but for what [`Graph::saved`] says.
    pub fn make(tool: &mut Tool, words: Words<'_>) -> Done<Graph> {
        make(tool, words)
    }

    /// That it is in its file, if it has one.
    ///
    /// # Errors
    /// RRDtool's text, whatever the format.
    pub fn saved(&self) -> Done {
        match self.unsaved {
            true => Err(Failure::of_name("Could not save png to '", &self.file, "'")),
            false => Ok(()),
        }
    }
}

/// Runs either; `verbose` is `graphv`.
pub(crate) fn run(tool: &mut Tool, words: Words<'_>, out: &mut dyn Write, verbose: bool) -> Done {
    let graph = make(tool, words)?;
    match verbose {
        true => tell_all(tool, &graph, out)?,
        false => tell(&graph, out)?,
    }
    graph.saved()
}

fn make(tool: &mut Tool, words: Words<'_>) -> Done<Graph> {
    let font = tool.surroundings.default_font.clone();
    let mut asked = parse(words, &tool.surroundings, font.as_deref()).map_err(failure)?;
    let now = Clock::now(&tool.surroundings);
    if asked.options.utc {
        asked = parse(words, &UtcClock(now), font.as_deref()).map_err(failure)?;
    }
    let calendar: &dyn Calendar = if asked.options.utc { &Utc } else { &localtime::Local };
    let setting = Setting { start: asked.start, end: asked.end, now, calendar };
    let script = Script::parse(&asked.elements, setting).map_err(failure)?;
    if asked.file != b"-" {
        tool.surroundings.path(asked.file)?;
    }
    image::check_size(&script, &asked.options)?;
    let frame = Frame::new(asked.start, asked.end, asked.step, u64::from(asked.options.width));
    let data = compute(tool, &asked, &script, frame, calendar)?;
    let dates = Dates { utc: asked.options.utc };
    let computed =
        Computed { asked: &asked, script: &script, frame, data: &data, dates: &dates, calendar, now };
    let mut made = match data::form(&asked.options) {
        Some(form) => data::make(&computed, form)?,
        None => image::make(tool, &computed)?,
    };
    if let Some(bytes) = made.bytes.as_deref().filter(|_| asked.file != b"-") {
        made.unsaved |= save(tool, &asked, bytes)?;
    }
    let info = info_text(&asked, made.size)?;
    let Made { bytes, unsaved, sized, size, printed, report } = made;
    Ok(Graph { file: asked.file.to_vec(), bytes, size, printed, report, info, sized, unsaved })
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

fn compute(
    tool: &mut Tool,
    asked: &Asked<'_>,
    script: &Script,
    frame: Frame,
    calendar: &dyn Calendar,
) -> Done<Data> {
    let first_weekday = tool.surroundings.first_weekday;
    let surroundings = Surroundings { now: Clock::now(&tool.surroundings), first_weekday, calendar };
    let mut source = Source { tool, daemon: asked.daemon.map(<[u8]>::to_vec) };
    if asked.options.missing_is_nan {
        let mut rows = MissingAsUnknown::new(&mut source, script);
        return evaluate(script, frame, &mut rows, &surroundings).map_err(failure);
    }
    evaluate(script, frame, &mut source, &surroundings).map_err(failure)
}

/// Writes the file; whether that failed.
fn save(tool: &Tool, asked: &Asked<'_>, bytes: &[u8]) -> Done<bool> {
    let path = tool.surroundings.path(asked.file)?;
    Ok(write_bytes(path, bytes, Existing::Swap).is_err())
}

/// The text of `--imginfo`, with the size of the image as it is written.
fn info_text(asked: &Asked<'_>, size: (i64, i64)) -> Done<Option<Vec<u8>>> {
    let Some(format) = &asked.options.image_info else { return Ok(None) };
    if format.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let zoomed = |pixels: i64| (pixels as f64 * asked.options.zoom) as u64;
    image_info(format, asked.file, (zoomed(size.0), zoomed(size.1))).map(Some).map_err(failure)
}

/// What `graph` prints: the image itself, or its size (else `--imginfo`'s text) and what PRINT printed.
fn tell(graph: &Graph, out: &mut dyn Write) -> Done {
    if graph.file == b"-" {
        return print(out, graph.bytes.as_deref().unwrap_or_default());
    }
    if !graph.sized && graph.printed.is_empty() && graph.info.is_none() {
        return Ok(());
    }
    let (width, height) = graph.size;
    let mut text = graph.info.clone().unwrap_or_else(|| format!("{width}x{height}").into_bytes());
    text.push(b'\n');
    for printed in &graph.printed {
        text.extend_from_slice(printed);
        text.push(b'\n');
    }
    print(out, &text)
}

/// What `graphv` prints: its keys, and behind them the image if it has no file.
fn tell_all(tool: &Tool, graph: &Graph, out: &mut dyn Write) -> Done {
    let mut text = text_of(&graph.report, &tool.surroundings);
    if let Some(info) = &graph.info {
        let item = InfoItem { key: "image_info".to_string(), value: Value::Text(info.clone()) };
        text.extend(text_of(&[item], &tool.surroundings));
    }
    if let Some(bytes) = graph.bytes.as_deref().filter(|_| graph.file == b"-") {
        text.extend_from_slice(format!("image = BLOB_SIZE:{}\n", bytes.len()).as_bytes());
        text.extend_from_slice(bytes);
    }
    print(out, &text)
}
