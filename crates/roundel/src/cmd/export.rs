//! `roundel export`: RRDs of a store as standard `.rrd` files that rrdtool reads.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use store::name::RrdName;

use super::Result;
use super::import::{progress, report};
use super::peer::Peer;

/// Options of `export`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Names of RRDs, relative to the daemon's base directory
    #[arg(required_unless_present = "all")]
    names: Vec<PathBuf>,
    /// All RRDs
    #[arg(long)]
    all: bool,
    /// The directory to write the files to, each under its name
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// The daemon's address, as in RRDCACHED_ADDRESS, or the directory of a store that no daemon holds [default:
    /// RRDCACHED_ADDRESS, else unix:var/rrdcached.sock]
    #[arg(long, value_name = "ADDRESS|DIR")]
    from: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result {
    let peer = Peer::find(arguments.from.as_deref(), false)?;
    let mut names: Vec<Vec<u8>> =
        arguments.names.iter().map(|name| name.as_os_str().as_bytes().to_vec()).collect();
    if arguments.all {
        names.extend(peer.names()?);
    }
    let bar = progress(names.len() as u64);
    let mut failures = Vec::new();
    for name in &names {
        if let Err(error) = export_one(&peer, name, &arguments.to) {
            failures.push(format!("{}: {error}", String::from_utf8_lossy(name)));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let closed = peer.close();
    println!("exported {} RRDs, {} failed", names.len() - failures.len(), failures.len());
    report(&failures).and(closed)
}

fn export_one(peer: &Peer, name: &[u8], to: &Path) -> Result {
    let name = RrdName::new(name).map_err(|error| error.to_string())?;
    let bytes = peer.export(&name)?;
    let path = to.join(OsStr::from_bytes(name.as_bytes()));
    write(&path, &bytes).map_err(|error| format!("cannot write \"{}\": {error}", path.display()))
}

/// Writes under another name first, so that the file is complete or missing.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut temporary = path.as_os_str().to_os_string();
    temporary.push(".partial");
    let mut file = std::fs::File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}
