//! A value that was read for a term.

use super::decimal::Decimal;

/// A value that was read for a term.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Operand {
    /// No answer, or no number.
    #[default]
    Unknown,
    /// A counter, or another whole number.
    Unsigned(u64),
    /// A whole number that may be negative.
    Signed(i64),
    /// Another number.
    Number(Decimal),
}

impl Operand {
    /// The number in a text that an agent sent: sign, digits, fraction; anything else is unknown.
    pub fn of_text(text: &[u8]) -> Self {
        let text = text.trim_ascii();
        let is_number = text.iter().all(|byte| byte.is_ascii_digit() || b"+-.".contains(byte));
        let number = std::str::from_utf8(text).ok().filter(|_| is_number).and_then(Decimal::parse);
        number.map_or(Operand::Unknown, Operand::Number)
    }

    /// The number.
    pub fn to_decimal(&self) -> Option<Decimal> {
        match self {
            Operand::Unknown => None,
            Operand::Unsigned(number) => Some(Decimal::of_integer(i128::from(*number))),
            Operand::Signed(number) => Some(Decimal::of_integer(i128::from(*number))),
            Operand::Number(number) => Some(number.clone()),
        }
    }
}
