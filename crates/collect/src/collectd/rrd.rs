//! Names and definitions of RRDs, as collectd's rrdtool plugin makes them.

use crate::inventory::RrdSpec;

use super::packet::FineTime;
use super::types::TypeSource;

/// The archives' timespans in seconds, unless the configuration names others: an hour to a year.
const TIMESPANS: [u64; 5] = [3_600, 86_400, 604_800, 2_678_400, 31_622_400];

/// The options of the rrdtool plugin that determine what is in an RRD.
#[derive(Clone, Debug, PartialEq)]
pub struct RrdOptions {
    /// `StepSize` in seconds; none = the interval of the values.
    pub step: Option<u64>,
    /// `HeartBeat` in seconds; none = twice the step.
    pub heartbeat: Option<u64>,
    /// `RRARows`: rows per archive.
    pub rows: u64,
    /// `RRATimespan`: seconds that each archive covers; empty = collectd's five.
    pub timespans: Vec<u64>,
    /// `XFF`
    pub xff: f64,
}

impl Default for RrdOptions {
    fn default() -> Self {
        RrdOptions { step: None, heartbeat: None, rows: 1_200, timespans: Vec::new(), xff: 0.1 }
    }
}

impl RrdOptions {
    /// The RRD of values with these sources that come every `interval`.
    pub fn spec(&self, sources: &[TypeSource], interval: FineTime) -> RrdSpec {
        let step = self.step.unwrap_or_else(|| interval.seconds()).max(1);
        let heartbeat = match (self.heartbeat, self.step) {
            (Some(heartbeat), _) => heartbeat,
            (None, Some(step)) => 2 * step,
            (None, None) => interval.doubled().seconds(),
        };
        let limit = |limit: Option<f64>| limit.map_or("U".to_string(), |limit| format!("{limit:.6}"));
        let mut args: Vec<String> = sources
            .iter()
            .map(|source| {
                let (min, max) = (limit(source.min), limit(source.max));
                format!("DS:{}:{}:{heartbeat}:{min}:{max}", source.name, source.kind.name())
            })
            .collect();
        let spans: &[u64] = if self.timespans.is_empty() { &TIMESPANS } else { &self.timespans };
        let least_rows = self.rows.max(1);
        for (nth, &span) in spans.iter().enumerate() {
            let span = if span / step < least_rows { step * least_rows } else { span };
            let steps = if nth == 0 { 1 } else { (span / (least_rows * step)).max(1) };
            let rows = span.div_ceil(steps * step);
            args.extend(
                ["AVERAGE", "MIN", "MAX"].map(|cf| format!("RRA:{cf}:{:.10}:{steps}:{rows}", self.xff)),
            );
        }
        RrdSpec { step, starts_before: 1, args }
    }
}

/// The five texts that say whose values these are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity<'a> {
    /// The sender's name.
    pub host: &'a [u8],
    /// The plugin.
    pub plugin: &'a [u8],
    /// Which of the plugin's things; may be empty.
    pub plugin_instance: &'a [u8],
    /// The type in types.db.
    pub type_name: &'a [u8],
    /// Which of this type; may be empty.
    pub type_instance: &'a [u8],
}

impl Identity<'_> {
    /// The five texts in order.
    pub fn texts(&self) -> [&[u8]; 5] {
        [self.host, self.plugin, self.plugin_instance, self.type_name, self.type_instance]
    }

    /// True when it can name an RRD: host, plugin and type are not empty.
    pub fn is_complete(&self) -> bool {
        !(self.host.is_empty() || self.plugin.is_empty() || self.type_name.is_empty())
    }

    /// The RRD's name: `prefix/host/plugin-instance/type-instance.rrd`; none if a text would lead elsewhere or break lines.
    pub fn rrd_name(&self, prefix: &str) -> Option<Vec<u8>> {
        let mut name = Vec::with_capacity(128);
        name.extend_from_slice(prefix.as_bytes());
        if !prefix.is_empty() && !prefix.ends_with('/') {
            name.push(b'/');
        }
        push_text(&mut name, self.host);
        for (text, instance) in [(self.plugin, self.plugin_instance), (self.type_name, self.type_instance)] {
            name.push(b'/');
            push_text(&mut name, text);
            if !instance.is_empty() {
                name.push(b'-');
                push_text(&mut name, instance);
            }
        }
        name.extend_from_slice(b".rrd");
        let harmless = |component: &[u8]| !matches!(component, b"" | b"." | b"..") && component.len() <= 255;
        let is_good =
            name.split(|&byte| byte == b'/').all(harmless) && !name.iter().any(u8::is_ascii_control);
        is_good.then_some(name)
    }
}

/// Appends a text without slashes: one alone is `root`, one at the beginning goes, others become `_`.
fn push_text(name: &mut Vec<u8>, text: &[u8]) {
    let text = if text == b"/" { b"root" } else { text.strip_prefix(b"/").unwrap_or(text) };
    name.extend(text.iter().map(|&byte| if byte == b'/' { b'_' } else { byte }));
}

#[cfg(test)]
mod tests {
    use super::super::packet::ValueKind;
    use super::*;

    /// `steps:rows` of each timespan.
    fn archives(options: &RrdOptions, interval: u64) -> String {
        let source = TypeSource { name: "value".into(), kind: ValueKind::Gauge, min: Some(0.0), max: None };
        let spec = options.spec(&[source], FineTime::of_seconds(interval).unwrap());
        let averages = spec.args.iter().filter_map(|arg| arg.strip_prefix("RRA:AVERAGE:0.1000000000:"));
        averages.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn archives_are_those_of_the_rrdtool_plugin() {
        let plain = RrdOptions::default();
        assert_eq!(archives(&plain, 10), "1:1200 7:1235 50:1210 223:1202 2635:1201");
        assert_eq!(archives(&plain, 60), "1:1200 1:1440 8:1260 37:1207 439:1201");
        assert_eq!(archives(&plain, 300), "1:1200 1:1200 1:2016 7:1276 87:1212");
        assert_eq!(archives(&plain, 1), "1:3600 72:1200 504:1200 2232:1200 26352:1200");
    }

    #[test]
    fn sources_have_heartbeat_and_limits() {
        let source =
            TypeSource { name: "value".into(), kind: ValueKind::Derive, min: Some(0.0), max: Some(1.5e9) };
        let first = |options: RrdOptions, interval| {
            options.spec(std::slice::from_ref(&source), FineTime(interval)).args[0].clone()
        };
        assert_eq!(first(RrdOptions::default(), 10 << 30), "DS:value:DERIVE:20:0.000000:1500000000.000000");
        assert_eq!(first(RrdOptions::default(), 5 << 28), "DS:value:DERIVE:3:0.000000:1500000000.000000");
        let options = RrdOptions { step: Some(30), ..RrdOptions::default() };
        assert_eq!(first(options.clone(), 10 << 30), "DS:value:DERIVE:60:0.000000:1500000000.000000");
        let options = RrdOptions { heartbeat: Some(7), ..options };
        assert_eq!(first(options, 10 << 30), "DS:value:DERIVE:7:0.000000:1500000000.000000");
    }

    #[test]
    fn names_stay_inside() {
        let identity = Identity {
            host: b"h",
            plugin: b"df",
            plugin_instance: b"/",
            type_name: b"df",
            type_instance: b"/var/lib",
        };
        assert_eq!(identity.rrd_name("c").unwrap(), b"c/h/df-root/df-var_lib.rrd");
        assert_eq!(
            Identity { plugin_instance: b"", ..identity }.rrd_name("").unwrap(),
            b"h/df/df-var_lib.rrd"
        );
        for host in [&b".."[..], b".", b"/..", b"", b"a\nb"] {
            assert_eq!(Identity { host, ..identity }.rrd_name(""), None, "{host:?}");
        }
        assert!(Identity { host: b"../../etc", ..identity }.rrd_name("").unwrap().starts_with(b".._.._etc/"));
    }
}
