//! `roundel snapshot`: a copy of a store as it is at one moment, by itself or through the store's daemon.

use std::path::{Path, PathBuf};

use clap::Args;
use client::{Daemon, Wire};
use store::snapshot::write_at_rest;

use super::{Result, address, print};

/// Options of `snapshot`.
#[derive(Debug, Args)]
#[command(
    about = "Make a copy of a store as it is at one moment, running or stopped",
    long_about = "Make a directory that holds the store as it is at one moment: everything that was answered before, nothing \
                  that comes later. Files that never change get a second name (a hard link) where that is possible, so that \
                  it takes seconds and hardly any space; the log is copied. The directory is a store: roundel serve, \
                  verify and inspect open it.",
    after_long_help = AFTER_HELP
)]
pub struct Arguments {
    /// The directory to make. Through a daemon: a name, or a path in the directory that its configuration allows
    #[arg(value_name = "DIR")]
    to: PathBuf,
    /// A store that no daemon has open
    #[arg(long, value_name = "DIR", conflicts_with = "daemon")]
    store: Option<PathBuf>,
    /// The daemon that has the store open [default: RRDCACHED_ADDRESS, else unix:var/rrdcached.sock]
    #[arg(long, value_name = "ADDRESS")]
    daemon: Option<String>,
}

const AFTER_HELP: &str = "\
A daemon writes snapshots only where its operator says: snapshots = \"/var/lib/roundel-snapshots\" in roundel.toml, on
the file system of the store for links. The command SNAPSHOT of its socket must be allowed.

A snapshot shares files with the store, so it is no copy against a dying disk: copy it to another machine (borg, rsync,
tapes), then remove it. As long as it is there, the space of what the store no longer needs does not come back.

Examples:
  roundel snapshot $(date +%F)                 the daemon of `roundel serve` here, in its directory of snapshots
  roundel snapshot /srv/snapshots/before-update --daemon unix:/run/roundel.sock
  roundel snapshot /backup/roundel --store /var/lib/roundel    a store that is stopped, to anywhere";

/// Runs it.
pub fn run(arguments: &Arguments) -> Result {
    let Arguments { to, store, daemon } = arguments;
    let (linked, copied, path) = match store {
        Some(store) => {
            let copied =
                write_at_rest(store, to).map_err(|error| format!("cannot make the snapshot: {error}"))?;
            (copied.linked, copied.copied, to.display().to_string())
        }
        None => ask_daemon(daemon.as_deref(), to)?,
    };
    print(format!("{path}: {linked} bytes linked, {copied} bytes copied\n"))
}

fn ask_daemon(given: Option<&str>, to: &Path) -> Result<(u64, u64, String)> {
    let address = address::daemon(given)?.unwrap_or_else(|| address::SOCKET_HERE.to_string());
    let daemon = Daemon::new(address.as_bytes(), Wire::Text);
    let is_path = to.components().count() > 1;
    let to =
        if is_path { std::path::absolute(to).map_err(|error| error.to_string())? } else { to.to_path_buf() };
    let answer = daemon.ask_ours("snapshot", &[to.as_os_str().as_encoded_bytes()]);
    let answer = answer.map_err(|error| format!("the daemon at \"{address}\": {error}"))?;
    let answer = answer.ok_or_else(|| format!("the daemon at \"{address}\" does not know SNAPSHOT"))?;
    let line =
        answer.lines.first().map(|line| String::from_utf8_lossy(line).into_owned()).unwrap_or_default();
    let parse = || {
        let (linked, rest) = line.split_once(' ')?;
        let (copied, path) = rest.split_once(' ')?;
        Some((linked.parse().ok()?, copied.parse().ok()?, path.to_string()))
    };
    parse().ok_or_else(|| format!("the daemon at \"{address}\" answers SNAPSHOT with \"{line}\""))
}
