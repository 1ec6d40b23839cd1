//! The commands, one file each. A failure is a text for standard error.

pub mod address;
pub mod collectd;
pub mod export;
pub mod import;
pub mod inspect;
pub mod manual;
pub mod mrtg;
pub mod peer;
pub mod query;
pub mod repair;
pub mod rrdcached;
pub mod serve;
pub mod snmp;
pub mod verify;

/// The result of a command.
pub type Result<T = (), E = String> = std::result::Result<T, E>;
