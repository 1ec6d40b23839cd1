//! `rrdtool updatev`: `update` that lists the rows it wrote.

use std::io::Write;
use std::path::Path;

use protocol::frames::code::ErrorCode;
use rrd::info::{InfoItem, Value};

use super::info::{items, text_of};
use super::update::{UpdateArgs, for_store, syntax};
use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::target::{Location, Policy, Remote, file_failure};
use crate::{Args, Tool, print};

/// What it does and its syntax.
pub const SYNTAX: &str = syntax!("updatev", "update, and list the rows that were written");

/// What an update wrote: the rows, including those before a refused reading.
pub struct Written {
    /// `[time]RRA[cf][pdp_per_row]DS[name]` and the value.
    pub items: Vec<InfoItem>,
    /// What went wrong.
    pub failure: Option<Failure>,
}

/// Updates a file, or what a store has in its place. A daemon is asked when an option names it; the
/// environment's, as by RRDtool, for a file never.
///
/// # Errors
/// Words that make no sense; what goes wrong with the RRD is in the result.
pub fn updatev(tool: &mut Tool, args: Args<'_>) -> Result<Written> {
    let args = UpdateArgs::read(args)?;
    apply(tool, &args)
}

/// The same with words that are read.
///
/// # Errors
/// As [`updatev`].
pub fn apply(tool: &mut Tool, args: &UpdateArgs<'_>) -> Result<Written> {
    let update = |path: &Path, environment: &Environment| match args.apply(path, environment, true) {
        Err(error @ rrd_file::Error::Placeholder { .. }) => Err(error),
        done => Ok(done),
    };
    let done = match tool.locate(Policy::UPDATEV, args.name, args.daemon, update)? {
        Location::Local(done) => done,
        Location::Remote(remote) => {
            let readings = for_store(&tool.environment, args, &remote)?;
            return send(args, &remote, &readings)?.ok_or_else(not_ours);
        }
    };
    Ok(match done {
        Ok(report) => Written { items: report.items(), failure: None },
        Err(ref error @ rrd_file::Error::Update { ref report, .. }) => {
            Written { items: report.items(), failure: Some(file_failure(error)) }
        }
        Err(error) => Written { items: Vec::new(), failure: Some(file_failure(&error)) },
    })
}

/// What a daemon cannot do that is not ours, or an older one.
fn not_ours() -> Failure {
    Failure::new("the daemon does not list rows; use update")
}

/// Updates a daemon's RRD; `None` when the daemon does not list rows.
///
/// # Errors
/// Why the daemon refused the whole update; the refusal of a single reading is in the result.
pub(super) fn send(args: &UpdateArgs<'_>, remote: &Remote, readings: &[Vec<u8>]) -> Result<Option<Written>> {
    let mut written = Written { items: Vec::new(), failure: None };
    // Readings that may be passed over go one by one.
    let at_once = if args.skip_past { 1 } else { readings.len().max(1) };
    for readings in readings.chunks(at_once) {
        let readings: Vec<&[u8]> = readings.iter().map(Vec::as_slice).collect();
        let Some(answer) = remote.ask_ours("updatev", &readings)? else { return Ok(None) };
        let mut rows = items(&answer)?;
        let refused = rows.pop_if(|item| item.key == "error");
        let code = rows.pop_if(|item| item.key == "code").map(|item| item.value);
        let is_past = code == Some(Value::Count(ErrorCode::IllegalTime.number().into()));
        written.items.append(&mut rows);
        match refused.map(|item| item.value) {
            Some(Value::Text(_)) if args.skip_past && is_past => {}
            Some(Value::Text(text)) => {
                written.failure = Some(Failure::new([args.name, b": ", &*text].concat()));
                break;
            }
            _ => {}
        }
    }
    Ok(Some(written))
}

/// Runs it.
pub(crate) fn run(tool: &mut Tool, args: Args<'_>, out: &mut dyn Write) -> Result {
    let written = updatev(tool, args)?;
    let status = if written.failure.is_none() { "return_value = 0\n" } else { "return_value = -1\n" };
    let mut text = status.as_bytes().to_vec();
    text.extend_from_slice(&text_of(&written.items, &tool.environment));
    print(out, &text)?;
    written.failure.map_or(Ok(()), Err)
}
