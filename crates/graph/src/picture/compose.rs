//! Composes a [`Picture`] of a script and its data.
//!
//! Owns the order: what is computed first (so that of several errors RRDtool's is reported), and what is painted over
//! what.

use std::fmt;

use rrd::when::calendar::Calendar;

use super::axis::horizontal::{self, TimeAxis};
use super::axis::mapping::{CanvasRect, Mapping};
use super::axis::value_label::LabelError;
use super::axis::vertical::{self, VerticalAxis};
use super::fit::GridFit;
use super::frame::{self, grid::Grid};
use super::layout::{Layout, arrange};
use super::legend::UnknownControlCode;
use super::legend::entries::{LegendInput, entries};
use super::limits::limits;
use super::options::{FontRender, ImageFormat, Options};
use super::report::{Report, ReportInput, report};
use super::scene::Scene;
use super::shapes::columns::Columns;
use super::shapes::{self, Canvas};
use super::text::Typesetter;
use super::zoom::Zoomed;
use crate::eval::Data;
use crate::language::graphic::Graphic;
use crate::language::{Element, Script};
use crate::plan::TimeRange;
use crate::print::{PrintError, Printed, TimeFormat};

/// What a picture is drawn from.
#[derive(Clone, Copy)]
pub struct DrawInput<'a> {
    /// The elements.
    pub script: &'a Script,
    /// Start, end and step.
    pub range: TimeRange,
    /// The variables, computed.
    pub data: &'a Data,
    /// How it looks.
    pub options: &'a Options,
    /// Sets the texts.
    pub typesetter: &'a dyn Typesetter,
    /// Formats dates.
    pub times: &'a dyn TimeFormat,
    /// Local time, for the grid.
    pub calendar: &'a dyn Calendar,
    /// The day on which weeks begin, counted from Sunday = 0.
    pub first_weekday: u32,
    /// Whether to make a scene, or only the size, the texts and the report.
    pub painted: bool,
}

/// A graph, laid out and drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// What to paint; `None` where nothing is drawn: there is only PRINT, or [`DrawInput::painted`] is not set.
    pub scene: Option<Scene>,
    /// Width and height of the image in pixels, before `zoom`; 0 where nothing is drawn.
    pub size: (i64, i64),
    /// The texts of PRINT, in order.
    pub printed: Vec<Vec<u8>>,
    /// What `graphv` prints, except for the image and its info.
    pub report: Report,
}

/// Why a picture cannot be drawn. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrawError {
    /// A PRINT or GPRINT has a bad format.
    Print(PrintError),
    /// The labels of an axis have a bad format.
    Label(LabelError),
    /// The legend has an unknown control code.
    Legend(UnknownControlCode),
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

/// Draws a graph.
///
/// # Errors
/// The first [`DrawError`].
pub fn draw(input: &DrawInput<'_>) -> Result<Picture, DrawError> {
    let texts =
        Printed::of(input.script, input.data, input.times, input.options.base).map_err(DrawError::Print)?;
    let span = (input.range.start, input.range.end);
    if !input.script.elements.iter().any(is_drawn) {
        let report_input = ReportInput { printed: &texts.outside, layout: None, span, limits: None };
        return Ok(Picture {
            scene: None,
            size: (0, 0),
            report: report(report_input),
            printed: texts.outside,
        });
    }
    let options = input.options;
    let source = LegendInput { script: input.script, data: input.data, printed: &texts.inside, span };
    let entries = entries(source, options);
    let layout = arrange(options, &entries, input.typesetter).map_err(DrawError::Legend)?;
    let columns = Columns::new(input.script, input.data, input.range, layout.canvas_width.max(0) as usize);
    let extent = columns.extent(options);
    let limits = limits(options, &extent);
    let rect = CanvasRect {
        left: layout.canvas_left as f64,
        top: layout.canvas_top as f64,
        width: layout.canvas_width as f64,
        height: layout.canvas_height as f64,
    };
    let mapping = Mapping::new(rect, span, limits, options.logarithmic);
    // Compat: the report of a picture that is not painted again has only its size.
    let shown = input.painted.then_some(limits);
    let report_input = ReportInput { printed: &texts.outside, layout: Some(&layout), span, limits: shown };
    let report = report(report_input);
    let size = (layout.image_width, layout.image_height);
    let mut scene = None;
    if input.painted {
        let axis = vertical::ValueAxisInput {
            options,
            extent: &extent,
            limits,
            mapping: &mapping,
            times: input.times,
        };
        let (mut values, mut times) = (VerticalAxis::default(), TimeAxis::default());
        if !options.only_graph {
            values = vertical::plan(&axis).map_err(DrawError::Label)?;
            times = horizontal::plan(&horizontal::TimeAxisInput {
                options,
                span,
                width: rect.width,
                calendar: input.calendar,
                times: input.times,
                first_weekday: input.first_weekday,
            });
        }
        scene = Some(paint(input, layout, &columns, &Axes { mapping, limits, values, times }));
    }
    Ok(Picture { scene, size, report, printed: texts.outside })
}

/// Whether an element makes an image necessary. Compat: a COMMENT alone does not.
fn is_drawn(element: &Element) -> bool {
    match element {
        Element::Graphic(Graphic::Shift(_)) => false,
        Element::Graphic(_) => true,
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

/// The scene, back to front.
fn paint(input: &DrawInput<'_>, mut layout: Layout, columns: &Columns<'_>, axes: &Axes) -> Scene {
    let options = input.options;
    let vector = matches!(options.format, ImageFormat::Svg | ImageFormat::Pdf | ImageFormat::Eps);
    let fit = GridFit::new(options.grid_fit && !vector, options.zoom);
    let span = (input.range.start, input.range.end);
    let Axes { mapping, limits, .. } = *axes;
    let canvas = Canvas { rect: mapping.rect(), mapping, limits, span, fit };
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
