//! The words of a text.

use crate::ast::Span;
use crate::number;

use super::ParseError;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    /// A name or keyword.
    Name(String),
    /// A number.
    Number(f64),
    /// A duration in milliseconds.
    Duration(i64),
    /// A text in quotes.
    Text(String),
    /// Signs.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A word with its place.
#[derive(Clone, Debug)]
pub struct Token {
    /// The word.
    pub word: Word,
    /// Its place.
    pub span: Span,
}

/// Signs, the longest first.
const SIGNS: [&str; 25] = [
    "==", "!=", "=~", "!~", ">=", "<=", "(", ")", "{", "}", "[", "]", ",", "=", "+", "-", "*", "/", "%", "^",
    ">", "<", "@", ":", ";",
];

/// The words of `text`.
///
/// # Errors
/// What cannot be a word, and where.
pub fn words(text: &str) -> Result<Vec<Token>, ParseError> {
    let mut lexer = Lexer { text, at: 0, brackets: 0 };
    let mut all = Vec::new();
    loop {
        lexer.skip_blanks();
        let start = lexer.at;
        let word = lexer.word()?;
        let is_end = word == Word::End;
        all.push(Token { word, span: Span { start: start as u32, end: lexer.at as u32 } });
        if is_end {
            return Ok(all);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Brackets that are open: in them, a colon separates.
    brackets: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let skipped = match rest.chars().next() {
                Some(c) if c.is_ascii_whitespace() => rest.len() - rest.trim_ascii_start().len(),
                Some('#') => rest.find('\n').unwrap_or(rest.len()),
                _ => return,
            };
            self.at += skipped;
        }
    }

    fn word(&mut self) -> Result<Word, ParseError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Word::End) };
        let second = rest[first.len_utf8()..].chars().next();
        match first {
            '"' | '\'' | '`' => self.quoted(first),
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|c| c.is_ascii_digit()) => self.number(),
            c if c.is_alphabetic() || c == '_' || (c == ':' && self.brackets == 0) => {
                let in_name = |c: char| {
                    c.is_alphanumeric() || matches!(c, '_' | '.') || (c == ':' && self.brackets == 0)
                };
                let end = rest.find(|c| !in_name(c)).unwrap_or(rest.len());
                let name = rest[..end].to_owned();
                self.at += end;
                Ok(Word::Name(name))
            }
            _ => self.sign(first),
        }
    }

    fn sign(&mut self, first: char) -> Result<Word, ParseError> {
        let found = SIGNS.iter().find(|sign| self.rest().starts_with(**sign));
        let Some(sign) = found else {
            return Err(ParseError::at(self.at, format!("unexpected character: {first:?}")));
        };
        match *sign {
            "[" => self.brackets += 1,
            "]" => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        self.at += sign.len();
        Ok(Word::Sign(sign))
    }

    fn number(&mut self) -> Result<Word, ParseError> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let is_hex = rest.len() > 1 && rest[1..].starts_with(['x', 'X']);
        let mut end = 0;
        while end < bytes.len() {
            let signed = matches!(bytes[end], b'+' | b'-')
                && end > 0
                && !is_hex
                && matches!(bytes[end - 1], b'e' | b'E')
                && bytes[..end - 1].iter().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_'));
            if !(bytes[end].is_ascii_alphanumeric() || matches!(bytes[end], b'.' | b'_') || signed) {
                break;
            }
            end += 1;
        }
        let word = &rest[..end];
        let found = match number::parse_duration(word).filter(|_| word != "0") {
            Some(duration) => Some(Word::Duration(duration)),
            None => number::parse(word).map(Word::Number),
        };
        let error = || ParseError::at(self.at, format!("bad number or duration syntax: {word:?}"));
        let found = found.ok_or_else(error)?;
        self.at += end;
        Ok(found)
    }

    fn quoted(&mut self, quote: char) -> Result<Word, ParseError> {
        let open = self.at;
        let unterminated = || ParseError::at(open, "unterminated quoted string".to_owned());
        let mut out: Vec<u8> = Vec::new();
        let mut at = open + 1;
        loop {
            let c = self.text[at..].chars().next().ok_or_else(unterminated)?;
            at += c.len_utf8();
            match c {
                c if c == quote => break,
                '\n' if quote != '`' => return Err(unterminated()),
                '\\' if quote != '`' => {
                    at += escaped(&self.text[at..], quote, &mut out)
                        .ok_or_else(|| ParseError::at(at, "unknown escape sequence".to_owned()))?
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        self.at = at;
        String::from_utf8(out)
            .map(Word::Text)
            .map_err(|_| ParseError::at(open, "a string that is not UTF-8".to_owned()))
    }
}

/// Appends what stands after a backslash; the bytes it took.
fn escaped(rest: &str, quote: char, out: &mut Vec<u8>) -> Option<usize> {
    let c = rest.chars().next()?;
    let simple = match c {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        c if c == quote => c as u8,
        'x' => {
            out.push(u8::from_str_radix(rest.get(1..3)?, 16).ok()?);
            return Some(3);
        }
        'u' | 'U' => {
            let digits = if c == 'u' { 4 } else { 8 };
            let code = u32::from_str_radix(rest.get(1..=digits)?, 16).ok()?;
            out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(1 + digits);
        }
        '0'..='7' => {
            out.push(u8::from_str_radix(rest.get(0..3)?, 8).ok()?);
            return Some(3);
        }
        _ => return None,
    };
    out.push(simple);
    Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Word> {
        words(text).unwrap().into_iter().map(|token| token.word).collect()
    }

    #[test]
    fn words_of_every_kind() {
        let name = |text: &str| Word::Name(text.into());
        assert_eq!(
            list("a:b[5m:1m] # comment\n >= 1e-3"),
            [
                name("a:b"),
                Word::Sign("["),
                Word::Duration(300_000),
                Word::Sign(":"),
                Word::Duration(60_000),
                Word::Sign("]"),
                Word::Sign(">="),
                Word::Number(1e-3),
                Word::End
            ]
        );
        assert_eq!(
            list(r#""a\n\x41\u00e9" '\'' `\n`"#)[..3],
            ["a\nA\u{e9}", "'", "\\n"].map(|t| Word::Text(t.into()))
        );
    }

    #[test]
    fn broken_words_are_refused() {
        for text in ["\"a", "'a\nb'", "\"\\q\"", "5x", "$", "\"\\xff\"", "\"\\u12"] {
            assert!(words(text).is_err(), "{text}");
        }
    }
}
