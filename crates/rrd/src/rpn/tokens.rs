//! The tokens of an expression, which commas separate.

use super::Operator;
use crate::number;

/// One token of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Number(f64),
    Operator(Operator),
    /// `PREV(name)`.
    Previous(&'a str),
    /// Possibly a variable.
    Name(&'a str),
}

/// Why there is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenError {
    NotUnderstood,
    /// `PREV(name)` is followed by something other than a comma.
    Garbage,
}

/// Most characters of a number that RRDtool reads; a longer one is not a number.
const NUMBER_LETTERS: usize = 40;
/// Most characters of a name that RRDtool reads.
const NAME_LETTERS: usize = 255;

/// The first token of `text`, and what follows its comma.
pub(super) fn first(text: &str) -> (Result<Token<'_>, TokenError>, &str) {
    let (token, rest, comma) = match text.split_once(',') {
        Some((token, rest)) => (token, rest, true),
        None => (text, "", false),
    };
    // RRDtool reads a number together with the comma after it, so an expression cannot end in one.
    if comma && let Some(value) = number(token) {
        return (Ok(Token::Number(value)), rest);
    }
    if let Some(operator) = Operator::from_name(token) {
        return (Ok(Token::Operator(operator)), rest);
    }
    match text.strip_prefix("PREV(") {
        Some(inner) => previous(inner),
        None if token.is_empty() || token.len() > NAME_LETTERS => (Err(TokenError::NotUnderstood), rest),
        None => (Ok(Token::Name(token)), rest),
    }
}

/// Unlike in updates, `E`, `nan` and `inf` are not numbers.
fn number(token: &str) -> Option<f64> {
    let letter = |byte: u8| byte.is_ascii_digit() || b".e+-".contains(&byte);
    let good = token.len() <= NUMBER_LETTERS && token.bytes().all(letter);
    if good { number::parse(token.as_bytes()).ok() } else { None }
}

/// `inner` is what follows `PREV(`.
///
/// Compat: any single letter after the name counts as the closing bracket (`tests/rpn_oracle.rs`). Without one,
/// RRDtool uses what it read before, mostly with the same error.
fn previous(inner: &str) -> (Result<Token<'_>, TokenError>, &str) {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let letters = inner.bytes().take(NAME_LETTERS).take_while(|&byte| of_name(byte)).count();
    let (name, mut rest) = inner.split_at(letters);
    if name.is_empty() {
        return (Err(TokenError::NotUnderstood), rest);
    }
    let mut letters = rest.chars();
    if letters.next().is_none() {
        return (Err(TokenError::Garbage), rest);
    }
    rest = letters.as_str();
    match rest.strip_prefix(',') {
        Some(rest) => (Ok(Token::Previous(name)), rest),
        None if rest.is_empty() => (Ok(Token::Previous(name)), rest),
        None => (Err(TokenError::Garbage), rest),
    }
}
