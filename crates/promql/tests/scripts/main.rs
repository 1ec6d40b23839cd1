//! Prometheus' own test scripts on our evaluator. `peers/install.sh` takes them from the Go module of version 0.316.0, which
//! `expected.txt` is about: it lists what differs, with the reason.

#![allow(clippy::unwrap_used, reason = "a failure here is the test's")]

mod numbers;
mod run;
mod script;

use std::collections::BTreeMap;

/// The script that is not read at all: native histograms.
const LEFT_OUT: &str = "native_histograms.test";
/// What differs, a line each: file, number of the line, reason.
const EXPECTED: &str = include_str!("expected.txt");

#[test]
fn scripts_of_prometheus() {
    let Some(directory) = testkit::peer::promql_scripts() else { return };
    let mut names: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let mut failures = BTreeMap::new();
    let (mut total, mut histograms) = (0, 0);
    for path in names.iter().filter(|path| path.extension().is_some_and(|end| end == "test")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == LEFT_OUT {
            continue;
        }
        let outcome = run::file(&std::fs::read_to_string(path).unwrap());
        total += outcome.passed + outcome.failed.len();
        histograms += outcome.histograms;
        failures.extend(outcome.failed.into_iter().map(|(line, text)| ((name.to_owned(), line), text)));
    }
    let mut expected = BTreeMap::new();
    for line in EXPECTED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let (file, number) = (words.next().unwrap(), words.next().unwrap().parse::<usize>().unwrap());
        expected.insert((file.to_owned(), number), words.next().expect("a reason").to_owned());
    }
    let passed = total - failures.len();
    eprintln!("{passed} of {total} evaluations without native histograms agree ({histograms} have some)");
    for ((file, line), text) in failures.iter().filter(|(key, _)| !expected.contains_key(*key)) {
        eprintln!("{file}:{line}: {text}");
    }
    let better: Vec<_> = expected.keys().filter(|key| !failures.contains_key(*key)).collect();
    assert!(better.is_empty(), "these agree now, remove them from expected.txt: {better:?}");
    assert!(failures.len() == expected.len(), "differences that expected.txt does not list");
    assert!(passed * 100 >= total * 95, "less than 95 % agree");
    assert!(total > 1000, "too few evaluations were read");
}
