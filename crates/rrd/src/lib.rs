//! The pure core: what an RRD is, how a reading becomes rows, and how both are written down.
//!
//! Everything here is a function of its arguments. No files, sockets, threads, clock, environment,
//! locale, async or log output: whatever a function needs, `now` included, is passed in. The rules it
//! follows are RRDtool's manual pages and `../shared/rrd-format.md`; the oracle is Debian's `rrdtool`.

pub mod codec;
pub mod content;
pub mod create;
pub mod definition;
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
pub mod when;
