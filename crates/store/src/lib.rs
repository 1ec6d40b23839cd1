//! The storage engine: log, segments, checkpoints, catalogue, and the files layout with its buffer and
//! journal.
//!
//! Its interface is [`engine::Engine`], implemented by two layouts: [`stripes`], and [`files`] for standard
//! `.rrd` files in place. The crate is synchronous and knows no protocol. All I/O of the striped layout goes
//! through [`disk::Disk`]; `.rrd` files are read and written by `rrd_file`.

#![forbid(unsafe_code)]

pub mod assemble;
pub mod awaited;
pub mod capture;
mod catalogue;
mod checkpoint;
mod claim;
mod codec;
mod column;
mod content;
pub mod engine;
mod error;
mod exclusive;
pub mod filenames;
pub mod files;
mod group;
mod heads;
pub mod identity;
pub mod inspect;
mod lock;
mod log;
mod manifest;
pub mod memory;
mod open_rows;
pub mod position;
pub mod read_age;
pub mod records;
pub mod repair;
pub mod replication;
mod segment;
mod segments;
mod shard;
pub mod snapshot;
pub mod streams;
pub mod stripes;
mod sync;
pub mod tail;
pub mod transfer;
pub mod verify;
pub mod version;

pub use disk;
pub use rrd_file::{daemon_address, name, placeholder, tree};

/// Internals, public for tests, fuzzers and measurements only.
pub mod testing {
    /// Checkpoints.
    pub mod checkpoint {
        pub use crate::checkpoint::*;
    }
    /// Columns of values.
    pub mod column {
        pub use crate::column::*;
    }
    /// Groups of RRDs with the same geometry.
    pub mod group {
        pub use crate::group::*;
    }
    /// The log.
    pub mod log {
        pub use crate::log::*;
    }
    /// Manifests.
    pub mod manifest {
        pub use crate::manifest::*;
    }
    /// Segments.
    pub mod segment {
        pub use crate::segment::*;
    }
    /// Sets of segments.
    pub mod segments {
        pub use crate::segments::*;
    }
}
