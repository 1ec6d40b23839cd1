//! An expression as text in one spelling.

use std::fmt::Write;

use crate::ast::{At, Cardinality, Edges, Expr, Kind, Length, Matching, Selector};
use crate::labels::{NAME, is_plain_name, quoted};
use crate::matcher::Operator;
use crate::number::{duration_text, text};

/// The longest line that stays one.
const LINE_MAX: usize = 100;

/// The expression in one line.
pub fn format(expr: &Expr) -> String {
    let mut out = String::new();
    write_expr(&mut out, expr);
    out
}

/// The expression in lines of at most a hundred characters, where parts allow it.
pub fn pretty(expr: &Expr) -> String {
    let mut out = String::new();
    write_lines(&mut out, expr, 0);
    out
}

fn write_lines(out: &mut String, expr: &Expr, depth: usize) {
    let indent = "  ".repeat(depth);
    let line = format(expr);
    if indent.len() + line.len() <= LINE_MAX {
        let _ = write!(out, "{indent}{line}");
        return;
    }
    let wrapped = |out: &mut String, open: String, parts: &[&Expr], close: String| {
        let _ = writeln!(out, "{indent}{open}");
        for (index, part) in parts.iter().enumerate() {
            write_lines(out, part, depth + 1);
            out.push_str(if index + 1 < parts.len() { ",\n" } else { "\n" });
        }
        let _ = write!(out, "{indent}{close}");
    };
    match &expr.kind {
        Kind::Paren(inner) => wrapped(out, "(".into(), &[inner], ")".into()),
        Kind::Call(function, arguments) => {
            let parts: Vec<&Expr> = arguments.iter().collect();
            wrapped(out, format!("{}(", function.name), &parts, ")".into());
        }
        Kind::Aggregate(aggregate) => {
            let parts: Vec<&Expr> = aggregate.parameter.iter().chain([&aggregate.expr]).collect();
            let open = format!("{} (", aggregate_head(aggregate));
            wrapped(
                out,
                open.replace(" (", if aggregate_head(aggregate).contains(' ') { " (" } else { "(" }),
                &parts,
                ")".into(),
            );
        }
        Kind::Binary(binary) => {
            write_lines(out, &binary.left, depth);
            let _ = write!(
                out,
                "\n{indent}{}{}\n",
                binary.operator.symbol(),
                modifiers(binary.bool, &binary.matching)
            );
            write_lines(out, &binary.right, depth);
        }
        _ => {
            let _ = write!(out, "{indent}{line}");
        }
    }
}

fn write_expr(out: &mut String, expr: &Expr) {
    match &expr.kind {
        Kind::Number(value) => out.push_str(&text(*value)),
        Kind::Text(value) => out.push_str(&quoted(value)),
        Kind::Paren(inner) => {
            out.push('(');
            write_expr(out, inner);
            out.push(')');
        }
        Kind::Negate(inner) | Kind::Plus(inner) => {
            out.push(if matches!(expr.kind, Kind::Negate(_)) { '-' } else { '+' });
            write_expr(out, inner);
        }
        Kind::Selector(selector) => write_selector(out, selector),
        Kind::Subquery(subquery) => {
            write_expr(out, &subquery.expr);
            let step = subquery.step.as_ref().map(length).unwrap_or_default();
            let _ = write!(out, "[{}:{step}]", length(&subquery.range));
            write_time(out, subquery.at, subquery.offset.as_ref());
        }
        Kind::Call(function, arguments) => {
            let _ = write!(out, "{}(", function.name);
            write_list(out, arguments.iter());
            out.push(')');
        }
        Kind::Aggregate(aggregate) => {
            let head = aggregate_head(aggregate);
            let _ = write!(out, "{head}{}(", if head.contains(' ') { " " } else { "" });
            write_list(out, aggregate.parameter.iter().chain([&aggregate.expr]));
            out.push(')');
        }
        Kind::Binary(binary) => {
            write_expr(out, &binary.left);
            let _ = write!(out, " {}{} ", binary.operator.symbol(), modifiers(binary.bool, &binary.matching));
            write_expr(out, &binary.right);
        }
    }
}

fn write_list<'a>(out: &mut String, parts: impl Iterator<Item = &'a Expr>) {
    for (index, part) in parts.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_expr(out, part);
    }
}

fn labels(names: &[String]) -> String {
    let spelt = |name: &String| if is_plain_name(name, false) { name.clone() } else { quoted(name) };
    names.iter().map(spelt).collect::<Vec<_>>().join(", ")
}

fn aggregate_head(aggregate: &crate::ast::Aggregate) -> String {
    let (name, grouping) = (aggregate.operator.name(), &aggregate.grouping);
    match (grouping.without, grouping.labels.is_empty()) {
        (true, _) => format!("{name} without ({})", labels(&grouping.labels)),
        (false, false) => format!("{name} by ({})", labels(&grouping.labels)),
        (false, true) => name.to_owned(),
    }
}

fn modifiers(is_bool: bool, matching: &Matching) -> String {
    let mut out = String::from(if is_bool { " bool" } else { "" });
    if matching.is_written && (matching.on || !matching.labels.is_empty()) {
        let word = if matching.on { "on" } else { "ignoring" };
        let _ = write!(out, " {word} ({})", labels(&matching.labels));
    }
    let group = match matching.cardinality {
        Cardinality::ManyToOne => "group_left",
        Cardinality::OneToMany => "group_right",
        _ => "",
    };
    if !group.is_empty() {
        let _ = write!(out, " {group} ({})", labels(&matching.include));
    }
    match (matching.fill_left, matching.fill_right) {
        (Some(left), Some(right)) if left.to_bits() == right.to_bits() => {
            let _ = write!(out, " fill ({})", text(left));
        }
        (left, right) => {
            for (word, value) in [("fill_left", left), ("fill_right", right)] {
                if let Some(value) = value {
                    let _ = write!(out, " {word} ({})", text(value));
                }
            }
        }
    }
    out
}

fn write_selector(out: &mut String, selector: &Selector) {
    let plain = selector.name.as_deref().filter(|name| is_plain_name(name, true));
    let mut parts: Vec<String> = Vec::new();
    match (plain, &selector.name) {
        (Some(name), _) => out.push_str(name),
        (None, Some(name)) => parts.push(quoted(name)),
        (None, None) => {}
    }
    let is_name = |matcher: &&crate::matcher::Matcher| {
        selector.name.is_some() && matcher.name == NAME && matcher.operator == Operator::Equal
    };
    parts.extend(selector.matchers.iter().filter(|matcher| !is_name(matcher)).map(ToString::to_string));
    if !parts.is_empty() {
        let _ = write!(out, "{{{}}}", parts.join(","));
    }
    if let Some(range) = &selector.range {
        let _ = write!(out, "[{}]", length(range));
    }
    match selector.edges {
        Edges::Inside => {}
        Edges::Anchored => out.push_str(" anchored"),
        Edges::Smoothed => out.push_str(" smoothed"),
    }
    write_time(out, selector.at, selector.offset.as_ref());
}

fn write_time(out: &mut String, at: Option<At>, offset: Option<&Length>) {
    match at {
        None => {}
        Some(At::Start) => out.push_str(" @ start()"),
        Some(At::End) => out.push_str(" @ end()"),
        Some(At::Time(time)) => {
            let _ = write!(out, " @ {:.3}", time as f64 / 1000.0);
        }
    }
    if let Some(offset) = offset {
        let _ = write!(out, " offset {}", length(offset));
    }
}

fn length(value: &Length) -> String {
    match value {
        Length::Seconds(seconds, _) if (seconds * 1000.0).fract() == 0.0 && seconds.abs() < 1e12 => {
            duration_text((seconds * 1000.0) as i64)
        }
        Length::Seconds(seconds, _) => text(*seconds),
        Length::Step => "step()".to_owned(),
        Length::Range => "range()".to_owned(),
        Length::Negate(inner) => format!("-{}", length(inner)),
        Length::Paren(inner) => format!("({})", length(inner)),
        Length::Min(a, b) => format!("min_of({}, {})", length(a), length(b)),
        Length::Max(a, b) => format!("max_of({}, {})", length(a), length(b)),
        Length::Binary(operator, a, b) => format!("{} {operator} {}", part(a), part(b)),
    }
}

/// A part of a duration that is computed, where a number without a unit is perhaps no duration.
fn part(value: &Length) -> String {
    match value {
        Length::Seconds(seconds, false) => text(*seconds),
        value => length(value),
    }
}
