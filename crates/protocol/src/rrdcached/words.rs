//! Splits a line into words.
//!
//! Compat: found by experiment with rrdcached 1.7.2, pinned by `crates/server/tests/server/rrdcached_oracle.rs`: a
//! word ends at one space or NUL; a backslash escapes the next byte; quotes have no meaning; two spaces
//! enclose an empty word; a space at the end is followed by an empty word; a backslash at the very end
//! invalidates the last word, as if it were absent.

use std::borrow::Cow;

/// Iterates over the words of a line.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// `None` after the last word.
    rest: Option<&'a [u8]>,
}

impl<'a> Words<'a> {
    /// The words of `line`.
    pub fn new(line: &'a [u8]) -> Self {
        Words { rest: if line.is_empty() { None } else { Some(line) } }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Cow<'a, [u8]>;

    fn next(&mut self) -> Option<Cow<'a, [u8]>> {
        let rest = self.rest.take()?;
        let end = memchr::memchr3(b' ', b'\0', b'\\', rest);
        match end {
            None => Some(Cow::Borrowed(rest)),
            Some(end) if rest[end] != b'\\' => {
                self.rest = Some(&rest[end + 1..]);
                Some(Cow::Borrowed(&rest[..end]))
            }
            Some(first) => self.unescape(rest, first),
        }
    }
}

impl<'a> Words<'a> {
    fn unescape(&mut self, rest: &'a [u8], first: usize) -> Option<Cow<'a, [u8]>> {
        let mut word = rest[..first].to_vec();
        let mut at = first;
        loop {
            match rest.get(at) {
                None => break,
                Some(b' ' | b'\0') => {
                    self.rest = Some(&rest[at + 1..]);
                    break;
                }
                Some(b'\\') => {
                    word.push(*rest.get(at + 1)?);
                    at += 2;
                }
                Some(&byte) => {
                    word.push(byte);
                    at += 1;
                }
            }
        }
        Some(Cow::Owned(word))
    }
}

/// Appends `word`, escaped so that [`Words`] restores it.
pub fn push_escaped(out: &mut Vec<u8>, word: &[u8]) {
    for &byte in word {
        if matches!(byte, b' ' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[u8], want: &[&[u8]]) {
        let words: Vec<Cow<[u8]>> = Words::new(line).collect();
        assert_eq!(words, want.iter().map(|word| Cow::Borrowed(*word)).collect::<Vec<_>>(), "{line:?}");
    }

    #[test]
    fn words_are_separated_by_single_spaces() {
        check(b"", &[]);
        check(b"PING", &[b"PING"]);
        check(b"a b", &[b"a", b"b"]);
        check(b"a  b", &[b"a", b"", b"b"]);
        check(b" a", &[b"", b"a"]);
        check(b"a ", &[b"a", b""]);
        check(b"a\tb", &[b"a\tb"]);
        check(b"a\0b", &[b"a", b"b"]);
    }

    #[test]
    fn backslashes_escape_and_quotes_do_not() {
        check(br"a\ b c", &[b"a b", b"c"]);
        check(br"a\\b", &[br"a\b"]);
        check(br#""a b""#, &[br#""a"#, br#"b""#]);
        check(br"a\", &[]);
        check(br"a b\", &[b"a"]);
        check(br"a\b\ \\", &[br"ab \"]);
    }

    #[test]
    fn escaping_round_trips() {
        for word in [b"plain".as_slice(), b"two words", br"back\slash\ ", b"\xff'\""] {
            let mut line = Vec::new();
            push_escaped(&mut line, word);
            check(&line, &[word]);
        }
    }
}
