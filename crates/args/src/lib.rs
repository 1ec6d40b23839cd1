//! Options, numbers, time ranges and wildcards among arguments, as RRDtool's verbs read them.
//!
//! Shared by everything that receives a verb's arguments: the command line, the graph's options, the daemon's
//! HTTP interface. Arguments in, values or RRDtool's message out; no file, environment or clock: the time and the
//! local calendar come through [`times::Clock`].

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod feature;
pub mod integer;
pub mod options;
pub mod pattern;
pub mod times;
