//! Functions that combine series. What each does, its entry in `functions/table` says.

use super::names::{grouped, key};
use super::{Context, EvalError, Evaluator};
use crate::aggregate::{Aggregation, normalize, percentile};
use crate::args::{Args, Value};
use crate::functions;
use crate::number;
use crate::series::Series;

type Outcome = Result<Value, EvalError>;

/// The expressions that series are of, each once.
fn expressions(all: &[Series]) -> String {
    let mut seen = std::collections::HashSet::new();
    let each: Vec<&str> =
        all.iter().map(|series| &*series.expression).filter(|expression| seen.insert(*expression)).collect();
    each.join(",")
}

/// One series of several; `None` if there are none.
pub fn aggregated(all: &[Series], name: &str, function: Aggregation, context: &Context) -> Option<Series> {
    let normal = normalize(all.iter())?;
    let values = function.over(&normal.columns, context.xff);
    let name = name.strip_suffix("Series").unwrap_or(name);
    let title = format!("{name}Series({})", expressions(all));
    let mut series = Series::new(title, normal.start, normal.end, normal.step, values);
    series.is_whole = function == Aggregation::Count
        || function.keeps_whole() && all.iter().all(|one| one.stays_whole((normal.step / one.step) as usize));
    series.xff = context.xff;
    let (first, others) = all.split_first()?;
    let is_common = |(tag, value): &&(String, String)| {
        others.iter().all(|other| other.tags.iter().any(|(name, other)| name == tag && other == value))
    };
    let common: Vec<_> = first.tags.iter().filter(is_common).cloned().collect();
    let own = std::mem::replace(&mut series.tags, common);
    if !series.tags.iter().any(|(tag, _)| tag == "name") {
        series.tags.extend(own);
    }
    series.set_tag("aggregatedBy", name);
    Some(series)
}

fn one(series: Option<Series>) -> Outcome {
    Ok(Value::List(series.into_iter().collect()))
}

fn all_by(name: &str, function: Aggregation, context: &Context, mut args: Args<'_>) -> Outcome {
    one(aggregated(&args.all_series(), name, function, context))
}

pub fn sum(_: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    all_by("sum", Aggregation::Sum, context, args)
}

pub fn average(_: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    all_by("average", Aggregation::Average, context, args)
}

pub fn min(_: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    all_by("min", Aggregation::Min, context, args)
}

pub fn max(_: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    all_by("max", Aggregation::Max, context, args)
}

pub fn diff(_: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    all_by("diff", Aggregation::Diff, context, args)
}

pub fn stddev(_: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    all_by("stddev", Aggregation::StdDev, context, args)
}

pub fn range(_: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    all_by("rangeOf", Aggregation::Range, context, args)
}

pub fn multiply(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let all = args.all_series();
    match all.len() {
        1 => Ok(Value::List(all)),
        _ => one(aggregated(&all, "multiply", Aggregation::Multiply, context)),
    }
}

pub fn aggregate(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let name = args.text(1).unwrap_or_default();
    let function = args.aggregation(1, Aggregation::Average);
    let context = Context { xff: args.float(2).unwrap_or(context.xff), ..context.clone() };
    one(aggregated(&args.series(0), &name, function, &context))
}

pub fn count(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let is_of_nothing = args.nodes().is_empty();
    let all = args.all_series();
    let Some(normal) = normalize(all.iter()) else {
        if !is_of_nothing {
            return one(None);
        }
        let mut series = constant(0.0, "0".to_owned(), context);
        series.is_whole = true;
        series.expression = "countSeries()".to_owned();
        return one(Some(series));
    };
    let length = normal.columns.iter().map(|column| column.len()).max().unwrap_or(0);
    let name = format!("countSeries({})", expressions(&all));
    let values = vec![all.len() as f64; length];
    let mut series = Series::new(name, normal.start, normal.end, normal.step, values);
    series.is_whole = true;
    series.xff = context.xff;
    one(Some(series))
}

/// A line of three points.
pub fn constant(value: f64, name: String, context: &Context) -> Series {
    let step = ((context.until - context.from) / 2).max(1);
    let mut series = Series::new(name, context.from, context.until, step, vec![value; 3]);
    series.xff = context.xff;
    series
}

pub fn group(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    Ok(Value::List(args.all_series()))
}

pub fn percentile_of(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (all, percent, interpolates) = (args.series(0), args.number(1), args.flag(2));
    if percent <= 0.0 {
        return Err(args.error("the percentage must be more than 0"));
    }
    let Some(normal) = normalize(all.iter()) else { return one(None) };
    let name = format!("percentileOfSeries({},{})", all[0].expression, number::general(percent));
    let length = normal.columns.iter().map(|column| column.len()).max().unwrap_or(0);
    let at = |index: usize| {
        let row: Vec<f64> =
            normal.columns.iter().map(|column| column.get(index).copied().unwrap_or(f64::NAN)).collect();
        percentile(&row, percent, interpolates)
    };
    let mut series = Series::new(name, normal.start, normal.end, normal.step, (0..length).map(at).collect());
    series.xff = context.xff;
    one(Some(series))
}

fn wildcards(name: &str, function: Aggregation, context: &Context, args: &mut Args<'_>) -> Outcome {
    let places = args.ints();
    let key = |series: &Series| {
        let parts = series.name.split('.').enumerate();
        let kept: Vec<&str> =
            parts.filter(|(place, _)| !places.contains(&(*place as i64))).map(|(_, part)| part).collect();
        kept.join(".")
    };
    let groups = grouped(args.series(0), key);
    Ok(Value::List(
        groups
            .into_iter()
            .filter_map(|(key, all)| {
                let mut series = aggregated(&all, name, function, context)?;
                series.name = key;
                Some(series)
            })
            .collect(),
    ))
}

pub fn sum_wildcards(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    wildcards("sum", Aggregation::Sum, context, &mut args)
}

pub fn average_wildcards(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    wildcards("average", Aggregation::Average, context, &mut args)
}

pub fn multiply_wildcards(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    wildcards("multiply", Aggregation::Multiply, context, &mut args)
}

pub fn aggregate_wildcards(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (name, function) = (args.text(1).unwrap_or_default(), args.aggregation(1, Aggregation::Average));
    wildcards(&name, function, context, &mut args)
}

/// What a callback makes of a group: a function of series, or an aggregation.
fn called_back(
    ev: &mut Evaluator<'_>,
    context: &mut Context,
    callback: &str,
    all: Vec<Series>,
) -> Result<Option<Series>, EvalError> {
    if let Some(function) = functions::find(callback) {
        let args = Args::bind(function, None, vec![Value::List(all)], Vec::new())?;
        let value = (function.call)(ev, context, args)?;
        return Ok(match value {
            Value::List(series) => series.into_iter().next(),
            _ => None,
        });
    }
    let function = Aggregation::from_name(callback).ok_or_else(|| {
        EvalError::Wrong(format!("{callback:?} is no function that groups are combined by"))
    })?;
    Ok(aggregated(&all, callback, function, context))
}

fn by_groups(
    ev: &mut Evaluator<'_>,
    context: &mut Context,
    callback: &str,
    groups: Vec<(String, Vec<Series>)>,
) -> Outcome {
    let mut result = Vec::with_capacity(groups.len());
    for (key, all) in groups {
        ev.work(1000)?;
        if let Some(mut series) = called_back(ev, context, callback, all)? {
            series.name = key;
            result.push(series);
        }
    }
    Ok(Value::List(result))
}

pub fn group_by_node(ev: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (node, callback) = (args.node(1), args.text(2).unwrap_or_else(|| "average".to_owned()));
    let groups = grouped(args.series(0), |series| key(series, std::slice::from_ref(&node)));
    by_groups(ev, context, &callback, groups)
}

pub fn group_by_nodes(ev: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (callback, nodes) = (args.text(1).unwrap_or_default(), args.nodes());
    let groups = grouped(args.series(0), |series| key(series, &nodes));
    by_groups(ev, context, &callback, groups)
}

pub fn group_by_tags(ev: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (all, callback, tags) = (args.series(0), args.text(1).unwrap_or_default(), args.texts());
    let mut names: Vec<&str> = all.iter().map(|series| series.tag("name")).collect();
    names.sort_unstable();
    names.dedup();
    let common = if let [name] = names[..] { name.to_owned() } else { callback.clone() };
    let with_name = tags.iter().any(|tag| tag == "name");
    let tags_of = |series: &Series| {
        let name = if with_name { series.tag("name").to_owned() } else { common.clone() };
        let mut others: Vec<(String, String)> = tags
            .iter()
            .filter(|tag| *tag != "name")
            .map(|tag| (tag.clone(), series.tag(tag).to_owned()))
            .collect();
        others.sort();
        others.insert(0, ("name".to_owned(), name));
        others
    };
    let text = |tags: &[(String, String)]| {
        let others = tags[1..].iter().map(|(tag, value)| format!(";{tag}={value}"));
        tags[0].1.clone() + &others.collect::<String>()
    };
    let mut result = Vec::new();
    for (key, all) in grouped(all, |series| text(&tags_of(series))) {
        let own = tags_of(&all[0]);
        if let Some(mut series) = called_back(ev, context, &callback, all)? {
            series.rename(key);
            series.tags = own;
            result.push(series);
        }
    }
    Ok(Value::List(result))
}

pub fn map(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let nodes = args.nodes();
    let groups = grouped(args.series(0), |series| key(series, &nodes));
    Ok(Value::Lists(groups.into_iter().map(|(_, all)| all).collect()))
}

pub fn reduce(ev: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (lists, callback) = (args.lists(0), args.text(1).unwrap_or_default());
    let (node, matchers) = (args.int(2).unwrap_or(0), args.texts());
    let function =
        functions::find(&callback).ok_or_else(|| EvalError::Wrong(functions::unknown(&callback)))?;
    let mut groups: Vec<(String, Vec<Option<Series>>)> = Vec::new();
    for series in lists.into_iter().flatten() {
        let parts: Vec<&str> = series.name.split('.').collect();
        let place = if node < 0 { parts.len() as i64 + node } else { node } as usize;
        let Some(part) = parts.get(place) else { continue };
        let Some(matcher) = matchers.iter().position(|matcher| matcher == part) else { continue };
        let name = format!("{}.reduce.{callback}", parts[..place].join("."));
        let group = match groups.iter().position(|(one, _)| *one == name) {
            Some(group) => group,
            None => {
                groups.push((name, vec![None; matchers.len()]));
                groups.len() - 1
            }
        };
        groups[group].1[matcher] = Some(series);
    }
    let mut result = Vec::new();
    for (name, all) in groups {
        let lists: Vec<Value> =
            all.into_iter().map(|series| Value::List(series.into_iter().collect())).collect();
        let args = Args::bind(function, None, lists, Vec::new())?;
        if let Value::List(found) = (function.call)(ev, context, args)?
            && let Some(mut series) = found.into_iter().next()
        {
            series.name = name;
            result.push(series);
        }
    }
    Ok(Value::List(result))
}

pub fn apply_by_node(ev: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (all, node) = (args.series(0), args.int(1).unwrap_or(0));
    let (template, name) = (args.text(2).unwrap_or_default(), args.text(3));
    let prefix = |series: &Series| {
        let parts: Vec<&str> = series.name.split('.').collect();
        let end =
            if node < -1 { (parts.len() as i64).saturating_add(node) + 1 } else { node.saturating_add(1) };
        parts[..end.clamp(0, parts.len() as i64) as usize].join(".")
    };
    let prefixes: std::collections::BTreeSet<String> = all.iter().map(prefix).collect();
    let Some(last) = all.last() else { return Ok(Value::List(Vec::new())) };
    let mut result = Vec::new();
    for prefix in prefixes {
        let mut inner = context.clone();
        for mut series in ev.target(&template.replace('%', &prefix), &mut inner)? {
            if let Some(name) = &name {
                series.name = name.replace('%', &prefix);
            }
            series.expression.clone_from(&prefix);
            (series.start, series.end) = (last.start, last.end);
            result.push(series);
        }
    }
    Ok(Value::List(result))
}

/// Parts of a hundred; none of nothing.
fn percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { f64::NAN } else { part / whole * 100.0 }
}

/// Two series on common times, combined value by value.
fn pair(
    name: String,
    (one, other): (&Series, &Series),
    xff: f64,
    of: impl Fn(f64, f64) -> f64,
) -> Option<Series> {
    let normal = normalize([one, other].into_iter())?;
    let length = normal.columns.iter().map(|column| column.len()).max().unwrap_or(0);
    let value = |column: usize, index: usize| normal.columns[column].get(index).copied().unwrap_or(f64::NAN);
    let values = (0..length).map(|index| of(value(0, index), value(1, index))).collect();
    let mut series = Series::new(name, normal.start, normal.end, normal.step, values);
    series.xff = xff;
    Some(series)
}

pub fn as_percent(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (all, nodes, xff) = (args.series(0), args.nodes(), context.xff);
    if all.is_empty() {
        return Ok(Value::List(all));
    }
    let title = |one: &Series, other: &str| format!("asPercent({},{other})", one.name);
    if !nodes.is_empty() {
        let totals = match args.value(1) {
            Value::None => None,
            Value::List(_) => Some(args.series(1)),
            _ => return Err(args.error("with nodes, the total is None or series")),
        };
        return Ok(Value::List(percent_of_groups(all, totals, &nodes, context)));
    }
    let totals = match args.value(1) {
        Value::None => vec![total(&all, context)],
        Value::List(_) => args.series(1),
        value => {
            let text = value.text();
            let whole = args.float(1).ok_or_else(|| args.error("the total is a number or series"))?;
            let scaled = |series: &Series| {
                let values = series.values.iter().map(|value| percent(*value, whole)).collect();
                plain(title(series, &text), series, values, xff)
            };
            return Ok(Value::List(all.iter().map(scaled).collect()));
        }
    };
    if totals.len() != 1 && totals.len() != all.len() {
        return Err(args.error("the total must be one series, or as many as there are"));
    }
    if let [whole] = &totals[..] {
        let each =
            all.iter().filter_map(|series| pair(title(series, &whole.name), (series, whole), xff, percent));
        return Ok(Value::List(each.collect()));
    }
    let (mut all, mut totals) = (all, totals);
    all.sort_by(|one, other| one.name.cmp(&other.name));
    totals.sort_by(|one, other| one.name.cmp(&other.name));
    let each = all
        .iter()
        .zip(&totals)
        .filter_map(|(series, whole)| pair(title(series, &whole.name), (series, whole), xff, percent));
    Ok(Value::List(each.collect()))
}

fn plain(name: String, of: &Series, values: Vec<f64>, xff: f64) -> Series {
    let mut series = Series::new(name, of.start, of.end, of.step, values);
    series.xff = xff;
    series
}

fn total(all: &[Series], context: &Context) -> Series {
    let context = Context { xff: 0.0, ..context.clone() };
    aggregated(all, "sum", Aggregation::Sum, &context).unwrap_or_default()
}

fn percent_of_groups(
    all: Vec<Series>,
    totals: Option<Vec<Series>>,
    nodes: &[crate::args::Node],
    context: &Context,
) -> Vec<Series> {
    let name = |series: &Series| key(series, nodes);
    let whole = |group: Vec<Series>| match <[Series; 1]>::try_from(group) {
        Ok([series]) => series,
        Err(group) => total(&group, context),
    };
    let groups = grouped(all, name);
    let wholes: Vec<(String, Series)> = match totals {
        None => groups.iter().map(|(key, group)| (key.clone(), whole(group.clone()))).collect(),
        Some(totals) => grouped(totals, name).into_iter().map(|(key, group)| (key, whole(group))).collect(),
    };
    let mut result = Vec::new();
    for (key, group) in &groups {
        let whole = wholes.iter().find(|(one, _)| one == key);
        for series in group {
            result.extend(match whole {
                Some((_, whole)) => {
                    let title = format!("asPercent({},{})", series.name, whole.name);
                    pair(title, (series, whole), context.xff, percent)
                }
                None => {
                    let title = format!("asPercent({},MISSING)", series.name);
                    Some(plain(title, series, vec![f64::NAN; series.values.len()], context.xff))
                }
            });
        }
    }
    for (key, whole) in &wholes {
        if !groups.iter().any(|(one, _)| one == key) {
            let title = format!("asPercent(MISSING,{})", whole.name);
            result.push(plain(title, whole, vec![f64::NAN; whole.values.len()], context.xff));
        }
    }
    result
}

pub fn divide(_: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (mut all, by) = (args.series(0), args.series(1));
    let quotient = |one: f64, other: f64| if other == 0.0 { f64::NAN } else { one / other };
    match &by[..] {
        [] => {
            for series in &mut all {
                series.rename(format!("divideSeries({},MISSING)", series.name));
                series.values.fill(f64::NAN);
            }
            Ok(Value::List(all))
        }
        [by] => {
            let each = all.iter().filter_map(|series| {
                let name = format!("divideSeries({},{})", series.name, by.name);
                pair(name, (series, by), context.xff, quotient)
            });
            Ok(Value::List(each.collect()))
        }
        _ => Err(args.error(&format!("the divisor must be one series, not {}", by.len()))),
    }
}
