//! Encryption of version 3: AES in cipher feedback mode (RFC 3826), DES and triple DES in cipher block chaining mode (RFC 3414).

use aes::{Aes128, Aes192, Aes256};
use cbc::cipher::block_padding::NoPadding;
use cbc::cipher::{
    BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit,
};
use des::{Des, TdesEde3};

use super::keys::PrivProtocol;

/// Bytes of a block of DES.
const DES_BLOCK_BYTES: usize = 8;

/// What the initialization vector of a message is made of.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// How often the engine has started.
    pub boots: i32,
    /// The engine's time in seconds.
    pub time: i32,
    /// What the sender never uses twice.
    pub salt: [u8; 8],
}

/// A way to encrypt with a key.
#[derive(Clone)]
pub struct Cipher {
    protocol: PrivProtocol,
    key: Vec<u8>,
}

impl std::fmt::Debug for Cipher {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.protocol.fmt(f)
    }
}

impl Cipher {
    /// A cipher with the key of [`PrivProtocol::key`].
    pub fn new(protocol: PrivProtocol, key: Vec<u8>) -> Self {
        Cipher { protocol, key }
    }

    /// How many bytes must be added to so many before they can be encrypted.
    pub fn padding(&self, length: usize) -> usize {
        match self.protocol {
            PrivProtocol::Des | PrivProtocol::TripleDes => length.next_multiple_of(DES_BLOCK_BYTES) - length,
            _ => 0,
        }
    }

    /// Encrypts in place; `None` when the length is not a multiple of a block.
    pub fn encrypt(&self, moment: Moment, bytes: &mut [u8]) -> Option<()> {
        self.apply(Direction::Encrypt, moment, bytes)
    }

    /// Decrypts in place; `None` when the length is not a multiple of a block.
    pub fn decrypt(&self, moment: Moment, bytes: &mut [u8]) -> Option<()> {
        self.apply(Direction::Decrypt, moment, bytes)
    }

    fn apply(&self, direction: Direction, moment: Moment, bytes: &mut [u8]) -> Option<()> {
        let apply = match self.protocol {
            PrivProtocol::Des => chain::<Des>,
            PrivProtocol::TripleDes => chain::<TdesEde3>,
            PrivProtocol::Aes128 => feed_back::<Aes128>,
            PrivProtocol::Aes192 | PrivProtocol::Aes192Reeder => feed_back::<Aes192>,
            PrivProtocol::Aes256 | PrivProtocol::Aes256Reeder => feed_back::<Aes256>,
        };
        apply(direction, &self.key, moment, bytes)
    }
}

/// What is done with a text.
#[derive(Clone, Copy)]
enum Direction {
    Encrypt,
    Decrypt,
}

/// Cipher block chaining.
fn chain<C: BlockCipherEncrypt + BlockCipherDecrypt + KeyInit>(
    direction: Direction,
    key: &[u8],
    moment: Moment,
    bytes: &mut [u8],
) -> Option<()> {
    let (key, iv) = chained_iv(key, moment)?;
    let length = bytes.len();
    match direction {
        Direction::Encrypt => {
            let mode = cbc::Encryptor::<C>::new_from_slices(key, &iv).ok()?;
            mode.encrypt_padded::<NoPadding>(bytes, length).ok().map(drop)
        }
        Direction::Decrypt => {
            let mode = cbc::Decryptor::<C>::new_from_slices(key, &iv).ok()?;
            mode.decrypt_padded::<NoPadding>(bytes).ok().map(drop)
        }
    }
}

/// Cipher feedback.
fn feed_back<C: BlockCipherEncrypt + KeyInit>(
    direction: Direction,
    key: &[u8],
    moment: Moment,
    bytes: &mut [u8],
) -> Option<()> {
    let iv = feedback_iv(moment);
    match direction {
        Direction::Encrypt => cfb_mode::Encryptor::<C>::new_from_slices(key, &iv).ok()?.encrypt(bytes),
        Direction::Decrypt => cfb_mode::Decryptor::<C>::new_from_slices(key, &iv).ok()?.decrypt(bytes),
    }
    Some(())
}

/// The initialization vector of AES (RFC 3826, 3.1.2.1).
fn feedback_iv(moment: Moment) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[..4].copy_from_slice(&moment.boots.to_be_bytes());
    iv[4..8].copy_from_slice(&moment.time.to_be_bytes());
    iv[8..].copy_from_slice(&moment.salt);
    iv
}

/// The key and the initialization vector of DES (RFC 3414, 8.1.1.1): the last bytes of the key, changed by the salt.
fn chained_iv(key: &[u8], moment: Moment) -> Option<(&[u8], [u8; DES_BLOCK_BYTES])> {
    let (key, &(mut iv)) = key.split_last_chunk()?;
    iv.iter_mut().zip(moment.salt).for_each(|(byte, salt)| *byte ^= salt);
    Some((key, iv))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: Moment = Moment { boots: 0, time: 0, salt: [0; 8] };

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn modes_are_those_of_the_standards() {
        // FIPS 81, table C1 (DES, chained; the last bytes of the key are the vector), and SP 800-38A, F.3.13 and F.3.17 (feedback).
        let text = bytes("4e6f77206973207468652074696d6520666f7220616c6c20");
        let chained = "e5c7cdde872bf27c43e934008c389c0f683788499a7c05f6";
        let moment = Moment { boots: 0x0001_0203, time: 0x0405_0607, salt: [8, 9, 10, 11, 12, 13, 14, 15] };
        let plain = bytes("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        let (short, long) = (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        );
        let (by_short, by_long) = (
            "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b",
            "dc7e84bfda79164b7ecd8486985d386039ffed143b28b1c832113c6331e5407b",
        );
        // Three equal keys are one.
        let triple = "0123456789abcdef".repeat(3) + "1234567890abcdef";
        for (protocol, key, moment, text, want) in [
            (PrivProtocol::Des, "0123456789abcdef1234567890abcdef", ZERO, &text, chained),
            (PrivProtocol::TripleDes, &triple, ZERO, &text, chained),
            (PrivProtocol::Aes128, short, moment, &plain, by_short),
            (PrivProtocol::Aes256, long, moment, &plain, by_long),
        ] {
            let cipher = Cipher::new(protocol, bytes(key));
            assert_eq!(cipher.padding(text.len()), 0);
            let mut block = text.clone();
            cipher.encrypt(moment, &mut block).unwrap();
            assert_eq!(block, bytes(want), "{protocol:?}");
            cipher.decrypt(moment, &mut block).unwrap();
            assert_eq!(&block, text);
            // Feedback encrypts a part of a block; chaining needs padding.
            let is_chained = cipher.padding(21) != 0;
            let mut part = text[..21].to_vec();
            assert_eq!(cipher.encrypt(moment, &mut part).is_none(), is_chained);
            assert_eq!(cipher.decrypt(moment, &mut part).is_none(), is_chained);
            assert!(part == text[..21]);
        }
        assert_eq!(Cipher::new(PrivProtocol::Des, Vec::new()).padding(21), 3);
        assert!(Cipher::new(PrivProtocol::Des, Vec::new()).encrypt(ZERO, &mut [0; 8]).is_none());
    }
}
