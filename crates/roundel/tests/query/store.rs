//! A store at rest with RRDs that Debian's rrdtool made, and what `rrdtool fetch` says of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::RrdTool;

/// A row that rrdtool shows: name, data source, function, step in seconds, time in seconds.
pub type Place = (String, String, String, u64, i64);

/// When the first row ends; a quarter before midnight in UTC, so that rows are in two days.
pub const START: i64 = 1_700_006_400 - 900;
/// Updates of each RRD.
const UPDATES: i64 = 60;

pub struct Store {
    pub tool: RrdTool,
    pub names: Vec<String>,
}

impl Store {
    /// RRDs in two trees and in none: a step of a minute, an archive that is shorter than the history, coarser ones that are not.
    pub fn new() -> Self {
        let mut tool = RrdTool::start().unwrap();
        let names = ["hosts/a b/load.rrd", "hosts/c/load.rrd", "ports/x.rrd", "top.rrd"].map(str::to_string);
        for (number, name) in names.iter().enumerate() {
            let file = tool.path(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            let create = "DS:in:GAUGE:120:U:U DS:out:GAUGE:120:U:U RRA:AVERAGE:0.5:1:20 RRA:AVERAGE:0.5:5:100 RRA:MAX:0.5:5:100";
            tool.run(&format!("create \"{name}\" --start {} --step 60 {create}", START - 60)).unwrap();
            let mut store = Store { tool, names: Vec::new() };
            store.update(name, number as i64, 0..UPDATES);
            tool = store.tool;
        }
        let mut store = Store { tool, names: names.to_vec() };
        std::fs::create_dir(store.path("store")).unwrap();
        store.import();
        store
    }

    /// Copies of one of them, so many, in a tree of their own.
    pub fn copy(&mut self, count: usize) {
        let from = self.path("ports/x.rrd");
        std::fs::create_dir(self.path("copies")).unwrap();
        let names: Vec<String> = (0..count).map(|number| format!("copies/{number:05}.rrd")).collect();
        for name in &names {
            std::fs::copy(&from, self.path(name)).unwrap();
        }
        self.names.extend(names);
        self.import();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.tool.path(name)
    }

    /// Updates one RRD's file; some values are unknown.
    pub fn update(&mut self, name: &str, seed: i64, updates: std::ops::Range<i64>) {
        for update in updates {
            let time = START + 60 * update;
            let value = (update * update % 37 + seed) as f64 / 7.0;
            let other = if update % 11 == 3 { "U".to_string() } else { format!("{}", value * 1e6) };
            self.tool.run(&format!("update \"{name}\" {time}:{value}:{other}")).unwrap();
        }
    }

    /// The files as they are, into the store.
    pub fn import(&mut self) {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let words = [&["import", "--to", "store", "--base", "."], &names[..]].concat();
        roundel(self.tool.directory(), &words, &[]);
    }

    /// All known rows of all archives, by rrdtool.
    pub fn rows(&mut self) -> BTreeMap<Place, f64> {
        let mut rows = BTreeMap::new();
        for name in self.names.clone() {
            for (cf, step, count) in [("AVERAGE", 60, 20), ("AVERAGE", 300, 100), ("MAX", 300, 100)] {
                let last: i64 = self.tool.run(&format!("last \"{name}\"")).unwrap().trim().parse().unwrap();
                let end = last - last % step;
                let line =
                    format!("fetch \"{name}\" {cf} -r {step} -s {} -e {}", end - step * count, end - 1);
                let text = self.tool.run(&line).unwrap();
                let mut lines = text.lines().filter(|line| !line.is_empty());
                let sources: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
                for line in lines {
                    let (time, values) = line.split_once(':').unwrap();
                    for (ds, value) in sources.iter().zip(values.split_whitespace()) {
                        let value: f64 = value.parse().unwrap();
                        if !value.is_nan() {
                            let place = (
                                name.clone(),
                                ds.to_string(),
                                cf.to_string(),
                                step as u64,
                                time.parse().unwrap(),
                            );
                            rows.insert(place, value);
                        }
                    }
                }
            }
        }
        rows
    }
}

/// Of all rows those for whose time no finer one of the same function is there.
pub fn finest(rows: &BTreeMap<Place, f64>) -> BTreeMap<Place, f64> {
    let finer = |(name, ds, cf, step, time): &Place| {
        *step == 300
            && (0..5).any(|minute| {
                rows.contains_key(&(name.clone(), ds.clone(), cf.clone(), 60, time - 60 * minute))
            })
    };
    rows.iter().filter(|(place, _)| !finer(place)).map(|(place, value)| (place.clone(), *value)).collect()
}

/// Rows as `name|ds|cf|step|time|value`.
pub fn parse(text: &str) -> BTreeMap<Place, f64> {
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [name, ds, cf, step, time, value] = fields[..] else { panic!("{line}") };
        let place = (name.into(), ds.into(), cf.into(), step.parse().unwrap(), time.parse().unwrap());
        assert!(rows.insert(place, value.parse().unwrap()).is_none(), "twice: {line}");
    }
    rows
}

/// As `rrdtool fetch` shows ten digits, so are values compared.
pub fn check_rows(got: &BTreeMap<Place, f64>, want: &BTreeMap<Place, f64>) {
    let shown = |rows: &BTreeMap<Place, f64>| -> Vec<String> {
        rows.iter().map(|(place, value)| format!("{place:?} {value:.10e}")).collect()
    };
    assert!(want.len() > 100);
    let (got, want) = (shown(got), shown(want));
    let only = |one: &[String], other: &[String]| -> Vec<String> {
        one.iter().filter(|row| !other.contains(row)).take(5).cloned().collect()
    };
    assert!(got == want, "only exported: {:#?}\nonly fetched: {:#?}", only(&got, &want), only(&want, &got));
}

/// Runs `roundel` and returns what it printed.
pub fn roundel(directory: &Path, words: &[&str], variables: &[(&str, &str)]) -> String {
    let output = try_roundel(directory, words, variables);
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `roundel`.
pub fn try_roundel(directory: &Path, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
    command.args(words).current_dir(directory).env_remove("RRDCACHED_ADDRESS");
    command.envs(variables.iter().copied()).env("TZ", "UTC").output().unwrap()
}
