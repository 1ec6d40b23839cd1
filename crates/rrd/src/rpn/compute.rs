//! The expression of a COMPUTE source: text to nodes and back.

use std::fmt;

use super::Operator;
use super::tokens::{self, Token};
use crate::definition::{ComputeNode, ComputeProgram};

/// Most nodes of a program; with the end mark they fill the 80 bytes of a `.rrd` file.
pub const NODES_MAX: usize = 19;

/// Why an expression was refused. `Display` is RRDtool's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// A token is not a number, an operator or an earlier source.
    Parse,
    /// An operator that needs a series.
    NeedsSeries,
    /// A number that a node cannot hold.
    Constant,
    /// More nodes than [`NODES_MAX`].
    TooLong(usize),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Parse => f.write_str("failed to parse computed data source"),
            CompileError::NeedsSeries => f.write_str(
                "operators TIME LTIME STEPWIDTH PREV NEW* COUNT TREND TRENDNAN PREDICT PREDICTSIGMA \
                 PREDICTPERC are not supported with DS COMPUTE",
            ),
            CompileError::Constant => {
                f.write_str("constants must be integers in the interval (-32768, 32767)")
            }
            CompileError::TooLong(count) => {
                write!(f, "Maximum {NODES_MAX} RPN nodes permitted. Got {count} RPN nodes at present.")
            }
        }
    }
}

impl std::error::Error for CompileError {}

/// Compiles an expression whose variables are the names of earlier sources.
///
/// # Errors
/// [`CompileError`], in RRDtool's order: the complete text is parsed before its nodes are checked.
pub fn compile(expression: &str, earlier: &[&str]) -> Result<ComputeProgram, CompileError> {
    let mut parsed = Vec::new();
    let mut rest = expression;
    while !rest.is_empty() {
        let (token, after) = tokens::first(rest);
        let find = |name: &str| earlier.iter().position(|&source| source == name);
        parsed.push(match token {
            Ok(Token::Number(value)) => Part::Number(value),
            Ok(Token::Operator(operator)) => Part::Operator(operator, 0),
            Ok(Token::Previous(name)) => {
                Part::Operator(Operator::PrevOther, find(name).ok_or(CompileError::Parse)?)
            }
            Ok(Token::Name(name)) => {
                Part::Operator(Operator::Variable, find(name).ok_or(CompileError::Parse)?)
            }
            Err(_) => return Err(CompileError::Parse),
        });
        rest = after;
    }
    let mut nodes = Vec::with_capacity(parsed.len().min(NODES_MAX));
    for part in &parsed {
        nodes.push(part.node()?);
    }
    if nodes.len() > NODES_MAX {
        return Err(CompileError::TooLong(nodes.len()));
    }
    Ok(ComputeProgram { nodes })
}

enum Part {
    Number(f64),
    Operator(Operator, usize),
}

impl Part {
    fn node(&self) -> Result<ComputeNode, CompileError> {
        match *self {
            Part::Operator(operator, _) if operator.needs_series() => Err(CompileError::NeedsSeries),
            Part::Operator(operator, index) => {
                let operand = i16::try_from(index).map_err(|_| CompileError::Parse)?;
                Ok(ComputeNode { op: operator as u8, operand })
            }
            Part::Number(value) => {
                let whole = value as i16;
                if f64::from(whole) != value {
                    return Err(CompileError::Constant);
                }
                Ok(ComputeNode { op: Operator::Number as u8, operand: whole })
            }
        }
    }
}

/// The text of a program, as `info` and `dump` show it. `name_of` gives the name of a source.
pub fn decompile<'a>(program: &ComputeProgram, name_of: impl Fn(usize) -> Option<&'a str>) -> String {
    let mut text = String::new();
    for node in &program.nodes {
        if !text.is_empty() {
            text.push(',');
        }
        let name = || usize::try_from(node.operand).ok().and_then(&name_of).unwrap_or("?");
        match Operator::from_number(node.op) {
            Some(Operator::Number) => text.push_str(&node.operand.to_string()),
            Some(Operator::Variable) => text.push_str(name()),
            Some(Operator::PrevOther) => {
                text.push_str("PREV(");
                text.push_str(name());
                text.push(')');
            }
            Some(operator) => text.push_str(operator.name().unwrap_or("?")),
            None => text.push('?'),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_expressions_keep_their_meaning() {
        fn check(text: &str, nodes: &[(u8, i16)], back: &str) {
            let program = compile(text, &["a", "b", "5", "INFO"]).unwrap();
            let got: Vec<_> = program.nodes.iter().map(|node| (node.op, node.operand)).collect();
            assert_eq!(got, nodes, "{text}");
            assert_eq!(decompile(&program, |index| ["a", "b", "5", "INFO"].get(index).copied()), back);
        }
        check("a", &[(1, 0)], "a");
        check("a,", &[(1, 0)], "a");
        check("a,b,ADDNAN", &[(1, 0), (1, 1), (51, 0)], "a,b,ADDNAN");
        check("a,1e2,+", &[(1, 0), (0, 100), (8, 0)], "a,100,+");
        check("a,-32768,+", &[(1, 0), (0, -32768), (8, 0)], "a,-32768,+");
        check("a,10e-1,%", &[(1, 0), (0, 1), (9, 0)], "a,1,%");
        check("5,INFO,-", &[(0, 5), (1, 3), (10, 0)], "5,INFO,-");
        check("PREV(b)", &[(36, 1)], "PREV(b)");
        check("a,1,", &[(1, 0), (0, 1)], "a,1");
        check("a,ROUND", &[(1, 0), (70, 0)], "a,ROUND");
    }

    #[test]
    fn bad_expressions_are_refused_in_rrdtools_words() {
        fn check(text: &str, want: CompileError) {
            assert_eq!(compile(text, &["a", "b"]), Err(want), "{text}");
        }
        for text in ["1", "a,1", "x,1,+", "a,,b,+", ",", "a, 1,+", "a,0x10,+", "a,1x,+", "a,inf,+", "a,1,MAD"]
        {
            check(text, CompileError::Parse);
        }
        check("a,PREV", CompileError::NeedsSeries);
        check("a,32768,+", CompileError::Constant);
        check("a,.5,+", CompileError::Constant);
        check(&["a"; 20].join(","), CompileError::TooLong(20));
    }
}
