//! The log of a shard for those who keep something else in one, such as the spool of a cluster's node: the same files, the same recovery, the
//! same rules for a full or failing disk (`docs/format/log.md`).
//!
//! Of the kinds of records two are theirs: [`Kind::Named`], of which the log does not know the body, and [`Kind::Stream`], by which they note how far
//! they are.

pub use crate::log::catalogue::Stream;
pub use crate::log::envelope::ENVELOPE_BYTES;
pub use crate::log::{
    Kind, Known, LogError, LogSyncer, LogWriter, Options, Position, Record, ReplayEnd, ReplayError, Stamp,
    log_files, replay,
};
