//! `rrdtool fetch`: rows of one archive as text.

use std::io::Write;

use rrd::definition::Cf;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::format::{DIGITS_TOOL, push_e};
use rrd::plan::plan;
use rrd::portable::push_whole;
use rrd::when::{DurationScale, parse_duration};

use crate::environment::Environment;
use crate::failure::{Failure, Result, text};
use crate::options::{OptionSpec, Options, flag, with_argument};
use crate::target::{Location, Policy, file_failure};
use crate::times::Range;
use crate::{Args, Tool, print};

/// What it does and its syntax.
pub const SYNTAX: &str = "fetch - rows of an RRD\n\n\
    \trrdtool fetch filename.rrd CF\n\
    \t\t[-r|--resolution resolution]\n\
    \t\t[-s|--start start] [-e|--end end]\n\
    \t\t[-a|--align-start]\n\
    \t\t[-d|--daemon address]\n";

const USAGE: &str = "Usage: rrdtool fetch <file> <CF> [options]";
/// The first second that can be fetched: ten years of 365 days.
const START_MIN: i64 = 315_360_000;
/// Rows written to the sink at once.
const ROWS_AT_ONCE: usize = 1024;

#[derive(Clone, Copy)]
enum Tag {
    Resolution,
    Start,
    End,
    Align,
    Daemon,
}

const OPTIONS: &[OptionSpec<Tag>] = &[
    with_argument(b's', "start", Tag::Start),
    with_argument(b'e', "end", Tag::End),
    with_argument(b'r', "resolution", Tag::Resolution),
    flag(b'a', "align-start", Tag::Align),
    with_argument(b'd', "daemon", Tag::Daemon),
];

/// The rows that the words of a fetch ask for.
///
/// # Errors
/// In RRDtool's words.
pub fn fetch(tool: &mut Tool, args: Args<'_>) -> Result<FetchRows> {
    let mut options = Options::new(OPTIONS, args);
    let (mut range, mut resolution, mut align, mut daemon) = (Range::default(), 1, false, None);
    while let Some(given) = options.next() {
        match given? {
            (Tag::Start, word) => range.start(word, tool.environment.clock())?,
            (Tag::End, word) => range.end(word, tool.environment.clock())?,
            (Tag::Resolution, word) => resolution = duration(word)?,
            (Tag::Align, _) => align = true,
            (Tag::Daemon, word) => daemon = Some(word),
        }
    }
    let (mut start, mut end) = range.resolve(tool.environment.clock())?;
    if start < START_MIN {
        return Err(Failure::new(format!("the first entry to fetch should be after 1980 ({start})")));
    }
    if align {
        // The range moves as a whole.
        let over = start % i64::try_from(resolution).unwrap_or(i64::MAX);
        start -= over;
        end -= over;
    }
    if end < start {
        return Err(Failure::new(format!("start ({start}) should be less than end ({end})")));
    }
    let rest = options.rest();
    let &[name, cf, ..] = &*rest else { return Err(Failure::new(USAGE)) };
    let found = std::str::from_utf8(cf).ok().and_then(Cf::from_name);
    let cf = found.ok_or_else(|| Failure::of_name("unknown consolidation function '", cf, "'"))?;
    fetch_rows(tool, name, daemon, &FetchRequest::new(cf, start, end, resolution))
}

/// The rows of the RRD called `name`.
///
/// # Errors
/// In RRDtool's words.
pub fn fetch_rows(
    tool: &mut Tool,
    name: &[u8],
    daemon: Option<&[u8]>,
    request: &FetchRequest,
) -> Result<FetchRows> {
    rows(tool, Policy::READ, name, daemon, request)
}

/// The same for the C function that knows no daemon ([`Policy::HERE_FIRST`]).
///
/// # Errors
/// In RRDtool's words.
pub fn fetch_here_first(tool: &mut Tool, name: &[u8], request: &FetchRequest) -> Result<FetchRows> {
    rows(tool, Policy::HERE_FIRST, name, None, request)
}

/// The rows of the RRD that a policy finds.
///
/// # Errors
/// In RRDtool's words.
pub(crate) fn rows(
    tool: &mut Tool,
    policy: Policy,
    name: &[u8],
    daemon: Option<&[u8]>,
    request: &FetchRequest,
) -> Result<FetchRows> {
    match tool.read_target(policy, name, daemon)? {
        Location::Local(file) => of_file(&file, request),
        Location::Remote(remote) => remote.fetch(request),
    }
}

fn duration(word: &[u8]) -> Result<u64> {
    parse_duration(text(word)?, DurationScale::SECONDS)
        .map_err(|error| Failure::new(format!("resolution: {error}")))
}

/// The rows of a file.
fn of_file(file: &rrd_file::ReadFile, request: &FetchRequest) -> Result<FetchRows> {
    let definition = file.definition();
    let plan = plan(definition, file.last_update().whole, request)
        .map_err(|error| Failure::new(error.to_string()))?;
    let values = file.fetch(&plan).map_err(|error| file_failure(&error))?;
    Ok(FetchRows::new(definition, &plan, values))
}

/// Writes rows as `rrdtool fetch` does.
///
/// # Errors
/// What the sink says.
pub(crate) fn write(rows: &FetchRows, environment: &Environment, out: &mut dyn Write) -> Result {
    let mut text = Vec::with_capacity(64 << 10);
    text.extend_from_slice(b"           ");
    for name in &rows.ds_names {
        text.extend_from_slice(format!("{name:>20}").as_bytes());
    }
    text.extend_from_slice(b"\n\n");
    for (index, (time, row)) in rows.rows().enumerate() {
        push_time(&mut text, time, rows.units_per_second);
        for &value in row {
            text.push(b' ');
            let start = text.len();
            push_e(&mut text, value, DIGITS_TOOL);
            environment.localise(&mut text, start);
        }
        text.push(b'\n');
        if index % ROWS_AT_ONCE == ROWS_AT_ONCE - 1 {
            print(out, &text)?;
            text.clear();
        }
    }
    print(out, &text)
}

fn push_time(text: &mut Vec<u8>, time: i64, units_per_second: u32) {
    let unit = i64::from(units_per_second.max(1));
    let whole = if unit > 1 { time.div_euclid(unit) } else { time };
    if (1_000_000_000..10_000_000_000).contains(&whole) {
        push_whole(text, whole);
    } else {
        text.extend_from_slice(format!("{whole:>10}").as_bytes());
    }
    if unit > 1 {
        text.extend_from_slice(format!(".{:03}", time.rem_euclid(unit) * 1000 / unit).as_bytes());
    }
    text.push(b':');
}

/// Runs it.
pub(crate) fn run(tool: &mut Tool, args: Args<'_>, out: &mut dyn Write) -> Result {
    let rows = fetch(tool, args)?;
    write(&rows, &tool.environment, out)
}
