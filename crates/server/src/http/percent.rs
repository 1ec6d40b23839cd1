//! Percent-encoding (RFC 3986), byte by byte: names of RRDs need not be UTF-8.

/// Decodes a percent-encoded text; `None` when a `%` is not followed by two digits.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        if first == b'%' {
            let (digits, behind) = behind.split_at_checked(2)?;
            let digit = |index: usize| char::from(digits[index]).to_digit(16);
            bytes.push((digit(0)? * 16 + digit(1)?) as u8);
            rest = behind;
        } else {
            bytes.push(first);
            rest = behind;
        }
    }
    Some(bytes)
}

/// A name as it stands in a request: everything but letters, digits and `-._/` percent-encoded.
pub fn encode(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for &byte in name {
        if byte.is_ascii_alphanumeric() || b"-._/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_round_trips() {
        for name in [b"a/b c.rrd".as_slice(), b"\xff\x00%?#&", "h\u{f6}st/\u{20ac}".as_bytes()] {
            let text = encode(name);
            assert!(text.is_ascii() && !text.contains(['?', '#', ' ']));
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(name));
        }
        assert_eq!(decode(b"%"), None);
        assert_eq!(decode(b"%zz"), None);
        assert_eq!(decode(b"%+1"), None);
    }
}
