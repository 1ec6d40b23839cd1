//! `rrdtool graph` and `graphv`: a picture or a table in a file, and what there is to tell about it.
//!
//! The graph is made by [`rrdgraph`]; here are the file and the text. A file is replaced as a whole, so that readers
//! never see half a picture.

mod lazy;

use std::io::Write;

use rrd::info::{InfoItem, Value};
use rrd_file::{Existing, write_bytes};
use rrdgraph::{Limits, Output};

use super::info::text_of;
use crate::failure::{Failure, Result};
use crate::source::Source;
use crate::{Args, Tool, print};

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

/// A graph, drawn and saved.
pub struct SavedGraph {
    /// The file's name as it was given; with `-` no file is written.
    pub file: Vec<u8>,
    /// What was drawn. Its bytes are `None` also when the file is new enough (`--lazy`).
    pub output: Output,
    /// The text of `--imginfo`.
    pub info: Option<Vec<u8>>,
    /// Whether the image could not be painted or written.
    unsaved: bool,
}

impl SavedGraph {
    /// Draws a graph and saves it.
    ///
    /// # Errors
    /// In RRDtool's words. That it could not be saved is reported by [`SavedGraph::check_saved`].
    pub fn make(tool: &mut Tool, args: Args<'_>) -> Result<SavedGraph> {
        let context = tool.environment.graph_context();
        let now = context.now;
        let graph = rrdgraph::Graph::parse(args, context, Limits::default()).map_err(failure)?;
        let path = match graph.file() {
            b"-" => None,
            file => Some(tool.environment.path(file)?),
        };
        let fresh = graph.options().lazy
            && path.is_some_and(|path| lazy::is_fresh(path, graph.options(), graph.range(), now));
        let renderer = std::mem::take(&mut tool.renderer);
        let mut source = Source { tool, daemon: graph.daemon().map(<[u8]>::to_vec) };
        let output = graph.render(&mut source, &renderer, !fresh);
        tool.renderer = renderer;
        let output = output.map_err(failure)?;
        let info = graph.image_info(output.size).map_err(failure)?;
        // Compat: whatever the reason, an image that cannot be painted is said to be unsaved.
        let mut unsaved = output.failure.is_some();
        if let (Some(bytes), Some(path)) = (&output.bytes, path) {
            unsaved |= write_bytes(path, bytes, Existing::Swap).is_err();
        }
        Ok(SavedGraph { file: graph.file().to_vec(), output, info, unsaved })
    }

    /// Checks that the graph is in its file, if it has one.
    ///
    /// # Errors
    /// RRDtool's text, whatever the format.
    pub fn check_saved(&self) -> Result {
        match self.unsaved {
            true => Err(Failure::of_name("Could not save png to '", &self.file, "'")),
            false => Ok(()),
        }
    }
}

/// Runs either; `verbose` is `graphv`.
pub(crate) fn run(tool: &mut Tool, args: Args<'_>, out: &mut dyn Write, verbose: bool) -> Result {
    let graph = SavedGraph::make(tool, args)?;
    match verbose {
        true => print_report(tool, &graph, out)?,
        false => print_size(&graph, out)?,
    }
    graph.check_saved()
}

pub(super) fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

/// What `graph` prints: the image itself, or its size (else `--imginfo`'s text) and the texts of PRINT.
fn print_size(graph: &SavedGraph, out: &mut dyn Write) -> Result {
    let output = &graph.output;
    if graph.file == b"-" {
        return print(out, output.bytes.as_deref().unwrap_or_default());
    }
    let (width, height) = output.size;
    // A table has bytes, but no size; a picture has a size even where it is not painted.
    let nothing = output.bytes.is_none() && output.size == (0, 0);
    if nothing && output.printed.is_empty() && graph.info.is_none() {
        return Ok(());
    }
    let mut text = graph.info.clone().unwrap_or_else(|| format!("{width}x{height}").into_bytes());
    text.push(b'\n');
    for printed in &output.printed {
        text.extend_from_slice(printed);
        text.push(b'\n');
    }
    print(out, &text)
}

/// What `graphv` prints: its keys, then the image if it has no file.
fn print_report(tool: &Tool, graph: &SavedGraph, out: &mut dyn Write) -> Result {
    let mut text = text_of(&graph.output.report, &tool.environment);
    if let Some(info) = &graph.info {
        let item = InfoItem { key: "image_info".to_string(), value: Value::Text(info.clone()) };
        text.extend(text_of(&[item], &tool.environment));
    }
    if let Some(bytes) = graph.output.bytes.as_deref().filter(|_| graph.file == b"-") {
        text.extend_from_slice(format!("image = BLOB_SIZE:{}\n", bytes.len()).as_bytes());
        text.extend_from_slice(bytes);
    }
    print(out, &text)
}
