//! A CDEF: an expression over complete series.

use super::error::{EvaluateError, RpnError};
use super::series::Series;
use super::tokens::{self, Token, TokenError};
use super::{Operator, WORK_MAX, rows};
use crate::when::calendar::Calendar;

/// Most tokens of an expression: 32 MiB of nodes. Guessed; those of graphs have about ten.
pub const TOKENS_MAX: usize = 1 << 20;

/// What a name in an expression refers to. The index is the caller's, for [`Expression::evaluate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A DEF or CDEF: one value per row.
    Series(usize),
    /// A VDEF: the same value in every row.
    Scalar(usize),
}

/// What operators can read besides their operands.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    /// The value of NOW: seconds since the epoch.
    pub now: i64,
    /// The first day of the week: 0 is Sunday, 1 Monday. NEWWEEK takes it from the locale.
    pub first_weekday: u32,
    /// Local time, for LTIME and the NEW.. operators.
    pub calendar: &'a dyn Calendar,
}

/// A compiled CDEF.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub(super) nodes: Vec<Node>,
    symbols: Vec<Symbol>,
}

/// One token of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Node {
    Number(f64),
    Variable(Symbol),
    /// The variable's value in the previous row.
    Previous(Symbol),
    Apply(Operator),
}

impl Expression {
    /// Compiles `text`; `lookup` knows the variables that are already defined.
    ///
    /// # Errors
    /// [`RpnError`], whose `Display` is RRDtool's text.
    pub fn parse(text: &str, lookup: impl Fn(&str) -> Option<Symbol>) -> Result<Expression, RpnError> {
        if text.is_empty() {
            return Err(RpnError::Empty);
        }
        let (mut nodes, mut symbols) = (Vec::new(), Vec::new());
        let mut rest = text;
        while !rest.is_empty() {
            if nodes.len() >= TOKENS_MAX {
                return Err(RpnError::TooLong);
            }
            let not_understood = || RpnError::NotUnderstood(rest.to_string());
            let (token, after) = tokens::first(rest);
            let node = match token {
                Ok(Token::Number(value)) => Node::Number(value),
                Ok(Token::Operator(operator)) => Node::Apply(operator),
                Ok(Token::Previous(name)) => {
                    let symbol = lookup(name).ok_or_else(|| RpnError::NoVariable(name.to_string()))?;
                    symbols.push(symbol);
                    Node::Previous(symbol)
                }
                Ok(Token::Name(name)) => match lookup(name) {
                    Some(symbol) => {
                        symbols.push(symbol);
                        Node::Variable(symbol)
                    }
                    None if name == "MAD" => Node::Apply(Operator::Deviation),
                    None => return Err(not_understood()),
                },
                Err(TokenError::NotUnderstood) => return Err(not_understood()),
                Err(TokenError::Garbage) => return Err(RpnError::Garbage(rest.to_string())),
            };
            nodes.push(node);
            rest = after;
        }
        Ok(Expression { nodes, symbols })
    }

    /// Every variable it reads, in the order of the text, once per occurrence.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The rows of the result. The [`Symbol`]s index `series` and `scalars`.
    ///
    /// The step is the greatest common divisor of the steps of the series it reads. The first row begins where the
    /// last of them begins, and the last row ends where the first of them ends. A wider row counts for every
    /// narrower one within it. A row costs some nanoseconds per token and allocates nothing.
    ///
    /// # Errors
    /// [`EvaluateError`], whose `Display` is RRDtool's text.
    pub fn evaluate(
        &self,
        series: &[&Series],
        scalars: &[f64],
        context: &EvalContext<'_>,
    ) -> Result<Series, EvaluateError> {
        self.evaluate_within(WORK_MAX, series, scalars, context)
    }

    /// How many rows [`Expression::evaluate`] would make of these series: many more than they have, where their
    /// steps have no large common divisor.
    ///
    /// # Errors
    /// [`EvaluateError`].
    pub fn result_rows(&self, series: &[&Series]) -> Result<usize, EvaluateError> {
        rows::result_rows(self, series)
    }

    /// How many tokens are run for each row.
    pub fn token_count(&self) -> usize {
        self.nodes.len()
    }

    /// [`Expression::evaluate`] with the caller's limit on the values that sets and windows may touch, for
    /// expressions that come from a network.
    ///
    /// # Errors
    /// [`EvaluateError`]; beyond the limit, [`EvaluateError::TooMuchWork`].
    pub fn evaluate_within(
        &self,
        work_max: u64,
        series: &[&Series],
        scalars: &[f64],
        context: &EvalContext<'_>,
    ) -> Result<Series, EvaluateError> {
        rows::evaluate(self, work_max, series, scalars, context)
    }
}
