//! `rrdtool last`: when an RRD was last updated.

use std::io::Write;

use rrd::time::Moment;

use crate::failure::{Failure, Result};
use crate::options::daemon_and_rest;
use crate::target::{Location, Policy};
use crate::{Args, Tool, print};

/// Summary and syntax.
pub const SYNTAX: &str = "last - when an RRD was last updated\n\n\
    \trrdtool last filename.rrd [--daemon|-d address]\n";

const USAGE: &str = "Usage: rrdtool last [--daemon|-d <addr>] <file>";

/// The time of the last update.
///
/// # Errors
/// In RRDtool's words.
pub fn last(tool: &mut Tool, args: Args<'_>) -> Result<Moment> {
    let (daemon, rest) = daemon_and_rest(args)?;
    let &[name] = &*rest else { return Err(Failure::new(USAGE)) };
    match tool.read_target(Policy::READ, name, daemon)? {
        Location::Local(file) => Ok(file.definition().moment(file.last_update().whole)),
        // Compat: LAST of a daemon rounds down to the step; where a placeholder stands for the file, the time is
        // that of a file, not rounded.
        Location::Remote(remote) if remote.in_place_of.is_some() => {
            Ok(super::lastupdate::of_items(&super::info::of_daemon(&remote)?).time)
        }
        Location::Remote(remote) => super::first::moment(&remote.ask("last", &[])?),
    }
}

/// Runs it. Compat: RRDtool prints -1 before an error.
pub(crate) fn run(tool: &mut Tool, args: Args<'_>, out: &mut dyn Write) -> Result {
    let last = last(tool, args);
    print(out, format!("{}\n", last.as_ref().unwrap_or(&super::first::NO_TIME)).as_bytes())?;
    last.map(|_| ())
}
