//! Collectors: they turn the data of a machine or a protocol into names and readings of RRDs.
//!
//! Each is a function of its arguments (`now` and the input) and owns no socket, thread or store. The caller
//! decides when it runs and where the readings go.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod host;
