//! One argument of the graph language, split at its colons.
//!
//! The one rule that all elements share: `\:` is a colon, any other colon separates, and a part is either named
//! (`step=300`) or positional. An element first takes the names it knows, then the rest in order; leftover parts are an
//! error. If a name is given twice, the last one is taken and the first is left over.

use super::language::LanguageError;

/// An argument, and which of its parts have been taken.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    line: Vec<u8>,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    text: Vec<u8>,
    /// The position of the first `=`.
    equals: Option<usize>,
    taken: bool,
}

impl Argument {
    /// Splits `line`.
    pub(crate) fn new(line: &[u8]) -> Argument {
        let mut parts = Vec::new();
        let mut text = Vec::new();
        for (index, &byte) in line.iter().enumerate() {
            match byte {
                b':' if index > 0 && line[index - 1] == b'\\' => {
                    text.pop();
                    text.push(b':');
                }
                b':' => parts.push(Part::new(std::mem::take(&mut text))),
                _ => text.push(byte),
            }
        }
        parts.push(Part::new(text));
        Argument { line: line.to_vec(), parts }
    }

    /// The argument as it was given, for messages.
    pub(crate) fn line(&self) -> String {
        lossy(&self.line)
    }

    /// The name of the element: the first part that is not of the form `a=b`.
    ///
    /// # Errors
    /// [`LanguageError::NoCommand`].
    pub(crate) fn command(&mut self) -> Result<String, LanguageError> {
        let first = self.parts.iter_mut().find(|part| part.equals.is_none());
        let first = first.ok_or_else(|| LanguageError::NoCommand(lossy(&self.line)))?;
        first.taken = true;
        Ok(lossy(&first.text))
    }

    /// Takes `name=value`, the last one if there are several, and returns the value.
    pub(crate) fn named(&mut self, name: &str) -> Option<Vec<u8>> {
        let part = self.parts.iter_mut().rev().find(|part| !part.taken && part.has_name(name))?;
        part.taken = true;
        part.value().map(<[u8]>::to_vec)
    }

    /// Takes `name`, with or without a value; whether it was there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        self.word_or_named(name).is_some()
    }

    /// Takes the part that is exactly `word`; whether it was there.
    pub(crate) fn word(&mut self, word: &str) -> bool {
        let part = self.parts.iter_mut().rev().find(|part| !part.taken && part.text == word.as_bytes());
        part.is_some_and(|part| {
            part.taken = true;
            true
        })
    }

    /// Takes `name`, without (`Some(None)`) or with a value, the last one if there are several.
    pub(crate) fn word_or_named(&mut self, name: &str) -> Option<Option<Vec<u8>>> {
        let is_it = |part: &&mut Part| !part.taken && (part.has_name(name) || part.text == name.as_bytes());
        let part = self.parts.iter_mut().rev().find(is_it)?;
        part.taken = true;
        Some(part.value().map(<[u8]>::to_vec))
    }

    /// Takes the next part, whole.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let part = self.parts.iter_mut().find(|part| !part.taken)?;
        part.taken = true;
        Some(part.text.clone())
    }

    /// Takes the next part. Compat: of `key=value`, whatever the key, RRDtool takes the value.
    pub(crate) fn next_value(&mut self) -> Option<Vec<u8>> {
        self.next_split().map(|(_, value)| value)
    }

    /// Takes the next part. Compat: of `key=value` RRDtool takes the key.
    pub(crate) fn next_key(&mut self) -> Option<Vec<u8>> {
        self.next_split().map(|(key, value)| key.unwrap_or(value))
    }

    /// Takes the next part, split at its first `=` into the name (if it has one) and the rest.
    pub(crate) fn next_split(&mut self) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
        let part = self.parts.iter_mut().find(|part| !part.taken)?;
        part.taken = true;
        Some(match part.equals {
            Some(at) => (Some(part.text[..at].to_vec()), part.text[at + 1..].to_vec()),
            None => (None, part.text.clone()),
        })
    }

    /// The parts that are not taken yet.
    pub(crate) fn left(&self) -> Vec<&[u8]> {
        self.parts.iter().filter(|part| !part.taken).map(|part| part.text.as_slice()).collect()
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// [`LanguageError::Unused`] with all that is left.
    pub(crate) fn finish(&self) -> Result<(), LanguageError> {
        let left = self.left();
        if left.is_empty() {
            return Ok(());
        }
        let parts = left.iter().map(|text| lossy(text)).collect::<Vec<_>>().join(":");
        Err(LanguageError::Unused { parts, line: self.line() })
    }
}

impl Part {
    fn new(text: Vec<u8>) -> Part {
        let equals = text.iter().position(|&byte| byte == b'=');
        Part { text, equals, taken: false }
    }

    fn has_name(&self, name: &str) -> bool {
        self.equals.is_some_and(|at| &self.text[..at] == name.as_bytes())
    }

    fn value(&self) -> Option<&[u8]> {
        self.equals.map(|at| &self.text[at + 1..])
    }
}

/// Text for messages; bytes that are not UTF-8 become replacement characters.
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
            let parts: Vec<_> = argument.left().into_iter().map(lossy).collect();
            assert_eq!(parts, want, "{line}");
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
