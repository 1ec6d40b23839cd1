//! One standard `.rrd` file used in place, as RRDtool does it without a daemon.
//!
//! For the command line and the C library: every call opens, locks, works and closes. Readers read the header
//! and the rows they are asked for, nothing else; [`update`] writes completed rows first and the live part,
//! which makes them count, last; whole files are made beside their target and renamed. So a kill at any
//! moment leaves a file that reads. Nothing is fsynced, as RRDtool does not either.
//!
//! Owns RRDtool's messages about files. Must not know any protocol, nor the daemon: a placeholder is reported
//! ([`DirectError::Placeholder`]) and whoever asked goes to its store. Shares geometry, rows and heads with
//! the files layout.

mod create;
mod error;
mod lock;
mod open;
mod read;
mod report;
pub(crate) mod update;
mod write;

pub use create::{Existing, create, create_filled, write_bytes, write_file};
pub use error::DirectError;
pub use lock::Locking;
pub use read::ReadFile;
pub use report::{UpdateReport, WrittenRow};
pub use update::{UpdateOptions, update};
pub use write::WriteFile;
