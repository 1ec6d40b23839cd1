//! The table `[[create]]`: which RRD a series becomes that nothing has created.

mod archives;
mod rule;

use std::collections::BTreeSet;
use std::fmt;

pub use self::archives::Archives;
pub use self::rule::CreateRule;

use self::rule::Rule;
use crate::path::PATH_BYTES_MAX;
use crate::sample::{Kind, Samples, Series};

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
        let stem = path.strip_suffix(".rrd").unwrap_or(&path);
        let is_its_own = self.owner(stem, &mut owner).is_some_and(|found| {
            let (found, labels) = (owner.series(found), series.labels());
            let kept = labels.filter(|(label, _)| !rule.drop.iter().any(|dropped| dropped == label));
            found.name() == series.name() && found.labels().eq(kept)
        });
        if is_its_own { Ok(Placement { path, rule: number }) } else { Err(Unplaced::Taken(number, path)) }
    }

    fn rule_of(&self, series: Series<'_>) -> Option<(usize, &Rule)> {
        self.rules.iter().enumerate().find(|(_, rule)| rule.fits(series))
    }

    /// The series whose RRD has this name, without its `.rrd`, as the last one of `samples`; `None` if it is no series' by this table.
    pub fn owner(&self, path: &str, samples: &mut Samples) -> Option<u32> {
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

    /// The directories, each once, in which series without labels are found by the parts of their names; empty or with a slash at the end.
    pub fn dotted_directories(&self) -> BTreeSet<&str> {
        let kept = self.rules.iter().filter(|rule| !rule.refuse);
        kept.filter_map(|rule| rule.path.dotted_directory()).collect()
    }

    /// How the RRD of a series is made that [`CreateTable::place`] has given to a rule.
    pub fn new_rrd(&self, rule: usize, series: Series<'_>, kind: Kind) -> NewRrd {
        self.rules[rule].new_rrd(series, kind)
    }
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
        let owner = table.owner("x/m/n", &mut samples).unwrap();
        assert_eq!(samples.series(owner).to_string(), "n{a=\"m\"}");
        assert_eq!(table.owner("x/m/n%", &mut samples), None);
        assert_eq!(table.owner("y/m/n", &mut samples), None);
        // The name of a series may end so, too.
        assert_eq!(place(&table, "n.rrd", &[("a", "m")]).unwrap(), "x/m/n.rrd.rrd");
        let owner = table.owner("x/m/n.rrd", &mut samples).unwrap();
        assert_eq!(samples.series(owner).to_string(), "n.rrd{a=\"m\"}");
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
