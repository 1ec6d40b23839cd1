//! Whole RRDs: the bytes of a standard `.rrd` file in parts, each a base64 word.
//!
//! EXPORT answers with one part per line; IMPORT takes one per command, so that no line exceeds the usual
//! limit.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::limits::PIECE_BYTES;

/// Appends the bytes of a file as lines, and returns their number.
pub fn push_lines(out: &mut Vec<u8>, file: &[u8]) -> usize {
    for piece in file.chunks(PIECE_BYTES) {
        out.extend_from_slice(word(piece).as_bytes());
        out.push(b'\n');
    }
    line_count(file)
}

/// The number of lines for the bytes of a file.
pub fn line_count(file: &[u8]) -> usize {
    file.len().div_ceil(PIECE_BYTES)
}

/// Encodes a part as a word.
pub fn word(piece: &[u8]) -> String {
    STANDARD.encode(piece)
}

/// Decodes a word and appends its bytes; `None` when it is not base64, and the appended bytes are then
/// invalid.
pub fn push_bytes(word: &[u8], out: &mut Vec<u8>) -> Option<()> {
    STANDARD.decode_vec(word, out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip() {
        for bytes in [0, 1, 2, 3, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 5] {
            let file: Vec<u8> = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
            let (mut text, mut read) = (Vec::new(), Vec::new());
            let count = push_lines(&mut text, &file);
            assert_eq!((count, count), (line_count(&file), text.split(|&byte| byte == b'\n').count() - 1));
            for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                assert!(line.len() < super::super::limits::LINE_BYTES_MAX / 2 + 1);
                push_bytes(line, &mut read).unwrap();
            }
            assert!(read == file, "{bytes}");
        }
    }

    #[test]
    fn invalid_base64_is_refused() {
        for word in [&b"AAA"[..], b"A===", b"AA\xff=", b"AAAA AAAA", b"===="] {
            assert_eq!(push_bytes(word, &mut Vec::new()), None, "{word:?}");
        }
    }
}
