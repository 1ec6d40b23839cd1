//! `roundel collectd`: takes over what a `collectd.conf` says.

use std::path::PathBuf;

use clap::Args;

use super::{Result, print};

/// Options of `collectd`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Write the network, rrdtool and rrdcached sections of this collectd.conf as lines for roundel.toml
    #[arg(long, value_name = "FILE")]
    convert: PathBuf,
}

/// Prints the lines; what has no place in `roundel.toml` goes to standard error.
pub fn run(arguments: &Arguments) -> Result {
    let path = &arguments.convert;
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let conversion = collect::collectd::convert(&text);
    print(&conversion.toml)?;
    for (line, remark) in conversion.remarks {
        match line {
            0 => eprintln!("{}: {remark}", path.display()),
            line => eprintln!("{}:{line}: {remark}", path.display()),
        }
    }
    Ok(())
}
