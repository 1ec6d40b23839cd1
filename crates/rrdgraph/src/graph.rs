//! `graph` and `graphv`.

use graph::eval::Data;
use graph::picture::compose::{self, DrawInput, Picture};
use graph::picture::image_info::image_info;
use graph::picture::options::parse::{GraphArgs, parse};
use graph::picture::options::{ImageFormat, Options, XGrid};
use graph::plan::{Rows, TimeRange};
use graph::xport::{Table, TableFormat, TableOptions, XportError, XportOptions, of_graph};
use rrd::info::{InfoItem, Value};

use crate::error::Error;
use crate::limits::shape_count;
use crate::{Evaluator, GraphContext, Limits, Renderer};

/// A graph whose arguments are parsed and checked; no row has been fetched.
pub struct Graph<'w> {
    args: GraphArgs<'w>,
    evaluator: Evaluator,
    limits: Limits,
}

/// A finished graph.
#[derive(Debug, Default)]
pub struct Output {
    /// The image or table; `None` when there is nothing to draw, painting was not requested, or it failed.
    pub bytes: Option<Vec<u8>>,
    /// Why painting failed.
    pub failure: Option<render::ImageError>,
    /// Width and height in pixels before `--zoom`; 0 for a table and where there is nothing to draw.
    pub size: (i64, i64),
    /// The texts of PRINT.
    pub printed: Vec<Vec<u8>>,
    /// What `graphv` tells, except for the image and its info.
    pub report: Vec<InfoItem>,
}

impl<'w> Graph<'w> {
    /// Parses `args`, which follow the verb: file, options and elements.
    ///
    /// # Errors
    /// [`Error`]: the first one in RRDtool's order, and what `limits` refuse.
    pub fn parse(
        args: &'w [&'w [u8]],
        mut context: GraphContext,
        limits: Limits,
    ) -> Result<Graph<'w>, Error> {
        let font = context.default_font.clone();
        let mut parsed = parse(args, context.clock(), font.as_deref())?;
        if parsed.options.utc {
            // Times before --utc were in local time.
            context.utc = true;
            parsed = parse(args, context.clock(), font.as_deref())?;
        }
        let options = &parsed.options;
        limits.check_pixels((i64::from(options.width), i64::from(options.height)), options.zoom)?;
        let range = TimeRange::new(parsed.start, parsed.end, parsed.step, u64::from(options.width));
        let mut evaluator = Evaluator::parse(&parsed.elements, range, context)?;
        evaluator.missing_is_unknown = options.missing_is_nan;
        limits.check_values(&evaluator.script, options.width)?;
        Ok(Graph { args: parsed, evaluator, limits })
    }

    /// The file to write; `-` is standard output.
    pub fn file(&self) -> &'w [u8] {
        self.args.file
    }

    /// The daemon to ask (`--daemon`); may be empty.
    pub fn daemon(&self) -> Option<&'w [u8]> {
        self.args.daemon
    }

    /// How it looks.
    pub fn options(&self) -> &Options {
        &self.args.options
    }

    /// Its elements.
    pub fn evaluator(&self) -> &Evaluator {
        &self.evaluator
    }

    /// Start, end and step.
    pub fn range(&self) -> TimeRange {
        self.evaluator.range
    }

    /// Fetches, computes, and makes the image or table that the image format asks for. Without `painted` a picture
    /// is only laid out, for its size and texts.
    ///
    /// # Errors
    /// [`Error`]. That an image cannot be painted is in the output instead: the rest of it stands. A format that this build lacks is an error.
    pub fn render(&self, rows: &mut dyn Rows, renderer: &Renderer, painted: bool) -> Result<Output, Error> {
        let data = self.evaluate(rows)?;
        if let Some(format) = table_format(self.options()) {
            return self.table(&data, format);
        }
        let Picture { scene, size, printed, report } = self.draw(&data, renderer, painted)?;
        let image = scene.map(|scene| renderer.paint(&scene, self.options().format)).transpose();
        let (bytes, failure) = match image {
            Ok(bytes) => (bytes, None),
            Err(error) if error.is_missing() => return Err(error.into()),
            Err(error) => (None, Some(error)),
        };
        Ok(Output { bytes, failure, size, printed, report })
    }

    /// How many values its lines, areas and ticks have: one for each column of the picture.
    pub fn value_count(&self) -> u64 {
        u64::from(self.options().width).saturating_mul(shape_count(&self.evaluator.script) as u64)
    }

    /// Fetches `rows` and computes every variable.
    ///
    /// # Errors
    /// [`Error::Eval`], [`Error::Deadline`].
    pub fn evaluate(&self, rows: &mut dyn Rows) -> Result<Data, Error> {
        let data = self.evaluator.evaluate(rows)?;
        self.limits.check_time()?;
        Ok(data)
    }

    /// Draws the picture; without `painted` its scene is left out.
    ///
    /// # Errors
    /// [`Error::Draw`], [`Error::TooManyPixels`], [`Error::Deadline`].
    pub fn draw(&self, data: &Data, renderer: &Renderer, painted: bool) -> Result<Picture, Error> {
        let context = &self.evaluator.context;
        let input = DrawInput {
            script: &self.evaluator.script,
            range: self.range(),
            data,
            options: self.options(),
            typesetter: renderer.fonts(),
            times: context,
            calendar: context.calendar(),
            first_weekday: context.first_weekday,
            painted,
        };
        let picture = compose::draw(&input)?;
        self.limits.check_pixels(picture.size, self.options().zoom)?;
        self.limits.check_time()?;
        Ok(picture)
    }

    /// Writes the rows as a table.
    fn table(&self, data: &Data, format: TableFormat) -> Result<Output, Error> {
        let Evaluator { script, range, context, .. } = &self.evaluator;
        let table = Table::of_graph(script, *range, data).ok_or(XportError::NoXport)?;
        let time_format = match &self.options().x_grid {
            XGrid::Custom { format, .. } => Some(format.as_slice()),
            _ => None,
        };
        let base = self.options().base;
        let options = TableOptions { format, time_format, times: context, base: f64::from(base) };
        let mut bytes = Vec::new();
        of_graph(script, &table, data, options, &mut bytes)?;
        let printed = self.evaluator.print(data, base)?.outside;
        let count = |key: &str, value: u64| InfoItem { key: key.to_string(), value: Value::Count(value) };
        let mut report = vec![
            count("graph_start", table.start as u64),
            count("graph_end", table.end as u64),
            count("graph_step", table.step),
        ];
        report.extend(printed.iter().enumerate().map(|(number, text)| InfoItem {
            key: format!("print[{number}]"),
            value: Value::Text(text.clone()),
        }));
        Ok(Output { bytes: Some(bytes), printed, report, ..Output::default() })
    }

    /// The text of `--imginfo`, with the size of the image after `--zoom`; `None` without that option.
    ///
    /// # Errors
    /// [`Error::ImageInfo`].
    pub fn image_info(&self, size: (i64, i64)) -> Result<Option<Vec<u8>>, Error> {
        let Some(format) = &self.options().image_info else { return Ok(None) };
        if format.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let zoomed = |pixels: i64| (pixels as f64 * self.options().zoom) as u64;
        let size = (zoomed(size.0), zoomed(size.1));
        Ok(Some(image_info(format, self.file(), size)?))
    }
}

/// How the rows are written; `None` when an image is requested.
fn table_format(options: &Options) -> Option<TableFormat> {
    let json = |show_time| TableFormat::Xport(XportOptions { json: true, show_time, numbered: false });
    let xml = |numbered| TableFormat::Xport(XportOptions { json: false, show_time: true, numbered });
    match options.format {
        ImageFormat::Png | ImageFormat::Svg | ImageFormat::Eps | ImageFormat::Pdf => None,
        ImageFormat::Xml => Some(xml(false)),
        ImageFormat::XmlEnum => Some(xml(true)),
        ImageFormat::Json => Some(json(options.json_time)),
        ImageFormat::JsonTime => Some(json(true)),
        ImageFormat::Csv => Some(TableFormat::Separated(b',')),
        ImageFormat::Tsv => Some(TableFormat::Separated(b'\t')),
        ImageFormat::Ssv => Some(TableFormat::Separated(b';')),
    }
}
