//! The table `[[create]]`: which RRD a series becomes that nothing has created.

use std::collections::BTreeMap;
use std::fmt;

use regex::{Regex, RegexBuilder};
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::{DurationScale, Step, parse_duration};
use serde::Deserialize;

use crate::path::{PATH_BYTES_MAX, Template};
use crate::sample::{Kind, Samples, Series};

/// Bytes of the name of a data source, as in a file.
const DS_BYTES_MAX: usize = 19;
/// The most memory of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// The longest step, in seconds.
const STEP_MAX: u64 = 86_400;

/// A rule as it is written. What is left out has a default.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default, expecting = "a section [[create]]")]
pub struct CreateRule {
    /// A regular expression over the whole name of a series; default: all.
    pub name: Option<String>,
    /// Regular expressions that are found somewhere in the name, as carbon's files have them.
    #[serde(skip)]
    pub found: Vec<String>,
    /// Regular expressions over the whole values of labels; that of a label that a series has not is empty.
    pub labels: BTreeMap<String, String>,
    /// These series are not wanted.
    pub refuse: bool,
    /// The step, such as `15s`.
    pub step: Option<String>,
    /// How long after a sample the values are still known; default: five minutes, or four steps, whichever is longer.
    pub heartbeat: Option<String>,
    /// `RRA:` words of `rrdcreate(1)`, or the name of a set of them.
    pub archives: Option<Archives>,
    /// The type of the data source; default: by what the values are.
    #[serde(rename = "type")]
    pub ds_type: Option<String>,
    /// The name of the RRD, without `.rrd`: [`Template`].
    pub path: Option<String>,
    /// The name of the data source; `{name}` and `{label}` stand for the name and a label.
    pub ds: Option<String>,
    /// Labels that do not tell series apart, such as the replica that has sent them.
    pub drop: Vec<String>,
}

/// `archives`: words, or the name of a set.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged, expecting = "give \"short\", \"standard\" or \"long\", or a list of RRA words")]
pub enum Archives {
    /// A set's name.
    Set(String),
    /// Words of `rrdcreate(1)`.
    Words(Vec<String>),
}

/// Sets of archives: a function, the seconds of a row (0: the step), and days.
type ArchiveSet = &'static [(&'static str, u64, u64)];

const SHORT: ArchiveSet = &[("AVERAGE", 0, 2), ("AVERAGE", 300, 14)];
const STANDARD: ArchiveSet =
    &[("AVERAGE", 0, 2), ("AVERAGE", 300, 30), ("AVERAGE", 3600, 730), ("MAX", 3600, 730)];
const LONG: ArchiveSet = &[
    ("AVERAGE", 0, 7),
    ("AVERAGE", 300, 90),
    ("AVERAGE", 3600, 1825),
    ("AVERAGE", 86_400, 7300),
    ("MIN", 3600, 1825),
    ("MAX", 3600, 1825),
    ("MAX", 86_400, 7300),
];

impl Archives {
    /// The words for a step in seconds.
    fn words(&self, step: u64) -> Result<Vec<String>, String> {
        let set = match self {
            Archives::Words(words) => return Ok(words.clone()),
            Archives::Set(name) => match name.as_str() {
                "short" => SHORT,
                "standard" => STANDARD,
                "long" => LONG,
                _ => {
                    return Err(format!("archives: \"{name}\" is none of short, standard, long, nor a list"));
                }
            },
        };
        let mut words = Vec::new();
        for (function, row, days) in set {
            let steps = row.div_ceil(step).max(1);
            let rows = (days * 86_400).div_ceil(steps * step).max(1);
            words.push(format!("RRA:{function}:0.5:{steps}:{rows}"));
        }
        // Of a long step, rows of several sets are the same.
        let of = |word: &String| word.rsplit_once(':').map(|(row, _)| row.to_owned());
        let all = words.clone();
        let mut at = 0;
        words.retain(|word| {
            at += 1;
            !all[at..].iter().any(|later| of(later) == of(word))
        });
        Ok(words)
    }
}

/// A rule that is ready.
#[derive(Clone, Debug)]
struct Rule {
    name: Option<Regex>,
    found: Vec<Regex>,
    labels: Vec<(String, Regex)>,
    refuse: bool,
    step: u64,
    heartbeat: u64,
    archives: Vec<String>,
    ds_type: Option<String>,
    path: Template,
    ds: String,
    drop: Vec<String>,
}

/// Rules, in the order in which they are tried.
#[derive(Clone, Debug)]
pub struct CreateTable {
    rules: Vec<Rule>,
}

/// What is wrong with a rule: its place from 1 on, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Its place among the rules, from 0 on.
    pub rule: usize,
    /// What is wrong.
    pub cause: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[[create]] number {}: {}", self.rule + 1, self.cause)
    }
}

impl std::error::Error for RuleError {}

/// Where a series belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The name of its RRD, with `.rrd`.
    pub path: String,
    /// The rule that says so.
    pub rule: usize,
}

/// How the RRD of a series is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRrd {
    /// Its step in seconds.
    pub step: u64,
    /// The `DS:` and `RRA:` arguments of `rrdcreate(1)`.
    pub args: Vec<String>,
}

/// Why a series has no place. Rules are numbered from 0 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unplaced {
    /// No rule fits it.
    NoRule,
    /// The rule that fits it does not want it.
    Refused(usize),
    /// The name of its RRD would be too long.
    TooLong(usize),
    /// The name of its RRD is that of another series.
    Taken(usize, String),
}

impl fmt::Display for Unplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unplaced::NoRule => f.write_str("no [[create]] rule fits it"),
            Unplaced::Refused(rule) => write!(f, "[[create]] number {} refuses it", rule + 1),
            Unplaced::TooLong(rule) => {
                let rule = rule + 1;
                write!(
                    f,
                    "its RRD would have a name of more than {PATH_BYTES_MAX} bytes by [[create]] number {rule}"
                )
            }
            Unplaced::Taken(rule, path) => {
                let rule = rule + 1;
                write!(
                    f,
                    "its RRD would be {path} by [[create]] number {rule}, which is that of another series"
                )
            }
        }
    }
}

impl Unplaced {
    /// A word for counters.
    pub fn reason(&self) -> &'static str {
        match self {
            Unplaced::NoRule => "no_rule",
            Unplaced::Refused(_) => "refused_by_rule",
            Unplaced::TooLong(_) => "name_too_long",
            Unplaced::Taken(..) => "name_taken",
        }
    }
}

impl Default for CreateTable {
    /// That of a configuration without `[[create]]`: the rules of roundel.example.toml.
    fn default() -> Self {
        CreateTable::new(&CreateTable::default_rules()).unwrap_or(CreateTable { rules: Vec::new() })
    }
}

impl CreateTable {
    /// The rules that hold if none are given.
    pub fn default_rules() -> Vec<CreateRule> {
        let with = |label: Option<&str>, path: &str| CreateRule {
            labels: label.map(|label| (label.to_owned(), ".+".to_owned())).into_iter().collect(),
            path: Some(path.to_owned()),
            ..CreateRule::default()
        };
        vec![
            with(Some("instance"), "instances/{instance}/{name}"),
            with(Some("host"), "hosts/{host}/{name}"),
            with(None, "series/{name/}"),
        ]
    }

    /// A table of these rules.
    ///
    /// # Errors
    /// What is wrong with the first bad one.
    pub fn new(rules: &[CreateRule]) -> Result<CreateTable, RuleError> {
        let ready =
            |(rule, given): (usize, &CreateRule)| Rule::new(given).map_err(|cause| RuleError { rule, cause });
        Ok(CreateTable { rules: rules.iter().enumerate().map(ready).collect::<Result<_, _>>()? })
    }

    /// Where a series belongs.
    ///
    /// # Errors
    /// When it has no place.
    pub fn place(&self, series: Series<'_>) -> Result<Placement, Unplaced> {
        let (number, rule) = self.rule_of(series).ok_or(Unplaced::NoRule)?;
        if rule.refuse {
            return Err(Unplaced::Refused(number));
        }
        let mut path = String::new();
        rule.path.write(series, &rule.drop, &mut path).map_err(|_| Unplaced::TooLong(number))?;
        let mut owner = Samples::default();
        let is_its_own = self.owner(&path, &mut owner).is_some_and(|found| {
            let (found, labels) = (owner.series(found), series.labels());
            let kept = labels.filter(|(label, _)| !rule.drop.iter().any(|dropped| dropped == label));
            found.name() == series.name() && found.labels().eq(kept)
        });
        if is_its_own { Ok(Placement { path, rule: number }) } else { Err(Unplaced::Taken(number, path)) }
    }

    fn rule_of(&self, series: Series<'_>) -> Option<(usize, &Rule)> {
        self.rules.iter().enumerate().find(|(_, rule)| rule.fits(series))
    }

    /// The series whose RRD has this name (with or without `.rrd`), as the last one of `samples`; `None` if it is no series' by this table.
    pub fn owner(&self, path: &str, samples: &mut Samples) -> Option<u32> {
        let path = path.strip_suffix(".rrd").unwrap_or(path);
        self.rules.iter().enumerate().filter(|(_, rule)| !rule.refuse).find_map(|(number, rule)| {
            let found = rule.path.read(path, samples)?;
            let series = samples.series(found);
            if self.rule_of(series)?.0 != number {
                return None;
            }
            let mut again = String::with_capacity(path.len() + 4);
            rule.path.write(series, &rule.drop, &mut again).ok()?;
            (again.strip_suffix(".rrd") == Some(path)).then_some(found)
        })
    }

    /// How the RRD of a series is made that [`CreateTable::place`] has given to a rule.
    pub fn new_rrd(&self, rule: usize, series: Series<'_>, kind: Kind) -> NewRrd {
        let rule = &self.rules[rule];
        let ds_type = rule.ds_type.as_deref().unwrap_or(match kind {
            Kind::Gauge => "GAUGE",
            Kind::Counter => "DDERIVE",
            Kind::Delta => "ABSOLUTE",
        });
        // A count that falls has begun again: how much was added in between is not known.
        let min = if ds_type == "GAUGE" { "U" } else { "0" };
        let mut args = vec![format!("DS:{}:{ds_type}:{}:{min}:U", ds_name(&rule.ds, series), rule.heartbeat)];
        args.extend(rule.archives.iter().cloned());
        NewRrd { step: rule.step, args }
    }
}

impl Rule {
    fn new(given: &CreateRule) -> Result<Rule, String> {
        let seconds = |key: &str, text: &str| {
            parse_duration(text, DurationScale::SECONDS)
                .map_err(|error| format!("{key} = \"{text}\": {error}"))
        };
        let step = seconds("step", given.step.as_deref().unwrap_or("15s"))?;
        if step > STEP_MAX {
            return Err(format!("step: at most a day, {STEP_MAX} seconds"));
        }
        let heartbeat = match &given.heartbeat {
            Some(text) => seconds("heartbeat", text)?,
            None => (4 * step).max(300),
        };
        let archives = given.archives.clone().unwrap_or(Archives::Set("standard".to_owned())).words(step)?;
        let path = Template::parse(given.path.as_deref().unwrap_or("series/{name/}"))?;
        let mut labels = Vec::new();
        for (label, pattern) in &given.labels {
            if given.drop.contains(label) {
                return Err(format!("label \"{label}\" is dropped, so it cannot be what the rule goes by"));
            }
            labels.push((label.clone(), regex(pattern)?));
        }
        let rule = Rule {
            name: given.name.as_deref().map(regex).transpose()?,
            found: given.found.iter().map(|pattern| compiled(pattern, pattern)).collect::<Result<_, _>>()?,
            labels,
            refuse: given.refuse,
            step,
            heartbeat,
            archives,
            ds_type: given.ds_type.clone(),
            path,
            ds: given.ds.clone().unwrap_or_else(|| "value".to_owned()),
            drop: given.drop.clone(),
        };
        rule.check()?;
        Ok(rule)
    }

    /// Whether RRDs can be made by it.
    fn check(&self) -> Result<(), String> {
        if self.archives.is_empty() {
            return Err("archives: at least one".to_owned());
        }
        let ds_type = self.ds_type.as_deref().unwrap_or("GAUGE");
        let known = ["GAUGE", "COUNTER", "DERIVE", "ABSOLUTE", "DCOUNTER", "DDERIVE"];
        if !known.contains(&ds_type) {
            return Err(format!("type: \"{ds_type}\" is none of {}", known.join(", ")));
        }
        let mut args = vec![format!("DS:x:{ds_type}:{}:U:U", self.heartbeat)];
        args.extend(self.archives.iter().cloned());
        let step = Step { units: self.step, units_per_second: 1 };
        let options = CreateOptions { step, limits: Limits::FILE, file_name: b"x" };
        parse_create(&options, &args).map_err(|error| format!("archives: {error}"))?;
        Ok(())
    }

    fn fits(&self, series: Series<'_>) -> bool {
        self.name.as_ref().is_none_or(|name| name.is_match(series.name()))
            && self.found.iter().all(|found| found.is_match(series.name()))
            && self.labels.iter().all(|(label, value)| value.is_match(series.label(label)))
    }
}

fn regex(pattern: &str) -> Result<Regex, String> {
    compiled(&format!("^(?:{pattern})$"), pattern)
}

/// What is compiled of a pattern that was given.
fn compiled(whole: &str, pattern: &str) -> Result<Regex, String> {
    let regex = RegexBuilder::new(whole).size_limit(REGEX_BYTES_MAX).dot_matches_new_line(true).build();
    regex.map_err(|error| format!("\"{pattern}\": {error}"))
}

/// The name of a data source: what a template says, with RRDtool's letters and length.
fn ds_name(template: &str, series: Series<'_>) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((label, after)) = after.split_once('}') else {
            rest = after;
            break;
        };
        text.push_str(if label == "name" { series.name() } else { series.label(label) });
        rest = after;
    }
    text.push_str(rest);
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = text.chars().map(|c| if is_letter(c) { c } else { '_' }).take(DS_BYTES_MAX).collect();
    if name.is_empty() { "value".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &mut Samples, name: &str, labels: &[(&str, &str)]) -> u32 {
        let mut series = samples.begin(name);
        labels.iter().for_each(|(label, value)| series.label(label, value));
        series.end(Kind::Gauge).unwrap()
    }

    fn place(table: &CreateTable, name: &str, labels: &[(&str, &str)]) -> Result<String, Unplaced> {
        let mut samples = Samples::default();
        let one = series(&mut samples, name, labels);
        table.place(samples.series(one)).map(|placement| placement.path)
    }

    #[test]
    fn the_first_rule_that_fits_places_a_series() {
        let rule = |name: Option<&str>, path: &str| CreateRule {
            name: name.map(str::to_owned),
            path: Some(path.to_owned()),
            ..CreateRule::default()
        };
        let go = CreateRule { refuse: true, ..rule(Some("go_.*"), "x/{name}") };
        let replica = CreateRule { drop: vec!["replica".to_owned()], ..rule(Some("ha_.*"), "ha/{name}") };
        let table = CreateTable::new(&[go, replica, rule(Some("[a-z].*"), "all/{name}")]).unwrap();
        assert_eq!(place(&table, "go_gc", &[]), Err(Unplaced::Refused(0)));
        assert_eq!(place(&table, "ha_up", &[("replica", "1"), ("a", "b")]).unwrap(), "ha/ha_up,a=b.rrd");
        assert_eq!(place(&table, "up", &[]).unwrap(), "all/up.rrd");
        assert_eq!(place(&table, "X", &[]), Err(Unplaced::NoRule));
        assert_eq!(place(&table, "up", &[("a", &"b".repeat(3000))]), Err(Unplaced::TooLong(2)));
    }

    #[test]
    fn two_series_never_share_an_rrd() {
        let rule = |label: &str, path: &str| CreateRule {
            labels: [(label.to_owned(), ".+".to_owned())].into(),
            path: Some(path.to_owned()),
            ..CreateRule::default()
        };
        let table = CreateTable::new(&[rule("a", "x/{a}/{name}"), rule("b", "x/{name}/{b}")]).unwrap();
        assert_eq!(place(&table, "n", &[("a", "m")]).unwrap(), "x/m/n.rrd");
        assert_eq!(place(&table, "m", &[("b", "n")]), Err(Unplaced::Taken(1, "x/m/n.rrd".to_owned())));
        let mut samples = Samples::default();
        let owner = table.owner("x/m/n.rrd", &mut samples).unwrap();
        assert_eq!(samples.series(owner).to_string(), "n{a=\"m\"}");
        assert_eq!(table.owner("x/m/n%", &mut samples), None);
        assert_eq!(table.owner("y/m/n", &mut samples), None);
    }

    #[test]
    fn rrds_are_made_by_the_rule() {
        let mut samples = Samples::default();
        let one = series(&mut samples, "http.requests", &[("instance", "web1")]);
        let table = CreateTable::default();
        let place = table.place(samples.series(one)).unwrap();
        assert_eq!(place.path, "instances/web1/http.requests.rrd");
        let new = table.new_rrd(place.rule, samples.series(one), Kind::Counter);
        let want = [
            "DS:value:DDERIVE:300:0:U",
            "RRA:AVERAGE:0.5:1:11520",
            "RRA:AVERAGE:0.5:20:8640",
            "RRA:AVERAGE:0.5:240:17520",
            "RRA:MAX:0.5:240:17520",
        ];
        assert_eq!((new.step, new.args.iter().map(String::as_str).collect::<Vec<_>>()), (15, want.to_vec()));
        let rule = CreateRule {
            step: Some("1h".to_owned()),
            ds: Some("{name}-{x}".to_owned()),
            ..Default::default()
        };
        let table = CreateTable::new(&[rule]).unwrap();
        let new = table.new_rrd(0, samples.series(one), Kind::Gauge);
        assert_eq!(new.args[..2], ["DS:http_requests-:GAUGE:14400:U:U", "RRA:AVERAGE:0.5:1:17520"]);
    }

    #[test]
    fn series_of_all_protocols_have_a_place_by_default() {
        let table = CreateTable::default();
        let check = |name, labels: &[_], want: &str| assert_eq!(place(&table, name, labels).unwrap(), want);
        check("up", &[("instance", "a:1"), ("job", "j")], "instances/a:1/up,job=j.rrd");
        check("cpu.idle", &[("host", "a"), ("cpu", "0")], "hosts/a/cpu.idle,cpu=0.rrd");
        check("a.b", &[], "series/a/b.rrd");
        check("a.b.c", &[("t", "v")], "series/a/b/c,t=v.rrd");
    }

    #[test]
    fn bad_rules_are_named() {
        let check = |rule: CreateRule, want: &str| {
            let error = CreateTable::new(&[CreateRule::default(), rule]).unwrap_err().to_string();
            assert!(error.starts_with("[[create]] number 2: ") && error.contains(want), "{error}");
        };
        check(CreateRule { step: Some("x".into()), ..Default::default() }, "step");
        check(CreateRule { name: Some("(".into()), ..Default::default() }, "\"(\"");
        check(CreateRule { path: Some("../{name}".into()), ..Default::default() }, "path");
        check(CreateRule { archives: Some(Archives::Set("x".into())), ..Default::default() }, "archives");
        check(
            CreateRule { archives: Some(Archives::Words(vec!["RRA:X".into()])), ..Default::default() },
            "archives",
        );
        check(CreateRule { ds_type: Some("X".into()), ..Default::default() }, "type");
        let label = [("a".to_owned(), "b".to_owned())].into();
        check(CreateRule { labels: label, drop: vec!["a".into()], ..Default::default() }, "dropped");
    }
}
