//! A store as a file system, by FUSE: every RRD is a standard `.rrd` file, bit for bit what `roundel export` writes.
//!
//! [`session`] mounts and serves; `filesystem` is the glue between the kernel's requests and the rest, which knows nothing
//! of FUSE: `inodes` (the numbers that the kernel has for names), `store` (what is asked of the daemon), `open` (files that
//! are open, and what is written to them), `images` (files that were open), `ahead` (files that will be), `latecomers` (files whose
//! bytes the kernel has), `directory` (listings in pages), `listers` (who wants sizes in
//! them), `scratch`
//! (files and directories that no store has), `extra` (files that are no RRDs) and `meaning` (what a written file says).
//!
//! Threads, no async code. A request waits for the daemon, at most as long as [`store::PATIENCE`] says.

#![forbid(unsafe_code)]

mod ahead;
mod attributes;
mod directory;
mod extra;
mod filesystem;
mod images;
mod inodes;
mod latecomers;
mod listers;
mod meaning;
mod open;
pub mod options;
mod scratch;
pub mod session;
pub mod store;
