//! All the I/O there is: log, stripes, segments, checkpoint, catalogue, import and export.
//!
//! The interface is [`engine::Engine`], with two layouts that implement it. Synchronous and sharded: a shard has one
//! worker, whose state no lock guards during a round. No async. Knows `rrd`, and no protocol.

#![forbid(unsafe_code)]

mod catalogue;
mod checkpoint;
mod codec;
mod column;
pub mod engine;
mod error;
pub mod filenames;
pub mod files;
mod group;
mod heads;
pub mod identity;
pub mod inspect;
mod lock;
mod log;
mod manifest;
mod open_rows;
mod read;
mod segment;
mod segments;
mod shard;
pub mod stripes;

pub use disk;
pub use rrd_file::{daemon_address, name, placeholder, tree};

/// The name that `rrd_file` had.
pub mod direct {
    pub use rrd::updatev::{UpdateReport, WrittenRow};
    pub use rrd_file::Error as DirectError;
    pub use rrd_file::*;
}

/// The inside, for tests, fuzzers and measurements only.
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
