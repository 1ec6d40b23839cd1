//! From text to an expression. By hand, so that no text overflows the stack, and every message says where.

mod check;
mod length;
mod lexer;
mod modifier;
mod operand;
mod selector;

use std::fmt;

use lexer::{Token, Word};

use crate::ast::{Binary, BinaryOperator, Expr, Kind, Matching, Span};

pub use selector::selector;

/// The most bytes of a text: a dashboard's longest with all its variables' values.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;
/// The deepest nesting: chains of operators count, too.
pub const DEPTH_MAX: u16 = 200;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1 on.
    pub line: usize,
    /// The column, from 1 on.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    offset: usize,
}

impl ParseError {
    fn at(offset: usize, message: String) -> ParseError {
        ParseError { line: 0, column: 0, message, offset }
    }

    fn in_text(mut self, text: &str) -> ParseError {
        (self.line, self.column) = place(text, self.offset);
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: parse error: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Line and column of an offset, both from 1 on.
pub fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before.len() - line_start + 1)
}

/// Reads an expression.
///
/// # Errors
/// What is wrong with it, and where.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("a query of {} bytes, more than {TEXT_BYTES_MAX}", text.len());
        return Err(ParseError::at(0, message).in_text(text));
    }
    let parsed = Parser::new(text).and_then(|mut parser| {
        if parser.peek() == &Word::End {
            return Err(parser.error("no expression found in input"));
        }
        let expr = parser.expression(0)?;
        match parser.peek() {
            Word::End => Ok(expr),
            _ => Err(parser.unexpected("")),
        }
    });
    parsed.map_err(|error| error.in_text(text))
}

/// Reads words one after the other.
struct Parser {
    tokens: Vec<Token>,
    next: usize,
    /// Calls that are open.
    depth: u16,
    /// Operators in durations so far.
    length_parts: usize,
    /// Whether a selector may take every series: in the arguments of `info`.
    may_take_all: bool,
}

impl Parser {
    fn new(text: &str) -> Result<Parser, ParseError> {
        Ok(Parser { tokens: lexer::words(text)?, next: 0, depth: 0, length_parts: 0, may_take_all: false })
    }

    fn peek(&self) -> &Word {
        &self.token().word
    }

    fn token(&self) -> &Token {
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn peek_after(&self) -> &Word {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)].word
    }

    fn start(&self) -> u32 {
        self.token().span.start
    }

    /// Where the last word ended.
    fn end(&self) -> u32 {
        self.tokens[self.next.saturating_sub(1)].span.end
    }

    fn advance(&mut self) -> Word {
        let word = self.token().word.clone();
        self.next += 1;
        word
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::at(self.start() as usize, message.into())
    }

    /// The next word does not belong here.
    fn unexpected(&self, place: &str) -> ParseError {
        let word = match self.peek() {
            Word::End => "end of input".to_owned(),
            Word::Name(name) => format!("identifier {name:?}"),
            Word::Number(value) => format!("number \"{value}\""),
            Word::Duration(_) => "duration".to_owned(),
            Word::Text(text) => format!("string {text:?}"),
            Word::Sign(sign) => format!("{sign:?}"),
        };
        let place = if place.is_empty() { String::new() } else { format!(" in {place}") };
        self.error(format!("unexpected {word}{place}"))
    }

    /// Whether the next word is this sign; if so it is taken.
    fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Word::Sign(next) if *next == sign);
        self.next += usize::from(found);
        found
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Word::Sign(next) if *next == sign)
    }

    fn expect_sign(&mut self, sign: &str, place: &str) -> Result<(), ParseError> {
        match self.take_sign(sign) {
            true => Ok(()),
            false => Err(self.unexpected(place)),
        }
    }

    /// Whether the next word is this keyword; if so it is taken.
    fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        self.next += usize::from(found);
        found
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.peek(), Word::Name(name) if name.eq_ignore_ascii_case(keyword))
    }

    /// A keyword that an open parenthesis must follow.
    fn take_keyword_of_list(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword) && self.peek_after() == &Word::Sign("(");
        self.next += usize::from(found);
        found
    }

    /// Runs `read` one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth >= DEPTH_MAX {
            return Err(self.error(format!("an expression nested deeper than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// An expression that began at `start` and ends with the last word.
    fn node(&self, start: u32, kind: Kind) -> Result<Expr, ParseError> {
        self.node_to(start, self.end(), kind)
    }

    fn node_to(&self, start: u32, end: u32, kind: Kind) -> Result<Expr, ParseError> {
        let mut expr = Expr { kind, span: Span { start, end }, depth: 0 };
        let deepest = expr.children().iter().map(|child| child.depth).max().unwrap_or(0);
        expr.depth = deepest + 1;
        if expr.depth > DEPTH_MAX {
            let message = format!("an expression nested deeper than {DEPTH_MAX} levels");
            return Err(ParseError::at(start as usize, message));
        }
        check::node(&expr)?;
        Ok(expr)
    }

    /// Operands with operators that bind at least as tightly as `lowest`.
    fn expression(&mut self, lowest: u8) -> Result<Expr, ParseError> {
        self.nested(|parser| {
            let mut left = parser.unary()?;
            while let Some(operator) = parser.operator().filter(|operator| operator.precedence() >= lowest) {
                let at = parser.start();
                parser.next += 1;
                let mut matching = Matching::default();
                let bool = parser.matching(operator, at, &mut matching)?;
                // Only a power belongs to what is on its right.
                let next = operator.precedence() + u8::from(operator != BinaryOperator::Power);
                let right = parser.expression(next)?;
                let (start, end) = (left.span.start, right.span.end);
                let binary = Binary { operator, left, right, bool, matching };
                left = parser.node_to(start, end, Kind::Binary(Box::new(binary)))?;
            }
            Ok(left)
        })
    }

    fn operator(&self) -> Option<BinaryOperator> {
        use BinaryOperator as B;
        Some(match self.peek() {
            Word::Sign(sign) => match *sign {
                "+" => B::Add,
                "-" => B::Subtract,
                "*" => B::Multiply,
                "/" => B::Divide,
                "%" => B::Modulo,
                "^" => B::Power,
                "==" => B::Equal,
                "!=" => B::NotEqual,
                ">" => B::Greater,
                "<" => B::Less,
                ">=" => B::GreaterOrEqual,
                "<=" => B::LessOrEqual,
                _ => return None,
            },
            Word::Name(name) => match name.to_ascii_lowercase().as_str() {
                "and" => B::And,
                "or" => B::Or,
                "unless" => B::Unless,
                "atan2" => B::Atan2,
                _ => return None,
            },
            _ => return None,
        })
    }

    fn unary(&mut self) -> Result<Expr, ParseError> {
        let start = self.start();
        let negate = match self.peek() {
            Word::Sign("-") => true,
            Word::Sign("+") => false,
            _ => return self.operand(),
        };
        self.next += 1;
        // A power binds more tightly than a sign.
        let inner = self.expression(BinaryOperator::Power.precedence())?;
        if let Kind::Number(value) = &inner.kind {
            let value = if negate { -value } else { *value };
            return self.node_to(start, inner.span.end, Kind::Number(value));
        }
        let end = inner.span.end;
        let inner = Box::new(inner);
        self.node_to(start, end, if negate { Kind::Negate(inner) } else { Kind::Plus(inner) })
    }
}

#[cfg(test)]
mod tests;
