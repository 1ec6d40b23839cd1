//! The graph language: arguments to typed elements.
//!
//! Owns the grammar of `rrdgraph_data(1)` and `rrdgraph_graph(1)` and RRDtool's messages about it. A variable
//! is known from its definition on: CDEFs and VDEFs are compiled here, against the variables before them, so
//! that a [`Script`] is consistent and evaluating it looks up no name. Knows no row and reads no clock.

mod colour;
mod data;
pub mod drawn;
mod element;
mod error;
mod figure;
mod text;

pub use colour::colour;
pub use data::{START_MIN, check_span};
pub use element::{Cdef, Def, Element, Note, NoteKind, Print, PrintSource, PrintStyle, VdefElement, Xport};
pub use error::LanguageError;

use std::collections::HashMap;

use rrd::rpn::Symbol;
use rrd::when::calendar::Calendar;

use crate::argument::Argument;

/// Bytes of a legend or format that RRDtool keeps.
const TEXT_BYTES_MAX: usize = 200;
/// Longest name of a variable in bytes, as `rrdgraph_data(1)` has it.
const NAME_BYTES_MAX: usize = 255;

/// What the arguments can refer to.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// Where the graph starts: seconds since the epoch. A DEF starts there unless it says otherwise.
    pub start: i64,
    /// Where it ends.
    pub end: i64,
    /// What `now` is in a DEF's own `start=` and `end=`: seconds since the epoch.
    pub now: i64,
    /// Local time, for these.
    pub calendar: &'a dyn Calendar,
}

/// A graph as it was asked for.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The elements in the order of the arguments.
    pub elements: Vec<Element>,
    variables: Vec<Variable>,
    /// Each name that can be found: what it stands for, and how often it was given. Of a hundred DEFs with as many
    /// VDEFs and PRINTs a search through all of them took an eighth of the time.
    names: HashMap<Vec<u8>, (Symbol, usize)>,
    series: usize,
    scalars: usize,
    /// A colour could not be read, and so nothing behind it is.
    ended: bool,
}

/// A name and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name as it was given.
    pub name: Vec<u8>,
    /// A DEF or CDEF (by number of series), or a VDEF (by number of scalar).
    pub symbol: Symbol,
}

impl Script {
    /// Reads all arguments.
    ///
    /// # Errors
    /// That of the first argument that has one.
    pub fn parse<A: AsRef<[u8]>>(arguments: &[A], setting: Setting<'_>) -> Result<Script, LanguageError> {
        let mut script = Script::default();
        for line in arguments {
            script.add(line.as_ref(), setting)?;
            if script.ended {
                break;
            }
        }
        Ok(script)
    }

    fn add(&mut self, line: &[u8], setting: Setting<'_>) -> Result<(), LanguageError> {
        let mut argument = Argument::new(line);
        let command = argument.command()?;
        let element = match command.as_str() {
            "DEF" => data::def(self, &mut argument, setting)?,
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

    /// What `name` stands for; of two of the same name the first.
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

    fn define(&mut self, name: &[u8], symbol: Symbol) {
        match symbol {
            Symbol::Series(_) => self.series += 1,
            Symbol::Scalar(_) => self.scalars += 1,
        }
        // RRDtool keeps no longer name, and so never finds it again.
        let name = if name.len() > NAME_BYTES_MAX { Vec::new() } else { name.to_vec() };
        if !name.is_empty() {
            self.names.entry(name.clone()).or_insert((symbol, 0)).1 += 1;
        }
        self.variables.push(Variable { name, symbol });
    }
}

#[cfg(test)]
mod tests;
