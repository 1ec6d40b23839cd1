//! Signed and encrypted packets: HMAC-SHA-256, and AES-256 in output feedback mode with a SHA-1 checksum inside.

use std::collections::HashMap;

use aes::Aes256;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::packet::{IV_BYTES, SIGNATURE_BYTES};

/// Bytes of the checksum at the beginning of an encrypted part.
const CHECKSUM_BYTES: usize = 20;

/// What a packet must be to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecurityLevel {
    /// Anything.
    #[default]
    None,
    /// Signed or encrypted.
    Sign,
    /// Encrypted.
    Encrypt,
}

/// The keys that follow from one password.
#[derive(Clone)]
struct Keys {
    mac: Hmac<Sha256>,
    cipher: Aes256,
}

impl Keys {
    fn of(password: &[u8]) -> Self {
        // HMAC takes a key of any length.
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(password).expect("HMAC takes any key");
        Keys { mac, cipher: Aes256::new(&Sha256::digest(password)) }
    }

    /// Encrypts or decrypts: output feedback is its own inverse.
    fn apply(&self, iv: &[u8; IV_BYTES], bytes: &mut [u8]) {
        let mut block = aes::Block::from(*iv);
        for chunk in bytes.chunks_mut(IV_BYTES) {
            self.cipher.encrypt_block(&mut block);
            chunk.iter_mut().zip(block.iter()).for_each(|(byte, mask)| *byte ^= mask);
        }
    }
}

/// The users who may send, with their keys; collectd's `AuthFile`.
#[derive(Clone, Default)]
pub struct AuthFile {
    users: HashMap<Box<[u8]>, Keys>,
}

impl std::fmt::Debug for AuthFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AuthFile of {} users", self.users.len())
    }
}

impl AuthFile {
    /// Reads lines of `user: password`; empty lines and those that begin with `#` do not count.
    ///
    /// # Errors
    /// The number of the first line that is none of these.
    pub fn parse(text: &[u8]) -> Result<Self, usize> {
        let mut users = HashMap::new();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let colon = line.iter().position(|&byte| byte == b':').ok_or(index + 1)?;
            let (user, password) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
            if user.is_empty() || password.is_empty() {
                return Err(index + 1);
            }
            users.insert(user.into(), Keys::of(password));
        }
        Ok(AuthFile { users })
    }

    /// How many users there are.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// True when `code` is `user`'s signature of `rest`.
    pub(super) fn verifies(&self, user: &[u8], code: &[u8; SIGNATURE_BYTES], rest: &[u8]) -> bool {
        let Some(keys) = self.users.get(user) else { return false };
        keys.mac.clone().chain_update(user).chain_update(rest).verify_slice(code).is_ok()
    }

    /// Decrypts into `plain`, the parts without their checksum; false when the user or the checksum is wrong.
    pub(super) fn decrypts(
        &self,
        user: &[u8],
        iv: &[u8; IV_BYTES],
        cipher: &[u8],
        plain: &mut Vec<u8>,
    ) -> bool {
        let Some(keys) = self.users.get(user) else { return false };
        plain.clear();
        plain.extend_from_slice(cipher);
        keys.apply(iv, plain);
        let Some((checksum, parts)) = plain.split_first_chunk::<CHECKSUM_BYTES>() else { return false };
        if Sha1::digest(parts).as_slice() != checksum {
            return false;
        }
        plain.drain(..CHECKSUM_BYTES);
        true
    }

    /// The signature of `parts` by `user`; none if that user is unknown. For senders.
    pub fn sign(&self, user: &[u8], parts: &[u8]) -> Option<[u8; SIGNATURE_BYTES]> {
        let keys = self.users.get(user)?;
        Some(keys.mac.clone().chain_update(user).chain_update(parts).finalize().into_bytes().into())
    }

    /// `parts` with their checksum, encrypted by `user`'s key; none if that user is unknown. For senders.
    pub fn encrypt(&self, user: &[u8], iv: &[u8; IV_BYTES], parts: &[u8]) -> Option<Vec<u8>> {
        let keys = self.users.get(user)?;
        let mut bytes = [Sha1::digest(parts).as_slice(), parts].concat();
        keys.apply(iv, &mut bytes);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_auth_file_has_users_comments_and_empty_lines() {
        let auth = AuthFile::parse(b"# who\n\n u1:  p w \r\nu2:x:y\n").unwrap();
        assert_eq!(auth.len(), 2);
        assert!(auth.sign(b"u1", b"").is_some() && auth.sign(b"u3", b"").is_none());
        let trimmed = AuthFile::parse(b"u1:p w").unwrap();
        assert_eq!(auth.sign(b"u1", b"abc"), trimmed.sign(b"u1", b"abc"));
        for (text, line) in [(&b"\nu1"[..], 2), (b"u1:", 1), (b": p", 1)] {
            assert_eq!(AuthFile::parse(text).err(), Some(line), "{text:?}");
        }
    }

    /// The vector of NIST SP 800-38A, F.4.5: the mode is output feedback.
    #[test]
    fn the_mode_is_output_feedback() {
        let hex = |text: &str| -> Vec<u8> {
            (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
        };
        let key = hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
        let key: [u8; 32] = key.try_into().unwrap();
        let keys = Keys { cipher: Aes256::new(&key.into()), ..Keys::of(b"x") };
        let iv = hex("000102030405060708090a0b0c0d0e0f").try_into().unwrap();
        let mut text = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        keys.apply(&iv, &mut text);
        assert_eq!(text, hex("dc7e84bfda79164b7ecd8486985d38604febdc6740d20b3ac88f6ad82a4fb08d"));
    }
}
