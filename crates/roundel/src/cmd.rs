//! The commands, one file each. A failure is a text for standard error.

pub mod absent;
pub mod address;
pub mod agent;
#[cfg(feature = "backup")]
pub mod backup;
#[cfg(feature = "pagecache")]
pub mod capacity;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod collectd;
pub mod export;
#[cfg(feature = "pagecache")]
pub mod fadvise;
#[cfg(feature = "pagecache")]
pub mod fincore;
pub mod grafana;
pub mod import;
pub mod inspect;
pub mod manual;
#[cfg(feature = "mount")]
pub mod mount;
pub mod mrtg;
pub mod names;
#[cfg(feature = "pagecache")]
pub mod pagecache;
pub mod peer;
pub mod query;
#[cfg(feature = "http-client")]
pub mod remote;
#[cfg(not(feature = "http-client"))]
#[path = "cmd/remote_absent.rs"]
pub mod remote;
pub mod repair;
pub mod replication;
pub mod rrdcached;
pub mod serve;
pub mod snapshot;
pub mod snmp;
pub mod token;
pub mod verify;

#[cfg(not(feature = "backup"))]
pub use absent::backup;
#[cfg(not(feature = "cluster"))]
pub use absent::cluster;
#[cfg(not(feature = "mount"))]
pub use absent::mount;
#[cfg(not(feature = "pagecache"))]
pub use absent::{capacity, fadvise, fincore, pagecache};

use std::io::{ErrorKind, Write};

/// The result of a command.
pub type Result<T = (), E = String> = std::result::Result<T, E>;

/// Prints a text. A reader that has gone away has read enough.
///
/// # Errors
/// When it cannot be written.
pub fn print(text: impl AsRef<[u8]>) -> Result {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write the answer: {error}"))
        }
        _ => Ok(()),
    }
}
