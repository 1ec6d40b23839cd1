//! What the fuzzer and the tests feed with any bytes.

use super::{Ask, Told, VERSION_MAX, VERSION_MIN};

/// Decodes the bytes as a request, and as an answer in each version. What can be decoded must be the same after another encoding and decoding.
///
/// # Panics
/// When it is not.
pub fn fuzz(bytes: &[u8]) {
    if let Ok(ask) = Ask::decode(bytes) {
        let again = ask.encode();
        let second = Ask::decode(&again).expect("what was encoded can be decoded");
        assert_eq!(second.encode(), again);
    }
    for version in VERSION_MIN..=VERSION_MAX {
        if let Ok(told) = Told::decode(bytes, version) {
            let again = told.encode(version);
            let second = Told::decode(&again, version).expect("what was encoded can be decoded");
            assert_eq!(second.encode(version), again);
        }
    }
}
