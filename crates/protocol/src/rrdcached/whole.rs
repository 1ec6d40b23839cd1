//! A whole RRD on the wire: the bytes of its standard `.rrd` file in pieces, each a word of base64.
//!
//! EXPORT answers with a piece a line; IMPORT takes one a command, so that no line is longer than any other may be.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::limits::PIECE_BYTES;

/// Appends the bytes of a file as lines, and says how many.
pub fn push_lines(out: &mut Vec<u8>, file: &[u8]) -> usize {
    for piece in file.chunks(PIECE_BYTES) {
        out.extend_from_slice(word(piece).as_bytes());
        out.push(b'\n');
    }
    line_count(file)
}

/// The lines that the bytes of a file make.
pub fn line_count(file: &[u8]) -> usize {
    file.len().div_ceil(PIECE_BYTES)
}

/// A piece as a word.
pub fn word(piece: &[u8]) -> String {
    STANDARD.encode(piece)
}

/// Appends the bytes of a word; `None` when it is no base64, and what was appended counts for nothing.
pub fn push_bytes(word: &[u8], out: &mut Vec<u8>) -> Option<()> {
    STANDARD.decode_vec(word, out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_the_bytes() {
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
    fn what_is_no_base64_is_refused() {
        for word in [&b"AAA"[..], b"A===", b"AA\xff=", b"AAAA AAAA", b"===="] {
            assert_eq!(push_bytes(word, &mut Vec::new()), None, "{word:?}");
        }
    }
}
