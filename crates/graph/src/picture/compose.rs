//! A graph composed: from a script and its data to a [`Picture`].
//!
//! Owns the order of things: which is computed first (so that of several errors RRDtool's is told), and which is
//! painted over which.

use std::fmt;

use rrd::when::calendar::Calendar;

use super::fit::Fit;
use super::frame;
use super::layout::{Layout, arrange};
use super::legend::UnknownControl;
use super::options::{FontRender, ImageFormat, Options};
use super::report::Report;
use super::scene::Scene;
use super::shapes::columns::Columns;
use super::shapes::{self, Canvas};
use super::text::Typesetter;
use crate::eval::Data;
use crate::language::Script;
use crate::plan::Frame;
use crate::print::{PrintError, TimeFormat};

/// What a picture is made of.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The elements.
    pub script: &'a Script,
    /// The range of time.
    pub frame: Frame,
    /// The variables, computed.
    pub data: &'a Data,
    /// How it shall look.
    pub options: &'a Options,
    /// Sets the texts.
    pub typesetter: &'a dyn Typesetter,
    /// Writes dates.
    pub times: &'a dyn TimeFormat,
    /// Local time, for the grid.
    pub calendar: &'a dyn Calendar,
}

/// A graph, drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// What there is to paint.
    pub scene: Scene,
    /// What `graphv` tells.
    pub report: Report,
}

/// Why there is no picture. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrawError {
    /// A PRINT or GPRINT.
    Print(PrintError),
    /// The legend, or the size.
    Layout(UnknownControl),
}

impl fmt::Display for DrawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DrawError::Print(error) => error.fmt(f),
            DrawError::Layout(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DrawError {}

/// Draws.
///
/// # Errors
/// [`DrawError`]: the first that there is.
pub fn draw(input: &Input<'_>) -> Result<Picture, DrawError> {
    let options = input.options;
    let layout = arrange(options, &[], input.typesetter).map_err(DrawError::Layout)?;
    let columns = Columns::new(input.script, input.data, input.frame, layout.canvas_width.max(0) as usize);
    let limits = columns.extremes();
    Ok(Picture { scene: paint(input, layout, &columns, limits), report: Report::default() })
}

/// Everything that is painted, back to front.
fn paint(input: &Input<'_>, mut layout: Layout, columns: &Columns<'_>, limits: (f64, f64)) -> Scene {
    let options = input.options;
    let vector = matches!(options.format, ImageFormat::Svg | ImageFormat::Pdf | ImageFormat::Eps);
    let fit = Fit::new(options.grid_fit && !vector, options.zoom);
    let mut items = Vec::new();
    frame::background(&layout, options, fit, &mut items);
    let mapping = super::shapes::Mapping {
        left: layout.canvas_left as f64,
        top: layout.canvas_top as f64,
        width: layout.canvas_width as f64,
        height: layout.canvas_height as f64,
        limits,
        span: (input.frame.start as f64, input.frame.end as f64),
    };
    let canvas = Canvas {
        left: mapping.left,
        top: mapping.top,
        width: mapping.width,
        height: mapping.height,
        mapping: &mapping,
        fit,
    };
    shapes::draw(columns, limits, &canvas, options.slope, &mut items);
    if !options.only_graph {
        frame::border(&layout, options, fit, &mut items);
        frame::texts(&mut layout, options, &mut items);
        frame::legend(std::mem::take(&mut layout.legend), options, fit, &mut items);
        frame::axes(&canvas, options, &mut items);
    }
    let span = (input.frame.start, input.frame.end);
    shapes::rules(input.script, input.data, limits, span, &canvas, &mut items);
    Scene {
        width: layout.image_width as f64,
        height: layout.image_height as f64,
        zoom: options.zoom,
        smooth_lines: options.smooth_lines,
        smooth_texts: options.font_render != FontRender::Mono,
        items,
        ..Scene::default()
    }
}
