//! A graph composed: from a script and its data to a [`Picture`].
//!
//! Owns the order of things: which is computed first (so that of several errors RRDtool's is told), and which is
//! painted over which.

use std::fmt;

use rrd::when::calendar::Calendar;

use super::axis::horizontal::{self, TimeAxis};
use super::axis::mapping::{Mapping, Place};
use super::axis::value_label::LabelError;
use super::axis::vertical::{self, VerticalAxis};
use super::fit::Fit;
use super::frame::{self, grid::Grid};
use super::layout::{Layout, arrange};
use super::legend::UnknownControl;
use super::legend::entries::{Source, entries};
use super::limits::limits;
use super::options::{FontRender, ImageFormat, Options};
use super::report::{Report, Told, report};
use super::scene::Scene;
use super::shapes::columns::Columns;
use super::shapes::{self, Canvas};
use super::text::Typesetter;
use super::zoom::Zoomed;
use crate::eval::Data;
use crate::language::drawn::Drawn;
use crate::language::{Element, Script};
use crate::plan::Frame;
use crate::print::{PrintError, Printed, TimeFormat};

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
    /// Days behind Sunday that weeks begin.
    pub first_weekday: u32,
    /// Whether a scene is wanted, or only what is told about it.
    pub painted: bool,
}

/// A graph, drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// What there is to paint; `None` where nothing is drawn: there is only PRINT, or [`Input::painted`] is not set.
    pub scene: Option<Scene>,
    /// Width and height of the image in pixels, before `zoom`; 0 where nothing is drawn.
    pub size: (i64, i64),
    /// What each PRINT printed, in order.
    pub printed: Vec<Vec<u8>>,
    /// What `graphv` tells, but for the image itself.
    pub report: Report,
}

/// Why there is no picture. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrawError {
    /// A PRINT or GPRINT.
    Print(PrintError),
    /// The format of an axis's labels.
    Label(LabelError),
    /// An escape in the legend.
    Legend(UnknownControl),
}

impl fmt::Display for DrawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DrawError::Print(error) => error.fmt(f),
            DrawError::Label(error) => error.fmt(f),
            DrawError::Legend(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DrawError {}

/// Draws.
///
/// # Errors
/// [`DrawError`]: the first that there is.
pub fn draw(input: &Input<'_>) -> Result<Picture, DrawError> {
    let texts =
        Printed::of(input.script, input.data, input.times, input.options.base).map_err(DrawError::Print)?;
    let span = (input.frame.start, input.frame.end);
    if !input.script.elements.iter().any(is_drawn) {
        let told = Told { printed: &texts.outside, layout: None, span, limits: None };
        return Ok(Picture { scene: None, size: (0, 0), report: report(told), printed: texts.outside });
    }
    let options = input.options;
    let source = Source { script: input.script, data: input.data, printed: &texts.inside, span };
    let entries = entries(source, options);
    let layout = arrange(options, &entries, input.typesetter).map_err(DrawError::Legend)?;
    let columns = Columns::new(input.script, input.data, input.frame, layout.canvas_width.max(0) as usize);
    let extent = columns.extent(options);
    let limits = limits(options, &extent);
    let place = Place {
        left: layout.canvas_left as f64,
        top: layout.canvas_top as f64,
        width: layout.canvas_width as f64,
        height: layout.canvas_height as f64,
    };
    let mapping = Mapping::new(place, span, limits, options.logarithmic);
    // Compat: of a picture that is not painted again only its size is told.
    let shown = input.painted.then_some(limits);
    let told = Told { printed: &texts.outside, layout: Some(&layout), span, limits: shown };
    let report = report(told);
    let size = (layout.image_width, layout.image_height);
    let mut scene = None;
    if input.painted {
        let axis =
            vertical::Input { options, extent: &extent, limits, mapping: &mapping, times: input.times };
        let (mut values, mut times) = (VerticalAxis::default(), TimeAxis::default());
        if !options.only_graph {
            values = vertical::plan(&axis).map_err(DrawError::Label)?;
            times = horizontal::plan(&horizontal::Input {
                options,
                span,
                width: place.width,
                calendar: input.calendar,
                times: input.times,
                first_weekday: input.first_weekday,
            });
        }
        scene = Some(paint(input, layout, &columns, &Axes { mapping, limits, values, times }));
    }
    Ok(Picture { scene, size, report, printed: texts.outside })
}

/// Whether an element makes an image. Compat: a COMMENT alone does not.
fn is_drawn(element: &Element) -> bool {
    match element {
        Element::Drawn(Drawn::Shift(_)) => false,
        Element::Drawn(_) => true,
        Element::Print(print) => print.inside,
        _ => false,
    }
}

/// The axes, planned.
struct Axes {
    mapping: Mapping,
    limits: (f64, f64),
    values: VerticalAxis,
    times: TimeAxis,
}

/// Everything that is painted, back to front.
fn paint(input: &Input<'_>, mut layout: Layout, columns: &Columns<'_>, axes: &Axes) -> Scene {
    let options = input.options;
    let vector = matches!(options.format, ImageFormat::Svg | ImageFormat::Pdf | ImageFormat::Eps);
    let fit = Fit::new(options.grid_fit && !vector, options.zoom);
    let span = (input.frame.start, input.frame.end);
    let Axes { mapping, limits, .. } = *axes;
    let canvas = Canvas { place: mapping.place(), mapping, limits, span, fit };
    let mut items = Vec::new();
    frame::background(&layout, options, fit, &mut items);
    shapes::draw(columns, &canvas, options.slope, &mut items);
    if !options.only_graph {
        frame::border(&layout, options, fit, &mut items);
        let zoomed = Zoomed { typesetter: input.typesetter, zoom: options.zoom };
        let grid = Grid { options, canvas: &canvas, typesetter: &zoomed };
        grid.times(&axes.times, &mut items);
        grid.values(&axes.values, &mut items);
        frame::texts(&mut layout, options, &mut items);
        frame::legend(std::mem::take(&mut layout.legend), options, fit, &mut items);
        frame::axes(&canvas, options, &mut items);
    }
    shapes::rules(input.script, input.data, &canvas, &mut items);
    Scene {
        width: layout.image_width as f64,
        height: layout.image_height as f64,
        zoom: options.zoom,
        smooth_lines: options.smooth_lines,
        smooth_texts: options.font_render != FontRender::Mono,
        items,
        title: String::from_utf8_lossy(options.title.as_deref().unwrap_or_default()).into_owned(),
        ..Scene::default()
    }
}
