//! Elements that are drawn: `rrdgraph_graph(1)`.

use crate::picture::scene::Colour;

/// An element that is drawn: `rrdgraph_graph(1)`.
#[derive(Clone, Debug, PartialEq)]
pub enum Graphic {
    /// LINE and AREA; a STACK is a stacked one of the kind before it.
    Shape(Shape),
    /// TICK
    Tick(Tick),
    /// HRULE and VRULE
    Rule(Rule),
    /// SHIFT
    Shift(Shift),
}

/// `LINE[width]:value[#color]...` and `AREA:value[#color[#color2]]...`
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Line or area.
    pub kind: ShapeKind,
    /// What it shows.
    pub value: PlotValue,
    /// Its colour. Without one, or with one that cannot be read, it is invisible, but others may be stacked on it.
    pub colour: Option<Colour>,
    /// The legend's text; may be empty.
    pub legend: Vec<u8>,
    /// Whether it is stacked on the element before it.
    pub stack: bool,
    /// Whether the limits of the axis ignore it.
    pub skip_scale: bool,
}

/// See [`Shape`].
#[derive(Clone, Debug, PartialEq)]
pub enum ShapeKind {
    /// LINE
    Line {
        /// Width in pixels.
        width: f64,
        /// Its dashes.
        dashes: Dashes,
    },
    /// AREA
    Area {
        /// The second colour of a gradient, and `gradheight` in pixels.
        gradient: Option<(Colour, f64)>,
    },
}

/// `dashes=` and `dash-offset=`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dashes {
    /// Lengths of dashes and gaps in turn, in pixels; empty = a whole line.
    pub lengths: Vec<f64>,
    /// Where in the pattern the line begins, in pixels.
    pub offset: f64,
}

/// What a shape, a rule or a shift takes its value from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlotValue {
    /// A DEF or CDEF, by series number.
    Series(usize),
    /// A VDEF, by scalar number.
    Scalar(usize),
    /// A number.
    Number(f64),
}

/// `TICK:vname#color:fraction[:legend]`
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// There is a tick wherever this is neither 0 nor unknown. Compat: a constant number gives no ticks.
    pub value: PlotValue,
    /// Its colour; one that cannot be read is transparent.
    pub colour: Colour,
    /// Its height as a fraction of the canvas height, from the lower edge; negative = from the upper edge.
    pub fraction: f64,
    /// The legend's text; may be empty.
    pub legend: Vec<u8>,
}

/// `HRULE:value#color...` and `VRULE:time#color...`
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Whether it is a VRULE.
    pub vertical: bool,
    /// Its value or time; never a series.
    pub value: PlotValue,
    /// Its colour; one that cannot be read is transparent.
    pub colour: Colour,
    /// The legend's text; may be empty.
    pub legend: Vec<u8>,
    /// Its dashes.
    pub dashes: Dashes,
}

/// `SHIFT:vname:offset`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The DEF or CDEF to shift, by series number.
    pub series: usize,
    /// By how many seconds; never a series.
    pub offset: PlotValue,
}
