//! Runs the collectors: sockets and timers around what `crates/collect` decides, and the way of readings into the store.

pub mod host;
mod recorder;
