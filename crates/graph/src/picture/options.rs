//! The options of `rrdgraph(1)`, typed, with RRDtool's defaults.

pub mod parse;
mod theme;

use super::scene::Colour;
use super::text::Font;

/// The tags of `--color`, in RRDtool's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourTag {
    /// Background of the image.
    Back,
    /// Background of the canvas.
    Canvas,
    /// Left and upper border.
    ShadeA,
    /// Right and lower border.
    ShadeB,
    /// Minor grid lines.
    Grid,
    /// Major grid lines.
    MajorGrid,
    /// Texts.
    Font,
    /// The axes.
    Axis,
    /// Around the colour boxes of the legend.
    Frame,
    /// The arrow heads of the axes.
    Arrow,
}

/// The colours of [`ColourTag`], by its number.
pub type Colours = [Colour; 10];

/// The tags of `--font`, in RRDtool's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FontTag {
    /// All texts without an own font.
    Default,
    /// The title.
    Title,
    /// Labels of the axes.
    Axis,
    /// The vertical label.
    Unit,
    /// The legend.
    Legend,
    /// The watermark.
    Watermark,
}

/// The fonts of [`FontTag`], by its number.
pub type Fonts = [Font; 6];

/// A unit of time in `--x-grid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// SECOND
    Second,
    /// MINUTE
    Minute,
    /// HOUR
    Hour,
    /// DAY
    Day,
    /// WEEK
    Week,
    /// MONTH
    Month,
    /// YEAR
    Year,
}

/// A number of units of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The unit.
    pub unit: TimeUnit,
    /// How many of them.
    pub count: i32,
}

/// `--x-grid`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XGrid {
    /// Chosen by the seconds per pixel.
    Auto,
    /// Neither lines nor labels.
    None,
    /// As the option says.
    Custom {
        /// Minor lines.
        grid: Interval,
        /// Major lines.
        major: Interval,
        /// Labels.
        label: Interval,
        /// Seconds over which a label is centred; 0 = it is under its line.
        precision: i64,
        /// The labels' `strftime` format.
        format: Vec<u8>,
    },
}

/// `--y-grid`
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum YGrid {
    /// Chosen by the range of values.
    Auto,
    /// Neither lines nor labels.
    None,
    /// As the option says.
    Custom {
        /// From line to line.
        step: f64,
        /// Lines per label.
        label_factor: i32,
    },
}

/// `--left-axis-formatter` and `--right-axis-formatter`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisFormatter {
    /// Numbers.
    Numeric,
    /// Seconds since the epoch, by `strftime` in universal time.
    Timestamp,
    /// Durations in milliseconds.
    Duration,
}

/// How the labels of a vertical axis are formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisText {
    /// What the values are.
    pub formatter: AxisFormatter,
    /// The format; `None` = the formatter's default.
    pub format: Option<Vec<u8>>,
}

/// `--legend-position`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegendPosition {
    /// Above.
    North,
    /// On the left.
    West,
    /// Below.
    South,
    /// On the right.
    East,
}

/// `--legend-direction`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegendDirection {
    /// In the order of the arguments.
    TopDown,
    /// In the opposite order.
    BottomUp,
    /// In the opposite order, except for COMMENTs at both ends.
    BottomUp2,
}

/// `--imgformat`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// PNG
    Png,
    /// SVG
    Svg,
    /// EPS
    Eps,
    /// PDF
    Pdf,
    /// The rows as xport's XML.
    Xml,
    /// The same with numbered value tags.
    XmlEnum,
    /// The rows as JSON.
    Json,
    /// The same with times.
    JsonTime,
    /// The rows, separated by commas.
    Csv,
    /// The rows, separated by tabs.
    Tsv,
    /// The rows, separated by semicolons.
    Ssv,
}

/// `--font-render-mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FontRender {
    /// Hinted and smooth.
    Normal,
    /// Slightly hinted and smooth.
    Light,
    /// Hinted and not smooth.
    Mono,
}

/// `--theme`: Roundel's own looks, which RRDtool does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// RRDtool's look.
    Classic,
    /// On a white background.
    Light,
    /// On a dark background.
    Dark,
}

/// All options except the time range (`--start`, `--end`, `--step`) and `--daemon`.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `--title`
    pub title: Option<Vec<u8>>,
    /// `--vertical-label`
    pub vertical_label: Option<Vec<u8>>,
    /// `--width` in pixels, of the canvas or (full size) of the image.
    pub width: u32,
    /// `--height` in pixels, of the canvas or (full size) of the image.
    pub height: u32,
    /// `--only-graph`
    pub only_graph: bool,
    /// `--full-size-mode`
    pub full_size: bool,
    /// `--upper-limit`
    pub upper_limit: Option<f64>,
    /// `--lower-limit`
    pub lower_limit: Option<f64>,
    /// `--rigid`
    pub rigid: bool,
    /// `--allow-shrink`
    pub allow_shrink: bool,
    /// `--alt-autoscale`
    pub alt_autoscale: bool,
    /// `--alt-autoscale-min`
    pub alt_autoscale_min: bool,
    /// `--alt-autoscale-max`
    pub alt_autoscale_max: bool,
    /// Whether points are snapped to whole pixels; `--no-gridfit` and vector formats turn it off.
    pub grid_fit: bool,
    /// `--x-grid`
    pub x_grid: XGrid,
    /// `--week-fmt`
    pub week_format: Vec<u8>,
    /// `--y-grid`
    pub y_grid: YGrid,
    /// The left axis's labels.
    pub left_axis: AxisText,
    /// The right axis's labels.
    pub right_axis_text: AxisText,
    /// `--right-axis`: scale and shift.
    pub right_axis: Option<(f64, f64)>,
    /// `--right-axis-label`
    pub right_axis_label: Option<Vec<u8>>,
    /// `--alt-y-grid`
    pub alt_y_grid: bool,
    /// Whether there are minor grid lines (`--no-minor`).
    pub minor_grid: bool,
    /// `--logarithmic`
    pub logarithmic: bool,
    /// `--units-exponent`
    pub units_exponent: Option<i32>,
    /// `--units-length`: characters of a label of the y axis.
    pub units_length: Option<i32>,
    /// `--units=si`
    pub units_si: bool,
    /// Whether there is a legend (`--no-legend`).
    pub legend: bool,
    /// `--force-rules-legend`
    pub force_rules_legend: bool,
    /// `--legend-position`
    pub legend_position: LegendPosition,
    /// `--legend-direction`
    pub legend_direction: LegendDirection,
    /// `--lazy`
    pub lazy: bool,
    /// `--imginfo`
    pub image_info: Option<Vec<u8>>,
    /// `--color`
    pub colours: Colours,
    /// `--grid-dash`: on and off, in pixels.
    pub grid_dash: (f64, f64),
    /// `--border` in pixels.
    pub border: i32,
    /// `--dynamic-labels`
    pub dynamic_labels: bool,
    /// `--zoom`
    pub zoom: f64,
    /// `--font`
    pub fonts: Fonts,
    /// `--font-render-mode`
    pub font_render: FontRender,
    /// `--pango-markup`
    pub markup: bool,
    /// Whether lines are smooth (`--graph-render-mode`).
    pub smooth_lines: bool,
    /// `--slope-mode`
    pub slope: bool,
    /// `--imgformat`
    pub format: ImageFormat,
    /// `--tabwidth` in pixels.
    pub tab_width: f64,
    /// `--base`: 1000 or 1024.
    pub base: u32,
    /// `--watermark`
    pub watermark: Option<Vec<u8>>,
    /// Whether the tool signs at the right edge (`--disable-rrdtool-tag`).
    pub rrdtool_tag: bool,
    /// `--use-nan-for-all-missing-data`
    pub missing_is_nan: bool,
    /// `--utc`
    pub utc: bool,
    /// `--add-jsontime`
    pub json_time: bool,
    /// `--theme`
    pub theme: Theme,
}

/// Default families of all texts, without `RRD_DEFAULT_FONT` and `--font`.
pub const FONT_DEFAULT: &[u8] = b"DejaVu Sans Mono,Bitstream Vera Sans Mono,monospace,Courier";

impl Default for Options {
    fn default() -> Options {
        let font = |size: f64| Font { size, description: FONT_DEFAULT.to_vec() };
        let text = || AxisText { formatter: AxisFormatter::Numeric, format: None };
        Options {
            title: None,
            vertical_label: None,
            width: 400,
            height: 100,
            only_graph: false,
            full_size: false,
            upper_limit: None,
            lower_limit: None,
            rigid: false,
            allow_shrink: false,
            alt_autoscale: false,
            alt_autoscale_min: false,
            alt_autoscale_max: false,
            grid_fit: true,
            x_grid: XGrid::Auto,
            week_format: b"Week %V".to_vec(),
            y_grid: YGrid::Auto,
            left_axis: text(),
            right_axis_text: text(),
            right_axis: None,
            right_axis_label: None,
            alt_y_grid: false,
            minor_grid: true,
            logarithmic: false,
            units_exponent: None,
            units_length: None,
            units_si: false,
            legend: true,
            force_rules_legend: false,
            legend_position: LegendPosition::South,
            legend_direction: LegendDirection::TopDown,
            lazy: false,
            image_info: None,
            colours: [
                Colour::new(0xf3f3_f3ff),
                Colour::new(0xffff_ffff),
                Colour::new(0xcfcf_cfff),
                Colour::new(0x9e9e_9eff),
                Colour::new(0x8f8f_8fbf),
                Colour::new(0xde50_5098),
                Colour::new(0x0000_00ff),
                Colour::new(0x1e1e_1eff),
                Colour::new(0x0000_00ff),
                Colour::new(0x801e_1eff),
            ],
            grid_dash: (1.0, 1.0),
            border: 2,
            dynamic_labels: false,
            zoom: 1.0,
            fonts: [font(8.0), font(9.0), font(7.0), font(8.0), font(8.0), font(5.5)],
            font_render: FontRender::Normal,
            markup: false,
            smooth_lines: true,
            slope: false,
            format: ImageFormat::Png,
            tab_width: 40.0,
            base: 1000,
            watermark: None,
            rrdtool_tag: true,
            missing_is_nan: false,
            utc: false,
            json_time: false,
            theme: Theme::Classic,
        }
    }
}

impl Options {
    /// The colour of `tag`.
    pub fn colour(&self, tag: ColourTag) -> Colour {
        self.colours[tag as usize]
    }

    /// The font of `tag`.
    pub fn font(&self, tag: FontTag) -> &Font {
        &self.fonts[tag as usize]
    }
}
