//! PromQL: the question, and its answer as series.

use query::Series;
use serde::Deserialize;

use super::super::Result;
use super::asked::{Asked, marked};

/// Points of a series without a step that is given; about as many as a window of a terminal or a picture has columns.
const POINTS: i64 = 250;

/// The times of a question.
#[derive(Clone, Copy, Debug)]
pub enum Times {
    /// One.
    At(i64),
    /// From, to, and the seconds between two; `None`: some [`POINTS`] times.
    Range(i64, i64, Option<i64>),
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    data: Option<Data>,
    error: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    infos: Vec<String>,
}

/// The kind stands before the result, so that nothing is held twice.
#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data {
    Scalar(Point),
    String(Point),
    Vector(Vec<One>),
    Matrix(Vec<One>),
}

#[derive(Deserialize)]
struct One {
    metric: std::collections::BTreeMap<String, String>,
    value: Option<Point>,
    #[serde(default)]
    values: Vec<Point>,
}

/// A time in seconds, and a value as text.
type Point = (f64, String);

/// Asks, tells warnings on standard error, and returns the series.
///
/// # Errors
/// What is wrong with the expression, and where; why there is no answer.
pub fn ask(asked: &Asked, expression: &str, times: Times) -> Result<Vec<Series>> {
    let query = ("query", expression.to_owned());
    let (path, form) = match times {
        Times::At(time) => ("/api/v1/query", vec![query, ("time", time.to_string())]),
        Times::Range(start, end, step) => {
            let step = step.unwrap_or_else(|| ((end - start) / POINTS).max(1));
            let times = [("start", start), ("end", end), ("step", step)];
            let times = times.into_iter().map(|(key, value)| (key, value.to_string()));
            ("/api/v1/query_range", std::iter::once(query).chain(times).collect())
        }
    };
    let (status, body) = asked.post(path, &form)?;
    let answer: Answer = serde_json::from_slice(&body)
        .map_err(|error| format!("the answer ({status}) is none of a Prometheus: {error}"))?;
    for note in answer.warnings.iter().chain(&answer.infos) {
        eprintln!("roundel: {note}");
    }
    match answer.data {
        Some(data) if answer.status == "success" => series(data),
        _ => Err(told(expression, &answer.error.unwrap_or_else(|| format!("the daemon answered {status}")))),
    }
}

/// An error with its place in the expression, if it says one.
fn told(expression: &str, error: &str) -> String {
    let text = error.strip_prefix("invalid parameter \"query\": ").unwrap_or(error);
    let place = text.split_once(": ").and_then(|(place, why)| {
        let (line, column) = place.split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?, why))
    });
    match place {
        Some((line, column, why)) => marked(expression, line, column, why),
        None => text.to_owned(),
    }
}

fn series(data: Data) -> Result<Vec<Series>> {
    let all = match data {
        Data::Vector(all) | Data::Matrix(all) => all,
        Data::Scalar(point) => return Ok(vec![points("scalar".to_owned(), Vec::new(), vec![point])?]),
        Data::String((_, text)) => {
            return Err(format!("the answer is the text \"{text}\", which has no values"));
        }
    };
    all.into_iter()
        .map(|one| {
            let name = shown(&one.metric);
            points(name, one.metric.into_iter().collect(), one.value.into_iter().chain(one.values).collect())
        })
        .collect()
}

/// Labels as PromQL writes them.
fn shown(metric: &std::collections::BTreeMap<String, String>) -> String {
    let name = metric.get("__name__").cloned().unwrap_or_default();
    let labels = metric.iter().filter(|(label, _)| *label != "__name__");
    let labels: Vec<String> = labels.map(|(label, value)| format!("{label}={value:?}")).collect();
    if labels.is_empty() && !name.is_empty() { name } else { format!("{name}{{{}}}", labels.join(",")) }
}

fn points(name: String, labels: Vec<(String, String)>, all: Vec<Point>) -> Result<Series> {
    let mut series = Series { name, labels, ..Series::default() };
    for (time, value) in all {
        if time.fract() != 0.0 {
            return Err(format!(
                "{}: {time} is between two seconds, which the answer cannot hold",
                series.name
            ));
        }
        series.times.push(time as i64);
        series.values.push(value.parse().map_err(|_| format!("the answer has the value \"{value}\""))?);
    }
    Ok(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &str) -> Result<Vec<Series>> {
        series(serde_json::from_str(data).map_err(|error| error.to_string())?)
    }

    #[test]
    fn every_kind_of_answer_is_read() {
        let one = read(r#"{"resultType":"scalar","result":[5,"-Inf"]}"#).expect("a scalar");
        assert_eq!((&*one[0].name, &one[0].times, one[0].values[0]), ("scalar", &vec![5], f64::NEG_INFINITY));
        let all = read(
            r#"{"resultType":"matrix","result":[{"metric":{"__name__":"up","a":"x\"y"},"values":[[1,"2.5"],[2,"NaN"]]},{"metric":{},"values":[]}]}"#,
        )
        .expect("a matrix");
        assert_eq!((&*all[0].name, &all[0].times), ("up{a=\"x\\\"y\"}", &vec![1, 2]));
        assert!(all[0].values[0] == 2.5 && all[0].values[1].is_nan());
        assert_eq!((&*all[1].name, all[1].labels.len()), ("{}", 0));
        let vector =
            read(r#"{"resultType":"vector","result":[{"metric":{"__name__":"up"},"value":[1.0,"+Inf"]}]}"#);
        assert_eq!(vector.expect("a vector")[0].values, [f64::INFINITY]);
        for bad in [
            r#"{"resultType":"string","result":[5,"x"]}"#,
            r#"{"resultType":"matrix","result":[{"metric":{},"values":[[1.5,"2"]]}]}"#,
            r#"{"resultType":"matrix","result":[{"metric":{},"values":[[1,"x"]]}]}"#,
            r#"{"resultType":"vector","result":{}}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_answer_causes_a_panic() {
        let good = br#"{"resultType":"matrix","result":[{"metric":{"__name__":"up","a":"b"},"values":[[1,"2.5"],[2e300,"NaN"]]}]}"#;
        testkit::shake(good, 20_000, |bytes| {
            if let Ok(data) = serde_json::from_slice(bytes) {
                let _ = series(data);
            }
            told("sum(", &String::from_utf8_lossy(bytes));
        });
        for error in ["9:9: x", "1:99: x", "0:0: x", "1:0: x", "18446744073709551615:1: x", "-1:1: x"] {
            assert!(told("é(", error).contains('x'), "{error}");
        }
    }

    #[test]
    fn errors_show_their_place() {
        let error = "invalid parameter \"query\": 1:5: parse error: unexpected end of input";
        assert_eq!(told("sum(", error), "parse error: unexpected end of input\n  sum(\n      ^");
        assert_eq!(told("sum(", "query timed out: later"), "query timed out: later");
    }
}
