//! Runs the collectors: sockets and timers around what `crates/collect` decides, and the way of readings into the store.

pub mod collectd;
pub mod datagrams;
pub mod ganglia;
pub mod host;
pub mod mrtg;
mod recorder;
pub mod snmp;
pub mod statistics;
mod udp;
mod watched;
