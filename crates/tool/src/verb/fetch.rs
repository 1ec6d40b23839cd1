//! `rrdtool fetch`: rows of one archive as text.

use std::io::Write;

use protocol::frames::request::Fetch;
use protocol::rrdcached::client::Answer;
pub use protocol::rrdcached::fetched::Rows;
use rrd::definition::Cf;
use rrd::format::{DIGITS_TOOL, push_e};
use rrd::plan::plan;
use rrd::portable::push_whole;
use rrd::when::{DurationScale, parse_duration};

use crate::daemon::Daemon;
use crate::failure::{Done, Failure, text};
use crate::options::{Known, Options, flag, with_argument};
use crate::surroundings::Surroundings;
use crate::target::{Remote, Target, file_failure, remote};
use crate::times::Range;
use crate::{Tool, Words, print};

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

const OPTIONS: &[Known<Tag>] = &[
    with_argument(b's', "start", Tag::Start),
    with_argument(b'e', "end", Tag::End),
    with_argument(b'r', "resolution", Tag::Resolution),
    flag(b'a', "align-start", Tag::Align),
    with_argument(b'd', "daemon", Tag::Daemon),
];

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Consolidation function.
    pub cf: Cf,
    /// In seconds.
    pub start: i64,
    /// In seconds.
    pub end: i64,
    /// Seconds in a row, as near as there is.
    pub step: u64,
}

/// The rows that the words of a fetch ask for.
///
/// # Errors
/// In RRDtool's words.
pub fn fetch(tool: &mut Tool, words: Words<'_>) -> Done<Rows> {
    let mut options = Options::new(OPTIONS, words);
    let (mut range, mut resolution, mut align, mut daemon) = (Range::default(), 1, false, None);
    while let Some(given) = options.next() {
        match given? {
            (Tag::Start, word) => range.start(word, &tool.surroundings)?,
            (Tag::End, word) => range.end(word, &tool.surroundings)?,
            (Tag::Resolution, word) => resolution = duration(word)?,
            (Tag::Align, _) => align = true,
            (Tag::Daemon, word) => daemon = Some(word),
        }
    }
    let (mut start, mut end) = range.resolve(&tool.surroundings)?;
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
    fetch_as_wished(tool, name, daemon, Wish { cf, start, end, step: resolution })
}

/// The rows of the RRD called `name`.
///
/// # Errors
/// In RRDtool's words.
pub fn fetch_as_wished(tool: &mut Tool, name: &[u8], daemon: Option<&[u8]>, wish: Wish) -> Done<Rows> {
    match tool.target(name, daemon)? {
        Target::File(file) => of_file(&file, wish),
        Target::Remote(mut remote) => of_daemon(&mut remote, wish),
    }
}

/// The same for the C function that knows no daemon ([`crate::verb::update::update_here_first`]).
///
/// # Errors
/// In RRDtool's words.
pub fn fetch_here_first(tool: &mut Tool, name: &[u8], wish: Wish) -> Done<Rows> {
    match tool.target_here_first(name)? {
        Target::File(file) => of_file(&file, wish),
        Target::Remote(mut remote) => of_daemon(&mut remote, wish),
    }
}

fn duration(word: &[u8]) -> Done<u64> {
    parse_duration(text(word)?, DurationScale::SECONDS)
        .map_err(|error| Failure::new(format!("resolution: {error}")))
}

/// The rows of a file.
///
/// # Errors
/// In RRDtool's words.
pub(crate) fn of_file(file: &store::direct::ReadFile, wish: Wish) -> Done<Rows> {
    let definition = file.definition();
    let plan = plan(definition, file.last_update().whole, wish.cf, wish.start, wish.end, wish.step)
        .map_err(|error| Failure::new(error.to_string()))?;
    let values = file.fetch(&plan).map_err(|error| file_failure(&error))?;
    Ok(Rows {
        start: plan.start,
        end: plan.end,
        step: plan.step,
        units_per_second: definition.units_per_second,
        names: definition.ds.iter().map(|ds| ds.name.clone()).collect(),
        values,
    })
}

/// The rows of a daemon's RRD. Compat: only our daemon is told the resolution.
///
/// # Errors
/// What the daemon says.
pub(crate) fn of_daemon(remote: &mut Remote<'_>, wish: Wish) -> Done<Rows> {
    let (cf, step) = (wish.cf.name().as_bytes(), wish.step);
    let fetch = Fetch { name: &remote.name, cf, start: wish.start, end: wish.end, step };
    // Frames take times as they are; text counts those below 1 from now.
    if wish.start > 0
        && wish.end > 0
        && let Some(rows) = remote.daemon.fetch(&fetch)?
    {
        return Ok(rows);
    }
    let (start, end) = (wish.start.to_string(), wish.end.to_string());
    // One second is as fine as there is.
    if wish.step > 1 {
        let step = wish.step.to_string();
        let words = [cf, step.as_bytes(), start.as_bytes(), end.as_bytes()];
        if let Some(answer) = remote.ask_ours("FETCHRES", &words)? {
            return rows(&answer);
        }
    }
    let answer = remote.ask("FETCH", &[cf, start.as_bytes(), end.as_bytes()])?;
    rows(&answer)
}

/// The rows of the RRD that goes by `word` here.
///
/// # Errors
/// What the daemon says.
pub fn of_named(daemon: Daemon<'_>, word: &[u8], wish: Wish) -> Done<Rows> {
    of_daemon(&mut remote(daemon, word)?, wish)
}

/// The rows that a daemon answers FETCH with.
///
/// # Errors
/// What is no such answer.
fn rows(answer: &Answer) -> Done<Rows> {
    Rows::read(&answer.lines).ok_or_else(|| Failure::new("rrdcached answers what is no fetch"))
}

/// Writes rows as `rrdtool fetch` does.
///
/// # Errors
/// What the sink says.
pub(crate) fn write(rows: &Rows, surroundings: &Surroundings, out: &mut dyn Write) -> Done {
    let mut text = Vec::with_capacity(64 << 10);
    text.extend_from_slice(b"           ");
    for name in &rows.names {
        text.extend_from_slice(format!("{name:>20}").as_bytes());
    }
    text.extend_from_slice(b"\n\n");
    let mut time = rows.start;
    for (index, row) in rows.values.chunks_exact(rows.names.len().max(1)).enumerate() {
        time += rows.step as i64;
        push_time(&mut text, time, rows.units_per_second);
        for &value in row {
            text.push(b' ');
            let start = text.len();
            push_e(&mut text, value, DIGITS_TOOL);
            surroundings.localise(&mut text, start);
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
pub(crate) fn run(tool: &mut Tool, words: Words<'_>, out: &mut dyn Write) -> Done {
    let rows = fetch(tool, words)?;
    write(&rows, &tool.surroundings, out)
}
