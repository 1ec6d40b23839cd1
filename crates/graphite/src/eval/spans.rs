//! Functions of spans of time: summaries, hits, shifts. What each does, its entry in `functions/table` says.

use rrd::when::calendar::{Calendar, Civil};

use super::{Context, EvalError, Evaluator};
use crate::aggregate::Aggregation;
use crate::args::{Args, Value};
use crate::series::Series;
use crate::time::{parse_offset, unit_seconds};

type Outcome = Result<Value, EvalError>;

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;
const DAY: i64 = 86_400;

/// The span of time of a parameter, in seconds, and its text.
fn interval(args: &Args<'_>, place: usize) -> Result<(i64, String), EvalError> {
    let text = args.text(place).unwrap_or_default();
    match parse_offset(&text) {
        Ok(seconds @ 1..) => Ok((seconds, text)),
        Ok(_) => Err(args.error(&format!("{text:?} is no span of time: it must be longer than nothing"))),
        Err(error) => Err(args.error(&error)),
    }
}

/// A value for each span of a series between two times, and where the last one ends.
fn summarized(
    ev: &mut Evaluator<'_>,
    series: &Series,
    function: Aggregation,
    interval: i64,
    (start, end): (i64, i64),
) -> Result<(Vec<f64>, i64), EvalError> {
    let spans = usize::try_from((end - start + interval - 1) / interval).unwrap_or(0);
    ev.reserve(spans.saturating_mul(8))?;
    let shown = usize::try_from((series.end - series.start + series.step - 1) / series.step).unwrap_or(0);
    let count = series.values.len().min(shown);
    let points = interval as f64 / series.step as f64;
    let time = |index: usize| series.start + index as i64 * series.step;
    let mut next = 0;
    let mut values = Vec::with_capacity(spans);
    for span in 0..spans {
        if span % 4096 == 0 {
            ev.work(4096)?;
        }
        let begin = start + span as i64 * interval;
        let (mut first, mut known) = (next, 0);
        while next < count && time(next) < begin + interval {
            if time(next) <= begin {
                first = next;
            }
            if time(next) >= begin && !series.values[next].is_nan() {
                known += 1;
            }
            next += 1;
        }
        let is_known = known > 0 && f64::from(known) / points >= series.xff;
        values.push(if is_known { function.of(&series.values[first..next]) } else { f64::NAN });
    }
    Ok((values, start + spans as i64 * interval))
}

pub fn summarize(ev: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let (interval, text) = interval(&args, 1)?;
    let name = args.text(2).unwrap_or_else(|| "sum".to_owned());
    let (function, is_aligned) = (args.aggregation(2, Aggregation::Sum), args.flag(3));
    let mut result = Vec::new();
    for mut series in args.series(0) {
        let (start, mut end) = match is_aligned {
            true => (series.start, series.end),
            false => (
                series.start - series.start.rem_euclid(interval),
                series.end - series.end.rem_euclid(interval) + interval,
            ),
        };
        let (values, last) = summarized(ev, &series, function, interval, (start, end))?;
        if is_aligned {
            end = last;
        }
        series.set_tag("summarize", text.clone());
        series.set_tag("summarizeFunction", name.clone());
        let aligned = if is_aligned { ", true" } else { "" };
        let title = format!("summarize({}, \"{text}\", \"{name}\"{aligned})", series.name);
        result.push(spanned(series, function, title, values, (start, end, interval)));
    }
    Ok(Value::List(result))
}

fn spanned(
    series: Series,
    function: Aggregation,
    title: String,
    values: Vec<f64>,
    (start, end, step): (i64, i64, i64),
) -> Series {
    let is_whole = function == Aggregation::Count || series.is_whole && function.keeps_whole();
    let mut derived = series.derived(title, values);
    (derived.start, derived.end, derived.step) = (start, end, step);
    derived.is_whole = is_whole;
    derived
}

pub fn smart_summarize(ev: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (interval, text) = interval(&args, 1)?;
    let name = args.text(2).unwrap_or_else(|| "sum".to_owned());
    let function = args.aggregation(2, Aggregation::Sum);
    let mut all = args.series(0);
    if let Value::Text(unit) = args.value(3) {
        let from = aligned(ev.calendar, context.from, unit)
            .ok_or_else(|| args.error(&format!("{unit:?} is no unit of time")))?;
        let mut inner = Context { from, ..context.clone() };
        all = ev.list(args.first, &mut inner)?;
    }
    let mut result = Vec::new();
    for mut series in all {
        let (start, end) = (series.start, series.end);
        let (values, last) = summarized(ev, &series, function, interval, (start, end))?;
        series.set_tag("smartSummarize", text.clone());
        series.set_tag("smartSummarizeFunction", name.clone());
        let title = format!("smartSummarize({}, \"{text}\", \"{name}\")", series.name);
        result.push(spanned(series, function, title, values, (start, last, interval)));
    }
    Ok(Value::List(result))
}

/// The beginning of the year, month, week (from a weekday on), day, hour or minute that a time is in.
fn aligned(calendar: &dyn Calendar, time: i64, unit: &str) -> Option<i64> {
    let seconds = unit_seconds(unit)?;
    let at = calendar.local(time);
    let mut civil = Civil { second: 0, ..at };
    if seconds == 1 {
        return Some(time);
    }
    if seconds >= HOUR {
        civil.minute = 0;
    }
    if seconds >= DAY {
        civil.hour = 0;
    }
    match unit.as_bytes().first() {
        Some(b'y') => (civil.month, civil.day) = (0, 1),
        Some(b'm') if seconds > DAY => civil.day = 1,
        Some(b'w') => {
            let last = unit.bytes().last().filter(u8::is_ascii_digit);
            let weekday = last.map_or(1, |digit| i32::from(digit - b'0'));
            let today = if at.weekday == 0 { 7 } else { at.weekday };
            civil.day -= (today - weekday).rem_euclid(7);
        }
        _ => {}
    }
    Some(calendar.time(&civil))
}

pub fn hitcount(ev: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (interval, text) = interval(&args, 1)?;
    let is_aligned = args.flag(2);
    let mut all = args.series(0);
    if is_aligned {
        let unit = match interval {
            DAY.. => "d",
            HOUR.. => "h",
            MINUTE.. => "min",
            _ => "s",
        };
        let from = aligned(ev.calendar, context.from, unit).unwrap_or(context.from);
        all = ev.list(args.first, &mut Context { from, ..context.clone() })?;
        for series in &mut all {
            let count = (series.end - series.start).div_euclid(interval);
            series.end = series.start + count * interval + interval;
        }
    }
    let mut result = Vec::new();
    for mut series in all {
        let count = (series.end - series.start + interval - 1) / interval;
        let start = series.end - count * interval;
        let values = hits(ev, &series, interval, start, usize::try_from(count).unwrap_or(0))?;
        series.set_tag("hitcount", text.clone());
        let aligned = if is_aligned { ", true" } else { "" };
        let title = format!("hitcount({}, \"{text}\"{aligned})", series.name);
        let is_whole = series.is_whole;
        let mut derived = series.derived(title, values);
        (derived.start, derived.step, derived.is_whole) = (start, interval, is_whole);
        result.push(derived);
    }
    Ok(Value::List(result))
}

/// What the rates of a series add up to in each of `count` spans.
fn hits(
    ev: &mut Evaluator<'_>,
    series: &Series,
    interval: i64,
    start: i64,
    count: usize,
) -> Result<Vec<f64>, EvalError> {
    ev.reserve(count.saturating_mul(8))?;
    let mut spans = vec![f64::NAN; count];
    let mut add = |span: i64, value: f64| {
        if let Some(total) = usize::try_from(span).ok().and_then(|span| spans.get_mut(span)) {
            *total = if total.is_nan() { 0.0 } else { *total } + value;
        }
    };
    for (index, &value) in series.values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
        let begin = series.start + index as i64 * series.step - start;
        let end = begin + series.step;
        let (first, first_rest) = (begin.div_euclid(interval), begin.rem_euclid(interval));
        let (mut last, mut last_rest) = (end.div_euclid(interval), end.rem_euclid(interval));
        if last >= count as i64 {
            (last, last_rest) = (count as i64 - 1, interval);
        }
        ev.work((last - first).max(1) as usize)?;
        if first == last {
            add(first, value * (last_rest - first_rest) as f64);
            continue;
        }
        add(first, value * (interval - first_rest) as f64);
        for span in first + 1..last {
            add(span, value * interval as f64);
        }
        if last_rest > 0 {
            add(last, value * last_rest as f64);
        }
    }
    Ok(spans)
}

pub fn time_shift(ev: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let mut text = args.text(1).unwrap_or_default();
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '-');
    }
    let delta = parse_offset(&text).map_err(|text| args.error(&text))?;
    let resets_end = matches!(args.value(2), Value::None) || args.flag(2);
    let mut inner = Context { from: context.from + delta, until: context.until + delta, ..context.clone() };
    if args.flag(3) {
        let summer = |time: i64| ev.calendar.local(time).summer;
        let (now, then) = ([context.from, context.until].map(summer), [inner.from, inner.until].map(summer));
        let change = match (now, then) {
            ([true, true], [false, false]) => HOUR,
            ([false, false], [true, true]) => -HOUR,
            _ => 0,
        };
        inner.from += change;
        inner.until += change;
    }
    let all = args.series(0);
    let Some(first) = all.first() else { return Ok(Value::List(all)) };
    let (start, end) = (first.start, first.end);
    let mut shifted = ev.list(args.first, &mut inner)?;
    for series in &mut shifted {
        series.set_tag("timeShift", text.clone());
        series.name = format!("timeShift({}, \"{text}\")", series.name);
        series.end = if resets_end { end } else { series.end - series.start + start };
        series.start = start;
    }
    Ok(Value::List(shifted))
}

pub fn integral_by_interval(ev: &mut Evaluator<'_>, context: &mut Context, mut args: Args<'_>) -> Outcome {
    let (interval, text) = interval(&args, 1)?;
    let mut result = Vec::new();
    for mut series in args.series(0) {
        ev.work(series.values.len())?;
        let mut sum = 0.0;
        let values = series.values.iter().enumerate().map(|(index, value)| {
            let time = series.start + index as i64 * series.step - context.from;
            if time.div_euclid(interval) != (time - series.step).div_euclid(interval) {
                sum = 0.0;
            }
            sum += if value.is_nan() { 0.0 } else { *value };
            sum
        });
        let values = values.collect();
        series.set_tag("integralByInterval", text.clone());
        let title = format!("integralByInterval({},'{text}')", series.name);
        result.push(series.derived(title, values));
    }
    Ok(Value::List(result))
}

pub fn time_slice(ev: &mut Evaluator<'_>, _: &mut Context, mut args: Args<'_>) -> Outcome {
    let time = |ev: &Evaluator<'_>, text: &str| crate::time::parse(text, ev.now, ev.calendar);
    let (from, until) = (args.text(1).unwrap_or_default(), args.text(2).unwrap_or_else(|| "now".to_owned()));
    let from = time(ev, &from).map_err(|text| args.error(&text))?;
    let until = time(ev, &until).map_err(|text| args.error(&text))?;
    let mut all = args.series(0);
    for series in &mut all {
        series.set_tag("timeSliceStart", from.to_string());
        series.set_tag("timeSliceEnd", until.to_string());
        series.name = format!("timeSlice({}, {from}, {until})", series.name);
        let (start, step) = (series.start, series.step);
        for (index, value) in series.values.iter_mut().enumerate() {
            let time = start + index as i64 * step;
            if time < from || time > until {
                *value = f64::NAN;
            }
        }
    }
    Ok(Value::List(all))
}

#[cfg(test)]
mod tests {
    use rrd::when::calendar::Utc;

    use super::*;

    #[test]
    fn times_are_aligned() {
        // Thursday 2026-11-26 08:07:39 UTC.
        let time = 1_795_680_459;
        let today = time - 8 * HOUR - 7 * MINUTE - 39;
        for (unit, want) in [
            ("s", time),
            ("minute", time - 39),
            ("hours", time - 7 * MINUTE - 39),
            ("days", today),
            ("weeks", today - 3 * DAY),
            ("weeks4", today),
            ("weeks5", today - 6 * DAY),
            ("months", today - 25 * DAY),
            ("years", today - 329 * DAY),
        ] {
            assert_eq!(aligned(&Utc, time, unit), Some(want), "{unit}");
        }
    }
}
