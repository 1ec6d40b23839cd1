//! Whether the parts of an expression fit each other.

use crate::ast::{Aggregate, Binary, Cardinality, Expr, Kind, Type};
use crate::functions::Function;

use super::ParseError;

/// Checks one expression whose parts are checked.
///
/// # Errors
/// What does not fit, and where.
pub fn node(expr: &Expr) -> Result<(), ParseError> {
    match &expr.kind {
        Kind::Call(function, arguments) => call(expr, function, arguments),
        Kind::Aggregate(inner) => aggregate(inner),
        Kind::Binary(inner) => binary(expr, inner),
        Kind::Negate(inner) | Kind::Plus(inner) => match inner.value_type() {
            Type::Scalar | Type::Vector => Ok(()),
            found => {
                let message = format!(
                    "unary expression only allowed on expressions of type scalar or instant vector, got {:?}",
                    found.name()
                );
                Err(ParseError::at(expr.span.start as usize, message))
            }
        },
        Kind::Subquery(subquery) => match subquery.expr.value_type() {
            Type::Vector => Ok(()),
            found => {
                let message =
                    format!("subquery is only allowed on instant vector, got {} instead", short_name(found));
                Err(ParseError::at(expr.span.start as usize, message))
            }
        },
        _ => Ok(()),
    }
}

fn short_name(found: Type) -> &'static str {
    match found {
        Type::Vector => "vector",
        Type::Matrix => "matrix",
        other => other.name(),
    }
}

fn expect(expr: &Expr, want: Type, place: &str) -> Result<(), ParseError> {
    let found = expr.value_type();
    if found == want {
        return Ok(());
    }
    let message = format!("expected type {} in {place}, got {}", want.name(), found.name());
    Err(ParseError::at(expr.span.start as usize, message))
}

fn call(expr: &Expr, function: &'static Function, arguments: &[Expr]) -> Result<(), ParseError> {
    let name = function.name;
    let most = match function.optional {
        ..0 => usize::MAX,
        _ => function.takes.len(),
    };
    let least = match function.optional {
        0 => function.takes.len(),
        optional => function.takes.len() - usize::from(optional.unsigned_abs()),
    };
    let found = arguments.len();
    let refuse = |text: String| Err(ParseError::at(expr.span.start as usize, text));
    if found < least {
        let exact = if function.optional == 0 { "" } else { "at least " };
        return refuse(format!("expected {exact}{least} argument(s) in call to {name:?}, got {found}"));
    }
    if found > most {
        let exact = if function.optional == 0 { "" } else { "at most " };
        return refuse(format!("expected {exact}{most} argument(s) in call to {name:?}, got {found}"));
    }
    for (index, argument) in arguments.iter().enumerate() {
        let want = function.takes[index.min(function.takes.len() - 1)];
        expect(argument, want, &format!("call to function {name:?}"))?;
    }
    if name == "info" {
        takes_some(&arguments[0])?;
        return arguments.get(1).map_or(Ok(()), info_labels);
    }
    Ok(())
}

/// That no selector in the first argument of `info` takes every series.
fn takes_some(expr: &Expr) -> Result<(), ParseError> {
    let (children, is_info) = match &expr.kind {
        Kind::Call(function, arguments) if function.name == "info" => (vec![&arguments[0]], true),
        _ => (expr.children(), false),
    };
    let takes_all = |matchers: &[crate::matcher::Matcher]| matchers.iter().all(|matcher| matcher.matches(""));
    match &expr.kind {
        Kind::Selector(selector) if !is_info && takes_all(&selector.matchers) => {
            let message = "vector selector must contain at least one non-empty matcher";
            Err(ParseError::at(expr.span.start as usize, message.to_owned()))
        }
        _ => children.into_iter().try_for_each(takes_some),
    }
}

/// The second argument of `info` is a selector of labels only.
fn info_labels(argument: &Expr) -> Result<(), ParseError> {
    match &argument.kind {
        Kind::Selector(selector) if selector.name.is_none() => Ok(()),
        _ => {
            let message = "expected label selectors only as second argument of info";
            Err(ParseError::at(argument.span.start as usize, message.to_owned()))
        }
    }
}

fn aggregate(aggregate: &Aggregate) -> Result<(), ParseError> {
    expect(&aggregate.expr, Type::Vector, "aggregation expression")?;
    if let (Some(parameter), Some(want)) = (&aggregate.parameter, aggregate.operator.parameter()) {
        expect(parameter, want, "aggregation parameter")?;
    }
    Ok(())
}

fn binary(expr: &Expr, binary: &Binary) -> Result<(), ParseError> {
    let (left, right) = (binary.left.value_type(), binary.right.value_type());
    let refuse = |at: &Expr, text: String| Err(ParseError::at(at.span.start as usize, text));
    for side in [&binary.left, &binary.right] {
        if !matches!(side.value_type(), Type::Scalar | Type::Vector) {
            let text = "binary expression must contain only scalar and instant vector types";
            return refuse(side, text.to_owned());
        }
    }
    let operator = binary.operator;
    if operator.is_comparison() && !binary.bool && left == Type::Scalar && right == Type::Scalar {
        return refuse(expr, "comparisons between scalars must use BOOL modifier".to_owned());
    }
    if left == Type::Scalar || right == Type::Scalar {
        let matching = &binary.matching;
        if operator.is_set() {
            let text =
                format!("set operator {:?} not allowed in binary scalar expression", operator.symbol());
            return refuse(expr, text);
        }
        let fills = matching.fill_left.is_some() || matching.fill_right.is_some();
        if matching.is_written
            && (!matching.labels.is_empty() || matching.cardinality != Cardinality::OneToOne)
        {
            return refuse(expr, "vector matching only allowed between instant vectors".to_owned());
        }
        if fills {
            return refuse(expr, "filling in missing series only allowed between instant vectors".to_owned());
        }
    }
    Ok(())
}
