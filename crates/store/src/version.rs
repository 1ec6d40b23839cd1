//! The version of an RRD: a number that differs after every change, so that a client can say which state its own change is
//! made for.
//!
//! It is a hash of definition, live head and identity. An update moves the time of the last update, which is part of the
//! head; a tune changes definition or head; whatever replaces an RRD, rows included, has another identity.

use rrd::definition::Definition;
use rrd::live::Live;
use xxhash_rust::xxh3::Xxh3;

use crate::log::catalogue::encode_definition;

/// The version of an RRD with this identity, definition and live head.
pub fn version(identity: u64, definition: &Definition, live: &Live) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&identity.to_le_bytes());
    hash.update(&encode_definition(definition));
    hash.update(bytemuck::cast_slice(&live.words));
    hash.digest()
}
