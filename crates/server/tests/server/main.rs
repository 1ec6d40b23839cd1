//! The daemon within the test's process: each protocol, its limits, and its answers beside Debian's programs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod abuse;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod files_oracle;
mod frames;
mod graph;
mod held_memory;
mod http;
mod limits;
mod long_answers;
mod rrdcached_oracle;
