//! Standard `.rrd` files, in place and whole, used as RRDtool does without a daemon.
//!
//! For the command line and the C library ([`fn@update`], [`ReadFile`], [`WriteFile`], [`create`]): every
//! call opens, locks, works and closes. Readers read only the header and the requested rows; [`fn@update`]
//! writes completed rows first and last the live part, which makes them valid; whole files are written beside
//! their target and renamed. So a kill at any moment leaves a readable file. Like RRDtool, it never syncs.
//!
//! For the files layout of `store`: the building blocks ([`mod@file`], [`geometry`], [`apply`], [`mod@rows`],
//! [`content`]), and the tree of names in which the files lie ([`tree`], [`placeholder`]).
//!
//! It owns RRDtool's messages about files. It knows no protocol and no daemon: a placeholder is reported
//! ([`Error::Placeholder`]), and the caller asks its store.

#![forbid(unsafe_code)]

pub mod apply;
pub mod content;
mod create;
pub mod daemon_address;
mod error;
pub mod file;
pub mod fuzzing;
pub mod geometry;
pub mod handle;
mod lock;
pub mod name;
mod open;
pub mod placeholder;
mod read;
pub mod rows;
pub mod tree;
pub mod update;
mod volume;
pub mod watch;
mod write;

pub use create::{
    Existing, FILE_BYTES_MAX, create, create_filled, create_on, write_bytes, write_file, write_file_with,
};
pub use error::{Error, system_text};
pub use lock::Locking;
pub use read::ReadFile;
pub use update::{UpdateOptions, update, update_on};
pub use volume::Volume;
pub use write::WriteFile;
