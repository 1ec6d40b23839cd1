//! Elements that only a picture shows.

use crate::picture::scene::Colour;

/// An element that only a picture shows: `rrdgraph_graph(1)`.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawn {
    /// LINE, AREA, and STACK as what it stands on.
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
    pub value: Plotted,
    /// Its colour; `None` = it is not seen, but stacked upon: none was given, or one that cannot be read.
    pub colour: Option<Colour>,
    /// What stands in the legend; may be empty.
    pub legend: Vec<u8>,
    /// Whether it stands on the element before it.
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
        /// How it is broken.
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
    /// Where in the pattern it begins, in pixels.
    pub offset: f64,
}

/// What a shape, a rule or a shift takes its value from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plotted {
    /// A DEF or CDEF, by number of series.
    Series(usize),
    /// A VDEF, by number of scalar.
    Scalar(usize),
    /// A number.
    Number(f64),
}

/// `TICK:vname#color:fraction[:legend]`
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Where its value is neither 0 nor unknown there is a tick. Compat: a number gives none at all.
    pub value: Plotted,
    /// Its colour; one that cannot be read is transparent.
    pub colour: Colour,
    /// Its height as a part of the canvas's, from the lower edge; negative from the upper one.
    pub fraction: f64,
    /// What stands in the legend; may be empty.
    pub legend: Vec<u8>,
}

/// `HRULE:value#color...` and `VRULE:time#color...`
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Whether it is a VRULE.
    pub vertical: bool,
    /// Its value or time; never a series.
    pub value: Plotted,
    /// Its colour; one that cannot be read is transparent.
    pub colour: Colour,
    /// What stands in the legend; may be empty.
    pub legend: Vec<u8>,
    /// How it is broken.
    pub dashes: Dashes,
}

/// `SHIFT:vname:offset`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The DEF or CDEF that is shown later, by number of series.
    pub series: usize,
    /// By how many seconds; never a series.
    pub offset: Plotted,
}
