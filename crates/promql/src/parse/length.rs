//! Durations: in brackets any arithmetic, after `offset` one operand.

use crate::ast::Length;

use super::lexer::Word;
use super::{ParseError, Parser};

/// The most operators in the durations of a text.
const LENGTH_PARTS_MAX: usize = 500;

impl Parser {
    /// A duration in brackets, of operators that bind at least as tightly as `lowest`.
    pub(super) fn length(&mut self, lowest: u8) -> Result<Length, ParseError> {
        self.nested(|parser| {
            let mut left = parser.length_unary()?;
            loop {
                let (sign, precedence) = match parser.peek() {
                    Word::Sign("+") => ('+', 1),
                    Word::Sign("-") => ('-', 1),
                    Word::Sign("*") => ('*', 2),
                    Word::Sign("/") => ('/', 2),
                    Word::Sign("%") => ('%', 2),
                    Word::Sign("^") => ('^', 3),
                    _ => return Ok(left),
                };
                if precedence < lowest {
                    return Ok(left);
                }
                parser.next += 1;
                let right = parser.length(precedence + u8::from(sign != '^'))?;
                left = Length::Binary(sign, Box::new(left), Box::new(right));
                parser.length_parts += 1;
                if parser.length_parts > LENGTH_PARTS_MAX {
                    return Err(parser.error("durations of too many parts"));
                }
            }
        })
    }

    /// What follows `offset`.
    pub(super) fn offset(&mut self) -> Result<Length, ParseError> {
        if self.take_sign("-") {
            return Ok(Length::Negate(Box::new(self.length_operand()?)));
        }
        self.take_sign("+");
        self.length_operand()
    }

    fn length_unary(&mut self) -> Result<Length, ParseError> {
        if self.take_sign("-") {
            return Ok(Length::Negate(Box::new(self.length(3)?)));
        }
        if self.take_sign("+") {
            return self.length(3);
        }
        self.length_operand()
    }

    fn length_operand(&mut self) -> Result<Length, ParseError> {
        match self.peek().clone() {
            Word::Duration(milliseconds) => {
                self.next += 1;
                Ok(Length::Seconds(milliseconds as f64 / 1000.0, true))
            }
            Word::Number(seconds) => {
                self.next += 1;
                Ok(Length::Seconds(seconds, false))
            }
            Word::Sign("(") => {
                self.next += 1;
                let inner = self.length(0)?;
                self.expect_sign(")", "duration")?;
                Ok(Length::Paren(Box::new(inner)))
            }
            Word::Name(name) if self.peek_after() == &Word::Sign("(") => {
                self.length_call(&name.to_ascii_lowercase())
            }
            _ => Err(self.unexpected("duration")),
        }
    }

    fn length_call(&mut self, name: &str) -> Result<Length, ParseError> {
        let place = "duration";
        if !matches!(name, "step" | "range" | "min_of" | "max_of") {
            return Err(self.unexpected(place));
        }
        self.next += 1;
        self.expect_sign("(", place)?;
        if matches!(name, "step" | "range") {
            self.expect_sign(")", place)?;
            return Ok(if name == "step" { Length::Step } else { Length::Range });
        }
        let first = Box::new(self.length(0)?);
        self.expect_sign(",", place)?;
        let second = Box::new(self.length(0)?);
        self.expect_sign(")", place)?;
        Ok(if name == "min_of" { Length::Min(first, second) } else { Length::Max(first, second) })
    }
}
