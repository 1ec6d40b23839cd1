//! A rule of the table: which series it fits, and how their RRDs are made.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::when::{DurationScale, Step, parse_duration};
use serde::Deserialize;

use super::NewRrd;
use super::archives::Archives;
use crate::path::Template;
use crate::sample::{Kind, Series};

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

/// A rule that is ready.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    name: Option<Regex>,
    found: Vec<Regex>,
    labels: Vec<(String, Regex)>,
    pub(super) refuse: bool,
    step: u64,
    heartbeat: u64,
    archives: Vec<String>,
    ds_type: Option<String>,
    pub(super) path: Template,
    ds: String,
    pub(super) drop: Vec<String>,
}

impl Rule {
    pub(super) fn new(given: &CreateRule) -> Result<Rule, String> {
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

    /// How the RRD of a series is made.
    pub(super) fn new_rrd(&self, series: Series<'_>, kind: Kind) -> NewRrd {
        let ds_type = self.ds_type.as_deref().unwrap_or(match kind {
            Kind::Gauge => "GAUGE",
            Kind::Counter => "DDERIVE",
            Kind::Delta => "ABSOLUTE",
        });
        // A count that falls has begun again: how much was added in between is not known.
        let min = if ds_type == "GAUGE" { "U" } else { "0" };
        let mut args = vec![format!("DS:{}:{ds_type}:{}:{min}:U", ds_name(&self.ds, series), self.heartbeat)];
        args.extend(self.archives.iter().cloned());
        NewRrd { step: self.step, args }
    }

    pub(super) fn fits(&self, series: Series<'_>) -> bool {
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
