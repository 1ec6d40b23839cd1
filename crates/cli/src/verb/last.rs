//! `rrdtool last`: when an RRD was last updated.

use std::io::Write;

use crate::failure::{Failure, Result};
use crate::options::daemon_and_rest;
use crate::target::{Location, Policy};
use crate::{Tool, Words, print};

/// What it does and its syntax.
pub const SYNTAX: &str = "last - when an RRD was last updated\n\n\
    \trrdtool last filename.rrd [--daemon|-d address]\n";

const USAGE: &str = "Usage: rrdtool last [--daemon|-d <addr>] <file>";

/// The last update, in seconds.
///
/// # Errors
/// In RRDtool's words.
pub fn last(tool: &mut Tool, words: Words<'_>) -> Result<i64> {
    let (daemon, rest) = daemon_and_rest(words)?;
    let &[name] = &*rest else { return Err(Failure::new(USAGE)) };
    match tool.read_target(Policy::READ, name, daemon)? {
        Location::Local(file) => Ok(file.last_update().in_seconds(file.definition().units_per_second).whole),
        // Compat: a daemon's LAST is the end of the newest row.
        Location::Remote(remote) if remote.in_place_of.is_some() => {
            Ok(super::lastupdate::of_items(&super::info::of_daemon(&remote)?).time)
        }
        Location::Remote(remote) => super::first::number(&remote.ask("last", &[])?),
    }
}

/// Runs it: RRDtool prints -1 in front of an error.
pub(crate) fn run(tool: &mut Tool, words: Words<'_>, out: &mut dyn Write) -> Result {
    let last = last(tool, words);
    print(out, format!("{}\n", last.as_ref().unwrap_or(&-1)).as_bytes())?;
    last.map(|_| ())
}
