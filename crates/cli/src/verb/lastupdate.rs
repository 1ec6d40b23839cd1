//! `rrdtool lastupdate`: the readings of the last update.

use std::io::Write;

use rrd::info::{InfoItem, Value};
use rrd::time::Moment;

use crate::failure::{Failure, Result};
use crate::options::daemon_and_rest;
use crate::target::{Location, Policy, file_failure};
use crate::{Args, Tool, print};

/// Summary and syntax.
pub const SYNTAX: &str = "lastupdate - the readings of the last update\n\n\
    \trrdtool lastupdate filename.rrd [--daemon|-d address]\n";

const USAGE: &str = "Usage: rrdtool lastupdate [--daemon|-d <addr>] <file>";

/// The time and readings of an RRD's last update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastUpdate {
    /// When.
    pub time: Moment,
    /// Name and reading of each data source; a reading may contain any bytes.
    pub readings: Vec<(String, Vec<u8>)>,
}

/// The readings of the last update.
///
/// # Errors
/// In RRDtool's words.
pub fn lastupdate(tool: &mut Tool, args: Args<'_>) -> Result<LastUpdate> {
    let (daemon, rest) = daemon_and_rest(args)?;
    let &[name] = &*rest else { return Err(Failure::new(USAGE)) };
    lastupdate_at(tool, Policy::READ_FLUSHED, name, daemon)
}

/// The same for the C function that has no daemon parameter ([`Policy::HERE_FIRST`]).
///
/// # Errors
/// In RRDtool's words.
pub fn lastupdate_here_first(tool: &mut Tool, name: &[u8]) -> Result<LastUpdate> {
    lastupdate_at(tool, Policy::HERE_FIRST, name, None)
}

fn lastupdate_at(tool: &mut Tool, policy: Policy, name: &[u8], daemon: Option<&[u8]>) -> Result<LastUpdate> {
    match tool.read_target(policy, name, daemon)? {
        Location::Local(file) => {
            let definition = file.definition();
            let live = file.live().map_err(|error| file_failure(&error))?;
            let shape = rrd::live::HeadShape::of(definition);
            let head = shape.split(&live.words);
            let readings = definition.ds.iter().zip(head.pdp);
            Ok(LastUpdate {
                time: definition.moment(head.last_update.whole),
                readings: readings
                    .map(|(ds, pdp)| (ds.name.clone(), pdp.last_ds.as_bytes().to_vec()))
                    .collect(),
            })
        }
        Location::Remote(remote) => Ok(of_items(&super::info::of_daemon(&remote)?)),
    }
}

/// Extracts the last update from items of `info`.
pub(crate) fn of_items(items: &[InfoItem]) -> LastUpdate {
    let mut last = LastUpdate { time: Moment::of_second(0), readings: Vec::new() };
    for item in items {
        match &item.value {
            Value::Count(time) if item.key == "last_update" => last.time = Moment::of_second(*time as i64),
            Value::Moment(time) if item.key == "last_update" => last.time = *time,
            Value::Text(reading) => {
                let name = item.key.strip_prefix("ds[").and_then(|key| key.strip_suffix("].last_ds"));
                if let Some(name) = name {
                    last.readings.push((name.to_string(), reading.clone()));
                }
            }
            _ => {}
        }
    }
    last
}

/// Runs it.
pub(crate) fn run(tool: &mut Tool, args: Args<'_>, out: &mut dyn Write) -> Result {
    let last = lastupdate(tool, args)?;
    let mut text = Vec::new();
    for (name, _) in &last.readings {
        text.push(b' ');
        text.extend_from_slice(name.as_bytes());
    }
    let time = match last.time {
        // RRDtool shows a time before 1970 as this number.
        Moment { units, units_per_second: 1 } => (units as u64).to_string(),
        time => time.to_string(),
    };
    text.extend_from_slice(format!("\n\n{time:>10}:").as_bytes());
    for (_, reading) in &last.readings {
        text.push(b' ');
        text.extend_from_slice(reading);
    }
    text.push(b'\n');
    print(out, &text)
}
