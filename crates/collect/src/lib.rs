//! Collectors: they turn the data of a machine or a protocol into names and readings of RRDs.
//!
//! Each decides apart from I/O: it gets the time and a sample or a datagram, and returns [`reading::Readings`] and the datagrams
//! to send. It owns no socket, thread, clock or store. The caller decides when it runs, and passes the readings on.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod collectd;
pub mod complaints;
pub mod fuzzing;
pub mod ganglia;
pub mod host;
pub mod inventory;
pub mod mrtg;
pub mod reading;
pub mod snmp;
pub mod statistics;
