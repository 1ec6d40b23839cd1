//! Answers of `/render`: JSON, CSV, raw, MessagePack and pickle, byte for byte as graphite-web writes them.

mod packed;

use std::fmt::Write;

use rrd::when::calendar::Calendar;

pub use packed::{Item, msgpack, pickle};

use crate::number::push_repr;
use crate::series::Series;

/// Appends a text as JSON; what is not ASCII is escaped if `is_ascii`.
pub fn push_text(out: &mut String, text: &str, is_ascii: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || is_ascii && !c.is_ascii() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Appends a value; unknown ones as `none`, infinity as `infinite`.
fn push_value(out: &mut String, value: f64, is_whole: bool, none: &str, infinite: &str) {
    if value.is_nan() {
        out.push_str(none);
    } else if value.is_infinite() {
        if value < 0.0 {
            out.push('-');
        }
        out.push_str(infinite);
    } else if is_whole && value.abs() < 1e18 {
        let _ = write!(out, "{}", value as i64);
    } else {
        push_repr(out, value);
    }
}

/// A series' values as they are shown, and whether they are whole numbers.
fn shown(series: &Series) -> (std::borrow::Cow<'_, [f64]>, bool) {
    match series.values_per_point {
        ..=1 => (std::borrow::Cow::Borrowed(&series.values), series.is_whole),
        count => (std::borrow::Cow::Owned(series.consolidated(count)), series.stays_whole(count)),
    }
}

/// JSON: an array of objects. With `skips_unknown`, points without a value are left out, and series without points.
pub fn json(all: &[Series], skips_unknown: bool, is_pretty: bool) -> String {
    let mut out = String::from("[");
    let (line, deeper, space) = if is_pretty { ("\n", "  ", "") } else { ("", "", " ") };
    let mut is_first = true;
    for series in all {
        let (values, is_whole) = shown(series);
        if skips_unknown && values.iter().all(|value| value.is_nan()) {
            continue;
        }
        let between = if is_first {
            ""
        } else if is_pretty {
            ","
        } else {
            ", "
        };
        let _ = write!(out, "{between}{line}{deeper}{{{line}{deeper}{deeper}\"target\": ");
        is_first = false;
        push_text(&mut out, &series.name, true);
        let _ = write!(out, ",{space}{line}{deeper}{deeper}\"tags\": {{");
        for (index, (tag, value)) in series.tags.iter().enumerate() {
            let between = if index == 0 {
                ""
            } else if is_pretty {
                ","
            } else {
                ", "
            };
            let _ = write!(out, "{between}{line}{deeper}{deeper}{deeper}");
            push_text(&mut out, tag, true);
            out.push_str(": ");
            push_text(&mut out, value, true);
        }
        if !series.tags.is_empty() {
            let _ = write!(out, "{line}{deeper}{deeper}");
        }
        let _ = write!(out, "}},{space}{line}{deeper}{deeper}\"datapoints\": [");
        push_points(&mut out, series, &values, (is_whole, skips_unknown), is_pretty);
        let _ = write!(out, "]{line}{deeper}}}");
    }
    if is_pretty && !is_first {
        out.push('\n');
    }
    out.push(']');
    out
}

fn push_points(
    out: &mut String,
    series: &Series,
    values: &[f64],
    (is_whole, skips_unknown): (bool, bool),
    is_pretty: bool,
) {
    let (step, mut time, mut is_first) = (series.point_seconds().max(1), series.start, true);
    for &value in values {
        if time > series.end {
            break;
        }
        if !(skips_unknown && value.is_nan()) {
            let line = if is_pretty { "\n      " } else { "" };
            let between = if is_first {
                ""
            } else if is_pretty {
                ","
            } else {
                ", "
            };
            let inside = if is_pretty { "\n        " } else { "" };
            let _ = write!(out, "{between}{line}[{inside}");
            push_value(out, value, is_whole, "null", "1e9999");
            let _ = write!(out, ",{}{inside}{time}{line}]", if is_pretty { "" } else { " " });
            is_first = false;
        }
        time = time.saturating_add(step);
    }
    if is_pretty && !is_first {
        out.push_str("\n    ");
    }
}

/// CSV: a line for each value, with its time in a zone.
pub fn csv(all: &[Series], calendar: &dyn Calendar) -> String {
    let mut out = String::new();
    for series in all {
        let (values, is_whole) = shown(series);
        let name = match series.name.contains([',', '"', '\r', '\n']) {
            true => format!("\"{}\"", series.name.replace('"', "\"\"")),
            false => series.name.clone(),
        };
        for (index, &value) in values.iter().enumerate() {
            let at = calendar.local(series.start.saturating_add(series.step.saturating_mul(index as i64)));
            let (year, month, day) = (at.year, at.month + 1, at.day);
            let (hour, minute, second) = (at.hour, at.minute, at.second);
            let _ = write!(out, "{name},{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02},");
            push_value(&mut out, value, is_whole, "", "inf");
            out.push_str("\r\n");
        }
    }
    out
}

/// A line for each series: `name,start,end,step|values`.
pub fn raw(all: &[Series]) -> String {
    let mut out = String::new();
    for series in all {
        let _ = write!(out, "{},{},{},{}|", series.name, series.start, series.end, series.step);
        let (values, is_whole) = shown(series);
        for (index, &value) in values.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            push_value(&mut out, value, is_whole, "None", "inf");
        }
        out.push('\n');
    }
    out
}

/// What MessagePack and pickle hold: a list of dictionaries.
pub fn items(all: &[Series]) -> Item {
    let of = |series: &Series| {
        let (values, is_whole) = shown(series);
        let number = |value: &f64| match value {
            value if value.is_nan() => Item::None,
            value if is_whole => Item::Int(*value as i64),
            value => Item::Float(*value),
        };
        let text = |text: &str| Item::Text(text.to_owned());
        Item::Map(vec![
            ("name", text(&series.name)),
            ("start", Item::Int(series.start)),
            ("end", Item::Int(series.end)),
            ("step", Item::Int(series.step)),
            ("values", Item::List(values.iter().map(number).collect())),
            ("pathExpression", text(&series.expression)),
            ("valuesPerPoint", Item::Int(series.values_per_point.max(1) as i64)),
            ("consolidationFunc", text(series.consolidation.name())),
            ("xFilesFactor", Item::Float(series.xff)),
        ])
    };
    Item::List(all.iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use rrd::when::calendar::Utc;

    use super::*;

    fn two() -> [Series; 2] {
        let mut count = Series::new("count(a,\"é\")", 10, 20, 10, vec![3.0]);
        count.is_whole = true;
        let values = vec![1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-7];
        [Series::new("a", 0, 50, 10, values), count]
    }

    #[test]
    fn json_is_pythons() {
        assert_eq!(
            json(&two(), false, false),
            "[{\"target\": \"a\", \"tags\": {\"name\": \"a\"}, \"datapoints\": [[1.0, 0], [null, 10], [1e9999, 20], \
             [-1e9999, 30], [1e-07, 40]]}, {\"target\": \"count(a,\\\"\\u00e9\\\")\", \"tags\": {\"name\": \
             \"count(a,\\\"\\u00e9\\\")\"}, \"datapoints\": [[3, 10]]}]"
        );
        assert_eq!(json(&[], false, true), "[]");
        let one = [Series::new("a", 0, 50, 10, vec![1.0, f64::NAN])];
        assert_eq!(
            json(&one, true, true),
            "[\n  {\n    \"target\": \"a\",\n    \"tags\": {\n      \"name\": \"a\"\n    },\n    \"datapoints\": [\n      \
             [\n        1.0,\n        0\n      ]\n    ]\n  }\n]"
        );
    }

    #[test]
    fn other_formats_are_graphites() {
        assert_eq!(csv(&two()[1..], &Utc), "\"count(a,\"\"é\"\")\",1970-01-01 00:00:10,3\r\n");
        assert_eq!(raw(&two()[..1]), "a,0,50,10|1.0,None,inf,-inf,1e-07\n");
    }
}
