//! Graphite's targets: the question, and its answer as series.

use query::Series;
use serde::Deserialize;

use super::super::Result;
use super::asked::{Asked, marked};

#[derive(Deserialize)]
struct One {
    target: String,
    datapoints: Vec<(Option<f64>, i64)>,
}

/// Asks for all targets at once, and returns their series.
///
/// # Errors
/// What is wrong with a target, and where; why there is no answer.
pub fn ask(
    asked: &Asked,
    targets: &[String],
    (start, end): (i64, i64),
    points_max: Option<u64>,
) -> Result<Vec<Series>> {
    let mut form: Vec<(&str, String)> = targets.iter().map(|target| ("target", target.clone())).collect();
    form.extend([("from", start.to_string()), ("until", end.to_string()), ("format", "json".to_owned())]);
    form.extend(points_max.map(|points| ("maxDataPoints", points.to_string())));
    let (status, body) = asked.post("/render", &form)?;
    if status != 200 {
        return Err(told(targets, &failure(&body)));
    }
    let all: Vec<One> = serde_json::from_slice(&finite(&body))
        .map_err(|error| format!("the answer is none of a Graphite: {error}"))?;
    let series = |one: One| Series {
        name: one.target,
        labels: Vec::new(),
        times: one.datapoints.iter().map(|(_, time)| *time).collect(),
        values: one.datapoints.iter().map(|(value, _)| value.unwrap_or(f64::NAN)).collect(),
    };
    Ok(all.into_iter().map(series).collect())
}

/// The text of a failure: Graphite's API answers plain text, the rest of a daemon an object of JSON.
fn failure(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Failed {
        error: String,
    }
    match serde_json::from_slice::<Failed>(body) {
        Ok(failed) => failed.error,
        Err(_) => String::from_utf8_lossy(body).trim().to_owned(),
    }
}

/// The answer without infinity, which Graphite writes as a number that no double can have: it becomes unknown.
fn finite(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    text.replace("[-1e9999,", "[null,").replace("[1e9999,", "[null,").into_bytes()
}

/// An error with its place in the target, if it says one and it is known which target is meant.
fn told(targets: &[String], error: &str) -> String {
    let place = error.split_once("at byte ").and_then(|(_, rest)| {
        let (place, why) = rest.split_once(": ")?;
        Some((place.parse::<usize>().ok()?, why))
    });
    match (place, targets) {
        (Some((place, why)), [target]) => marked(target, 1, place.saturating_add(1), why),
        _ => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_errors_are_read() {
        let body = finite(br#"[{"target":"a","tags":{},"datapoints":[[1.5,10],[null,20],[1e9999,30]]}]"#);
        let all: Vec<One> = serde_json::from_slice(&body).expect("an answer");
        assert_eq!(all[0].datapoints, [(Some(1.5), 10), (None, 20), (None, 30)]);
        let error = told(&["sum(".to_owned()], "at byte 4: the target ends here");
        assert_eq!(error, "the target ends here\n  sum(\n      ^");
        assert_eq!(told(&["a".to_owned()], "no memory"), "no memory");
        assert_eq!(failure(b"{\"error\":\"no memory\"}\n"), "no memory");
        assert_eq!(failure(b"no memory\n"), "no memory");
        for error in ["at byte 18446744073709551615: x", "at byte 99: x", "at byte -1: x"] {
            assert!(told(&["é".to_owned()], error).contains('x'), "{error}");
        }
    }
}
