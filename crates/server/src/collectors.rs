//! Runs the collectors: sockets and timers around what `crates/collect` decides, and the way of readings into the store.

pub mod collectd;
pub mod context;
pub mod daemon;
pub mod datagrams;
#[cfg(feature = "cluster")]
pub mod fence;
#[cfg(not(feature = "cluster"))]
#[path = "collectors/fence_absent.rs"]
pub mod fence;
pub mod ganglia;
pub mod host;
pub mod labels;
mod lookup;
pub mod mrtg;
mod notices;
pub(crate) mod own;
pub(crate) mod recorder;
pub mod snmp;
pub mod statistics;
pub(crate) mod store_writer;
pub mod udp;
