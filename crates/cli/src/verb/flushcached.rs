//! `rrdtool flushcached`: has a daemon write down what it knows of some RRDs.

use std::sync::Arc;

use crate::failure::{Failure, Result};
use crate::options::daemon_and_rest;
use crate::target::Remote;
use crate::{Args, Tool};

/// What it does and its syntax.
pub const SYNTAX: &str = "flushcached - has the daemon write an RRD out\n\n\
    \trrdtool flushcached filename.rrd [filename.rrd...] [-d|--daemon address]\n";

const USAGE: &str = "Usage: rrdtool flushcached [--daemon|-d <addr>] <file> [<file> ...]";
const NO_ADDRESS: &str = "Daemon address \"(null)\" unknown. Please use the \"--daemon\" option to set an \
    address on the command line or set the \"RRDCACHED_ADDRESS\" environment variable.";

/// Flushes each file.
///
/// # Errors
/// RRDtool's; the files after the one that failed are skipped.
pub fn run(tool: &mut Tool, args: Args<'_>) -> Result {
    let (daemon, names) = daemon_and_rest(args)?;
    if names.is_empty() {
        return Err(Failure::new(USAGE));
    }
    let none = if daemon.is_some() { "" } else { "(null)" };
    let address = tool.address(daemon)?.ok_or_else(|| Failure::new(NO_ADDRESS.replace("(null)", none)))?;
    let daemon = tool.link.connect(&address)?;
    for (index, name) in names.iter().enumerate() {
        tool.environment.path(name)?;
        let flushed =
            Remote::named(Arc::clone(&daemon), name, &tool.environment).and_then(|remote| remote.flush());
        flushed.map_err(|failure| {
            let left = names.len() - index - 1;
            let files = if left == 1 { "file" } else { "files" };
            let name = String::from_utf8_lossy(name);
            Failure::new(format!(
                "Flushing of file \"{name}\" failed: {failure}. Skipping remaining {left} {files}."
            ))
        })?;
    }
    Ok(())
}
