//! What the fuzzer and the tests feed with any bytes.

use super::{Ask, Told};

/// Decodes the bytes as a request and as an answer. What can be decoded must be the same after another encoding and decoding.
///
/// # Panics
/// When it is not.
pub fn fuzz(bytes: &[u8]) {
    if let Ok(ask) = Ask::decode(bytes) {
        let again = ask.encode();
        let second = Ask::decode(&again).expect("what was encoded can be decoded");
        assert_eq!(second.encode(), again);
    }
    if let Ok(told) = Told::decode(bytes) {
        let again = told.encode();
        let second = Told::decode(&again).expect("what was encoded can be decoded");
        assert_eq!(second.encode(), again);
    }
}
