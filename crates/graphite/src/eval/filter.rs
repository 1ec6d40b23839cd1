//! Functions that choose and sort series, and such that take values out of them. What each does, its entry in `functions/table` says.

use super::{Context, EvalError, Evaluator};
use crate::aggregate::{Aggregation, is_enough, percentile};
use crate::args::{Args, Value};
use crate::number;
use crate::pattern;
use crate::series::Series;

type Outcome = Result<Value, EvalError>;

/// Series of which `function` has a value that `fits`.
fn filtered(all: Vec<Series>, function: Aggregation, fits: impl Fn(f64) -> bool) -> Outcome {
    let mut all = all;
    all.retain(|series| fits(function.of(&series.values)));
    Ok(Value::List(all))
}

pub fn filter_series(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let (function, limit) = (args.aggregation(1, Aggregation::Average), args.number(3));
    let operator = args.text(2).unwrap_or_default();
    let fits: fn(f64, f64) -> bool = match &*operator {
        "=" => |one, other| one == other,
        "!=" => |one, other| one != other && !one.is_nan(),
        ">" => |one, other| one > other,
        ">=" => |one, other| one >= other,
        "<" => |one, other| one < other,
        "<=" => |one, other| one <= other,
        _ => return Err(args.error(&format!("{operator:?} is none of = != > >= < <="))),
    };
    filtered(args.series(0), function, |value| fits(value, limit))
}

pub fn max_above(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let limit = args.number(1);
    filtered(args.series(0), Aggregation::Max, |value| value > limit)
}

pub fn max_below(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let limit = args.number(1);
    filtered(args.series(0), Aggregation::Max, |value| value <= limit)
}

pub fn min_above(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let limit = args.number(1);
    filtered(args.series(0), Aggregation::Min, |value| value > limit)
}

pub fn min_below(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let limit = args.number(1);
    filtered(args.series(0), Aggregation::Min, |value| value <= limit)
}

pub fn average_above(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let limit = args.number(1);
    filtered(args.series(0), Aggregation::Average, |value| value > limit)
}

pub fn average_below(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let limit = args.number(1);
    filtered(args.series(0), Aggregation::Average, |value| value <= limit)
}

pub fn current_above(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let limit = args.number(1);
    filtered(args.series(0), Aggregation::Last, |value| value > limit)
}

pub fn current_below(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let limit = args.number(1);
    filtered(args.series(0), Aggregation::Last, |value| value <= limit)
}

pub fn exclude(_: &mut Evaluator<'_>, _: &mut Context, args: Args<'_>) -> Outcome {
    by_name(args, false)
}

pub fn grep(_: &mut Evaluator<'_>, _: &mut Context, args: Args<'_>) -> Outcome {
    by_name(args, true)
}

fn by_name(mut args: Args<'_>, fits: bool) -> Outcome {
    let regex = pattern::compile(&args.text(1).unwrap_or_default()).map_err(|text| args.error(&text))?;
    let mut all = args.series(0);
    all.retain(|series| regex.is_match(&series.name) == fits);
    Ok(Value::List(all))
}

/// The first `count`; of a negative one, all but the last.
fn first(mut all: Vec<Series>, count: i64) -> Outcome {
    let kept = if count < 0 { all.len() as i64 + count } else { count };
    all.truncate(usize::try_from(kept).unwrap_or(0));
    Ok(Value::List(all))
}

pub fn limit(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let count = args.int(1).unwrap_or(0);
    first(args.series(0), count)
}

/// Series in the order of what `function` says of each; those without a value are the least.
fn sorted(all: Vec<Series>, function: Aggregation, is_descending: bool) -> Vec<Series> {
    let key = |series: &Series| {
        let value = function.of(&series.values);
        if value.is_nan() { f64::NEG_INFINITY } else { value }
    };
    let mut keyed: Vec<(f64, Series)> = all.into_iter().map(|series| (key(&series), series)).collect();
    keyed.sort_by(|(one, _), (other, _)| {
        let order = one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal);
        if is_descending { order.reverse() } else { order }
    });
    keyed.into_iter().map(|(_, series)| series).collect()
}

pub fn highest(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let function = args.aggregation(2, Aggregation::Average);
    let count = args.int(1).unwrap_or(1);
    first(sorted(args.series(0), function, true), count)
}

pub fn lowest(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let function = args.aggregation(2, Aggregation::Average);
    let count = args.int(1).unwrap_or(1);
    first(sorted(args.series(0), function, false), count)
}

pub fn highest_average(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let count = args.int(1).unwrap_or(1);
    first(sorted(args.series(0), Aggregation::Average, true), count)
}

pub fn highest_current(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let count = args.int(1).unwrap_or(1);
    first(sorted(args.series(0), Aggregation::Last, true), count)
}

pub fn highest_max(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let count = args.int(1).unwrap_or(1);
    first(sorted(args.series(0), Aggregation::Max, true), count)
}

pub fn lowest_average(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let count = args.int(1).unwrap_or(1);
    first(sorted(args.series(0), Aggregation::Average, false), count)
}

pub fn lowest_current(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let count = args.int(1).unwrap_or(1);
    first(sorted(args.series(0), Aggregation::Last, false), count)
}

pub fn sort_by(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let (function, is_descending) = (args.aggregation(1, Aggregation::Average), args.flag(2));
    Ok(Value::List(sorted(args.series(0), function, is_descending)))
}

pub fn sort_by_total(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    Ok(Value::List(sorted(args.series(0), Aggregation::Sum, true)))
}

pub fn sort_by_maxima(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    Ok(Value::List(sorted(args.series(0), Aggregation::Max, true)))
}

pub fn sort_by_minima(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    all.retain(|series| Aggregation::Max.of(&series.values) > 0.0);
    Ok(Value::List(sorted(all, Aggregation::Min, false)))
}

pub fn sort_by_name(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let (is_natural, is_descending) = (args.flag(1), args.flag(2));
    let mut all = args.series(0);
    let key = |series: &Series| if is_natural { padded(&series.name) } else { series.name.clone() };
    match is_descending {
        true => all.sort_by_cached_key(|series| std::cmp::Reverse(key(series))),
        false => all.sort_by_cached_key(key),
    }
    Ok(Value::List(all))
}

/// A name whose numbers have ten digits at least, so that they sort by their values.
fn padded(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        out.push_str(before);
        out.push_str(&format!("{:0>10}", number[..end].trim_start_matches('0')));
        rest = &number[end..];
    }
    out + rest
}

pub fn unique(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut seen = std::collections::HashSet::new();
    let mut all = args.all_series();
    all.retain(|series| seen.insert(series.name.clone()));
    Ok(Value::List(all))
}

pub fn remove_empty(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let xff = args.float(1).unwrap_or(0.0);
    let mut all = args.series(0);
    all.retain(|series| {
        let known = series.values.iter().filter(|value| !value.is_nan()).count();
        is_enough(known, series.values.len(), xff)
    });
    Ok(Value::List(all))
}

pub fn most_deviant(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let count = args.int(1).unwrap_or(0);
    let mut all = args.series(0);
    all.retain(|series| series.values.iter().any(|value| !value.is_nan()));
    // The order of deviations is that of their squares.
    first(sorted(all, Aggregation::StdDev, true), count)
}

pub fn outside_percentile(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let all = args.series(0);
    let percent = args.number(1);
    let percent = if percent < 50.0 { 100.0 - percent } else { percent };
    let averages: Vec<f64> = all.iter().map(|series| Aggregation::Average.of(&series.values)).collect();
    let (low, high) = (percentile(&averages, 100.0 - percent, false), percentile(&averages, percent, false));
    let kept = all.into_iter().zip(averages).filter(|(_, average)| !(low < *average && *average < high));
    Ok(Value::List(kept.map(|(series, _)| series).collect()))
}

pub fn use_above(ev: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (all, limit) = (args.series(0), args.number(1));
    let regex = pattern::compile(&args.text(2).unwrap_or_default()).map_err(|text| args.error(&text))?;
    let replacement = pattern::replacement(&args.text(3).unwrap_or_default());
    let mut result = Vec::new();
    for series in all.iter().filter(|series| Aggregation::Max.of(&series.values) > limit) {
        let name = regex.replace_all(&series.name, &*replacement).into_owned();
        result.extend(ev.target(&name, &mut context.clone())?);
    }
    result.retain(|series| !series.values.is_empty());
    Ok(Value::List(result))
}

/// Takes out the values that `fits` does not take, with the limit that `limit` says of a series' values.
fn without(mut args: Args<'_>, limit: impl Fn(&[f64]) -> f64, fits: impl Fn(f64, f64) -> bool) -> Outcome {
    let mut all = args.series(0);
    let name = args.function.name;
    for series in &mut all {
        series.rename(format!("{name}({}, {})", series.name, number::general(args.number(1))));
        let limit = limit(&series.values);
        if name.ends_with("Percentile") && !limit.is_nan() {
            series.set_number("nPercentile", args.number(1));
        }
        for value in &mut series.values {
            if !fits(*value, limit) {
                *value = f64::NAN;
            }
        }
    }
    Ok(Value::List(all))
}

pub fn remove_above(_: &mut Evaluator<'_>, _: &mut Context, args: Args<'_>) -> Outcome {
    let limit = args.number(1);
    without(args, |_| limit, |value, limit| value <= limit)
}

pub fn remove_below(_: &mut Evaluator<'_>, _: &mut Context, args: Args<'_>) -> Outcome {
    let limit = args.number(1);
    without(args, |_| limit, |value, limit| value >= limit)
}

pub fn remove_above_percentile(_: &mut Evaluator<'_>, _: &mut Context, args: Args<'_>) -> Outcome {
    let percent = args.number(1);
    without(args, |values| percentile(values, percent, false), |value, limit| value <= limit)
}

pub fn remove_below_percentile(_: &mut Evaluator<'_>, _: &mut Context, args: Args<'_>) -> Outcome {
    let percent = args.number(1);
    without(args, |values| percentile(values, percent, false), |value, limit| value >= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_sort_by_value() {
        assert!(padded("web9") < padded("web10"));
        assert_eq!(padded("a007b"), "a0000000007b");
        assert_eq!(padded("é1"), "é0000000001");
    }
}
