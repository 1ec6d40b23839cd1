//! Functions of the values before each one: moving averages and their like. What each does, its entry in `functions/table` says.

use super::{Context, EvalError, Evaluator};
use crate::aggregate::{Aggregation, is_enough};
use crate::args::{Args, Value};
use crate::series::Series;
use crate::time::parse_offset;

type Outcome = Result<Value, EvalError>;

/// The longest window, in seconds: 100 years.
const WINDOW_SECONDS_MAX: i64 = 100 * 366 * 86_400;

fn moving(
    ev: &mut Evaluator<'_>,
    context: &Context,
    mut args: Args<'_>,
    (name, function): (&str, Aggregation),
    xff: Option<f64>,
) -> Outcome {
    let all = args.series(0);
    let Some(step) = all.iter().map(|series| series.step).max() else { return Ok(Value::List(all)) };
    let (span, points) = match args.value(1) {
        Value::Text(text) => (parse_offset(text).map_err(|text| args.error(&text))?.abs(), None),
        _ => {
            let points = args.number(1).trunc() as i64;
            (step.saturating_mul(points), Some(points))
        }
    };
    if !(0..=WINDOW_SECONDS_MAX).contains(&span) {
        return Err(args.error("the window must be between 0 and 100 years"));
    }
    let mut inner = Context { from: context.from - span, ..context.clone() };
    let mut capital = name.to_owned();
    capital.make_ascii_lowercase();
    if let Some(first) = capital.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let tag = format!("moving{capital}");
    let mut result = Vec::new();
    for mut series in ev.list(args.first, &mut inner)? {
        let window = args.value(1).text();
        let title = match points {
            None => format!("{tag}({},\"{window}\")", series.name),
            Some(_) => format!("{tag}({},{window})", series.name),
        };
        series.set_tag(&tag, window);
        let points = usize::try_from(points.unwrap_or(span / series.step)).unwrap_or(0);
        let values = windows(ev, &series, points, function, xff.unwrap_or(series.xff))?;
        let is_whole = series.is_whole && function.keeps_whole();
        series.start = series.start.saturating_add(span);
        let mut derived = series.derived(title, values);
        derived.is_whole = is_whole;
        result.push(derived);
    }
    Ok(Value::List(result))
}

/// The value for each window of so many points, from the second on.
fn windows(
    ev: &mut Evaluator<'_>,
    series: &Series,
    points: usize,
    function: Aggregation,
    xff: f64,
) -> Result<Vec<f64>, EvalError> {
    let mut values = Vec::with_capacity(series.values.len().saturating_sub(points));
    for end in points + 1..=series.values.len() {
        ev.work(points)?;
        let window = &series.values[end - points..end];
        let known = window.iter().filter(|value| !value.is_nan()).count();
        let known_only =
            |window: &[f64]| window.iter().copied().filter(|value| !value.is_nan()).collect::<Vec<_>>();
        values.push(match is_enough(known, points, xff) {
            false => f64::NAN,
            true if known == points => function.of(window),
            true => function.of(&known_only(window)),
        });
    }
    Ok(values)
}

pub fn window(ev: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    let name = args.text(2).unwrap_or_else(|| "average".to_owned());
    let (function, xff) = (args.aggregation(2, Aggregation::Average), args.float(3));
    moving(ev, context, args, (&name, function), xff)
}

pub fn average(ev: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    let xff = args.float(2);
    moving(ev, context, args, ("average", Aggregation::Average), xff)
}

pub fn sum(ev: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    let xff = args.float(2);
    moving(ev, context, args, ("sum", Aggregation::Sum), xff)
}

pub fn min(ev: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    let xff = args.float(2);
    moving(ev, context, args, ("min", Aggregation::Min), xff)
}

pub fn max(ev: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    let xff = args.float(2);
    moving(ev, context, args, ("max", Aggregation::Max), xff)
}

pub fn median(ev: &mut Evaluator<'_>, context: &mut Context, args: Args<'_>) -> Outcome {
    let xff = args.float(2);
    moving(ev, context, args, ("median", Aggregation::Median), xff)
}

/// A square as Python's `** 2` computes it: by C's `pow`, whose last bit is not always that of a product.
fn square(value: f64) -> f64 {
    value.powf(std::hint::black_box(2.0))
}

pub fn stdev(ev: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let (points, tolerance) = (args.int(1).unwrap_or(0), args.float(2).unwrap_or(0.1));
    let count = usize::try_from(points).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| args.error("the number of points must be 1 or more"))?;
    let mut result = Vec::new();
    for mut series in args.series(0) {
        ev.work(series.values.len())?;
        let (mut known, mut sum, mut squares) = (0i64, 0.0, 0.0);
        let values = (0..series.values.len()).map(|index| {
            let (value, dropped) =
                (series.values[index], index.checked_sub(count).map(|at| series.values[at]));
            if let Some(dropped) = dropped.filter(|value| !value.is_nan()) {
                known -= 1;
                sum -= dropped;
                squares -= square(dropped);
            }
            if !value.is_nan() {
                known += 1;
                sum += value;
                squares += square(value);
            }
            let is_known = known > 0 && known as f64 / count as f64 >= tolerance;
            if is_known { (known as f64 * squares - square(sum)).sqrt() / known as f64 } else { f64::NAN }
        });
        let values = values.collect();
        series.set_tag("stdev", points.to_string());
        let title = format!("stdev({},{points})", series.name);
        result.push(series.derived(title, values));
    }
    Ok(Value::List(result))
}
