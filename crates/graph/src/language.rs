//! The graph language: parses arguments into typed elements.
//!
//! Owns the grammar of `rrdgraph_data(1)` and `rrdgraph_graph(1)` and RRDtool's messages about it. CDEFs and VDEFs are
//! compiled here, against the variables defined before them, so that a [`Script`] is consistent and evaluating it
//! looks up no name. Knows no rows and reads no clock.

mod colour;
mod data;
mod element;
mod error;
mod figure;
pub mod graphic;
mod text;

pub use colour::colour;
pub use data::{START_MIN, check_span};
pub use element::{Cdef, Def, Element, Print, PrintSource, PrintStyle, VdefElement, Xport};
pub use error::LanguageError;

use std::collections::HashMap;

use rrd::rpn::Symbol;
use rrd::when::calendar::Calendar;

use crate::argument::Argument;

/// Bytes of a legend or format that RRDtool keeps.
const TEXT_BYTES_MAX: usize = 200;
/// Longest name of a variable in bytes, as `rrdgraph_data(1)` has it.
const NAME_BYTES_MAX: usize = 255;

/// What times in the arguments can refer to.
#[derive(Clone, Copy)]
pub struct ScriptContext<'a> {
    /// Start of the graph, and of each DEF that gives no other: seconds since the epoch.
    pub start: i64,
    /// End of the graph: seconds since the epoch.
    pub end: i64,
    /// What `now` means in `start=` and `end=` of a DEF: seconds since the epoch.
    pub now: i64,
    /// Local time, for `start=` and `end=`.
    pub calendar: &'a dyn Calendar,
}

/// The elements of a graph, parsed.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The elements in the order of the arguments.
    pub elements: Vec<Element>,
    variables: Vec<Variable>,
    /// What each name stands for, and how often it is defined. A map: with a hundred DEFs, VDEFs and PRINTs a linear
    /// search took an eighth of the time.
    names: HashMap<Vec<u8>, (Symbol, usize)>,
    series: usize,
    scalars: usize,
    /// A colour could not be read; everything after it is ignored.
    ended: bool,
}

/// A name and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name as it was given.
    pub name: Vec<u8>,
    /// A DEF or CDEF (by series number), or a VDEF (by scalar number).
    pub symbol: Symbol,
}

impl Script {
    /// Parses all arguments.
    ///
    /// # Errors
    /// The first [`LanguageError`].
    pub fn parse<A: AsRef<[u8]>>(
        arguments: &[A],
        context: ScriptContext<'_>,
    ) -> Result<Script, LanguageError> {
        let mut script = Script::default();
        for line in arguments {
            script.add(line.as_ref(), context)?;
            if script.ended {
                break;
            }
        }
        Ok(script)
    }

    fn add(&mut self, line: &[u8], context: ScriptContext<'_>) -> Result<(), LanguageError> {
        let mut argument = Argument::new(line);
        let command = argument.command()?;
        let element = match command.as_str() {
            "DEF" => data::def(self, &mut argument, context)?,
            "CDEF" => data::cdef(self, &mut argument)?,
            "VDEF" => data::vdef(self, &mut argument)?,
            "XPORT" => match text::xport(self, &mut argument)? {
                Some(element) => element,
                None => return Ok(()),
            },
            "PRINT" => text::print(self, &mut argument, false)?,
            "GPRINT" => text::print(self, &mut argument, true)?,
            "COMMENT" => text::comment(&mut argument)?,
            "TEXTALIGN" => text::text_align(&mut argument)?,
            "AREA" => figure::area(self, &mut argument)?,
            "STACK" => figure::stack(self, &mut argument)?,
            "HRULE" => figure::rule(self, &mut argument, false)?,
            "VRULE" => figure::rule(self, &mut argument, true)?,
            "TICK" => figure::tick(self, &mut argument)?,
            "SHIFT" => figure::shift(self, &mut argument)?,
            line if line.starts_with("LINE") => {
                figure::line(self, &mut argument, &line.as_bytes()["LINE".len()..])?
            }
            _ => return Err(LanguageError::UnknownElement { command, line: argument.line() }),
        };
        if !self.ended {
            argument.finish()?;
        }
        self.elements.push(element);
        Ok(())
    }

    /// What `name` stands for; if it is defined twice, the first.
    pub fn lookup(&self, name: &[u8]) -> Option<Symbol> {
        self.names.get(name).map(|(symbol, _)| *symbol)
    }

    /// Every variable, in the order of definition.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// How many DEFs and CDEFs there are.
    pub fn series_count(&self) -> usize {
        self.series
    }

    /// How many VDEFs there are.
    pub fn scalar_count(&self) -> usize {
        self.scalars
    }

    /// How many variables are called `name`.
    fn count(&self, name: &[u8]) -> usize {
        self.names.get(name).map_or(0, |(_, count)| *count)
    }

    /// Adds a variable; one without a name cannot be referred to, but an empty name is one.
    fn define(&mut self, name: Option<&[u8]>, symbol: Symbol) {
        match symbol {
            Symbol::Series(_) => self.series += 1,
            Symbol::Scalar(_) => self.scalars += 1,
        }
        // RRDtool does not keep longer names, so nothing can refer to them.
        let name = name.filter(|name| name.len() <= NAME_BYTES_MAX);
        if let Some(name) = name {
            self.names.entry(name.to_vec()).or_insert((symbol, 0)).1 += 1;
        }
        self.variables.push(Variable { name: name.unwrap_or_default().to_vec(), symbol });
    }
}

#[cfg(test)]
mod tests;
