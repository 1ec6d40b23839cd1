//! Names: aliases, parts of names, and groups by them. What each does, its entry in `functions/table` says.

use super::{Context, EvalError, Evaluator};
use crate::args::{Args, Node, Value};
use crate::ast::Expr;
use crate::number;
use crate::parse::parse;
use crate::pattern;
use crate::series::{Consolidation, Series};

type Outcome = Result<Value, EvalError>;

/// The pattern that stands first in a name that is an expression; `None` if it is none.
pub fn first_path(name: &str) -> Option<String> {
    let expr = parse(name).ok()?;
    let mut inner = &expr;
    loop {
        match inner {
            Expr::Path(path) => return Some(path.clone()),
            Expr::Call { args, .. } => inner = args.first()?,
            Expr::Template { body, .. } => inner = body,
            _ => return None,
        }
    }
}

/// The parts of a series' name that `nodes` say, with dots between them.
pub fn key(series: &Series, nodes: &[Node]) -> String {
    let path = if series.name.ends_with(')') { first_path(&series.name) } else { None };
    let path = path.as_deref().unwrap_or(&series.name);
    let path = path.split(';').next().unwrap_or(path);
    let parts: Vec<&str> = path.split('.').collect();
    let text = |node: &Node| match node {
        Node::Place(place) => {
            let place = if *place < 0 { parts.len() as i64 + place } else { *place };
            usize::try_from(place).ok().and_then(|place| parts.get(place)).copied().unwrap_or("")
        }
        Node::Tag(tag) => series.tag(tag),
    };
    nodes.iter().map(text).collect::<Vec<_>>().join(".")
}

/// Series with the same key, in the order in which keys appear.
pub fn grouped(all: Vec<Series>, key: impl Fn(&Series) -> String) -> Vec<(String, Vec<Series>)> {
    let mut places = std::collections::HashMap::new();
    let mut groups: Vec<(String, Vec<Series>)> = Vec::new();
    for series in all {
        let key = key(&series);
        let place = *places.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(series);
    }
    groups
}

pub fn alias(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    let name = args.text(1).unwrap_or_default();
    all.iter_mut().for_each(|series| series.name.clone_from(&name));
    Ok(Value::List(all))
}

pub fn alias_by_node(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    let nodes = args.nodes();
    all.iter_mut().for_each(|series| series.name = key(series, &nodes));
    Ok(Value::List(all))
}

pub fn alias_by_metric(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    all.iter_mut().for_each(|series| series.name = part_of_name(&series.name, -1, 0));
    Ok(Value::List(all))
}

pub fn substr(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    let (start, stop) = (args.int(1).unwrap_or(0), args.int(2).unwrap_or(0));
    all.iter_mut().for_each(|series| series.name = part_of_name(&series.name, start, stop));
    Ok(Value::List(all))
}

/// Parts `start` to `stop` of the innermost name; a negative place counts from the end, and `stop` 0 is the end.
fn part_of_name(name: &str, start: i64, stop: i64) -> String {
    let left = name.rfind('(').map_or(0, |at| at + 1);
    let right = name.find(')').unwrap_or(name.len());
    let parts: Vec<&str> = name.get(left..right).unwrap_or("").split('.').collect();
    let count = parts.len() as i64;
    let place = |at: i64| if at < 0 { (count + at).max(0) } else { at.min(count) } as usize;
    let end = if stop == 0 { parts.len() } else { place(stop) };
    let joined = parts.get(place(start)..end).unwrap_or(&[]).join(".");
    joined.split(',').next().unwrap_or("").to_owned()
}

pub fn alias_sub(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    let regex = pattern::compile(&args.text(1).unwrap_or_default()).map_err(|text| args.error(&text))?;
    let replacement = pattern::replacement(&args.text(2).unwrap_or_default());
    for series in &mut all {
        series.name = regex.replace_all(&series.name, &*replacement).into_owned();
        if series.name.len() > NAME_BYTES_MAX {
            return Err(args.error("the name becomes too long"));
        }
    }
    Ok(Value::List(all))
}

/// The longest name that a replacement may make, in bytes.
const NAME_BYTES_MAX: usize = 64 * 1024;

pub fn upper(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    Ok(Value::List(cased(&mut args, |c| c.to_uppercase().collect())))
}

pub fn lower(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    Ok(Value::List(cased(&mut args, |c| c.to_lowercase().collect())))
}

fn cased(args: &mut Args<'_>, change: impl Fn(char) -> String) -> Vec<Series> {
    let mut all = args.series(0);
    let places = args.ints();
    for series in &mut all {
        let count = series.name.chars().count() as i64;
        let is_meant = |index: usize| {
            places.is_empty()
                || places
                    .iter()
                    .any(|place| *place == index as i64 || place.saturating_add(count) == index as i64)
        };
        let one = |(index, c): (usize, char)| if is_meant(index) { change(c) } else { c.to_string() };
        series.name = series.name.chars().enumerate().map(one).collect();
    }
    all
}

pub fn consolidate_by(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let name = args.text(1).unwrap_or_default();
    let function = Consolidation::from_name(&name).ok_or_else(|| {
        args.error(&format!("{name:?} is none of average, avg_zero, sum, min, max, first, last"))
    })?;
    Ok(Value::List(consolidated_by(args.series(0), function, &name)))
}

pub fn cumulative(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    Ok(Value::List(consolidated_by(args.series(0), Consolidation::Sum, "sum")))
}

fn consolidated_by(mut all: Vec<Series>, function: Consolidation, name: &str) -> Vec<Series> {
    for series in &mut all {
        series.consolidation = function;
        series.set_tag("consolidateBy", name);
        series.rename(format!("consolidateBy({},\"{name}\")", series.name));
    }
    all
}

pub fn set_xff(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    context.xff = args.number(1);
    for series in &mut all {
        series.xff = context.xff;
        series.set_number("xFilesFactor", context.xff);
    }
    Ok(Value::List(all))
}

pub fn fallback(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let all = args.series(0);
    Ok(Value::List(if all.is_empty() { args.series(1) } else { all }))
}

pub fn color(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    all.iter_mut().for_each(|series| series.style.color = args.text(1));
    Ok(Value::List(all))
}

pub fn alpha(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    all.iter_mut().for_each(|series| series.style.alpha = args.float(1));
    Ok(Value::List(all))
}

pub fn line_width(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    all.iter_mut().for_each(|series| series.style.width = args.float(1));
    Ok(Value::List(all))
}

pub fn dashed(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    let length = args.int(1).unwrap_or(5);
    for series in &mut all {
        series.set_tag("dashed", length.to_string());
        series.name = format!("dashed({}, {})", series.name, number::general(length as f64));
        series.style.dashes = Some(length as f64);
    }
    Ok(Value::List(all))
}

pub fn marked(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    let name = args.function.name;
    for series in &mut all {
        series.set_tag(name, "1");
        series.name = format!("{name}({})", series.name);
    }
    Ok(Value::List(all))
}

pub fn area_between(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    let [lower, upper] = &mut all[..] else {
        return Err(args.error("takes exactly two series"));
    };
    upper.set_tag("areaBetween", "1");
    upper.name = format!("areaBetween({})", upper.expression);
    lower.name.clone_from(&upper.name);
    lower.tags.clone_from(&upper.tags);
    lower.style.is_hidden = true;
    lower.style.is_stacked = true;
    upper.style.is_stacked = true;
    Ok(Value::List(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_names_are_found() {
        let check = |name: &str, nodes: &[i64], want: &str| {
            let nodes: Vec<Node> = nodes.iter().map(|node| Node::Place(*node)).collect();
            assert_eq!(key(&Series::new(name, 0, 0, 1, Vec::new()), &nodes), want, "{name}");
        };
        check("a.b.c", &[1], "b");
        check("a.b.c", &[-1, 0], "c.a");
        check("sum(scale(a.b.c,2),d)", &[2], "c");
        check("a.b;x=y.z", &[1], "b");
        check("a.b", &[7], "");
        assert_eq!(part_of_name("sum(a.b.c.d,x)", 1, 3), "b.c");
        assert_eq!(part_of_name("a.b.c", -2, 0), "b.c");
        assert_eq!(part_of_name("a)b(c", 0, 0), "");
    }
}
