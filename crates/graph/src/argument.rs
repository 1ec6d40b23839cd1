//! One argument of the graph language, taken apart at its colons.
//!
//! Owns the one rule that all elements share: `\:` is a colon, any other colon separates, and a piece may be
//! named (`step=300`) or stand in its place. An element asks first for the names it knows, then takes what
//! is left in order; whatever it leaves is an error. A name that is given twice leaves the first one over.

use super::language::LanguageError;

/// An argument and which of its pieces have been taken.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    line: Vec<u8>,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    text: Vec<u8>,
    /// Where the first `=` stands.
    equals: Option<usize>,
    taken: bool,
}

impl Argument {
    /// Takes `line` apart.
    pub(crate) fn new(line: &[u8]) -> Argument {
        let mut pieces = Vec::new();
        let mut text = Vec::new();
        for (index, &byte) in line.iter().enumerate() {
            match byte {
                b':' if index > 0 && line[index - 1] == b'\\' => {
                    text.pop();
                    text.push(b':');
                }
                b':' => pieces.push(Piece::new(std::mem::take(&mut text))),
                _ => text.push(byte),
            }
        }
        pieces.push(Piece::new(text));
        Argument { line: line.to_vec(), pieces }
    }

    /// The argument as it was given, for messages.
    pub(crate) fn line(&self) -> String {
        lossy(&self.line)
    }

    /// The name of the element: the first piece that is not of the form `a=b`.
    ///
    /// # Errors
    /// [`LanguageError::NoCommand`].
    pub(crate) fn command(&mut self) -> Result<String, LanguageError> {
        let first = self.pieces.iter_mut().find(|piece| piece.equals.is_none());
        let first = first.ok_or_else(|| LanguageError::NoCommand(lossy(&self.line)))?;
        first.taken = true;
        Ok(lossy(&first.text))
    }

    /// The value of `name=value`, if there is one; of two the last.
    pub(crate) fn named(&mut self, name: &str) -> Option<Vec<u8>> {
        let piece = self.pieces.iter_mut().rev().find(|piece| !piece.taken && piece.has_name(name))?;
        piece.taken = true;
        piece.value().map(<[u8]>::to_vec)
    }

    /// Whether `name` stands there, alone or with a value.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        self.word_or_named(name).is_some()
    }

    /// Whether `word` stands there alone.
    pub(crate) fn word(&mut self, word: &str) -> bool {
        let piece = self.pieces.iter_mut().rev().find(|piece| !piece.taken && piece.text == word.as_bytes());
        piece.is_some_and(|piece| {
            piece.taken = true;
            true
        })
    }

    /// `name`, alone (`Some(None)`) or with a value; of two the last.
    pub(crate) fn word_or_named(&mut self, name: &str) -> Option<Option<Vec<u8>>> {
        let is_it =
            |piece: &&mut Piece| !piece.taken && (piece.has_name(name) || piece.text == name.as_bytes());
        let piece = self.pieces.iter_mut().rev().find(is_it)?;
        piece.taken = true;
        Some(piece.value().map(<[u8]>::to_vec))
    }

    /// The next piece that is not taken yet, whole.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let piece = self.pieces.iter_mut().find(|piece| !piece.taken)?;
        piece.taken = true;
        Some(piece.text.clone())
    }

    /// [`Argument::next`], split at its first `=`: the name (if it has one) and what is behind it.
    pub(crate) fn next_split(&mut self) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
        let piece = self.pieces.iter_mut().find(|piece| !piece.taken)?;
        piece.taken = true;
        Some(match piece.equals {
            Some(at) => (Some(piece.text[..at].to_vec()), piece.text[at + 1..].to_vec()),
            None => (None, piece.text.clone()),
        })
    }

    /// The pieces not taken yet, without taking them.
    pub(crate) fn left(&self) -> Vec<&[u8]> {
        self.pieces.iter().filter(|piece| !piece.taken).map(|piece| piece.text.as_slice()).collect()
    }

    /// That nothing is left.
    ///
    /// # Errors
    /// [`LanguageError::Unused`], which names all that is.
    pub(crate) fn finish(&self) -> Result<(), LanguageError> {
        let left = self.left();
        if left.is_empty() {
            return Ok(());
        }
        let pieces = left.iter().map(|text| lossy(text)).collect::<Vec<_>>().join(":");
        Err(LanguageError::Unused { pieces, line: self.line() })
    }
}

impl Piece {
    fn new(text: Vec<u8>) -> Piece {
        let equals = text.iter().position(|&byte| byte == b'=');
        Piece { text, equals, taken: false }
    }

    fn has_name(&self, name: &str) -> bool {
        self.equals.is_some_and(|at| &self.text[..at] == name.as_bytes())
    }

    fn value(&self) -> Option<&[u8]> {
        self.equals.map(|at| &self.text[at + 1..])
    }
}

/// For messages: bytes that are not UTF-8 are shown as such.
pub(crate) fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colons_separate_unless_escaped() {
        fn check(line: &str, want: &[&str]) {
            let argument = Argument::new(line.as_bytes());
            let pieces: Vec<_> = argument.left().into_iter().map(lossy).collect();
            assert_eq!(pieces, want, "{line}");
        }
        check("", &[""]);
        check("a:b:c", &["a", "b", "c"]);
        check("a::", &["a", "", ""]);
        check(r"a\:b:c", &["a:b", "c"]);
        check(r"x\\:y", &[r"x\:y"]);
        check(r"x\y\", &[r"x\y\"]);
    }

    #[test]
    fn names_come_first_and_the_last_of_two_counts() {
        let mut argument = Argument::new(b"DEF:step=1:a=b=c:step=2:x");
        assert_eq!(argument.command().unwrap(), "DEF");
        assert_eq!(argument.named("step"), Some(b"2".to_vec()));
        assert_eq!(argument.named("start"), None);
        assert_eq!(
            argument.finish().unwrap_err().to_string(),
            "Unused Arguments \"step=1:a=b=c:x\" in command : DEF:step=1:a=b=c:step=2:x"
        );
        assert_eq!(argument.next(), Some(b"step=1".to_vec()));
        assert_eq!(argument.next_split(), Some((Some(b"a".to_vec()), b"b=c".to_vec())));
        assert!(argument.flag("x"));
        assert!(argument.finish().is_ok());
    }
}
