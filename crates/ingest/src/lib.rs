//! What others push: samples of series that nothing has created, and the one table that says which RRDs they become.
//!
//! A protocol fills [`sample::Samples`]; [`table::CreateTable`] places each series, by its name and labels; [`series::SeriesCache`]
//! remembers where. The name of an RRD says everything about its series ([`path`](mod@path)), so nothing else has to be kept, copied or restored.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod carbon_schemas;
pub mod collectd_json;
pub mod fault;
pub mod fill;
pub mod fuzzing;
pub mod graphite;
pub mod influx;
pub mod limits;
pub mod number;
pub mod otlp;
pub mod path;
pub mod pickle;
pub mod pushed;
pub mod refusal;
pub mod sample;
pub mod series;
pub mod statsd;
pub mod table;
#[cfg(test)]
mod testing;
