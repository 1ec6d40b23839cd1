//! Wire formats: bytes to types and back. No sockets, no clock, no store.
//!
//! One module per protocol. Knows `rrd` only for numbers.

pub mod frames;
pub mod fuzzing;
pub mod rrdcached;
