//! Wire formats: bytes to types and back. No sockets, no clock, no store.
//!
//! One module per protocol. Knows `rrd` only for numbers.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod frames;
pub mod fuzzing;
pub mod rrdcached;
