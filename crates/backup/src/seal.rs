//! The form of an object: with a checksum, or encrypted with a key of the user's; and the names that follow from contents.
//!
//! Each object is sealed by itself, under a key of its own that follows from the user's key and the object's name. The name is
//! bound to the content in both forms: an object that was put under another name does not open. `docs/format/backup.md`
//! describes the bytes.

use std::fmt;
use std::path::Path;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};

/// The first bytes of every object, with the version of its form.
pub const MAGIC: &[u8; 8] = b"RNDLOBJ1";
/// The form with a checksum.
pub const PLAIN: u8 = 0;
/// The encrypted form.
pub const SEALED: u8 = 1;
/// Bytes of the checksum, and of a key.
const HASH_BYTES: usize = 32;

/// What objects are named and sealed with.
pub struct Keys(Option<Secret>);

struct Secret {
    names: hmac::Key,
    root: hkdf::Prk,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "encrypted" } else { "not encrypted" })
    }
}

/// Why an object cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// It is no object of a backup.
    Foreign,
    /// Its content is not what was sent, or was sent under another name.
    Damaged,
    /// It is encrypted, and there is no key.
    NeedsKey,
    /// It is not encrypted, although there is a key.
    NotSealed,
    /// It cannot be encrypted: the system has no random numbers, or it is too long.
    CannotSeal,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SealError::Foreign => "it is not an object of a backup, or of a newer version",
            SealError::Damaged => "it is damaged, or was encrypted with another key",
            SealError::NeedsKey => "it is encrypted: give the file with its key",
            SealError::NotSealed => "it is not encrypted, while a key is given",
            SealError::CannotSeal => {
                "it cannot be encrypted: the system has no random numbers, or it is too long"
            }
        })
    }
}

impl std::error::Error for SealError {}

impl Keys {
    /// Without encryption.
    pub fn none() -> Keys {
        Keys(None)
    }

    /// The keys that follow from 32 random bytes.
    pub fn from_bytes(bytes: &[u8; HASH_BYTES]) -> Keys {
        let derive = |purpose: &[u8]| hkdf::Salt::new(hkdf::HKDF_SHA256, purpose).extract(bytes);
        let mut names = [0; HASH_BYTES];
        // 32 bytes are a valid length.
        let filled = derive(b"roundel backup names")
            .expand(&[b"hmac"], hkdf::HKDF_SHA256)
            .and_then(|okm| okm.fill(&mut names));
        debug_assert!(filled.is_ok());
        let root = derive(b"roundel backup objects");
        Keys(Some(Secret { names: hmac::Key::new(hmac::HMAC_SHA256, &names), root }))
    }

    /// The keys of a file: 64 hexadecimal digits.
    ///
    /// # Errors
    /// When it cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Keys, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the key \"{}\": {error}", path.display()))?;
        let digits = text.trim();
        let mut bytes = [0; HASH_BYTES];
        let is_hexadecimal =
            digits.len() == 2 * HASH_BYTES && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hexadecimal {
            return Err(format!(
                "the key \"{}\" is not 64 hexadecimal digits: make one with `openssl rand -hex 32`",
                path.display()
            ));
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap_or_default();
        }
        Ok(Keys::from_bytes(&bytes))
    }

    /// The hash by which an object of this content is named. With a key, it tells nothing of the content.
    pub fn hash(&self, plain: &[u8]) -> String {
        match &self.0 {
            None => hexadecimal(ring::digest::digest(&SHA256, plain).as_ref()),
            Some(secret) => hexadecimal(hmac::sign(&secret.names, plain).as_ref()),
        }
    }

    /// The object of a content, under its name.
    ///
    /// # Errors
    /// [`SealError::CannotSeal`]; never without a key.
    pub fn seal(&self, name: &str, mut plain: Vec<u8>) -> Result<Vec<u8>, SealError> {
        let mut stored = Vec::with_capacity(plain.len() + MAGIC.len() + 1 + HASH_BYTES);
        stored.extend_from_slice(MAGIC);
        let Some(secret) = &self.0 else {
            stored.push(PLAIN);
            stored.extend_from_slice(&checksum(name, &plain));
            stored.extend_from_slice(&plain);
            return Ok(stored);
        };
        stored.push(SEALED);
        let mut nonce = [0; NONCE_LEN];
        // The key is this name's alone; few names, such as that of the newest manifest, ever have two contents.
        SystemRandom::new().fill(&mut nonce).map_err(|_| SealError::CannotSeal)?;
        stored.extend_from_slice(&nonce);
        let key = secret.key(name).ok_or(SealError::CannotSeal)?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(name), &mut plain)
            .map_err(|_| SealError::CannotSeal)?;
        stored.extend_from_slice(&plain);
        Ok(stored)
    }

    /// How long the object of a content is.
    pub fn stored_bytes(&self, plain: usize) -> usize {
        let more = if self.0.is_some() { NONCE_LEN + CHACHA20_POLY1305.tag_len() } else { HASH_BYTES };
        MAGIC.len() + 1 + more + plain
    }

    /// The content of the object of this name.
    ///
    /// # Errors
    /// When it is not what was sealed under this name.
    pub fn open(&self, name: &str, stored: &[u8]) -> Result<Vec<u8>, SealError> {
        let rest = stored.strip_prefix(MAGIC).ok_or(SealError::Foreign)?;
        let (&form, rest) = rest.split_first().ok_or(SealError::Damaged)?;
        match (form, &self.0) {
            (PLAIN, None) => {
                let (sum, plain) = rest.split_at_checked(HASH_BYTES).ok_or(SealError::Damaged)?;
                if checksum(name, plain) != sum {
                    return Err(SealError::Damaged);
                }
                Ok(plain.to_vec())
            }
            (SEALED, Some(secret)) => {
                let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>().ok_or(SealError::Damaged)?;
                let key = secret.key(name).ok_or(SealError::Damaged)?;
                let (nonce, mut plain) = (Nonce::assume_unique_for_key(*nonce), sealed.to_vec());
                let bytes = key
                    .open_in_place(nonce, Aad::from(name), &mut plain)
                    .map_err(|_| SealError::Damaged)?
                    .len();
                plain.truncate(bytes);
                Ok(plain)
            }
            (SEALED, None) => Err(SealError::NeedsKey),
            (PLAIN, Some(_)) => Err(SealError::NotSealed),
            _ => Err(SealError::Foreign),
        }
    }
}

impl Secret {
    /// The key of an object.
    fn key(&self, name: &str) -> Option<LessSafeKey> {
        let info = [name.as_bytes()];
        let derived = self.root.expand(&info, &CHACHA20_POLY1305).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(derived)))
    }
}

fn checksum(name: &str, plain: &[u8]) -> [u8; HASH_BYTES] {
    let mut context = Context::new(&SHA256);
    context.update(name.as_bytes());
    context.update(&[0]);
    context.update(plain);
    context.finish().as_ref().try_into().unwrap_or_default()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_open_under_their_name_and_key_only() {
        let (one, other) = (Keys::from_bytes(&[1; 32]), Keys::from_bytes(&[2; 32]));
        for keys in [&Keys::none(), &one] {
            let stored = keys.seal("objects/a", b"content".to_vec()).unwrap();
            assert_eq!(stored.len(), keys.stored_bytes(7));
            assert_eq!(keys.open("objects/a", &stored), Ok(b"content".to_vec()));
            assert_eq!(keys.open("objects/b", &stored), Err(SealError::Damaged));
            for at in 0..stored.len() {
                assert!(keys.open("objects/a", &stored[..at]).is_err(), "cut at {at}");
                let mut changed = stored.clone();
                changed[at] ^= 1;
                assert!(keys.open("objects/a", &changed).is_err(), "changed at {at}");
            }
        }
        let sealed = one.seal("x", b"content".to_vec()).unwrap();
        assert!(!sealed.windows(7).any(|window| window == b"content"));
        assert_eq!(other.open("x", &sealed), Err(SealError::Damaged));
        assert_eq!(Keys::none().open("x", &sealed), Err(SealError::NeedsKey));
        assert_eq!(one.open("x", &Keys::none().seal("x", Vec::new()).unwrap()), Err(SealError::NotSealed));
        assert_ne!(one.hash(b"content"), Keys::none().hash(b"content"));
        assert_ne!(one.hash(b"content"), other.hash(b"content"));
    }

    #[test]
    fn a_key_is_64_digits() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{}\n", "0a".repeat(32))).unwrap();
        let keys = Keys::read(file.path()).unwrap();
        assert_eq!(keys.hash(b"x"), Keys::from_bytes(&[10; 32]).hash(b"x"));
        for bad in ["", "0a", &"0g".repeat(32), &"0a".repeat(33)] {
            std::fs::write(file.path(), bad).unwrap();
            assert!(Keys::read(file.path()).unwrap_err().contains("openssl"), "{bad}");
        }
    }
}
