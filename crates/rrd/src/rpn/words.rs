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

/// Letters of a number that RRDtool reads; what is longer is no number.
const NUMBER_LETTERS: usize = 40;
/// Letters of a name that RRDtool reads.
const NAME_LETTERS: usize = 255;

/// The first word of `text`, and what stands behind its comma.
pub(super) fn first(text: &str) -> (Result<Word<'_>, WordError>, &str) {
    let (word, rest, comma) = match text.split_once(',') {
        Some((word, rest)) => (word, rest, true),
        None => (text, "", false),
    };
    // RRDtool reads a number together with the comma behind it, so an expression cannot end in one.
    if comma && let Some(value) = number(word) {
        return (Ok(Word::Number(value)), rest);
    }
    if let Some(operator) = Operator::from_word(word) {
        return (Ok(Word::Operator(operator)), rest);
    }
    match text.strip_prefix("PREV(") {
        Some(inner) => previous(inner),
        None if word.is_empty() || word.len() > NAME_LETTERS => (Err(WordError::NotUnderstood), rest),
        None => (Ok(Word::Name(word)), rest),
    }
}

/// Other than in updates, neither `E` nor `nan` and `inf`.
fn number(word: &str) -> Option<f64> {
    let letter = |byte: u8| byte.is_ascii_digit() || b".e+-".contains(&byte);
    let good = word.len() <= NUMBER_LETTERS && word.bytes().all(letter);
    if good { number::parse(word.as_bytes()).ok() } else { None }
}

/// `inner` is what stands behind `PREV(`.
///
/// Compat: whatever single letter stands behind the name counts as the closing bracket
/// (`tests/rpn_oracle.rs`). Without any RRDtool goes by what it read before, most often to the same error.
fn previous(inner: &str) -> (Result<Word<'_>, WordError>, &str) {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let letters = inner.bytes().take(NAME_LETTERS).take_while(|&byte| of_name(byte)).count();
    let (name, mut rest) = inner.split_at(letters);
    if name.is_empty() {
        return (Err(WordError::NotUnderstood), rest);
    }
    let mut letters = rest.chars();
    if letters.next().is_none() {
        return (Err(WordError::Garbage), rest);
    }
    rest = letters.as_str();
    match rest.strip_prefix(',') {
        Some(rest) => (Ok(Word::Previous(name)), rest),
        None if rest.is_empty() => (Ok(Word::Previous(name)), rest),
        None => (Err(WordError::Garbage), rest),
    }
}
