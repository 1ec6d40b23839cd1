//! Selectors: a metric's name and conditions in braces.

use crate::ast::{Edges, Kind, Selector};
use crate::labels::NAME;
use crate::matcher::{Matcher, Operator};

use super::lexer::Word;
use super::{ParseError, Parser};

/// Reads a selector alone, as `match[]` has it.
///
/// # Errors
/// What is wrong with it, and where.
pub fn selector(text: &str) -> Result<Vec<Matcher>, ParseError> {
    let expr = super::parse(text)?;
    match expr.kind {
        Kind::Selector(selector)
            if selector.range.is_none() && selector.offset.is_none() && selector.at.is_none() =>
        {
            Ok(selector.matchers)
        }
        _ => Err(ParseError::at(0, "expected a selector alone".to_owned()).in_text(text)),
    }
}

impl Parser {
    /// What follows a metric's name, or its place.
    pub(super) fn selector(&mut self, name: Option<String>) -> Result<Selector, ParseError> {
        let start = self.start() as usize;
        let mut matchers = Vec::new();
        let mut name = name;
        if self.take_sign("{") {
            while !self.take_sign("}") {
                self.condition(&mut name, &mut matchers)?;
                if !self.take_sign(",") {
                    self.expect_sign("}", "label matching")?;
                    break;
                }
            }
        }
        if let Some(name) = &name {
            if matchers
                .iter()
                .any(|matcher: &Matcher| matcher.name == NAME && matcher.operator == Operator::Equal)
            {
                return Err(ParseError::at(
                    start,
                    format!("metric name must not be set twice: {name:?} or {name:?}"),
                ));
            }
            matchers.push(Matcher::equal(NAME, name));
        }
        if !self.may_take_all && matchers.iter().all(|matcher| matcher.matches("")) {
            let message = "vector selector must contain at least one non-empty matcher";
            return Err(ParseError::at(start, message.to_owned()));
        }
        Ok(Selector { name, matchers, range: None, offset: None, at: None, edges: Edges::Inside })
    }

    /// One condition in braces, or the metric's name in quotes.
    fn condition(
        &mut self,
        name: &mut Option<String>,
        matchers: &mut Vec<Matcher>,
    ) -> Result<(), ParseError> {
        let start = self.start() as usize;
        let label = match self.peek().clone() {
            Word::Name(label) if !label.contains(':') => label,
            Word::Text(text) => {
                let is_name = matches!(self.peek_after(), Word::Sign("," | "}"));
                if is_name {
                    self.next += 1;
                    return match name.replace(text) {
                        None => Ok(()),
                        Some(other) => Err(ParseError::at(
                            start,
                            format!("metric name must not be set twice: {other:?}"),
                        )),
                    };
                }
                text
            }
            _ => return Err(self.unexpected("label matching, expected identifier or \"}\"")),
        };
        self.next += 1;
        let operator = match self.peek() {
            Word::Sign("=") => Operator::Equal,
            Word::Sign("!=") => Operator::NotEqual,
            Word::Sign("=~") => Operator::Regex,
            Word::Sign("!~") => Operator::NotRegex,
            _ => return Err(self.unexpected("label matching, expected label matching operator")),
        };
        self.next += 1;
        let Word::Text(value) = self.peek().clone() else {
            return Err(self.unexpected("label matching, expected string"));
        };
        self.next += 1;
        let matcher = Matcher::new(&label, operator, &value).map_err(|error| ParseError::at(start, error))?;
        matchers.push(matcher);
        Ok(())
    }
}
