//! librrd.so.8: RRDtool's C interface (`include/rrd.h`, `include/rrd_client.h`) on Roundel's engine.
//!
//! Owns the C side of things: words, memory that C frees, error texts of threads, structures. What a call does is
//! a verb of `tool`, or the store's door for one file. Real `.rrd` files are used in place; a placeholder, or
//! `RRDCACHED_ADDRESS` for the functions that heed it, leads to the daemon. A panic never crosses ([`boundary`]).
//! Must not: write to standard output where RRDtool does not, handle signals, change the locale, end the process.

mod boundary;
mod callback;
mod client;
mod create;
mod dump;
mod errors;
mod fetch;
mod file;
mod graph;
mod info;
mod memory;
mod number;
mod read;
mod sanitizer;
mod time;
mod update;
mod verbs;
mod version;
