//! The table of all options of `graph`.

use args::options::{OptionSpec, flag, with_argument};

use super::Options;

/// What an option does.
#[derive(Clone, Copy)]
pub(super) enum Tag {
    Start,
    End,
    Step,
    Daemon,
    Units,
    Width,
    Height,
    UpperLimit,
    LowerLimit,
    UnitsExponent,
    UnitsLength,
    XGrid,
    YGrid,
    WeekFormat,
    LeftFormat,
    RightFormat,
    LeftFormatter,
    RightFormatter,
    RightAxis,
    LegendPosition,
    LegendDirection,
    Colour,
    GridDash,
    Border,
    Zoom,
    Font,
    FontRender,
    GraphRender,
    GraphType,
    Format,
    TabWidth,
    Base,
    Theme,
    ImageInfo,
    /// Sets a flag.
    Flag(fn(&mut Options)),
    /// Sets a text; an empty one counts as none.
    Text(fn(&mut Options) -> &mut Option<Vec<u8>>),
    /// Accepted without effect, as in RRDtool since 1.3.
    Ignored,
}

const fn long(name: &'static str, tag: Tag) -> OptionSpec<Tag> {
    OptionSpec { short: None, long: name, argument: true, tag }
}

const fn long_flag(name: &'static str, tag: Tag) -> OptionSpec<Tag> {
    OptionSpec { short: None, long: name, argument: false, tag }
}

/// All options: Debian's, then those of RRDtool 1.8, then our own.
pub(super) const OPTIONS: &[OptionSpec<Tag>] = &[
    with_argument(b's', "start", Tag::Start),
    with_argument(b'e', "end", Tag::End),
    with_argument(b'S', "step", Tag::Step),
    with_argument(b'd', "daemon", Tag::Daemon),
    with_argument(b't', "title", Tag::Text(|options| &mut options.title)),
    with_argument(b'v', "vertical-label", Tag::Text(|options| &mut options.vertical_label)),
    with_argument(b'w', "width", Tag::Width),
    with_argument(b'h', "height", Tag::Height),
    flag(b'j', "only-graph", Tag::Flag(|options| options.only_graph = true)),
    flag(b'D', "full-size-mode", Tag::Flag(|options| options.full_size = true)),
    with_argument(b'u', "upper-limit", Tag::UpperLimit),
    with_argument(b'l', "lower-limit", Tag::LowerLimit),
    flag(b'r', "rigid", Tag::Flag(|options| options.rigid = true)),
    long_flag("allow-shrink", Tag::Flag(|options| options.allow_shrink = true)),
    flag(b'A', "alt-autoscale", Tag::Flag(|options| options.alt_autoscale = true)),
    flag(b'J', "alt-autoscale-min", Tag::Flag(|options| options.alt_autoscale_min = true)),
    flag(b'M', "alt-autoscale-max", Tag::Flag(|options| options.alt_autoscale_max = true)),
    flag(b'N', "no-gridfit", Tag::Flag(|options| options.grid_fit = false)),
    with_argument(b'x', "x-grid", Tag::XGrid),
    long("week-fmt", Tag::WeekFormat),
    with_argument(b'y', "y-grid", Tag::YGrid),
    flag(b'I', "no-minor", Tag::Flag(|options| options.minor_grid = false)),
    long("left-axis-format", Tag::LeftFormat),
    long("left-axis-formatter", Tag::LeftFormatter),
    flag(b'Y', "alt-y-grid", Tag::Flag(|options| options.alt_y_grid = true)),
    long_flag("alt-y-mrtg", Tag::Ignored),
    flag(b'o', "logarithmic", Tag::Flag(|options| options.logarithmic = true)),
    with_argument(b'X', "units-exponent", Tag::UnitsExponent),
    with_argument(b'L', "units-length", Tag::UnitsLength),
    long("units", Tag::Units),
    long("right-axis", Tag::RightAxis),
    long("right-axis-label", Tag::Text(|options| &mut options.right_axis_label)),
    long("right-axis-format", Tag::RightFormat),
    long("right-axis-formatter", Tag::RightFormatter),
    flag(b'g', "no-legend", Tag::Flag(|options| options.legend = false)),
    flag(b'F', "force-rules-legend", Tag::Flag(|options| options.force_rules_legend = true)),
    long("legend-position", Tag::LegendPosition),
    long("legend-direction", Tag::LegendDirection),
    flag(b'z', "lazy", Tag::Flag(|options| options.lazy = true)),
    with_argument(b'f', "imginfo", Tag::ImageInfo),
    with_argument(b'c', "color", Tag::Colour),
    long("grid-dash", Tag::GridDash),
    long("border", Tag::Border),
    long_flag("dynamic-labels", Tag::Flag(|options| options.dynamic_labels = true)),
    with_argument(b'm', "zoom", Tag::Zoom),
    with_argument(b'n', "font", Tag::Font),
    with_argument(b'R', "font-render-mode", Tag::FontRender),
    with_argument(b'B', "font-smoothing-threshold", Tag::Ignored),
    flag(b'P', "pango-markup", Tag::Flag(|options| options.markup = true)),
    with_argument(b'G', "graph-render-mode", Tag::GraphRender),
    long("graph-type", Tag::GraphType),
    flag(b'E', "slope-mode", Tag::Flag(|options| options.slope = true)),
    with_argument(b'a', "imgformat", Tag::Format),
    flag(b'i', "interlaced", Tag::Ignored),
    with_argument(b'T', "tabwidth", Tag::TabWidth),
    with_argument(b'b', "base", Tag::Base),
    with_argument(b'W', "watermark", Tag::Text(|options| &mut options.watermark)),
    long_flag("disable-rrdtool-tag", Tag::Flag(|options| options.rrdtool_tag = false)),
    flag(b'Z', "use-nan-for-all-missing-data", Tag::Flag(|options| options.missing_is_nan = true)),
    long_flag("utc", Tag::Flag(|options| options.utc = true)),
    long_flag("add-jsontime", Tag::Flag(|options| options.json_time = true)),
    long("theme", Tag::Theme),
];
