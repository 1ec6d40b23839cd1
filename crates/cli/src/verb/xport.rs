//! `rrdtool xport`: rows of several RRDs, computed with, as XML or JSON.

use std::io::Write;

use args::integer::{int, long_decimal};
use graph::eval::Data;
use graph::language::check_span;
use graph::plan::TimeRange;
use graph::xport::{Table, XportError, XportOptions};
use rrdgraph::Evaluator;

use super::graph::failure;
use crate::failure::{Failure, Result};
use crate::options::{OptionSpec, Options, flag, with_argument};
use crate::source::Source;
use crate::times::Range;
use crate::{Args, Tool, unwritten};

/// What it does and its syntax.
pub const SYNTAX: &str = "xport - rows of several RRDs as XML or JSON\n\n\
    \trrdtool xport [-s|--start seconds] [-e|--end seconds]\n\
    \t\t[-m|--maxrows rows]\n\
    \t\t[--step seconds]\n\
    \t\t[--enumds] [--json] [--showtime]\n\
    \t\t[-d|--daemon address]\n\
    \t\t[DEF:vname=rrd:ds-name:CF]\n\
    \t\t[CDEF:vname=rpn-expression]\n\
    \t\t[XPORT:vname:legend]\n";

/// Default number of rows.
const ROWS_DEFAULT: i64 = 400;
/// Fewer are refused.
const ROWS_MIN: i64 = 10;

#[derive(Clone, Copy)]
enum Tag {
    Start,
    End,
    Rows,
    Step,
    Json,
    ShowTime,
    Numbered,
    Daemon,
}

const OPTIONS: &[OptionSpec<Tag>] = &[
    with_argument(b's', "start", Tag::Start),
    with_argument(b'e', "end", Tag::End),
    with_argument(b'm', "maxrows", Tag::Rows),
    OptionSpec { short: None, long: "step", argument: true, tag: Tag::Step },
    OptionSpec { short: None, long: "json", argument: false, tag: Tag::Json },
    flag(b't', "showtime", Tag::ShowTime),
    OptionSpec { short: None, long: "enumds", argument: false, tag: Tag::Numbered },
    with_argument(b'd', "daemon", Tag::Daemon),
];

/// Runs it.
pub(crate) fn run(tool: &mut Tool, args: Args<'_>, out: &mut dyn Write) -> Result {
    Export::make(tool, args)?.write(out)
}

/// An xport, computed.
pub struct Export {
    evaluator: Evaluator,
    data: Data,
    options: XportOptions,
}

impl Export {
    /// Fetches and computes.
    ///
    /// # Errors
    /// In RRDtool's words.
    pub fn make(tool: &mut Tool, args: Args<'_>) -> Result<Export> {
        make(tool, args)
    }

    /// Its rows.
    ///
    /// # Errors
    /// That there are none.
    pub fn table(&self) -> Result<Table<'_>> {
        self.evaluator.table(&self.data).map_err(failure)
    }

    /// Writes it.
    ///
    /// # Errors
    /// In RRDtool's words; what comes before a bad text is written.
    pub fn write(&self, out: &mut dyn Write) -> Result {
        self.evaluator.xport(&self.data, self.options, out).map_err(|error| match error {
            XportError::Io(error) => unwritten(&error),
            error => failure(error),
        })
    }
}

fn make(tool: &mut Tool, args: Args<'_>) -> Result<Export> {
    let mut options = Options::new(OPTIONS, args);
    let (mut range, mut rows, mut step, mut daemon) = (Range::default(), ROWS_DEFAULT, 0, None);
    let mut xport = XportOptions::default();
    while let Some(given) = options.next() {
        match given? {
            (Tag::Start, word) => range.start(word, tool.environment.clock())?,
            (Tag::End, word) => range.end(word, tool.environment.clock())?,
            (Tag::Rows, word) => {
                rows = long_decimal(word);
                if rows < ROWS_MIN {
                    return Err(Failure::new(format!("maxrows below {ROWS_MIN} rows")));
                }
            }
            (Tag::Step, word) => step = int(word),
            (Tag::Json, _) => xport.json = true,
            (Tag::ShowTime, _) => xport.show_time = true,
            (Tag::Numbered, _) => xport.numbered = true,
            (Tag::Daemon, word) => daemon = Some(word.to_vec()),
        }
    }
    let (start, end) = range.resolve(tool.environment.clock())?;
    check_span(start, end).map_err(failure)?;
    let arguments = options.rest();
    if arguments.is_empty() {
        return Err(Failure::new("can't make an xport without contents"));
    }
    let range = TimeRange::new(start, end, step.max(0) as u64, rows as u64);
    let context = tool.environment.graph_context();
    let evaluator = Evaluator::parse(&arguments, range, context).map_err(failure)?;
    // Compat: other verbs go on with the file when there is no daemon.
    if let Some(address) = tool.address(daemon.as_deref())? {
        tool.link.connect(&address)?;
    }
    let data = evaluator.evaluate(&mut Source { tool, daemon }).map_err(failure)?;
    Ok(Export { evaluator, data, options: xport })
}
