//! Splits a stream of bytes into lines.

use super::limits::LINE_BYTES_MAX;

/// What the received bytes start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan<'a> {
    /// A complete line, without its line feed and one carriage return before it; `used` bytes are consumed.
    Line {
        /// The line.
        line: &'a [u8],
        /// Its bytes including the line feed.
        used: usize,
    },
    /// Incomplete: read more.
    Partial,
    /// A line longer than [`LINE_BYTES_MAX`]. If its line feed has arrived, `used` bytes are consumed; else
    /// discard everything up to the next line feed.
    TooLong {
        /// Bytes consumed, including the line feed; `None` = it has not arrived yet.
        used: Option<usize>,
    },
}

/// Finds the first line of `bytes`.
#[inline]
pub fn scan(bytes: &[u8]) -> Scan<'_> {
    match memchr::memchr(b'\n', bytes) {
        Some(end) if end > LINE_BYTES_MAX => Scan::TooLong { used: Some(end + 1) },
        Some(end) => {
            let line = &bytes[..end];
            Scan::Line { line: line.strip_suffix(b"\r").unwrap_or(line), used: end + 1 }
        }
        None if bytes.len() > LINE_BYTES_MAX => Scan::TooLong { used: None },
        None => Scan::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_the_line_feed_and_lose_one_carriage_return() {
        let check = |input: &[u8], want: Scan| assert_eq!(scan(input), want);
        check(b"PING\nPONG\n", Scan::Line { line: b"PING", used: 5 });
        check(b"PING\r\r\n", Scan::Line { line: b"PING\r", used: 7 });
        check(b"\n", Scan::Line { line: b"", used: 1 });
        check(b"PING", Scan::Partial);
        check(b"", Scan::Partial);
    }

    #[test]
    fn too_long_lines_are_detected() {
        let mut bytes = vec![b'x'; LINE_BYTES_MAX];
        assert_eq!(scan(&bytes), Scan::Partial);
        bytes.push(b'\n');
        assert!(matches!(scan(&bytes), Scan::Line { line, .. } if line.len() == LINE_BYTES_MAX));
        bytes.insert(0, b'x');
        assert_eq!(scan(&bytes), Scan::TooLong { used: Some(LINE_BYTES_MAX + 2) });
        bytes.pop();
        assert_eq!(scan(&bytes), Scan::TooLong { used: None });
    }
}
