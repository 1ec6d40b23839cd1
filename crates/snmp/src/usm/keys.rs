//! Keys and ciphers of the user-based security model: RFC 3414 (SHA-1), RFC 7860 (SHA-2), RFC 3826 (AES-128), and the two ways in
//! the field to get keys for AES-192 and AES-256.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// A password is repeated to so many bytes (RFC 3414, A.2).
const PASSWORD_BYTES: usize = 1 << 20;
/// Bytes of a digest at most.
const DIGEST_MAX: usize = 64;
/// Bytes of a block of AES.
const BLOCK_BYTES: usize = 16;

/// How messages are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthProtocol {
    /// HMAC-SHA-1-96.
    Sha1,
    /// HMAC-SHA-224-128.
    Sha224,
    /// HMAC-SHA-256-192.
    Sha256,
    /// HMAC-SHA-384-256.
    Sha384,
    /// HMAC-SHA-512-384.
    Sha512,
}

impl AuthProtocol {
    /// Finds it by its name, such as `SHA-256`; `-` and case do not count.
    pub fn find(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().replace('-', "").as_str() {
            "sha" | "sha1" => AuthProtocol::Sha1,
            "sha224" => AuthProtocol::Sha224,
            "sha256" => AuthProtocol::Sha256,
            "sha384" => AuthProtocol::Sha384,
            "sha512" => AuthProtocol::Sha512,
            _ => return None,
        })
    }

    /// Bytes of the code in a message.
    pub fn code_bytes(self) -> usize {
        match self {
            AuthProtocol::Sha1 => 12,
            AuthProtocol::Sha224 => 16,
            AuthProtocol::Sha256 => 24,
            AuthProtocol::Sha384 => 32,
            AuthProtocol::Sha512 => 48,
        }
    }

    /// The digest of what the parts are together.
    fn digest<'a>(self, parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        fn of<'a, D: Digest>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
            let mut digest = D::new();
            parts.into_iter().for_each(|part| digest.update(part));
            digest.finalize().to_vec()
        }
        match self {
            AuthProtocol::Sha1 => of::<Sha1>(parts),
            AuthProtocol::Sha224 => of::<Sha224>(parts),
            AuthProtocol::Sha256 => of::<Sha256>(parts),
            AuthProtocol::Sha384 => of::<Sha384>(parts),
            AuthProtocol::Sha512 => of::<Sha512>(parts),
        }
    }

    /// The key of a password for all engines. It takes a megabyte of hashing, so it should be kept.
    pub fn key_of_password(self, password: &[u8]) -> Vec<u8> {
        let repeats = PASSWORD_BYTES / password.len().max(1);
        let rest = &password[..PASSWORD_BYTES % password.len().max(1)];
        self.digest(std::iter::repeat_n(password, repeats).chain([rest]))
    }

    /// The key for one engine.
    pub fn localize(self, key: &[u8], engine_id: &[u8]) -> Vec<u8> {
        self.digest([key, engine_id, key])
    }

    /// The code of what the parts are together: the first [`AuthProtocol::code_bytes`] count.
    pub fn code(self, key: &[u8], parts: [&[u8]; 3]) -> [u8; DIGEST_MAX] {
        macro_rules! code {
            ($digest:ty) => {{
                let mut code = [0; DIGEST_MAX];
                if let Ok(mut mac) = <Hmac<$digest> as KeyInit>::new_from_slice(key) {
                    parts.iter().for_each(|part| mac.update(part));
                    let bytes = mac.finalize().into_bytes();
                    code[..bytes.len()].copy_from_slice(&bytes);
                }
                code
            }};
        }
        match self {
            AuthProtocol::Sha1 => code!(Sha1),
            AuthProtocol::Sha224 => code!(Sha224),
            AuthProtocol::Sha256 => code!(Sha256),
            AuthProtocol::Sha384 => code!(Sha384),
            AuthProtocol::Sha512 => code!(Sha512),
        }
    }
}

/// How messages are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrivProtocol {
    /// AES-128 in cipher feedback mode.
    Aes128,
    /// AES-192, its key extended as Blumenthal's draft says.
    Aes192,
    /// AES-256, its key extended as Blumenthal's draft says.
    Aes256,
    /// AES-192, its key extended as Reeder's draft says ("Cisco").
    Aes192Reeder,
    /// AES-256, its key extended as Reeder's draft says ("Cisco").
    Aes256Reeder,
}

impl PrivProtocol {
    /// Finds it by its name, such as `AES-256` or `AES-256-C`; `-` and case do not count.
    pub fn find(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().replace('-', "").as_str() {
            "aes" | "aes128" => PrivProtocol::Aes128,
            "aes192" => PrivProtocol::Aes192,
            "aes256" => PrivProtocol::Aes256,
            "aes192c" => PrivProtocol::Aes192Reeder,
            "aes256c" => PrivProtocol::Aes256Reeder,
            _ => return None,
        })
    }

    fn key_bytes(self) -> usize {
        match self {
            PrivProtocol::Aes128 => 16,
            PrivProtocol::Aes192 | PrivProtocol::Aes192Reeder => 24,
            PrivProtocol::Aes256 | PrivProtocol::Aes256Reeder => 32,
        }
    }

    /// The key for one engine, from the localized key of the password.
    pub fn key(self, auth: AuthProtocol, localized: &[u8], engine_id: &[u8]) -> Vec<u8> {
        let mut key = localized.to_vec();
        let mut last = localized.to_vec();
        while key.len() < self.key_bytes() {
            last = match self {
                // The digest so far as a password once more.
                PrivProtocol::Aes192Reeder | PrivProtocol::Aes256Reeder => {
                    auth.localize(&auth.key_of_password(&last), engine_id)
                }
                _ => auth.digest([&key[..]]),
            };
            key.extend_from_slice(&last);
        }
        key.truncate(self.key_bytes());
        key
    }
}

/// A cipher with its key.
#[derive(Clone)]
pub enum Cipher {
    /// AES-128.
    Aes128(Box<Aes128>),
    /// AES-192.
    Aes192(Box<Aes192>),
    /// AES-256.
    Aes256(Box<Aes256>),
}

impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cipher")
    }
}

impl Cipher {
    /// A cipher with a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Option<Self> {
        match key.len() {
            16 => Aes128::new_from_slice(key).ok().map(|cipher| Cipher::Aes128(Box::new(cipher))),
            24 => Aes192::new_from_slice(key).ok().map(|cipher| Cipher::Aes192(Box::new(cipher))),
            32 => Aes256::new_from_slice(key).ok().map(|cipher| Cipher::Aes256(Box::new(cipher))),
            _ => None,
        }
    }

    fn encrypt_block(&self, block: &mut aes::Block) {
        match self {
            Cipher::Aes128(cipher) => cipher.encrypt_block(block),
            Cipher::Aes192(cipher) => cipher.encrypt_block(block),
            Cipher::Aes256(cipher) => cipher.encrypt_block(block),
        }
    }

    /// Encrypts in place, in cipher feedback mode.
    pub fn encrypt(&self, iv: [u8; BLOCK_BYTES], bytes: &mut [u8]) {
        let mut block = aes::Block::from(iv);
        for chunk in bytes.chunks_mut(BLOCK_BYTES) {
            self.encrypt_block(&mut block);
            chunk.iter_mut().zip(block.iter_mut()).for_each(|(byte, mask)| {
                *byte ^= *mask;
                *mask = *byte;
            });
        }
    }

    /// Decrypts in place.
    pub fn decrypt(&self, iv: [u8; BLOCK_BYTES], bytes: &mut [u8]) {
        let mut block = aes::Block::from(iv);
        for chunk in bytes.chunks_mut(BLOCK_BYTES) {
            self.encrypt_block(&mut block);
            chunk.iter_mut().zip(block.iter_mut()).for_each(|(byte, mask)| {
                let plain = *byte ^ *mask;
                *mask = *byte;
                *byte = plain;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn keys_are_those_of_the_rfc() {
        // RFC 3414, A.3.2.
        let engine = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
        let key = AuthProtocol::Sha1.key_of_password(b"maplesyrup");
        assert_eq!(hex(&key), "9fb5cc0381497b3793528939ff788d5d79145211");
        let localized = AuthProtocol::Sha1.localize(&key, &engine);
        assert_eq!(hex(&localized), "6695febc9288e36282235fc7151f128497b38f3f");
        // Both extensions begin with the localized key.
        for protocol in [PrivProtocol::Aes256, PrivProtocol::Aes256Reeder] {
            let key = protocol.key(AuthProtocol::Sha1, &localized, &engine);
            assert!(key.starts_with(&localized) && key.len() == 32);
        }
    }

    #[test]
    fn cipher_feedback_is_that_of_nist() {
        // SP 800-38A, F.3.13 and F.3.17: CFB128 of AES-128 and AES-256, the first two blocks.
        let iv: [u8; 16] = std::array::from_fn(|at| at as u8);
        let plain = [
            [0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a],
            [0xae, 0x2d, 0x8a, 0x57, 0x1e, 0x03, 0xac, 0x9c, 0x9e, 0xb7, 0x6f, 0xac, 0x45, 0xaf, 0x8e, 0x51],
        ]
        .concat();
        let key =
            [0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c];
        let cipher = Cipher::new(&key).unwrap();
        let mut bytes = plain.clone();
        cipher.encrypt(iv, &mut bytes);
        assert_eq!(hex(&bytes), "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b");
        cipher.decrypt(iv, &mut bytes);
        assert_eq!(bytes, plain);
        // A part of a block.
        let mut short = plain[..21].to_vec();
        cipher.encrypt(iv, &mut short);
        cipher.decrypt(iv, &mut short);
        assert_eq!(short, plain[..21]);
    }
}
