//! Collectors: they turn what a machine or a protocol says into names and readings of RRDs.
//!
//! Each is a function of what it is given (`now` and the input read) and owns no socket, thread or store:
//! whoever runs it decides when, and where the readings go.

pub mod host;
