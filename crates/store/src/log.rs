//! The log of a shard: every change in order, before it is applied.
//!
//! `docs/format/log.md` describes the bytes. Nothing here knows what an update does to an RRD.

pub mod position;

pub use position::Position;
