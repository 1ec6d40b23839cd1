//! The identity of a store: a small text file at its root, written once.
//!
//! It records what never changes: the format version, the store's id (which placeholders and all files of the store
//! carry), the number of shards, and the seed of the hash that maps names to shards.
//!
//! The file gets its name last, when every shard has its directory and its manifest. So from then on each of them that is
//! missing is damage; and without it there is no store yet, unless a shard holds something.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::disk::{Disk, Mode};
use crate::error::OpenError;
use crate::filenames::{self, FileKind};
use crate::manifest::{Manifest, replace};

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

/// Which shard of which store a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The store.
    pub store: Identity,
    /// The index of the shard.
    pub shard: u32,
}

impl Owner {
    /// A short form of it, for the records and heads of binary files: 24 bits, not 0. Two shards have the same one in one of 16
    /// million cases; it tells a file that was put in the wrong place, not a forged one.
    pub fn tag(&self) -> u32 {
        let bytes = [&self.store.id[..], &self.shard.to_le_bytes()].concat();
        ((xxh3_64(&bytes) & 0xff_ffff) as u32).max(1)
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "shard {} of store {}", self.shard, self.store.id_text())
    }
}

impl Identity {
    /// The id in hexadecimal digits.
    pub fn id_text(&self) -> String {
        self.id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// An identity from its words in a file: id, number of shards, seed.
    pub(crate) fn of_words(id: &str, shard_count: &str, seed: &str) -> Option<Identity> {
        let mut bytes = [0; 16];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(id.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        let shard_count = shard_count.parse().ok().filter(|count| (1..=SHARDS_MAX).contains(count))?;
        Some(Identity { id: bytes, seed: u64::from_str_radix(seed, 16).ok()?, shard_count })
    }

    /// Reads a store's identity, or creates a store with `shard_count` shards where there is none.
    ///
    /// # Errors
    /// When the file cannot be read or written, is damaged or has another version, or is missing beside shards that hold
    /// something.
    pub fn load_or_create(disk: &dyn Disk, shard_count: u32) -> Result<Identity, OpenError> {
        match Identity::load(disk)? {
            Some(identity) => Ok(identity),
            None => create(disk, || draw(shard_count)),
        }
    }

    /// Reads the identity of a store that is to be this one, or creates it.
    ///
    /// # Errors
    /// As [`Identity::load_or_create`], and when it is another one.
    pub fn expect_or_create(self, disk: &dyn Disk) -> Result<Identity, OpenError> {
        match Identity::load(disk)? {
            None => create(disk, || Ok(self)),
            Some(identity) if identity == self => Ok(identity),
            Some(identity) => Err(OpenError::new(format!(
                "the directory has the store {}, not {}: it is a copy of something else",
                identity.id_text(),
                self.id_text()
            ))),
        }
    }

    /// Reads a store's identity; `None` when the file does not exist.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or has another version.
    pub fn load(disk: &dyn Disk) -> Result<Option<Identity>, OpenError> {
        load_from(disk, &filenames::identity(Path::new("")))
    }

    /// The text of the file `STORE`.
    pub fn text(&self) -> String {
        encode(self)
    }

    /// Writes the file `STORE`.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn store(&self, disk: &dyn Disk) -> io::Result<()> {
        let root = Path::new("");
        replace(disk, &filenames::identity_new(root), &filenames::identity(root), &encode(self))
    }
}

fn load_from(disk: &dyn Disk, path: &Path) -> Result<Option<Identity>, OpenError> {
    match disk.open(path, Mode::Read) {
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

fn failed(what: &str, error: io::Error) -> OpenError {
    OpenError::caused(format!("cannot {what} the store's identity"), error)
}

/// Creates a store, or completes the creation that a crash interrupted.
fn create(
    disk: &dyn Disk,
    new_identity: impl FnOnce() -> Result<Identity, OpenError>,
) -> Result<Identity, OpenError> {
    let root = Path::new("");
    let new = filenames::identity_new(root);
    // Durable before there is any shard, and damaged only when there is none.
    let begun = load_from(disk, &new).unwrap_or_default();
    check_that_nothing_is_lost(disk, begun.as_ref())?;
    let identity = match begun {
        Some(identity) => identity,
        None => new_identity()?,
    };
    let write = || {
        if begun.is_none() {
            match disk.remove(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = disk.create(&new)?;
            file.write_at(encode(&identity).as_bytes(), 0)?;
            file.sync()?;
            disk.sync_dir(root)?;
        }
        for shard in 0..identity.shard_count {
            let dir = filenames::shard(root, shard);
            disk.create_dir_all(&dir)?;
            Manifest::of_new_shard(Owner { store: identity, shard }).store(disk, &dir)?;
        }
        disk.rename(&new, &filenames::identity(root))?;
        disk.sync_dir(root)
    };
    write().map_err(|error| failed("write", error))?;
    Ok(identity)
}

/// Without the file `STORE`, shards may only be what an interrupted creation leaves: manifests.
fn check_that_nothing_is_lost(disk: &dyn Disk, begun: Option<&Identity>) -> Result<(), OpenError> {
    let root = Path::new("");
    for name in disk.list(root).map_err(|error| failed("look for", error))? {
        let Some(index) = filenames::shard_index(&name) else { continue };
        let files = disk.list(&filenames::shard(root, index)).map_err(|error| failed("look for", error))?;
        let holds = |name: &OsString| {
            use FileKind::{Manifest, ManifestCopy, ManifestNew};
            !matches!(filenames::kind_of(name), Some(Manifest | ManifestCopy | ManifestNew))
        };
        if begun.is_none() || files.iter().any(holds) {
            return Err(OpenError::new(format!(
                "the file STORE is missing, while \"{}\" is there: nothing was changed; `roundel inspect` on the store's directory \
                 shows what is there, and `roundel repair` can write STORE again",
                name.display()
            )));
        }
    }
    Ok(())
}

fn draw(shard_count: u32) -> Result<Identity, OpenError> {
    let mut drawn = [0u8; 24];
    rustix::rand::getrandom(&mut drawn, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| failed("draw", error.into()))?;
    let (id, seed) = drawn.split_at(16);
    Ok(Identity {
        id: id.try_into().unwrap_or_default(),
        seed: u64::from_le_bytes(seed.try_into().unwrap_or_default()),
        shard_count: shard_count.clamp(1, SHARDS_MAX),
    })
}

fn encode(identity: &Identity) -> String {
    let body = format!(
        "roundel-store {VERSION}\nid {}\nshards {}\nseed {:016x}\n",
        identity.id_text(),
        identity.shard_count,
        identity.seed
    );
    format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()))
}

/// Parses the file's text.
///
/// # Errors
/// When it is damaged or has another version.
pub fn decode(text: &str) -> Result<Identity, OpenError> {
    let damaged = || {
        OpenError::new(
            "the file STORE is damaged; `roundel repair` on the store's directory can write it again from a shard's manifest",
        )
    };
    let word = |line: usize, key: &str| -> Option<&str> {
        text.lines().nth(line)?.strip_prefix(key)?.strip_prefix(' ')
    };
    // First, so that a rotten version is not taken for a newer one: the last line is the same in every version. As it was
    // written: another letter case of its digits would be rot that goes unseen.
    let covered = text.rfind("crc32c ").ok_or_else(damaged)?;
    let crc = crc32c::crc32c(&text.as_bytes()[..covered]);
    if text[covered..] != format!("crc32c {crc:08x}\n") {
        return Err(damaged());
    }
    let version: u32 = word(0, "roundel-store").and_then(|word| word.parse().ok()).ok_or_else(damaged)?;
    if version != VERSION {
        return Err(OpenError::new(format!(
            "the store was made by a newer version (STORE has layout {version}, this program knows {VERSION}); use that version"
        )));
    }
    let parse = || Identity::of_words(word(1, "id")?, word(2, "shards")?, word(3, "seed")?);
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
        let newer = text.replace("store 1", "store 2");
        assert!(decode(&newer).is_err_and(|e| e.to_string().contains("damaged")));
        let body = &newer[..newer.rfind("crc32c ").unwrap()];
        let newer = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
        assert!(decode(&newer).is_err_and(|e| e.to_string().contains("newer")));
        assert!(decode("").is_err());
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(decode(&changed).is_err(), "bit {bit}");
        }
    }
}
