//! Programs of Debian's archive, unchanged, with our librrd.so.8 in the place of Debian's: on plain files, through a
//! daemon, and on the placeholders of a store. What they make and say must be what Debian's library makes and says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod bindings;
mod collectd;
mod ganglia;
mod mrtg;
mod munin;
mod remote;
mod smokeping;
mod support;
