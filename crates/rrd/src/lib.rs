//! The pure core: what an RRD is, how a reading becomes rows, and how both are written down.
//!
//! Everything here is a function of its arguments: no files, sockets, threads, clock, environment, locale,
//! async or log output. Callers pass in what a function needs, `now` included. The rules are those of
//! RRDtool's manual pages and of `docs/format/rrd.md`; the oracle is Debian's `rrdtool`.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod codec;
pub mod content;
pub mod create;
pub mod definition;
pub mod fetch;
pub mod footprint;
pub mod format;
pub mod fuzzing;
pub mod grid;
pub mod info;
pub mod live;
pub mod number;
pub mod plan;
pub mod portable;
pub mod prefill;
pub mod reading;
pub mod rpn;
pub mod time;
pub mod tune;
pub mod update;
pub mod updatev;
pub mod when;
