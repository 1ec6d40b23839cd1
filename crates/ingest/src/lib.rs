//! Push protocols.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod carbon_schemas;
pub mod fault;
pub mod fill;
pub mod fuzzing;
pub mod graphite;
pub mod influx;
pub mod number;
pub mod otlp;
pub mod pickle;
pub mod pushed;
pub mod refusal;
pub mod sample;
pub mod statsd;
#[cfg(test)]
mod testing;
