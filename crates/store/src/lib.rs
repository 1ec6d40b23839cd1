//! All the I/O there is: log, stripes, segments, checkpoint, catalogue, import and export.
//!
//! The door is [`engine::Engine`]; two layouts stand behind it. Synchronous and sharded: one owner thread
//! per shard, no locks on the update path, no async. Knows `rrd`; never hears of a protocol.

pub mod beacon;
pub mod catalogue;
pub mod checkpoint;
pub mod codec;
pub mod direct;
pub mod disk;
pub mod engine;
pub mod filenames;
pub mod files;
pub mod group;
pub mod heads;
pub mod identity;
pub mod inspect;
mod listing;
pub mod log;
pub mod manifest;
pub mod name;
pub mod open_rows;
pub mod placeholder;
pub mod read;
pub mod segment;
pub mod segments;
pub mod shard;
pub mod stripe;
pub mod stripes;
pub mod tree;
