//! Runs scripts on a source in memory.

use std::collections::BTreeMap;

use roundel_promql::value::{ABSENT, is_absent};
use roundel_promql::{
    Answer, Data, Grid, Labels, Options, Selected, Source, SourceError, SourceSeries, Wanted, evaluate, parse,
};

use crate::numbers::places;
use crate::script::{Command, Eval, Notes, Text, read};

/// What came of a file.
#[derive(Default)]
pub struct Outcome {
    pub passed: usize,
    /// Lines with what was wrong.
    pub failed: Vec<(usize, String)>,
    /// Evaluations that expect native histograms, or may touch them.
    pub histograms: usize,
}

/// Series with times and values.
#[derive(Default)]
struct Memory(BTreeMap<Labels, BTreeMap<i64, f64>>);

impl Source for Memory {
    fn select(&mut self, wanted: &Wanted<'_>) -> Result<Selected, SourceError> {
        let fits = |labels: &&Labels| {
            wanted.matchers.iter().all(|matcher| matcher.matches(labels.get(&matcher.name)))
        };
        let series = self.0.keys().filter(fits).map(|labels| SourceSeries {
            labels: labels.clone(),
            times: self.0[labels].keys().copied().collect(),
            values: self.0[labels].values().copied().collect(),
            ..SourceSeries::default()
        });
        Ok(Selected { series: series.collect(), ..Selected::default() })
    }

    fn reserve(&mut self, _bytes: u64) -> Result<(), SourceError> {
        Ok(())
    }
}

/// Runs a script.
pub fn file(text: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut memory = Memory::default();
    // Series that are native histograms since the last `clear`.
    let mut histograms: Vec<Labels> = Vec::new();
    for command in read(text) {
        match command {
            Command::Clear => {
                memory = Memory::default();
                histograms.clear();
            }
            Command::Load(step, series, makes_histograms) => {
                for (name, numbers) in series {
                    // Start timestamps.
                    if name.ends_with("@st") {
                        continue;
                    }
                    let labels = labels(&name);
                    if let (true, Some(base)) = (makes_histograms, labels.name().strip_suffix("_bucket")) {
                        histograms.push(labels.with("__name__", base).with("le", ""));
                    }
                    match places(&numbers) {
                        Some(places) => load(&mut memory, labels, step, &places),
                        None => histograms.push(labels),
                    }
                }
            }
            Command::Eval(eval) => {
                let touches = takes(&eval.query, &histograms);
                if touches || eval.series.iter().any(|(_, numbers)| numbers.contains("{{")) {
                    outcome.histograms += 1;
                    continue;
                }
                match check(&eval, &mut memory) {
                    Ok(()) => outcome.passed += 1,
                    Err(text) => outcome.failed.push((eval.line, format!("{}: {text}", eval.query))),
                }
            }
        }
    }
    outcome
}

/// Whether a query selects any of `series`.
fn takes(query: &str, series: &[Labels]) -> bool {
    let Ok(expr) = parse(query) else { return false };
    let fits = |labels: &Labels| {
        expr.selectors().iter().any(|selector| {
            selector.matchers.iter().all(|matcher| matcher.matches(labels.get(&matcher.name)))
        })
    };
    series.iter().any(fits)
}

fn load(memory: &mut Memory, labels: Labels, step: i64, places: &[Option<f64>]) {
    let rows = memory.0.entry(labels).or_default();
    for (index, place) in places.iter().enumerate() {
        if let Some(value) = place {
            rows.insert(step * index as i64, *value);
        }
    }
}

/// The labels that a series' description says.
fn labels(text: &str) -> Labels {
    if text.is_empty() || text == "{}" {
        return Labels::default();
    }
    // A name alone, or a name with nothing in its braces, is a selector, too.
    let matchers = roundel_promql::selector(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Labels::new(matchers.into_iter().map(|matcher| (matcher.name, matcher.value)))
}

fn check(eval: &Eval, memory: &mut Memory) -> Result<(), String> {
    let grid = match eval.step {
        None => Grid::at(eval.start),
        Some(step) => Grid::new(eval.start, eval.end, step),
    };
    let options = Options { delayed_names: true, ..Options::default() };
    let answer = match parse(&eval.query) {
        Err(error) => Err(error.message),
        Ok(expr) => {
            evaluate(&expr, grid, eval.step.is_some(), &options, memory).map_err(|error| error.to_string())
        }
    };
    let answer = match (answer, eval.fails) {
        (Err(_), true) if eval.fail_text.is_none() => return Ok(()),
        (Err(text), true) => return compare_text(&text, eval.fail_text.as_ref().unwrap()),
        (Ok(_), true) => return Err("should fail".into()),
        (Err(text), false) => return Err(format!("fails: {text}")),
        (Ok(answer), false) => answer,
    };
    check_notes("warnings", &eval.warns, &answer.notes.warnings(&eval.query))?;
    check_notes("infos", &eval.informs, &answer.notes.infos(&eval.query))?;
    if let Some(want) = &eval.string {
        return match &answer.data {
            Data::Text(found) if found == want => Ok(()),
            other => Err(format!("expected {want:?}, found {other:?}")),
        };
    }
    compare(eval, &answer)
}

fn compare_text(found: &str, want: &Text) -> Result<(), String> {
    let fits = match want {
        Text::Exact(want) => want == found,
        Text::Regex(want) => regex::Regex::new(want).unwrap().is_match(found),
    };
    if fits { Ok(()) } else { Err(format!("expected the text {want:?}, found {found:?}")) }
}

fn check_notes(what: &str, want: &Notes, found: &[String]) -> Result<(), String> {
    if want.some == found.is_empty() && (want.some || want.none) {
        return Err(format!("expected {want:?} {what}, found {found:?}"));
    }
    if want.none && !found.is_empty() {
        return Err(format!("expected no {what}, found {found:?}"));
    }
    for text in &want.texts {
        if !found.iter().any(|found| compare_text(found, text).is_ok()) {
            return Err(format!("expected {text:?}, found {found:?}"));
        }
    }
    Ok(())
}

/// Series in the order of the answer: labels, and a value or nothing for each place.
fn series(eval: &Eval, answer: &Answer) -> Vec<(Labels, Vec<f64>)> {
    match &answer.data {
        Data::Scalar(values) => vec![(Labels::default(), values.clone())],
        Data::Vector(columns) => {
            columns.iter().map(|column| (column.labels.clone(), column.values.clone())).collect()
        }
        Data::Matrix(all) => {
            let (start, end, step) = eval.range.unwrap_or((eval.start, eval.start, 1));
            let times: Vec<i64> = Grid::new(start, end, step).times().collect();
            let of = |points: &[(i64, f64)]| {
                let at =
                    |time: &i64| points.iter().find(|point| point.0 == *time).map_or(ABSENT, |point| point.1);
                times.iter().map(at).collect()
            };
            all.iter().map(|series| (series.labels.clone(), of(&series.points))).collect()
        }
        Data::Text(_) => Vec::new(),
    }
}

fn compare(eval: &Eval, answer: &Answer) -> Result<(), String> {
    let mut found = series(eval, answer);
    let mut want: Vec<(Labels, Vec<f64>)> = Vec::new();
    for (name, numbers) in &eval.series {
        // A number alone is a scalar.
        if numbers.is_empty()
            && !name.contains('{')
            && roundel_promql::number::parse(name.trim_start_matches(['-', '+'])).is_some()
        {
            want.push((Labels::default(), vec![crate::numbers::number(name)]));
            continue;
        }
        let values = places(numbers).unwrap().into_iter().map(|place| place.unwrap_or(ABSENT));
        want.push((labels(name), values.collect()));
    }
    let length = found.first().map_or(0, |(_, values)| values.len());
    // `1x3` in an expectation says one place more than needed now and then, and trailing places may be left out.
    for (_, values) in &mut want {
        values.resize(length.max(values.len()), ABSENT);
    }
    for (_, values) in &mut found {
        values.resize(want.first().map_or(length, |(_, want)| want.len()), ABSENT);
    }
    want.retain(|(_, values)| values.iter().any(|value| !is_absent(*value)));
    if !eval.ordered {
        found.sort_by(|a, b| a.0.cmp(&b.0));
        want.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let names = |all: &[(Labels, Vec<f64>)]| all.iter().map(|one| one.0.clone()).collect::<Vec<_>>();
    if names(&found) != names(&want) {
        return Err(format!("expected {want:?}, found {found:?}"));
    }
    for ((labels, found), (_, want)) in found.iter().zip(&want) {
        for (index, (found, want)) in found.iter().zip(want).enumerate() {
            if !are_equal(*found, *want) {
                return Err(format!("{labels}, place {index}: expected {want}, found {found}"));
            }
        }
    }
    Ok(())
}

/// Whether two values are equal up to a millionth, as the scripts are meant.
fn are_equal(a: f64, b: f64) -> bool {
    if is_absent(a) || is_absent(b) {
        return is_absent(a) && is_absent(b);
    }
    if a == b || (a.is_nan() && b.is_nan()) {
        return true;
    }
    let difference = (a - b).abs();
    let size = a.abs() + b.abs();
    if a == 0.0 || b == 0.0 || size < f64::MIN_POSITIVE {
        return difference < 1e-6;
    }
    difference / size.min(f64::MAX) < 1e-6
}
