//! The `.rrd` file, versions 0001 to 0005, to and from [`Rrd`]: the one place that knows its bytes.
//!
//! The layout is that of amd64, little-endian and 8-aligned, as `docs/format/rrd.md` describes it;
//! [`FileLayout`] gives the offset of every part. Files of Debian's rrdtool round-trip byte for byte.
//! Every count is bounded by the number of bytes at hand before anything is allocated, and a decoded
//! definition keeps the promises the engine relies on (see [`decode`]).

mod decode;
mod encode;
mod error;
mod layout;

pub use decode::{FileHead, decode, decode_head, decode_live, definition_bytes, head_bytes, season};
pub use encode::{encode, encode_head, encode_live};
pub use error::{FileError, Inexpressible};
pub use layout::{ArchiveLayout, FileLayout};

use crate::content::Rrd;

/// The float that tells byte order and alignment apart, at offset 16.
const FLOAT_COOKIE: f64 = 8.642135E130;
const STAT_HEAD_BYTES: usize = 128;
const DS_DEF_BYTES: usize = 120;
const RRA_DEF_BYTES: usize = 120;
const PDP_PREP_BYTES: usize = 112;
const CDP_PREP_BYTES: usize = 80;
const RRA_PTR_BYTES: usize = 8;
/// Bytes of a name, including its NUL (`DS_NAM_SIZE` and the like).
const NAME_BYTES: usize = 20;
/// Offset of `par[10]` in `ds_def` and `rra_def`.
const PARAMETERS_AT: usize = 40;
/// `OP_END`, which ends a COMPUTE program.
const COMPUTE_END: u8 = 32;
/// Nodes that fit before the end mark in the 80 bytes of a COMPUTE program.
const COMPUTE_NODES_MAX: usize = 19;
/// The first version that keeps microseconds.
const VERSION_MICROSECONDS: u8 = 3;
/// The newest version.
const VERSION_MAX: u8 = 5;
/// Rows a FAILURES archive may look back (`MAX_FAILURES_WINDOW_LEN`).
const FAILURES_WINDOW_MAX: u64 = 28;

/// A decoded file: the RRD, and the one thing only a file knows.
#[derive(Clone, Debug, PartialEq)]
pub struct FileParts {
    /// Its content.
    pub rrd: Rrd,
    /// For each archive, the ring position of its newest row (`cur_row`, drawn at random by RRDtool).
    pub current_rows: Vec<u64>,
}

#[cfg(test)]
mod tests;
