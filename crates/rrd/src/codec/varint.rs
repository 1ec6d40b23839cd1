//! Variable-length integers: seven bits per byte, lowest first; a set top bit means that more bytes follow.
//!
//! Only the shortest form is valid, so equal values have equal bytes.

/// Bytes of the longest `u64`.
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends `value`.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a value and advances `bytes` past it; `None` when it is cut off, too long or not in its shortest
/// form.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        let part = u64::from(byte & 0x7f);
        if index == VARINT_BYTES_MAX - 1 && part > 1 {
            return None;
        }
        value |= part << (7 * index);
        if byte & 0x80 == 0 {
            if byte == 0 && index > 0 {
                return None;
            }
            *bytes = &bytes[index + 1..];
            return Some(value);
        }
    }
    None
}

/// Maps signed integers to unsigned ones so that small magnitudes stay small.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_exactly_one_form() {
        let check = |value: u64, want: &[u8]| {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(bytes, want);
            let mut rest = bytes.as_slice();
            assert_eq!(take(&mut rest), Some(value));
            assert!(rest.is_empty());
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        };
        check(0, &[0]);
        check(127, &[127]);
        check(128, &[0x80, 1]);
        check(u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        let bad = |mut bytes: &[u8]| assert_eq!(take(&mut bytes), None);
        bad(&[0x80, 0]);
        bad(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]);
        bad(&[0xff; 11]);
    }

    #[test]
    fn zigzag_round_trips() {
        for value in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }
}
