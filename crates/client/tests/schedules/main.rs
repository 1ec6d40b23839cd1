//! Thousands of schedules of the connections that threads share and of the updates that they send together, by shuttle: it
//! runs one thread at a time and switches at each lock, wait and atomic operation as a seed says.
//!
//! `src/daemon/batch.rs` is compiled here a second time, as it is: what it names by `crate::` is shuttle's ([`sync`]), a
//! clock that says what a seed says, and a played connection. No feature, no second build of the crate.
//!
//! A failure prints the schedule; `shuttle::replay(run, "...")` in place of `explore` repeats it.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(dead_code, reason = "the file under test has more than is tried here")]

mod adaptive_spin;
mod connection;
mod daemon;
mod sync;

mod error {
    pub use roundel_client::ClientError;
}
