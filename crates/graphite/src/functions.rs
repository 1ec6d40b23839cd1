//! The functions: names, parameters, and what computes them.

mod describe;
mod table;

use crate::args::{Args, Value};
use crate::eval::{Context, EvalError, Evaluator};

pub use describe::describe;
pub use table::all;

/// What computes a function.
pub type Call = fn(&mut Evaluator<'_>, &mut Context, Args<'_>) -> Result<Value, EvalError>;

/// What a parameter takes. The names are those that clients of `/functions` know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Anything.
    Any,
    /// Series.
    SeriesList,
    /// Groups of series.
    SeriesLists,
    /// A number.
    Float,
    /// A whole number.
    Integer,
    /// A whole number or `inf`.
    IntOrInf,
    /// A number of values or a span of time.
    IntOrInterval,
    /// A span of time.
    Interval,
    /// A time.
    Date,
    /// A part of a name.
    Node,
    /// A part of a name, or a tag.
    NodeOrTag,
    /// A text.
    Text,
    /// True or false.
    Boolean,
    /// An aggregating function.
    AggFunc,
    /// The same, or a function of series.
    AggOrSeriesFunc,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Any => "any",
            Kind::SeriesList => "seriesList",
            Kind::SeriesLists => "seriesLists",
            Kind::Float => "float",
            Kind::Integer => "integer",
            Kind::IntOrInf => "intOrInf",
            Kind::IntOrInterval => "intOrInterval",
            Kind::Interval => "interval",
            Kind::Date => "date",
            Kind::Node => "node",
            Kind::NodeOrTag => "nodeOrTag",
            Kind::Text => "string",
            Kind::Boolean => "boolean",
            Kind::AggFunc => "aggFunc",
            Kind::AggOrSeriesFunc => "aggOrSeriesFunc",
        }
    }
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Whether it must be there.
    pub required: bool,
    /// Whether it may be repeated; only the last may.
    pub multiple: bool,
    /// What it is if it is not there, as JSON; empty: nothing.
    pub default: &'static str,
}

/// Which consolidation function the arguments of a function are fetched with, when `consolidateBy` stands around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfRule {
    /// That of `consolidateBy`: the function does not compute, or only what is the same for the largest of a span.
    Keeps,
    /// AVERAGE: the largest of a sum is no sum of largest.
    Resets,
    /// The function is `consolidateBy`.
    Sets,
}

/// A function.
#[derive(Clone, Copy)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Where editors show it.
    pub group: &'static str,
    /// What it does, in a sentence.
    pub text: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// The consolidation function of what it takes.
    pub cf: CfRule,
    /// Whether the values of its series are those that it was given.
    pub is_in_place: bool,
    /// What computes it.
    pub call: Call,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The function called `name`.
pub fn find(name: &str) -> Option<&'static Function> {
    all().find(|function| function.name == name)
}

/// What to say about a name that no function has.
pub fn unknown(name: &str) -> String {
    let lower = name.to_lowercase();
    let near = all().find(|function| function.name.to_lowercase() == lower);
    match near {
        Some(near) => format!("there is no function {name:?}; did you mean {}?", near.name),
        None => format!("there is no function {name:?}; /functions lists those there are"),
    }
}
