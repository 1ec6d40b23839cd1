//! What others push: samples of series that nothing has created, and the one table that says which RRDs they become.
//!
//! A protocol fills [`sample::Samples`]; [`table::CreateTable`] places each series, by its name and labels; [`series::SeriesCache`]
//! remembers where. The name of an RRD says everything about its series ([`path`](mod@path)), so nothing else has to be kept, copied or restored.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod fuzzing;
pub mod limits;
pub mod path;
pub mod sample;
pub mod series;
pub mod table;
