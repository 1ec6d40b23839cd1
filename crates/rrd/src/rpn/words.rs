//! The words of an expression, which commas part.

use super::Operator;
use crate::number;

/// One word of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Word<'a> {
    Number(f64),
    Operator(Operator),
    /// `PREV(name)`.
    Previous(&'a str),
    /// Perhaps a variable.
    Name(&'a str),
}

/// Why there is no word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordError {
    NotUnderstood,
    /// `PREV(name)` with something behind it that is no comma.
    Garbage,
}

/// The first word of `text`, and what stands behind its comma.
pub(super) fn first(text: &str) -> (Result<Word<'_>, WordError>, &str) {
    match text.split_once(',') {
        Some((word, rest)) => (read(word, true), rest),
        None => (read(text, false), ""),
    }
}

fn read(word: &str, comma: bool) -> Result<Word<'_>, WordError> {
    // RRDtool reads a number together with the comma behind it, so an expression cannot end in one.
    if comma && let Some(value) = number(word) {
        return Ok(Word::Number(value));
    }
    if let Some(operator) = Operator::from_word(word) {
        return Ok(Word::Operator(operator));
    }
    match word.strip_prefix("PREV(") {
        Some(inner) => previous(inner, comma),
        None if word.is_empty() => Err(WordError::NotUnderstood),
        None => Ok(Word::Name(word)),
    }
}

fn number(word: &str) -> Option<f64> {
    let behind_sign = word.strip_prefix(['+', '-']).unwrap_or(word);
    if !behind_sign.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    number::parse(word.as_bytes()).ok()
}

/// `inner` is what stands behind `PREV(`; the closing bracket may be missing at the very end.
fn previous(inner: &str, comma: bool) -> Result<Word<'_>, WordError> {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let end = inner.bytes().position(|byte| !of_name(byte)).unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    match rest {
        _ if name.is_empty() => Err(WordError::NotUnderstood),
        ")" => Ok(Word::Previous(name)),
        "" if !comma => Ok(Word::Previous(name)),
        _ => Err(WordError::Garbage),
    }
}
