//! Keys of the user-based security model: RFC 3414 (MD5, SHA-1, DES), RFC 7860 (SHA-2), RFC 3826 (AES-128), and the two ways in
//! the field to get longer keys: Blumenthal's draft (AES-192, AES-256) and Reeder's (the same, and triple DES).

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// A password is repeated to so many bytes (RFC 3414, A.2).
const PASSWORD_BYTES: usize = 1 << 20;
/// Bytes of a digest at most.
const DIGEST_MAX: usize = 64;

/// How messages are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthProtocol {
    /// HMAC-MD5-96.
    Md5,
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
            "md5" => AuthProtocol::Md5,
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
            AuthProtocol::Md5 | AuthProtocol::Sha1 => 12,
            AuthProtocol::Sha224 => 16,
            AuthProtocol::Sha256 => 24,
            AuthProtocol::Sha384 => 32,
            AuthProtocol::Sha512 => 48,
        }
    }

    /// Bytes of a key.
    pub fn key_bytes(self) -> usize {
        match self {
            AuthProtocol::Md5 => 16,
            AuthProtocol::Sha1 => 20,
            AuthProtocol::Sha224 => 28,
            AuthProtocol::Sha256 => 32,
            AuthProtocol::Sha384 => 48,
            AuthProtocol::Sha512 => 64,
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
            AuthProtocol::Md5 => of::<Md5>(parts),
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
            AuthProtocol::Md5 => code!(Md5),
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
    /// DES in cipher block chaining mode.
    Des,
    /// Triple DES in cipher block chaining mode, its key extended as Reeder's draft says.
    TripleDes,
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
            "des" => PrivProtocol::Des,
            "3des" | "3desede" => PrivProtocol::TripleDes,
            "aes" | "aes128" => PrivProtocol::Aes128,
            "aes192" => PrivProtocol::Aes192,
            "aes256" => PrivProtocol::Aes256,
            "aes192c" => PrivProtocol::Aes192Reeder,
            "aes256c" => PrivProtocol::Aes256Reeder,
            _ => return None,
        })
    }

    /// Bytes of the key; that of DES and triple DES is followed by what the initialization vector is made of.
    pub fn key_bytes(self) -> usize {
        match self {
            PrivProtocol::Des => 16,
            PrivProtocol::TripleDes => 32,
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
                PrivProtocol::TripleDes | PrivProtocol::Aes192Reeder | PrivProtocol::Aes256Reeder => {
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
        assert_eq!(
            (key.len(), localized.len()),
            (AuthProtocol::Sha1.key_bytes(), AuthProtocol::Sha1.key_bytes())
        );
        // RFC 3414, A.3.1.
        let key = AuthProtocol::Md5.key_of_password(b"maplesyrup");
        assert_eq!(hex(&key), "9faf3283884e92834ebc9847d8edd963");
        assert_eq!(hex(&AuthProtocol::Md5.localize(&key, &engine)), "526f5eed9fcce26f8964c2930787d82b");
        // Both extensions begin with the localized key.
        for protocol in [PrivProtocol::Aes256, PrivProtocol::Aes256Reeder, PrivProtocol::TripleDes] {
            let key = protocol.key(AuthProtocol::Sha1, &localized, &engine);
            assert!(key.starts_with(&localized) && key.len() == 32);
        }
    }
}
