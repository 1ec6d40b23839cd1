//! `rrdtool xport`: rows of several RRDs, computed with, as XML or JSON.

use std::io::Write;

use graph::eval::{Data, evaluate};
use graph::language::{Script, Setting, check_span};
use graph::plan::Frame;
use graph::xport::{Form, Table, Written, xport};
use rrd::rpn::Surroundings;
use words::integer::int;

use crate::failure::{Done, Failure};
use crate::options::{Known, Options, flag, with_argument};
use crate::source::{Dates, Source};
use crate::times::Range;
use crate::{Tool, Words, unwritten};

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

/// Rows when nobody says.
const ROWS_DEFAULT: i32 = 400;
/// Fewer are refused.
const ROWS_MIN: i32 = 10;

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

const OPTIONS: &[Known<Tag>] = &[
    with_argument(b's', "start", Tag::Start),
    with_argument(b'e', "end", Tag::End),
    with_argument(b'm', "maxrows", Tag::Rows),
    Known { short: None, long: "step", argument: true, tag: Tag::Step },
    Known { short: None, long: "json", argument: false, tag: Tag::Json },
    flag(b't', "showtime", Tag::ShowTime),
    Known { short: None, long: "enumds", argument: false, tag: Tag::Numbered },
    with_argument(b'd', "daemon", Tag::Daemon),
];

/// Runs it.
pub(crate) fn run(tool: &mut Tool, words: Words<'_>, out: &mut dyn Write) -> Done {
    Export::make(tool, words)?.write(out)
}

/// What an xport has computed.
pub struct Export {
    script: Script,
    frame: Frame,
    data: Data,
    form: Form,
}

impl Export {
    /// Fetches and computes.
    ///
    /// # Errors
    /// In RRDtool's words.
    pub fn make(tool: &mut Tool, words: Words<'_>) -> Done<Export> {
        make(tool, words)
    }

    /// Its rows.
    ///
    /// # Errors
    /// That there are none.
    pub fn table(&self) -> Done<Table<'_>> {
        Table::new(&self.script, self.frame, &self.data).ok_or_else(|| Failure::new(NOTHING))
    }

    /// Writes it.
    ///
    /// # Errors
    /// In RRDtool's words; what stands before a bad text is written.
    pub fn write(&self, out: &mut dyn Write) -> Done {
        let written = xport(&self.script, self.frame, &self.data, self.form, &Dates { utc: false }, out);
        match written.map_err(|error| unwritten(&error))? {
            Written::All => Ok(()),
            Written::Nothing => Err(Failure::new(NOTHING)),
            Written::UpTo(message) => Err(Failure::new(message)),
        }
    }
}

const NOTHING: &str = "no XPORT found, nothing to do";

fn make(tool: &mut Tool, words: Words<'_>) -> Done<Export> {
    let mut options = Options::new(OPTIONS, words);
    let (mut range, mut rows, mut step, mut daemon) = (Range::default(), ROWS_DEFAULT, 0, None);
    let mut form = Form::default();
    while let Some(given) = options.next() {
        match given? {
            (Tag::Start, word) => range.start(word, &tool.surroundings)?,
            (Tag::End, word) => range.end(word, &tool.surroundings)?,
            (Tag::Rows, word) => {
                rows = int(word);
                if rows < ROWS_MIN {
                    return Err(Failure::new(format!("maxrows below {ROWS_MIN} rows")));
                }
            }
            (Tag::Step, word) => step = int(word),
            (Tag::Json, _) => form.json = true,
            (Tag::ShowTime, _) => form.show_time = true,
            (Tag::Numbered, _) => form.numbered = true,
            (Tag::Daemon, word) => daemon = Some(word.to_vec()),
        }
    }
    let (start, end) = range.resolve(&tool.surroundings)?;
    check_span(start, end).map_err(failure)?;
    let arguments = options.rest();
    if arguments.is_empty() {
        return Err(Failure::new("can't make an xport without contents"));
    }
    let frame = Frame::new(start, end, step.max(0) as u64, rows as u64);
    let now = (tool.surroundings.now)().whole;
    let calendar = &*tool.surroundings.calendar;
    let script = Script::parse(&arguments, Setting { start, end, now, calendar }).map_err(failure)?;
    // Compat: other verbs go on with the file when there is no daemon.
    if let Some(address) = tool.address(daemon.as_deref())? {
        tool.link.connect(&address)?;
    }
    // The calendar is the tool's, and the tool fetches: what evaluates takes one of its own.
    let first_weekday = tool.surroundings.first_weekday;
    let surroundings = Surroundings { now, first_weekday, calendar: &localtime::Local };
    let mut source = Source { tool, daemon };
    let data = evaluate(&script, frame, &mut source, &surroundings).map_err(failure)?;
    Ok(Export { script, frame, data, form })
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}
