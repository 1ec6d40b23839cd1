//! Wire formats: encoding and decoding of requests and answers. No sockets, no clock, no store.
//!
//! One module per protocol. Uses `rrd` for the types of a fetch and the format of numbers.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod frames;
pub mod fuzzing;
pub mod prometheus;
pub mod rrdcached;
