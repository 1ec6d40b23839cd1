//! Elements over a range of time: what xport, graph and query compute.

use std::io::Write;

use graph::eval::{Data, EvalError, evaluate};
use graph::language::{Element, LanguageError, Script, ScriptContext};
use graph::missing::MissingAsUnknown;
use graph::plan::{Rows, TimeRange};
use graph::print::{PrintError, Printed};
use graph::xport::{Table, XportError, XportOptions, xport};
use rrd::rpn::{EvalContext, Symbol};

use crate::GraphContext;

/// Parsed elements, and the range of time that they are computed over.
#[derive(Clone, Debug)]
pub struct Evaluator {
    /// The elements. A caller may give a DEF another file.
    pub script: Script,
    /// Start, end and step.
    pub range: TimeRange,
    /// Time, time zone and locale.
    pub context: GraphContext,
    /// Whether files and data sources that do not exist count as unknown (`--use-nan-for-all-missing-data`).
    pub missing_is_unknown: bool,
}

impl Evaluator {
    /// Parses `elements`: DEF, CDEF, VDEF and whatever shows them.
    ///
    /// # Errors
    /// [`LanguageError`]: that of the first element that has one.
    pub fn parse<A: AsRef<[u8]>>(
        elements: &[A],
        range: TimeRange,
        context: GraphContext,
    ) -> Result<Evaluator, LanguageError> {
        let context_of_script = ScriptContext {
            start: range.start,
            end: range.end,
            now: context.now,
            calendar: context.calendar(),
        };
        let script = Script::parse(elements, context_of_script)?;
        Ok(Evaluator { script, range, context, missing_is_unknown: false })
    }

    /// Fetches `rows` and computes every variable.
    ///
    /// # Errors
    /// [`EvalError`].
    pub fn evaluate(&self, rows: &mut dyn Rows) -> Result<Data, EvalError> {
        let GraphContext { now, first_weekday, .. } = self.context;
        let context = EvalContext { now, first_weekday, calendar: self.context.calendar() };
        if self.missing_is_unknown {
            let mut rows = MissingAsUnknown::new(rows, &self.script);
            evaluate(&self.script, self.range, &mut rows, &context)
        } else {
            evaluate(&self.script, self.range, rows, &context)
        }
    }

    /// The table of the XPORTs.
    ///
    /// # Errors
    /// [`XportError::NoXport`].
    pub fn table<'a>(&'a self, data: &'a Data) -> Result<Table<'a>, XportError> {
        Table::new(&self.script, self.range, data).ok_or(XportError::NoXport)
    }

    /// Writes the table of the XPORTs to `sink`, as `rrdxport(1)` does.
    ///
    /// # Errors
    /// [`XportError`].
    pub fn xport(&self, data: &Data, options: XportOptions, sink: &mut dyn Write) -> Result<(), XportError> {
        xport(&self.script, self.range, data, options, &self.context, sink)
    }

    /// The texts of PRINT and GPRINT. `base` is what magnitudes count in, 1000 or 1024.
    ///
    /// # Errors
    /// [`PrintError`].
    pub fn print(&self, data: &Data, base: u32) -> Result<Printed, PrintError> {
        Printed::of(&self.script, data, &self.context, base)
    }

    /// The series that XPORTs export, by number, each with its legend, or without one with the variable's name.
    pub fn exports(&self) -> Vec<(usize, Vec<u8>)> {
        let exports = self.script.elements.iter().filter_map(|element| match element {
            Element::Xport(xport) if xport.legend.is_empty() => {
                Some((xport.series, self.name(xport.series).to_vec()))
            }
            Element::Xport(xport) => Some((xport.series, xport.legend.clone())),
            _ => None,
        });
        exports.collect()
    }

    /// The name of the variable that is series number `series`; empty when its name is too long to be kept.
    pub fn name(&self, series: usize) -> &[u8] {
        let mut variables = self.script.variables().iter();
        let variable = variables.find(|variable| variable.symbol == Symbol::Series(series));
        variable.map_or(&[], |variable| &variable.name)
    }
}
