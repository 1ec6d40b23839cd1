//! The RRD that MRTG makes for a target: data sources, archives, name; and what it does with one that is there.

use super::config::{Config, TargetSettings};
use super::interval::Interval;
use super::options;
use crate::inventory::{ExistingRule, RrdSpec};

/// Seconds before its first reading that an RRD starts.
const STARTS_BEFORE: u64 = 10;

/// Rows of the archives after the first, unless the target says otherwise.
const ROWS: &str = "800";

/// The type of a target's data sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum DsType {
    Gauge,
    Absolute,
    Derive,
    Counter,
}

impl DsType {
    /// What `Options` says; the first of these counts.
    pub fn of(target: &TargetSettings) -> Self {
        let words = target.get("options");
        let types = [("gauge", DsType::Gauge), ("absolute", DsType::Absolute), ("derive", DsType::Derive)];
        let named = types.into_iter().find(|(word, _)| options::has(words, word));
        named.map_or(DsType::Counter, |(_, ds_type)| ds_type)
    }

    /// The word of `rrdcreate(1)`.
    pub fn word(self) -> &'static str {
        match self {
            DsType::Gauge => "GAUGE",
            DsType::Absolute => "ABSOLUTE",
            DsType::Derive => "DERIVE",
            DsType::Counter => "COUNTER",
        }
    }
}

/// How often a configuration is polled.
pub fn interval(config: &Config) -> Interval {
    config.get("interval").and_then(Interval::parse).unwrap_or_default()
}

/// The largest rates of the two data sources: `AbsMax`, or `MaxBytes1` and `MaxBytes2`, which are `MaxBytes` unless given.
/// Without digits that count, it is `U`.
pub fn maxima(target: &TargetSettings) -> [String; 2] {
    let number = |keyword: &str| target.get(keyword).map(str::to_string).filter(|text| text != "0");
    ["maxbytes1", "maxbytes2"].map(|keyword| {
        let max = number("absmax").or_else(|| number(keyword)).or_else(|| number("maxbytes"));
        max.unwrap_or_else(|| "U".to_string())
    })
}

/// How the RRD of a target is made, or tuned when it is there; `max_age` is that of the configuration.
pub fn rrd_spec(target: &TargetSettings, interval: Interval, max_age: Option<u64>) -> RrdSpec {
    let ds_type = DsType::of(target).word();
    let heartbeat = interval.heartbeat();
    let maxima = maxima(target);
    let sources =
        maxima.iter().enumerate().map(|(nth, max)| format!("DS:ds{nth}:{ds_type}:{heartbeat}:0:{max}"));
    let rows = |keyword: &str, default: &str| -> String {
        let given = target.get(keyword).map(str::trim).filter(|rows| !rows.is_empty());
        given.unwrap_or(default).to_string()
    };
    // MRTG's doubles: 30 minutes over 1:40 are 18 steps of 99 s.
    let steps = |minutes: f64| (minutes / interval.minutes) as u64;
    let mut archives = vec![(1, rows("rrdrowcount", &((4000.0 / interval.minutes) as u64).to_string()))];
    if interval.minutes < 30.0 {
        archives.push((steps(30.0), rows("rrdrowcount30m", ROWS)));
    }
    archives.push((steps(120.0), rows("rrdrowcount2h", ROWS)));
    archives.push((steps(1440.0), rows("rrdrowcount1d", ROWS)));
    let mut args: Vec<String> = sources.collect();
    for cf in ["AVERAGE", "MAX"] {
        args.extend(archives.iter().map(|(steps, rows)| format!("RRA:{cf}:0.5:{steps}:{rows}")));
    }
    args.extend(target.get("rrdhwrras").unwrap_or("").split_whitespace().map(str::to_string));
    args.push(ExistingRule::Tune.word());
    args.extend(max_age.map(|seconds| ExistingRule::MaxAge(seconds).word()));
    RrdSpec { step: interval.step(), starts_before: STARTS_BEFORE, args }
}

/// The name of the RRD: directory and target, under `prefix`, with no name twice a slash.
pub fn rrd_name(target: &TargetSettings, prefix: &str) -> String {
    let directory = target.get("directory").unwrap_or("");
    let parts = prefix.split('/').chain(directory.split('/')).filter(|part| !part.is_empty() && *part != ".");
    let mut name: String = parts.flat_map(|part| [part, "/"]).collect();
    name.push_str(&target.name);
    name.push_str(".rrd");
    name
}
