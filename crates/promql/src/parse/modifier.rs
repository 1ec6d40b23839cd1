//! What follows operators: `bool`, `on`, `group_left` and the like.

use crate::ast::{BinaryOperator, Cardinality, Matching};
use crate::number;

use super::lexer::Word;
use super::{ParseError, Parser};

impl Parser {
    /// Reads what follows an operator into `matching`; whether `bool` did.
    pub(super) fn matching(
        &mut self,
        operator: BinaryOperator,
        at: u32,
        matching: &mut Matching,
    ) -> Result<bool, ParseError> {
        let bool = self.is_keyword("bool") && self.peek_after() != &Word::Sign("{");
        if bool {
            if !operator.is_comparison() {
                let message = "bool modifier can only be used on comparison operators";
                return Err(ParseError::at(at as usize, message.to_owned()));
            }
            self.next += 1;
        }
        if operator.is_set() {
            matching.cardinality = Cardinality::ManyToMany;
        }
        let (on, ignoring) = (self.take_keyword_of_list("on"), self.take_keyword_of_list("ignoring"));
        if on || ignoring {
            matching.on = on;
            matching.is_written = true;
            matching.labels = self.label_list()?;
            self.group(operator, matching)?;
        }
        self.fill(operator, matching)?;
        Ok(bool)
    }

    fn group(&mut self, operator: BinaryOperator, matching: &mut Matching) -> Result<(), ParseError> {
        let start = self.start();
        let cardinality = if self.take_keyword("group_left") {
            Cardinality::ManyToOne
        } else if self.take_keyword("group_right") {
            Cardinality::OneToMany
        } else {
            return Ok(());
        };
        if operator.is_set() {
            let message = format!("no grouping allowed for {:?} operation", operator.symbol());
            return Err(ParseError::at(start as usize, message));
        }
        matching.cardinality = cardinality;
        if self.is_sign("(") {
            matching.include = self.label_list()?;
        }
        if let Some(label) =
            matching.include.iter().find(|label| matching.on && matching.labels.contains(label))
        {
            let message = format!("label {label:?} must not occur in ON and GROUP clause at once");
            return Err(ParseError::at(start as usize, message));
        }
        Ok(())
    }

    fn fill(&mut self, operator: BinaryOperator, matching: &mut Matching) -> Result<(), ParseError> {
        loop {
            let start = self.start();
            let (left, right) = if self.take_keyword_of_list("fill") {
                (true, true)
            } else if self.take_keyword_of_list("fill_left") {
                (true, false)
            } else if self.take_keyword_of_list("fill_right") {
                (false, true)
            } else {
                return Ok(());
            };
            if operator.is_set() {
                let message = "filling in missing series not allowed for set operators";
                return Err(ParseError::at(start as usize, message.to_owned()));
            }
            self.expect_sign("(", "fill")?;
            let negative = self.take_sign("-");
            if !negative {
                self.take_sign("+");
            }
            let value = match self.advance() {
                Word::Number(value) => value,
                Word::Duration(milliseconds) => milliseconds as f64 / 1000.0,
                Word::Name(name) => match number::parse(&name) {
                    Some(value) => value,
                    None => return Err(ParseError::at(start as usize, "fill takes a number".to_owned())),
                },
                _ => return Err(ParseError::at(start as usize, "fill takes a number".to_owned())),
            };
            let value = Some(if negative { -value } else { value });
            self.expect_sign(")", "fill")?;
            matching.fill_left = if left { value } else { matching.fill_left };
            matching.fill_right = if right { value } else { matching.fill_right };
        }
    }

    /// Labels in parentheses.
    pub(super) fn label_list(&mut self) -> Result<Vec<String>, ParseError> {
        self.expect_sign("(", "grouping opts")?;
        let mut labels = Vec::new();
        while !self.take_sign(")") {
            match self.peek() {
                Word::Name(name) if !name.contains(':') => labels.push(name.clone()),
                Word::Text(name) if !name.is_empty() => labels.push(name.clone()),
                _ => return Err(self.unexpected("grouping opts")),
            }
            self.next += 1;
            if !self.take_sign(",") {
                self.expect_sign(")", "grouping opts")?;
                break;
            }
        }
        Ok(labels)
    }
}
