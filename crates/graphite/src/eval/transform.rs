//! Functions that change the values of each series. What each does, its entry in `functions/table` says.

use super::combine::constant;
use super::{Context, EvalError, Evaluator};
use crate::aggregate::{Aggregation, percentile};
use crate::args::{Args, Value};
use crate::number::{general, repr, round as rounded};
use crate::series::Series;

type Outcome = Result<Value, EvalError>;

/// Renames each series and changes its known values; a change that is no number leaves none.
fn mapped(
    mut all: Vec<Series>,
    tag: Option<(&str, String)>,
    name: impl Fn(&str) -> String,
    change: impl Fn(f64) -> f64,
) -> Outcome {
    for series in &mut all {
        if let Some((tag, value)) = &tag {
            series.set_tag(tag, value.clone());
        }
        series.rename(name(&series.name));
        series.is_whole = false;
        for value in series.values.iter_mut().filter(|value| !value.is_nan()) {
            *value = change(*value);
        }
    }
    Ok(Value::List(all))
}

/// A power by C's `pow`, as Python computes it: the compiler would make a root of an exponent that it knows, whose last bit differs.
fn power(value: f64, exponent: f64) -> f64 {
    value.powf(std::hint::black_box(exponent))
}

/// A value that is finite, or came of one that was not.
fn in_range(of: f64, value: f64) -> f64 {
    if value.is_infinite() && of.is_finite() { f64::NAN } else { value }
}

pub fn scale(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let factor = args.number(1);
    let name = |name: &str| format!("scale({name},{})", general(factor));
    mapped(args.series(0), Some(("scale", repr(factor))), name, |value| value * factor)
}

pub fn offset(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let factor = args.number(1);
    let name = |name: &str| format!("offset({name},{})", general(factor));
    mapped(args.series(0), Some(("offset", repr(factor))), name, |value| value + factor)
}

pub fn add(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let constant = args.number(1);
    let name = |name: &str| format!("add({name},{})", constant.trunc());
    mapped(args.series(0), Some(("add", repr(constant))), name, |value| value + constant)
}

pub fn absolute(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    for series in &mut all {
        series.set_tag("absolute", "1");
        series.rename(format!("absolute({})", series.name));
        series.values.iter_mut().for_each(|value| *value = value.abs());
    }
    Ok(Value::List(all))
}

pub fn pow(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let factor = args.number(1);
    let name = |name: &str| format!("pow({name},{})", general(factor));
    let change = |value: f64| in_range(value, power(value, factor));
    mapped(args.series(0), Some(("pow", repr(factor))), name, change)
}

pub fn square_root(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let change = |value: f64| in_range(value, power(value, 0.5));
    mapped(args.series(0), Some(("squareRoot", "1".into())), |name| format!("squareRoot({name})"), change)
}

pub fn invert(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let change = |value: f64| in_range(value, power(value, -1.0));
    mapped(args.series(0), Some(("invert", "1".into())), |name| format!("invert({name})"), change)
}

pub fn exp(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let change = |value: f64| in_range(value, value.exp());
    mapped(args.series(0), Some(("exp", "e".into())), |name| format!("exp({name})"), change)
}

pub fn log(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let base = args.int(1).unwrap_or(10);
    if base < 2 {
        return Err(args.error("the base must be 2 or more"));
    }
    let change = |value: f64| if value > 0.0 { value.ln() / (base as f64).ln() } else { f64::NAN };
    mapped(args.series(0), Some(("log", base.to_string())), |name| format!("log({name}, {base})"), change)
}

pub fn round(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let precision = args.int(1);
    let name = |name: &str| match precision {
        None => format!("round({name})"),
        Some(digits) => format!("round({name},{})", general(digits as f64)),
    };
    let digits = precision.unwrap_or(0);
    mapped(args.series(0), Some(("round", digits.to_string())), name, |value| rounded(value, digits))
}

pub fn scale_to_seconds(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let seconds = args.number(1);
    let mut all = args.series(0);
    for series in &mut all {
        series.set_number("scaleToSeconds", seconds);
        series.rename(format!("scaleToSeconds({},{})", series.name, seconds.trunc()));
        let factor = seconds / series.step as f64;
        series.is_whole = false;
        series.values.iter_mut().for_each(|value| *value = rounded(*value * factor, 6));
    }
    Ok(Value::List(all))
}

pub fn offset_to_zero(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    for series in &mut all {
        let least = Aggregation::Min.of(&series.values);
        series.set_tag("offsetToZero", if least.is_nan() { "None".to_owned() } else { repr(least) });
        series.rename(format!("offsetToZero({})", series.name));
        series.values.iter_mut().for_each(|value| *value -= least);
    }
    Ok(Value::List(all))
}

pub fn min_max(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    for series in &mut all {
        series.rename(format!("minMax({})", series.name));
        let (least, most) = (Aggregation::Min.of(&series.values), Aggregation::Max.of(&series.values));
        series.is_whole = false;
        for value in series.values.iter_mut().filter(|value| !value.is_nan()) {
            *value = if most == least { 0.0 } else { (*value - least) / (most - least) };
        }
    }
    Ok(Value::List(all))
}

pub fn is_non_null(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    for series in &mut all {
        series.set_tag("isNonNull", "1");
        series.rename(format!("isNonNull({})", series.name));
        series.values.iter_mut().for_each(|value| *value = f64::from(u8::from(!value.is_nan())));
        series.is_whole = true;
    }
    Ok(Value::List(all))
}

pub fn transform_null(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let default = args.float(1);
    let (value, tag) = (default.unwrap_or(0.0), default.map_or("0".to_owned(), repr));
    let reference = args.series(2);
    let is_known = |index: usize| {
        reference.is_empty()
            || reference.iter().any(|series| series.values.get(index).is_some_and(|value| !value.is_nan()))
    };
    let length = reference.iter().map(|series| series.values.len()).max().unwrap_or(0);
    let mut all = args.series(0);
    for series in &mut all {
        series.set_tag("transformNull", tag.clone());
        let end = if reference.is_empty() { "" } else { ",referenceSeries" };
        if !reference.is_empty() {
            series.set_tag("referenceSeries", "1");
            series.values.resize(series.values.len().max(length), f64::NAN);
        }
        series.rename(format!("transformNull({},{}{end})", series.name, general(value)));
        series.is_whole &= default.is_none();
        for (index, one) in series.values.iter_mut().enumerate() {
            if one.is_nan() && is_known(index) {
                *one = value;
            }
        }
    }
    Ok(Value::List(all))
}

/// How many unknown values in a row are filled at most.
fn gap_max(args: &Args<'_>) -> usize {
    args.int(1).map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(0))
}

pub fn keep_last_value(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let most = gap_max(&args);
    let mut all = args.series(0);
    for series in &mut all {
        series.rename(format!("keepLastValue({})", series.name));
        let mut last = f64::NAN;
        let mut gap = 0;
        for index in 0..=series.values.len() {
            let value = series.values.get(index).copied();
            if value.is_some_and(f64::is_nan) {
                gap += 1;
                continue;
            }
            if gap <= most {
                series.values[index - gap..index].fill(last);
            }
            gap = 0;
            last = value.unwrap_or(last);
        }
    }
    Ok(Value::List(all))
}

pub fn interpolate(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let most = gap_max(&args);
    let mut all = args.series(0);
    for series in &mut all {
        series.rename(format!("interpolate({})", series.name));
        series.is_whole = false;
        let mut last: Option<(usize, f64)> = None;
        for index in 0..series.values.len() {
            let value = series.values[index];
            if value.is_nan() {
                continue;
            }
            if let Some((before, from)) = last {
                let gap = index - before - 1;
                for place in (1..=gap).filter(|_| gap <= most) {
                    series.values[before + place] = from + place as f64 * (value - from) / (gap + 1) as f64;
                }
            }
            last = Some((index, value));
        }
    }
    Ok(Value::List(all))
}

pub fn changed(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut all = args.series(0);
    for series in &mut all {
        series.rename(format!("changed({})", series.name));
        let mut before = f64::NAN;
        for value in &mut series.values {
            let is_change = !before.is_nan() && !value.is_nan() && before != *value;
            if before.is_nan() || is_change {
                before = *value;
            }
            *value = f64::from(u8::from(is_change));
        }
        series.is_whole = true;
    }
    Ok(Value::List(all))
}

/// New series, under a name and a tag of 1, whose values follow from the old ones in their order.
fn scanned(all: Vec<Series>, name: &str, mut next: impl FnMut(&Series) -> Vec<f64>) -> Outcome {
    let each = all.into_iter().map(|mut series| {
        series.set_tag(name, "1");
        let values = next(&series);
        let title = format!("{name}({})", series.name);
        let is_whole = series.is_whole && matches!(name, "derivative" | "nonNegativeDerivative");
        let mut derived = series.derived(title, values);
        derived.is_whole = is_whole;
        derived
    });
    Ok(Value::List(each.collect()))
}

pub fn derivative(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    scanned(args.series(0), "derivative", |series| {
        let mut before = f64::NAN;
        series.values.iter().map(|value| value - std::mem::replace(&mut before, *value)).collect()
    })
}

/// The growth of a counter, which wraps at `most` or starts again at `least`.
fn growth(value: f64, before: &mut f64, (most, least): (Option<f64>, Option<f64>)) -> f64 {
    if most.is_some_and(|most| value > most) || least.is_some_and(|least| value < least) {
        *before = f64::NAN;
        return f64::NAN;
    }
    let last = std::mem::replace(before, value);
    if value.is_nan() || last.is_nan() {
        return f64::NAN;
    }
    match (most, least) {
        _ if value >= last => value - last,
        (Some(most), least) => most + 1.0 + value - last - least.unwrap_or(0.0),
        (None, Some(least)) => value - least,
        (None, None) => f64::NAN,
    }
}

pub fn non_negative_derivative(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let limits = (args.float(1), args.float(2));
    scanned(args.series(0), "nonNegativeDerivative", |series| {
        let mut before = f64::NAN;
        series.values.iter().map(|value| growth(*value, &mut before, limits)).collect()
    })
}

pub fn per_second(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let limits = (args.float(1), args.float(2));
    scanned(args.series(0), "perSecond", |series| {
        let mut before = f64::NAN;
        let step = series.step as f64;
        series.values.iter().map(|value| rounded(growth(*value, &mut before, limits) / step, 6)).collect()
    })
}

pub fn integral(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    scanned(args.series(0), "integral", |series| {
        let mut sum = 0.0;
        let add = |value: &f64| {
            sum += if value.is_nan() { 0.0 } else { *value };
            if value.is_nan() { f64::NAN } else { sum }
        };
        series.values.iter().map(add).collect()
    })
}

pub fn delay(_: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let steps = args.int(1).unwrap_or(0);
    let each = args.series(0).into_iter().map(|mut series| {
        series.set_tag("delay", steps.to_string());
        let count = series.values.len() as i64;
        let at = |index: i64| match (0..count).contains(&index) {
            true => series.values[index as usize],
            false => f64::NAN,
        };
        let values = (0..count).map(|index| at(index.saturating_sub(steps))).collect();
        let title = format!("delay({},{steps})", series.name);
        let is_whole = series.is_whole;
        let mut derived = series.derived(title, values);
        derived.is_whole = is_whole;
        derived
    });
    Ok(Value::List(each.collect()))
}

pub fn n_percentile(ev: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let percent = args.number(1);
    if percent <= 0.0 {
        return Err(args.error("the percentage must be more than 0"));
    }
    let mut result = Vec::new();
    for mut series in args.series(0) {
        let value = percentile(&series.values, percent, false);
        if value.is_nan() {
            continue;
        }
        let count = ((series.end - series.start) / series.step).max(0) as usize;
        ev.reserve(count.saturating_mul(8))?;
        series.set_number("nPercentile", percent);
        let title = format!("nPercentile({}, {})", series.name, general(percent));
        let is_whole = series.is_whole;
        let mut derived = series.derived(title, vec![value; count]);
        derived.is_whole = is_whole;
        result.push(derived);
    }
    Ok(Value::List(result))
}

pub fn stacked(ev: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    const DEFAULT: &str = "__DEFAULT__";
    let stack = args.text(1).unwrap_or_else(|| DEFAULT.to_owned());
    let place = match ev.stacks.iter().position(|(name, _)| *name == stack) {
        Some(place) => place,
        None => {
            ev.stacks.push((stack.clone(), Vec::new()));
            ev.stacks.len() - 1
        }
    };
    let totals = &mut ev.stacks[place].1;
    let each = args.series(0).into_iter().map(|mut series| {
        totals.resize(totals.len().max(series.values.len()), 0.0);
        let add = |(value, total): (&f64, &mut f64)| {
            *total += if value.is_nan() { 0.0 } else { *value };
            if value.is_nan() { f64::NAN } else { *total }
        };
        let values = series.values.iter().zip(totals.iter_mut()).map(add).collect();
        let title = match &*stack {
            DEFAULT => {
                series.set_tag("stacked", DEFAULT);
                format!("stacked({})", series.name)
            }
            _ => series.name.clone(),
        };
        let mut derived = series.derived(title, values);
        derived.style.is_stacked = true;
        derived
    });
    Ok(Value::List(each.collect()))
}

pub fn constant_line(_: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    let value = args.number(0);
    let mut series = constant(value, repr(value), context);
    series.expression = format!("constantLine({})", repr(value));
    Ok(Value::List(vec![series]))
}

pub fn threshold(ev: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    let (label, color) = (args.text(1), args.text(2));
    let Value::List(mut all) = constant_line(ev, context, args)? else { return Ok(Value::None) };
    for series in &mut all {
        if let Some(label) = &label {
            series.name.clone_from(label);
        }
        series.style.color.clone_from(&color);
    }
    Ok(Value::List(all))
}

pub fn time(ev: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    let step = args.int(1).unwrap_or(60);
    line(ev, context, &args, step, false)
}

pub fn identity(ev: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    line(ev, context, &args, 60, true)
}

/// A line whose values are its times.
fn line(ev: &mut Evaluator<'_>, context: &Context, args: &Args<'_>, step: i64, is_whole: bool) -> Outcome {
    if !(1..=1 << 40).contains(&step) {
        return Err(args.error("the step must be between 1 and 1099511627776"));
    }
    let (from, until) = (context.from, context.until);
    let count = usize::try_from((until - from + step - 1) / step).unwrap_or(0);
    ev.reserve(count.saturating_mul(8))?;
    let name = args.text(0).unwrap_or_default();
    let values = (0..count).map(|index| (from + index as i64 * step) as f64).collect();
    let mut series = Series::new(name.clone(), from, until, step, values);
    series.xff = context.xff;
    series.is_whole = is_whole;
    if is_whole {
        series.expression = format!("identity(\"{name}\")");
    }
    Ok(Value::List(vec![series]))
}
