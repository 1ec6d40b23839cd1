//! Prometheus' own test scripts, from its Go module, on our evaluator. The scripts stay in the module, which `make peers` fetches;
//! `expected.txt` lists what differs, with the reason.

#![allow(clippy::unwrap_used, reason = "a failure here is the test's")]

mod numbers;
mod run;
mod script;

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The module's version whose scripts `expected.txt` is about.
const VERSION: &str = "v0.316.0";
/// The script that is not read at all: native histograms.
const LEFT_OUT: &str = "native_histograms.test";
/// What differs, a line each: file, number of the line, reason.
const EXPECTED: &str = include_str!("expected.txt");

fn scripts() -> Option<PathBuf> {
    let cache = std::env::var_os("GOMODCACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("GOPATH").map(PathBuf::from);
        home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join("go")))
            .map(|go| go.join("pkg/mod"))
    })?;
    let directory =
        cache.join(format!("github.com/prometheus/prometheus@{VERSION}/promql/promqltest/testdata"));
    directory.is_dir().then_some(directory)
}

#[test]
fn scripts_of_prometheus() {
    let Some(directory) = scripts() else {
        assert!(std::env::var_os("ROUNDEL_PROMQL_SCRIPTS").is_none(), "Prometheus' test scripts are missing");
        eprintln!("SKIPPED: Prometheus' test scripts are missing; make peers fetches them (needs Go): 1");
        return;
    };
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
