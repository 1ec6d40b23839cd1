//! librrd.so.8: RRDtool's C interface (`include/rrd.h`, `include/rrd_client.h`) on Roundel's engine.
//!
//! Owns the C side: arguments, memory that C frees, error texts of threads, structures. A call runs a verb of `cli`, or
//! opens one file through the store. Real `.rrd` files are used in place; a placeholder, or `RRDCACHED_ADDRESS` for the
//! functions that respect it, leads to the daemon. No panic crosses into C (`boundary.rs`). The library never writes to
//! standard output where RRDtool does not, handles signals, changes the locale or ends the process.

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
