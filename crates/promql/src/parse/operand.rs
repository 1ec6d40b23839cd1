//! What operators stand between: literals, selectors, calls, aggregations, and what follows them.

use crate::ast::{AGGREGATORS, Aggregate, Aggregator, At, Edges, Expr, Grouping, Kind, Length, Subquery};
use crate::{functions, number};

use super::lexer::Word;
use super::{ParseError, Parser};

impl Parser {
    /// An operand with its ranges and offsets.
    pub(super) fn operand(&mut self) -> Result<Expr, ParseError> {
        let start = self.start();
        let mut expr = self.primary()?;
        loop {
            let kind = if self.is_sign("[") {
                self.range(expr)?
            } else if self.take_keyword("offset") {
                let offset = self.offset()?;
                self.set(expr, start, |kind| set_offset(kind, offset))?
            } else if self.take_sign("@") {
                let at = self.at()?;
                self.set(expr, start, |kind| set_at(kind, at))?
            } else if self.take_keyword("anchored") {
                self.set(expr, start, |kind| set_edges(kind, Edges::Anchored))?
            } else if self.take_keyword("smoothed") {
                self.set(expr, start, |kind| set_edges(kind, Edges::Smoothed))?
            } else {
                return Ok(expr);
            };
            expr = self.node(start, kind)?;
        }
    }

    fn set(
        &self,
        expr: Expr,
        start: u32,
        change: impl FnOnce(&mut Kind) -> Result<(), String>,
    ) -> Result<Kind, ParseError> {
        let mut kind = expr.kind;
        change(&mut kind).map_err(|message| ParseError::at(start as usize, message))?;
        Ok(kind)
    }

    fn primary(&mut self) -> Result<Expr, ParseError> {
        let start = self.start();
        match self.peek().clone() {
            Word::Number(value) => {
                self.next += 1;
                self.node(start, Kind::Number(value))
            }
            Word::Duration(milliseconds) => {
                self.next += 1;
                self.node(start, Kind::Number(milliseconds as f64 / 1000.0))
            }
            Word::Text(text) => {
                self.next += 1;
                self.node(start, Kind::Text(text))
            }
            Word::Sign("(") => {
                self.next += 1;
                let inner = self.expression(0)?;
                self.expect_sign(")", "paren expression")?;
                self.node(start, Kind::Paren(Box::new(inner)))
            }
            Word::Sign("{") => {
                let selector = self.selector(None)?;
                self.node(start, Kind::Selector(Box::new(selector)))
            }
            Word::Name(name) => self.named(start, &name),
            _ => Err(self.unexpected("")),
        }
    }

    /// What begins with a name: an aggregation, a call, a number or a selector.
    fn named(&mut self, start: u32, name: &str) -> Result<Expr, ParseError> {
        let lower = name.to_ascii_lowercase();
        let is_called = self.peek_after() == &Word::Sign("(");
        let is_grouped = matches!(self.peek_after(), Word::Name(next) if next.eq_ignore_ascii_case("by") || next.eq_ignore_ascii_case("without"));
        if let Some((_, operator)) = AGGREGATORS.iter().find(|(known, _)| *known == lower)
            && (is_called || is_grouped)
        {
            self.next += 1;
            return self.aggregate(start, *operator);
        }
        if is_called {
            return self.call(start, name, &lower);
        }
        if matches!(lower.as_str(), "inf" | "nan") && self.peek_after() != &Word::Sign("{") {
            self.next += 1;
            return self.node(start, Kind::Number(number::parse(&lower).unwrap_or(f64::NAN)));
        }
        self.next += 1;
        let selector = self.selector(Some(name.to_owned()))?;
        self.node(start, Kind::Selector(Box::new(selector)))
    }

    fn call(&mut self, start: u32, name: &str, lower: &str) -> Result<Expr, ParseError> {
        let known = functions::find(name).or_else(|| functions::find(lower).filter(|f| f.takes.is_empty()));
        let Some(function) = known else {
            return Err(self.error(format!("unknown function with name {name:?}")));
        };
        self.next += 1;
        // Only the second argument may take every series, which `check` makes sure of.
        let outer = self.may_take_all;
        self.may_take_all |= function.name == "info";
        let arguments = self.arguments()?;
        self.may_take_all = outer;
        self.node(start, Kind::Call(function, arguments))
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, ParseError> {
        self.expect_sign("(", "call")?;
        let mut all = Vec::new();
        if self.take_sign(")") {
            return Ok(all);
        }
        loop {
            all.push(self.expression(0)?);
            if self.take_sign(")") {
                return Ok(all);
            }
            if !self.take_sign(",") {
                return Err(self.unexpected("function call"));
            }
            if self.is_sign(")") {
                return Err(self.error("trailing commas not allowed in function call args"));
            }
        }
    }

    fn aggregate(&mut self, start: u32, operator: Aggregator) -> Result<Expr, ParseError> {
        let mut grouping = self.grouping()?;
        let mut arguments = self.arguments()?;
        if grouping.is_none() {
            grouping = self.grouping()?;
        }
        let wanted = 1 + usize::from(operator.parameter().is_some());
        if arguments.len() != wanted {
            let (found, name) = (arguments.len(), operator.name());
            let message = format!(
                "wrong number of arguments for aggregate expression provided, expected {wanted}, got {found} in {name}"
            );
            return Err(ParseError::at(start as usize, message));
        }
        let Some(expr) = arguments.pop() else { return Err(self.unexpected("aggregation")) };
        let aggregate =
            Aggregate { operator, parameter: arguments.pop(), expr, grouping: grouping.unwrap_or_default() };
        self.node(start, Kind::Aggregate(Box::new(aggregate)))
    }

    fn grouping(&mut self) -> Result<Option<Grouping>, ParseError> {
        let (by, without) = (self.take_keyword("by"), self.take_keyword("without"));
        if !by && !without {
            return Ok(None);
        }
        Ok(Some(Grouping { without, labels: self.label_list()? }))
    }

    /// A range or subquery in brackets.
    fn range(&mut self, expr: Expr) -> Result<Kind, ParseError> {
        let bracket = self.start();
        self.expect_sign("[", "range")?;
        let range = self.length(0)?;
        if self.take_sign(":") {
            let step = if self.is_sign("]") { None } else { Some(self.length(0)?) };
            self.expect_sign("]", "subquery or range")?;
            return Ok(Kind::Subquery(Box::new(Subquery { expr, range, step, offset: None, at: None })));
        }
        self.expect_sign("]", "subquery or range")?;
        let Kind::Selector(mut selector) = expr.kind else {
            let message = "ranges only allowed for vector selectors";
            return Err(ParseError::at(bracket as usize, message.to_owned()));
        };
        if selector.offset.is_some() || selector.at.is_some() || selector.range.is_some() {
            let what = if selector.range.is_some() {
                "ranges only allowed for vector selectors"
            } else if selector.offset.is_some() {
                "no offset modifiers allowed before range"
            } else {
                "no @ modifiers allowed before range"
            };
            return Err(ParseError::at(bracket as usize, what.to_owned()));
        }
        selector.range = Some(range);
        Ok(Kind::Selector(selector))
    }

    /// What follows `@`: a time, `start()` or `end()`.
    fn at(&mut self) -> Result<At, ParseError> {
        for (keyword, at) in [("start", At::Start), ("end", At::End)] {
            if self.take_keyword_of_list(keyword) {
                self.expect_sign("(", "@")?;
                self.expect_sign(")", "@")?;
                return Ok(at);
            }
        }
        let negative = self.take_sign("-");
        if !negative {
            self.take_sign("+");
        }
        let seconds = match self.peek() {
            Word::Number(seconds) => *seconds,
            Word::Duration(milliseconds) => *milliseconds as f64 / 1000.0,
            _ => return Err(self.unexpected("@")),
        };
        let seconds = if negative { -seconds } else { seconds };
        if !seconds.is_finite() || seconds.abs() >= i64::MAX as f64 / 1000.0 {
            return Err(self.error(format!("timestamp out of bounds for @ modifier: {seconds}")));
        }
        self.next += 1;
        Ok(At::Time((seconds * 1000.0).round() as i64))
    }
}

fn set_offset(kind: &mut Kind, length: Length) -> Result<(), String> {
    let offset = match kind {
        Kind::Selector(selector) => &mut selector.offset,
        Kind::Subquery(subquery) => &mut subquery.offset,
        _ => {
            return Err("offset modifier must be preceded by an instant vector selector or range vector selector or a subquery".into());
        }
    };
    match offset.replace(length) {
        None => Ok(()),
        Some(_) => Err("offset may not be set multiple times".into()),
    }
}

fn set_at(kind: &mut Kind, time: At) -> Result<(), String> {
    let at = match kind {
        Kind::Selector(selector) => &mut selector.at,
        Kind::Subquery(subquery) => &mut subquery.at,
        _ => {
            return Err(
                "@ modifier must be preceded by an instant vector selector or range vector selector or a subquery"
                    .into(),
            );
        }
    };
    match at.replace(time) {
        None => Ok(()),
        Some(_) => Err("@ <timestamp> may not be set multiple times".into()),
    }
}

fn set_edges(kind: &mut Kind, edges: Edges) -> Result<(), String> {
    match kind {
        Kind::Selector(selector) if selector.edges == Edges::Inside => {
            selector.edges = edges;
            Ok(())
        }
        Kind::Selector(_) => Err("anchored and smoothed modifiers cannot be used together".into()),
        _ => Err("anchored and smoothed modifiers must be preceded by a selector".into()),
    }
}
