//! A CDEF: an expression over whole series.

use super::error::{EvaluateError, RpnError};
use super::series::Series;
use super::words::{self, Word, WordError};
use super::{Operator, WORK_MAX, rows};
use crate::when::calendar::Calendar;

/// Words that an expression may have: 32 MiB of nodes. Guessed; those of graphs have ten.
pub const WORDS_MAX: usize = 1 << 20;

/// What a name in an expression stands for; the index is the caller's, for [`Expression::evaluate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A DEF or CDEF: one value a row.
    Series(usize),
    /// A VDEF: the same value in every row.
    Scalar(usize),
}

/// What operators can ask for beside their operands.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// What NOW gives: seconds since the epoch.
    pub now: i64,
    /// Which day a week starts on: 0 is Sunday, 1 Monday. NEWWEEK takes it from the locale.
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

/// One word of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Node {
    Number(f64),
    Variable(Symbol),
    /// The variable's value one row before.
    Previous(Symbol),
    Apply(Operator),
}

impl Expression {
    /// Compiles `text`; `lookup` knows the variables defined before it.
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
            if nodes.len() >= WORDS_MAX {
                return Err(RpnError::TooLong);
            }
            let not_understood = || RpnError::NotUnderstood(rest.to_string());
            let (word, behind) = words::first(rest);
            let node = match word {
                Ok(Word::Number(value)) => Node::Number(value),
                Ok(Word::Operator(operator)) => Node::Apply(operator),
                Ok(Word::Previous(name)) => {
                    let symbol = lookup(name).ok_or_else(|| RpnError::NoVariable(name.to_string()))?;
                    symbols.push(symbol);
                    Node::Previous(symbol)
                }
                Ok(Word::Name(name)) => match lookup(name) {
                    Some(symbol) => {
                        symbols.push(symbol);
                        Node::Variable(symbol)
                    }
                    None if name == "MAD" => Node::Apply(Operator::Deviation),
                    None => return Err(not_understood()),
                },
                Err(WordError::NotUnderstood) => return Err(not_understood()),
                Err(WordError::Garbage) => return Err(RpnError::Garbage(rest.to_string())),
            };
            nodes.push(node);
            rest = behind;
        }
        Ok(Expression { nodes, symbols })
    }

    /// Every variable that it reads, in the order of the text, each as often as it is named.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The rows of the result. `series` and `scalars` are what the [`Symbol`]s index.
    ///
    /// The step is the greatest common divisor of the steps of the series that it reads; the first row
    /// begins where the last of them begins, and the last ends where the first of them ends. A wider row
    /// counts for every narrower one within. A row costs some nanoseconds a word; nothing is allocated for it.
    ///
    /// # Errors
    /// [`EvaluateError`], whose `Display` is RRDtool's text.
    pub fn evaluate(
        &self,
        series: &[&Series],
        scalars: &[f64],
        surroundings: &Surroundings<'_>,
    ) -> Result<Series, EvaluateError> {
        self.evaluate_within(WORK_MAX, series, scalars, surroundings)
    }

    /// How many rows [`Expression::evaluate`] would make of these series: many more than they have, where their steps
    /// have no large divisor in common.
    ///
    /// # Errors
    /// [`EvaluateError`].
    pub fn result_rows(&self, series: &[&Series]) -> Result<usize, EvaluateError> {
        rows::result_rows(self, series)
    }

    /// How many words are run for each row.
    pub fn word_count(&self) -> usize {
        self.nodes.len()
    }

    /// [`Expression::evaluate`] with a limit of the caller's to the values that sets and windows may touch; for
    /// whoever evaluates what comes out of a network.
    ///
    /// # Errors
    /// [`EvaluateError`], beyond the limit [`EvaluateError::TooMuchWork`].
    pub fn evaluate_within(
        &self,
        work_max: u64,
        series: &[&Series],
        scalars: &[f64],
        surroundings: &Surroundings<'_>,
    ) -> Result<Series, EvaluateError> {
        rows::evaluate(self, work_max, series, scalars, surroundings)
    }
}
