//! Which RRDs series become: by the rules of `[[create]]`, with a step that is guessed where no rule has one.

use std::collections::HashMap;

use ingest::sample::Series;
use ingest::table::{Archives, CreateRule, CreateTable, NewRrd};
use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::parse_step;
use serde::Deserialize;

use super::Collected;
use super::fill::{Filler, TIMES};
use crate::rows::MS;

/// Intervals that a guess of the step looks at.
const INTERVALS_MAX: usize = 1000;
/// Longest step of a rule, in seconds.
const STEP_MAX: i64 = 86_400;
/// Steps for which tables are kept: each takes a millisecond and some hundred kilobytes, and history seldom has ten.
const TABLES_MAX: usize = 256;

/// The part of a configuration that has rules.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FileRules {
    create: Vec<CreateRule>,
}

/// How the RRD of a series is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeRrd {
    /// Its step in seconds.
    pub step: u64,
    /// The words of `rrdcreate(1)`: one data source, then the archives.
    args: Vec<String>,
}

impl MadeRrd {
    /// The name of its data source.
    pub fn ds(&self) -> &str {
        self.args.first().and_then(|word| word.split(':').nth(1)).unwrap_or("value")
    }

    /// The words of its archives.
    pub fn archives(&self) -> &[String] {
        self.args.get(1..).unwrap_or_default()
    }

    /// Its definition under this name.
    ///
    /// # Errors
    /// What is wrong with the words of the rule.
    pub fn definition(&self, path: &str) -> Result<Definition, String> {
        let step = parse_step(&self.step.to_string(), false).map_err(|error| error.to_string())?;
        let options = CreateOptions { step, limits: Limits::STORE, file_name: path.as_bytes() };
        parse_create(&options, &self.args).map_err(|error| error.to_string())
    }
}

impl From<NewRrd> for MadeRrd {
    fn from(new: NewRrd) -> Self {
        MadeRrd { step: new.step, args: new.args }
    }
}

/// The rules of an import.
#[derive(Debug)]
pub struct HistoryTable {
    rules: Vec<CreateRule>,
    /// With each step that was guessed.
    tables: HashMap<i64, CreateTable>,
}

impl HistoryTable {
    /// The rules in the sections `[[create]]` of a configuration, else those that hold without any; `step` and `archives`
    /// (`RRA:` words, or the name of a set) count in place of theirs.
    ///
    /// # Errors
    /// What is wrong with the rules.
    pub fn new(config: Option<&str>, step: Option<&str>, archives: &[String]) -> Result<Self, String> {
        let given: FileRules = match config {
            Some(text) => toml::from_str(text).map_err(|error| error.to_string())?,
            None => FileRules::default(),
        };
        let mut rules = if given.create.is_empty() { CreateTable::default_rules() } else { given.create };
        for rule in &mut rules {
            rule.step = step.map(str::to_string).or(rule.step.take());
            match archives {
                [] => {}
                [set] if !set.contains(':') => rule.archives = Some(Archives::Set(set.clone())),
                words => rule.archives = Some(Archives::Words(words.to_vec())),
            }
        }
        CreateTable::new(&rules)
            .map_err(|error| format!("[[create]], number {}: {}", error.rule + 1, error.cause))?;
        Ok(HistoryTable { rules, tables: HashMap::new() })
    }

    /// The name of a series' RRD and how it is made; `step` in seconds is what its times suggest.
    ///
    /// # Errors
    /// Why it has no place.
    pub fn place_key(
        &mut self,
        key: &[u8],
        collected: &Collected,
        step: i64,
    ) -> Result<(String, MadeRrd), String> {
        let seconds = step.clamp(1, STEP_MAX);
        if !self.tables.contains_key(&seconds) {
            let mut rules = self.rules.clone();
            rules.iter_mut().for_each(|rule| {
                rule.step.get_or_insert_with(|| format!("{seconds}s"));
            });
            let table = CreateTable::new(&rules).map_err(|error| error.cause)?;
            if self.tables.len() >= TABLES_MAX {
                self.tables.clear();
            }
            self.tables.insert(seconds, table);
        }
        let (table, series) = (&self.tables[&seconds], Series::of_key(key));
        let placement = table.place(series).map_err(|why| why.to_string())?;
        Ok((placement.path, table.new_rrd(placement.rule, series, collected.kind).into()))
    }

    /// The RRD of a series with its history, its name, and how many points were not newer than the one before.
    ///
    /// # Errors
    /// Why it has none.
    pub fn fill(&mut self, key: &[u8], collected: &Collected) -> Result<(String, Rrd, u64), String> {
        let (path, new) = self.place_key(key, collected, usual_interval(&collected.points) / MS)?;
        let definition = new.definition(&path)?;
        let first = collected.points.iter().map(|(time, _)| *time).find(|time| TIMES.contains(time));
        let first = first.ok_or("none of its times can be an RRD's: is their unit another one?")?;
        let filler = Filler::new(definition, first.saturating_sub(new.step as i64 * MS).max(0));
        let mut filler = filler.map_err(|error| error.to_string())?;
        for (time, value) in &collected.points {
            filler.point(*time, *value);
        }
        let (rrd, refused) = filler.finish();
        Ok((path, rrd, refused))
    }
}

/// The median of the first intervals between points, in milliseconds.
fn usual_interval(points: &[(i64, f64)]) -> i64 {
    let mut intervals: Vec<i64> =
        points.windows(2).take(INTERVALS_MAX).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect();
    intervals.sort_unstable();
    let median = intervals.get(intervals.len() / 2).copied().unwrap_or(0);
    // A scrape is some milliseconds late now and then.
    median.saturating_add(MS / 2) / MS * MS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use crate::rows::Selection;
    use ingest::sample::Kind;

    #[test]
    fn a_series_becomes_the_rrd_that_pushing_it_would_make() {
        let mut history = History::default();
        let points: Vec<(i64, f64)> =
            (0..20).map(|i| (1_700_000_000_000 + i * 60_000 + i % 3, i as f64 * 120.0)).collect();
        history
            .add("requests_total", [("instance", "a:1")], Kind::Counter, &points)
            .expect("room")
            .expect("a series");
        let mut table = HistoryTable::new(None, None, &[]).expect("rules");
        let (key, collected) = history.into_series().remove(0);
        let (path, rrd, refused) = table.fill(&key, &collected).expect("an RRD");
        assert_eq!((path.starts_with("instances/a"), rrd.definition.step, refused), (true, 60, 0), "{path}");
        let rows = &Selection::default().runs(&rrd)[0];
        assert!(rows.values.iter().all(|rate| (rate - 2.0).abs() < 1e-3), "{rows:?}");
        assert!(rows.times.len() >= 18);
    }

    /// The distance of two such times is no number of milliseconds.
    #[test]
    fn times_that_none_can_have_are_refused() {
        let mut table = HistoryTable::new(None, None, &[]).expect("rules");
        for (points, is_filled) in [
            (&[(i64::MIN, 1.0), (i64::MAX, 2.0)][..], false),
            (&[(i64::MIN, 1.0), (60_000, 1.0), (120_000, 2.0), (i64::MAX, 2.0)], true),
        ] {
            let mut history = History::default();
            history.add("a", [], Kind::Gauge, points).expect("room").expect("a series");
            let (key, collected) = history.into_series().remove(0);
            assert_eq!(table.fill(&key, &collected).is_ok(), is_filled, "{points:?}");
        }
    }

    /// A file may have series of every step up to a day.
    #[test]
    fn tables_of_many_steps_are_not_all_kept() {
        let mut history = History::default();
        history.add("a", [], Kind::Gauge, &[(0, 1.0)]).expect("room").expect("a series");
        let (key, collected) = history.into_series().remove(0);
        let mut table = HistoryTable::new(None, None, &[]).expect("rules");
        for step in 1..300 {
            let (path, made) = table.place_key(&key, &collected, step).expect("a place");
            assert_eq!((path.as_str(), made.step), ("series/a.rrd", step as u64));
        }
        assert!(table.tables.len() <= TABLES_MAX, "{}", table.tables.len());
    }

    #[test]
    fn more_rows_than_fit_in_memory_are_refused() {
        let mut table =
            HistoryTable::new(None, None, &["RRA:AVERAGE:0.5:1:99999999999".to_string()]).expect("rules");
        let mut history = History::default();
        history.add("a", [], Kind::Gauge, &[(0, 1.0), (60_000, 1.0)]).expect("room").expect("a series");
        let (key, collected) = history.into_series().remove(0);
        let why = table.fill(&key, &collected).expect_err("too many");
        assert!(why.contains("99999999999 rows") && why.contains("--archives"), "{why}");
    }

    #[test]
    fn samples_later_than_the_last_time_do_not_count() {
        let mut history = History::until(60_000);
        let points = [(0, 1.0), (60_000, 2.0), (60_001, 3.0)];
        history.add("a", [], Kind::Gauge, &points).expect("room").expect("a series");
        let mut pushed = ingest::sample::Samples::default();
        let series = pushed.begin("a").end(Kind::Gauge).expect("a series");
        pushed.push(series, Some(1000), 1.5);
        pushed.push(series, Some(i64::MAX), 4.0);
        history.absorb(&pushed).expect("room");
        assert_eq!(history.ahead(), 2);
        assert_eq!(history.into_series()[0].1.points, [(0, 1.0), (1000, 1.5), (60_000, 2.0)]);
    }

    #[test]
    fn options_and_a_configuration_count() {
        let config = "[http]\nx = 1\n[[create]]\nname = \"a.*\"\npath = \"mine/{name}\"\nstep = \"10s\"\n";
        let mut table =
            HistoryTable::new(Some(config), None, &["RRA:LAST:0.5:1:10".to_string()]).expect("rules");
        let mut history = History::default();
        for name in ["ab", "cd"] {
            history.add(name, [], Kind::Gauge, &[(0, 1.0)]).expect("room").expect("a series");
        }
        let series = history.into_series();
        let (path, rrd, _) = table.fill(&series[0].0, &series[0].1).expect("an RRD");
        assert_eq!((path.as_str(), rrd.definition.step, rrd.definition.rra.len()), ("mine/ab.rrd", 10, 1));
        assert!(table.fill(&series[1].0, &series[1].1).is_err());
        assert!(HistoryTable::new(Some("create = 1"), None, &[]).is_err());
        assert!(HistoryTable::new(None, Some("soon"), &[]).is_err());
    }
}
