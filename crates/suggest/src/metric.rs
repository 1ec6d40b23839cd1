//! Names and labels of RRDs as Prometheus' metrics: the name and definition of an RRD in, the metric of each data source out.

use std::borrow::Cow;

use regex::{Captures, Regex, RegexBuilder};
use rrd::definition::{Definition, DsKind, DsType};
use serde::Deserialize;

use crate::PresetError;

/// The rules that are shipped.
const SHIPPED: &str = include_str!("metrics.toml");
/// The most memory of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// The label with the path of the RRD.
pub const RRD_LABEL: &str = "rrd";
/// The label with the name of the data source.
pub const DS_LABEL: &str = "ds";

/// Rules, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct MetricRules {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    metric: Vec<MetricRule>,
}

/// A rule as it is written.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MetricRule {
    /// A regular expression over the whole name without `.rrd`. Its named groups become labels, but for those that begin with `_`.
    pub path: String,
    /// Data sources that the RRD must have.
    #[serde(default)]
    pub sources: Vec<String>,
    /// What the metric's name begins with; `${group}` stands for what a group has found.
    pub name: String,
    /// Data sources whose names do not follow in the metric's name.
    #[serde(default)]
    pub plain: Vec<String>,
    /// Further labels, whose values may have groups too.
    #[serde(default)]
    pub labels: std::collections::BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct Rule {
    rule: MetricRule,
    path: Regex,
}

/// What fits an RRD: the rule with what it found.
#[derive(Debug)]
pub struct Fitting<'a> {
    rule: &'a Rule,
    found: Captures<'a>,
    path: &'a str,
}

/// What values of a data source are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A level.
    Gauge,
    /// A rate per second, of which there is a counter, too.
    Rate,
}

impl MetricKind {
    /// That of a data source.
    pub fn of(kind: &DsKind) -> MetricKind {
        match kind {
            DsKind::Fed { ds_type: DsType::Gauge, .. } | DsKind::Compute(_) => MetricKind::Gauge,
            DsKind::Fed { .. } => MetricKind::Rate,
        }
    }
}

impl MetricRules {
    /// Those that are shipped.
    pub fn shipped() -> MetricRules {
        MetricRules::parse(SHIPPED).unwrap_or_default()
    }

    /// Those of a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<MetricRules, PresetError> {
        let file: File = toml::from_str(text).map_err(|error| PresetError::new(error.to_string()))?;
        MetricRules::new(file.metric)
    }

    /// Rules in their order.
    ///
    /// # Errors
    /// The regular expression that is none, or is too large.
    pub fn new(rules: Vec<MetricRule>) -> Result<MetricRules, PresetError> {
        let compile = |rule: MetricRule| {
            let whole = format!("^(?:{})$", rule.path);
            let path = RegexBuilder::new(&whole).size_limit(REGEX_BYTES_MAX).build();
            let path = path.map_err(|error| PresetError::new(format!("path '{}': {error}", rule.path)))?;
            Ok(Rule { rule, path })
        };
        Ok(MetricRules { rules: rules.into_iter().map(compile).collect::<Result<_, _>>()? })
    }

    /// These, and where none of them fits, `others`.
    #[must_use]
    pub fn before(mut self, others: MetricRules) -> MetricRules {
        self.rules.extend(others.rules);
        self
    }

    /// The rule that fits an RRD: its path without `.rrd`, and its definition.
    pub fn fitting<'a>(&'a self, path: &'a str, definition: &Definition) -> Option<Fitting<'a>> {
        let has = |name: &String| definition.ds.iter().any(|ds| ds.name == *name);
        self.rules.iter().filter(|rule| rule.rule.sources.iter().all(has)).find_map(|rule| {
            let found = rule.path.captures(path)?;
            Some(Fitting { rule, found, path })
        })
    }
}

impl Fitting<'_> {
    /// The metric's name of a data source, without `_total`.
    pub fn name(&self, ds: &str) -> String {
        let mut name = String::new();
        self.found.expand(&self.rule.rule.name, &mut name);
        if !self.rule.rule.plain.iter().any(|plain| plain == ds) {
            name.push('_');
            name.push_str(ds);
        }
        tidy(&name)
    }

    /// The labels of a data source, but for the name.
    pub fn labels(&self, ds: &str) -> Vec<(Cow<'_, str>, String)> {
        let mut all =
            vec![(Cow::Borrowed(RRD_LABEL), self.path.to_owned()), (Cow::Borrowed(DS_LABEL), ds.to_owned())];
        for group in self.rule.path.capture_names().flatten().filter(|group| !group.starts_with('_')) {
            if let Some(found) = self.found.name(group) {
                all.push((Cow::Borrowed(group), found.as_str().to_owned()));
            }
        }
        for (label, template) in &self.rule.rule.labels {
            let mut value = String::new();
            self.found.expand(template, &mut value);
            all.push((Cow::Borrowed(label), value));
        }
        all
    }
}

/// A name in which all but letters, digits and `:` are underscores.
fn tidy(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut tidy: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if tidy.starts_with(|c: char| c.is_ascii_digit()) {
        tidy.insert(0, '_');
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;
    use rrd::definition::text::{CreateOptions, Limits, parse_create};
    use rrd::when::Step;

    fn definition(sources: &[&str]) -> Definition {
        let mut words: Vec<String> = sources.iter().map(|name| format!("DS:{name}:GAUGE:600:U:U")).collect();
        words.push("RRA:AVERAGE:0.5:1:10".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let step = Step { units: 10, units_per_second: 1 };
        parse_create(&CreateOptions { step, limits: Limits::STORE, file_name: b"x" }, &words).unwrap()
    }

    fn shown(path: &str, sources: &[&str]) -> String {
        let rules = MetricRules::shipped();
        let definition = definition(sources);
        let fitting = rules.fitting(path, &definition).unwrap();
        let labels = fitting.labels(sources[0]).into_iter().filter(|(name, _)| name != "rrd" && name != "ds");
        let labels: Vec<String> = labels.map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}{{{}}}", fitting.name(sources[0]), labels.join(","))
    }

    #[test]
    fn producers_have_their_names() {
        for (path, sources, want) in [
            ("web1/cpu-0/cpu-idle", &["value"][..], "collectd_cpu_cpu{instance=web1,plugin=0,type=idle}"),
            ("web1/load/load", &["shortterm"], "collectd_load_load_shortterm{instance=web1}"),
            (
                "web1/interface-eth0/if_octets",
                &["rx", "tx"],
                "collectd_interface_if_octets_rx{instance=web1,plugin=eth0}",
            ),
            (
                "localhost/interface-eth0",
                &["receive_bytes", "transmit_bytes"],
                "host_interface_receive_bytes{instance=localhost,device=eth0}",
            ),
            ("grid/node1/cpu_idle", &["sum"], "ganglia_cpu_idle{cluster=grid,instance=node1}"),
            ("pve2-storage/a/local", &["total", "used"], "pve_storage_total{node=a,id=local}"),
            ("x/y", &["median", "loss", "uptime"], "smokeping_median{target=x/y}"),
            ("g/h.example-df-_dev_sda-g", &["42"], "munin_df{group=g,instance=h.example,field=_dev_sda}"),
            ("router_1", &["ds0", "ds1"], "mrtg_ds0{target=router_1}"),
            (
                "net/sw1/Gi0%2F1",
                &["in", "out", "inPackets", "outPackets", "inErrors", "outErrors"],
                "snmp_interface_in{instance=sw1,interface=Gi0%2F1}",
            ),
            ("net/sw1/Gi0%2F1", &["in", "out"], "rrd_in{}"),
            ("roundel/daemon", &["updates"], "roundel_updates{}"),
            ("roundel/snmp", &["timeouts"], "roundel_snmp_timeouts{}"),
            ("roundel/hall-2/collectd-2", &["packets"], "roundel_collectd_packets{agent=hall-2,part=2}"),
            ("any/thing else", &["temp-1"], "rrd_temp_1{}"),
        ] {
            assert_eq!(shown(path, sources), want, "{path}");
        }
    }

    #[test]
    fn own_rules_come_first() {
        let own = "[[metric]]\npath = 'net/(?<_x>.*)'\nname = 'my ${_x}'\nplain = ['a']\nlabels = { where = '${_x}!' }\n";
        let rules = MetricRules::parse(own).unwrap().before(MetricRules::shipped());
        let definition = definition(&["a"]);
        let fitting = rules.fitting("net/p", &definition).unwrap();
        assert_eq!(fitting.name("a"), "my_p");
        assert!(fitting.labels("a").contains(&("where".into(), "p!".to_owned())));
        assert_eq!(rules.fitting("p", &definition).unwrap().name("a"), "rrd_a");
        assert!(MetricRules::parse("[[metric]]\npath = '('\nname = 'x'").is_err());
    }
}
