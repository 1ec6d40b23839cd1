//! The client's side of a daemon: connections, requests, and what a placeholder stands for.
//!
//! [`daemon::Daemon`] is the one way to ask: it keeps the connections to an address and sends what several threads
//! update at once together. It speaks frames (`docs/protocol/frames.md`) where the daemon does, else rrdcached's text;
//! the bytes of both are `protocol`'s. Errors are types ([`ClientError`]); the texts that RRDtool shows for them are
//! made by the command line and the C library.

#![forbid(unsafe_code)]

pub mod adaptive_spin;
mod connection;
pub mod daemon;
mod error;
pub mod placeholder;
mod socket;
mod sync;
pub mod tls;
pub mod token;

pub use daemon::{Daemon, Daemons, Wire};
pub use error::ClientError;
pub use placeholder::RemoteRrd;
pub use socket::connect_to;
