//! The encodings of the log for those who send RRDs from one machine to another: definitions, live heads, whole RRDs.
//!
//! The bytes are those of `docs/format/log.md`; decoders never panic, and allocate no more than the bytes at hand justify.

pub use crate::codec::{Cursor, DecodeError, put_counted, put_double, put_signed};
pub use crate::log::catalogue::{
    RRD_BYTES_MAX, decode_rrd, encode_rrd, put_definition, put_doubles, put_live, take_definition,
    take_doubles, take_live, unpack,
};
pub use rrd::codec::varint;
