//! `rrdtool info`: the definition and state of an RRD, one item per line.

use std::io::Write;

use protocol::rrdcached::client::Answer;
use rrd::info::{InfoItem, Value};
use rrd::time::Moment;

use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::options::{OptionSpec, Options, flag, with_argument};
use crate::target::{Location, Policy, Remote, file_failure};
use crate::{Args, Tool, print};

/// Summary and syntax.
pub const SYNTAX: &str = "info - what an RRD is and where it stands\n\n\
    \trrdtool info [--daemon|-d address [--noflush|-F]] filename.rrd\n";

const USAGE: &str = "[--daemon |-d <addr> [--noflush|-F]] <file>";

#[derive(Clone, Copy)]
enum Tag {
    Daemon,
    NoFlush,
}

const OPTIONS: &[OptionSpec<Tag>] =
    &[with_argument(b'd', "daemon", Tag::Daemon), flag(b'F', "noflush", Tag::NoFlush)];

/// The items of an RRD; `program` is the name that RRDtool's usage text gives.
///
/// # Errors
/// In RRDtool's words.
pub fn info(tool: &mut Tool, program: &str, args: Args<'_>) -> Result<Vec<InfoItem>> {
    let mut options = Options::new(OPTIONS, args);
    let (mut daemon, mut flush) = (None, true);
    while let Some(given) = options.next() {
        match given? {
            (Tag::Daemon, argument) => daemon = Some(argument),
            (Tag::NoFlush, _) => flush = false,
        }
    }
    let &[name] = &*options.rest() else {
        return Err(Failure::new(format!("Usage: rrdtool {program} {USAGE}")));
    };
    match tool.read_target(Policy::READ, name, daemon)? {
        Location::Local(file) => {
            let live = file.live().map_err(|error| file_failure(&error))?;
            Ok(rrd::info::info(file.definition(), &live, file.current_rows(), name))
        }
        Location::Remote(remote) => {
            if flush {
                remote.flush()?;
            }
            let mut items = of_daemon(&remote)?;
            if let (Some(word), Some(first)) = (&remote.in_place_of, items.first_mut()) {
                first.value = Value::Text(word.clone());
            }
            Ok(items)
        }
    }
}

/// The items from a daemon.
///
/// # Errors
/// The daemon's.
pub(crate) fn of_daemon(remote: &Remote) -> Result<Vec<InfoItem>> {
    items(&remote.ask("info", &[])?)
}

/// Parses a daemon's answer to INFO.
///
/// # Errors
/// When it is no such answer.
pub fn items(answer: &Answer) -> Result<Vec<InfoItem>> {
    answer.lines.iter().map(|line| item(line).ok_or_else(|| strange(line))).collect()
}

fn strange(line: &[u8]) -> Failure {
    Failure::of_name("rrdcached answers what is no item of info: '", line, "'")
}

/// `key type value`.
fn item(line: &[u8]) -> Option<InfoItem> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let key = String::from_utf8_lossy(parts.next()?).into_owned();
    let (kind, value) = (parts.next()?, parts.next()?);
    let value = match kind {
        b"0" if key == "last_update" => Value::Moment(Moment::parse(std::str::from_utf8(value).ok()?)?),
        b"0" => Value::Number(std::str::from_utf8(value).ok()?.parse().ok()?),
        b"1" | b"3" => Value::Count(std::str::from_utf8(value).ok()?.parse().ok()?),
        b"2" => Value::Text(value.to_vec()),
        _ => return None,
    };
    Some(InfoItem { key, value })
}

/// Runs it; `program` is the name that RRDtool's usage text gives.
pub(crate) fn run(tool: &mut Tool, program: &str, args: Args<'_>, out: &mut dyn Write) -> Result {
    let items = info(tool, program, args)?;
    print(out, &text_of(&items, &tool.environment))
}

/// The items as text, with numbers according to the locale.
pub(crate) fn text_of(items: &[InfoItem], environment: &Environment) -> Vec<u8> {
    let mut text = Vec::new();
    for item in items {
        let value = text.len() + item.key.len();
        rrd::info::push_text(&mut text, std::slice::from_ref(item));
        if matches!(item.value, Value::Number(_) | Value::Moment(_)) {
            environment.localise(&mut text, value);
        }
    }
    text
}
