//! The identity of a store: a small text file at its root, written once.
//!
//! It records what never changes: the format version, the store's id (which placeholders carry), the number
//! of shards, and the seed of the hash that maps names to shards.

use std::io;
use std::path::Path;

use crate::disk::{Disk, Mode};
use crate::error::OpenError;
use crate::filenames;

/// Version of the store's layout; a reader refuses any other.
pub const VERSION: u32 = 1;

/// The most shards a store can have: each takes several threads, and more would not help.
pub const SHARDS_MAX: u32 = 256;

/// The identity of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Random, drawn when the store was created.
    pub id: [u8; 16],
    /// Seed of the hash that maps names to shards. Random, because clients choose the names.
    pub seed: u64,
    /// Number of shards.
    pub shard_count: u32,
}

impl Identity {
    /// Reads a store's identity, or creates a store with `shard_count` shards.
    ///
    /// # Errors
    /// When the file cannot be read or written, is damaged, or has another version.
    pub fn load_or_create(disk: &dyn Disk, shard_count: u32) -> Result<Identity, OpenError> {
        match Identity::load(disk)? {
            Some(identity) => Ok(identity),
            None => create(disk, shard_count),
        }
    }

    /// Reads a store's identity; `None` when the file does not exist.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or has another version.
    pub fn load(disk: &dyn Disk) -> Result<Option<Identity>, OpenError> {
        let path = filenames::identity(Path::new(""));
        match disk.open(&path, Mode::Read) {
            Ok(file) => {
                let mut bytes = [0; 512];
                let count = file.read_at(&mut bytes, 0).map_err(|error| failed("read", error))?;
                let text = std::str::from_utf8(&bytes[..count]).unwrap_or_default();
                decode(text).map(Some)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", error)),
        }
    }
}

fn failed(what: &str, error: io::Error) -> OpenError {
    OpenError::caused(format!("cannot {what} the store's identity"), error)
}

fn create(disk: &dyn Disk, shard_count: u32) -> Result<Identity, OpenError> {
    let mut drawn = [0u8; 24];
    rustix::rand::getrandom(&mut drawn, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| failed("draw", error.into()))?;
    let (id, seed) = drawn.split_at(16);
    let identity = Identity {
        id: id.try_into().unwrap_or_default(),
        seed: u64::from_le_bytes(seed.try_into().unwrap_or_default()),
        shard_count: shard_count.clamp(1, SHARDS_MAX),
    };
    let write = || {
        let new = filenames::identity_new(Path::new(""));
        match disk.remove(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = disk.create(&new)?;
        file.write_at(encode(&identity).as_bytes(), 0)?;
        file.sync()?;
        disk.rename(&new, &filenames::identity(Path::new("")))?;
        disk.sync_dir(Path::new(""))
    };
    write().map_err(|error| failed("write", error))?;
    Ok(identity)
}

fn encode(identity: &Identity) -> String {
    let id: String = identity.id.iter().map(|byte| format!("{byte:02x}")).collect();
    let body = format!(
        "roundel-store {VERSION}\nid {id}\nshards {}\nseed {:016x}\n",
        identity.shard_count, identity.seed
    );
    format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()))
}

/// Parses the file's text.
///
/// # Errors
/// When it is damaged or has another version.
pub fn decode(text: &str) -> Result<Identity, OpenError> {
    let damaged = || OpenError::new("the file STORE is damaged; restore it from a backup (it never changes)");
    let word = |line: usize, key: &str| -> Option<&str> {
        text.lines().nth(line)?.strip_prefix(key)?.strip_prefix(' ')
    };
    let version: u32 = word(0, "roundel-store").and_then(|word| word.parse().ok()).ok_or_else(damaged)?;
    if version != VERSION {
        return Err(OpenError::new(format!(
            "the store was made by a newer version (layout {version}, this program knows {VERSION}); use that version"
        )));
    }
    let parse = || -> Option<Identity> {
        let covered = text.rfind("crc32c ")?;
        let crc = crc32c::crc32c(&text.as_bytes()[..covered]);
        // As it was written: another letter case of its digits would be rot that goes unseen.
        if text[covered..] != format!("crc32c {crc:08x}\n") {
            return None;
        }
        let hex = word(1, "id")?;
        let mut id = [0; 16];
        for (at, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        let shard_count = word(2, "shards")?.parse().ok().filter(|count| (1..=SHARDS_MAX).contains(count))?;
        Some(Identity { id, seed: u64::from_str_radix(word(3, "seed")?, 16).ok()?, shard_count })
    };
    parse().ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_round_trips_and_damage_is_reported() {
        let identity = Identity { id: *b"0123456789abcdef", seed: 0xfeed, shard_count: 3 };
        let text = encode(&identity);
        assert_eq!(decode(&text).ok(), Some(identity));
        assert!(
            decode(&text.replace("shards 3", "shards 4")).is_err_and(|e| e.to_string().contains("damaged"))
        );
        assert!(decode(&text.replace("store 1", "store 2")).is_err_and(|e| e.to_string().contains("newer")));
        assert!(decode("").is_err());
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(decode(&changed).is_err(), "bit {bit}");
        }
    }
}
