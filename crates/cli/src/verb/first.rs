//! `rrdtool first`: the time of the oldest row of an archive.

use std::io::Write;

use protocol::rrdcached::client::Answer;
use rrd::time::Moment;

use crate::failure::{Failure, Result};
use crate::options::{OptionSpec, Options, with_argument};
use crate::target::{Location, Policy};
use crate::{Args, Tool, print};
use args::integer::long;

/// What it does and its syntax.
pub const SYNTAX: &str = "first - the time of the oldest row of an archive\n\n\
    \trrdtool first filename.rrd [--rraindex number] [--daemon|-d address]\n";

const USAGE: &str = "usage rrdtool first [--rraindex number] [--daemon|-d <addr>] file.rrd";

#[derive(Clone, Copy)]
enum Tag {
    Archive,
    Daemon,
}

const OPTIONS: &[OptionSpec<Tag>] = &[
    OptionSpec { short: None, long: "rraindex", argument: true, tag: Tag::Archive },
    with_argument(b'd', "daemon", Tag::Daemon),
];

/// The time of the oldest row.
///
/// # Errors
/// In RRDtool's words.
pub fn first(tool: &mut Tool, args: Args<'_>) -> Result<Moment> {
    let mut options = Options::new(OPTIONS, args);
    let (mut archive, mut daemon) = (0, None);
    while let Some(given) = options.next() {
        match given? {
            (Tag::Archive, argument) => {
                archive = u32::try_from(long(argument) as i32)
                    .map_err(|_| Failure::new("invalid rraindex number"))?;
            }
            (Tag::Daemon, argument) => daemon = Some(argument),
        }
    }
    // Compat: more words than one are ignored.
    let rest = options.rest();
    let Some(name) = rest.first() else { return Err(Failure::new(USAGE)) };
    match tool.read_target(Policy::READ, name, daemon)? {
        Location::Local(file) => {
            let definition = file.definition();
            let units = rrd::plan::first(definition, file.last_update().whole, archive as usize)
                .map_err(|error| Failure::new(error.to_string()))?;
            Ok(definition.moment(units))
        }
        Location::Remote(remote) => moment(&remote.ask("first", &[archive.to_string().as_bytes()])?),
    }
}

/// Runs it. Compat: RRDtool prints -1 before an error.
pub(crate) fn run(tool: &mut Tool, args: Args<'_>, out: &mut dyn Write) -> Result {
    let first = first(tool, args);
    print(out, format!("{}\n", first.as_ref().unwrap_or(&NO_TIME)).as_bytes())?;
    first.map(|_| ())
}

/// What RRDtool prints instead of a time.
pub(crate) const NO_TIME: Moment = Moment::of_second(-1);

/// The time in a one-line answer.
///
/// # Errors
/// When the answer is not a time.
pub fn moment(answer: &Answer) -> Result<Moment> {
    Moment::parse(answer.text.trim())
        .ok_or_else(|| Failure::new(format!("rrdcached answers what is no number: {}", answer.text)))
}
