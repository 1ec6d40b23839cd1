//! What collectd's `write_http` sends with `Format "JSON"`: a list of values, each with its host, plugin and type.
//!
//! Series have the names and labels that collectd's own `write_prometheus` gives them: `collectd_PLUGIN[_TYPE][_DS][_total]`, with
//! `instance` for the host.

use std::borrow::Cow;

use serde::Deserialize;

use crate::fault::Fault;
use crate::number::{Number, nanoseconds};
use crate::pushed::Pushed;
use crate::refusal::{Refusal, Sink};
use crate::sample::Kind;

/// Braces and brackets of a body at most: an entry has four, and takes some hundred bytes in memory.
const BRACES_MAX: usize = 400_000;

/// An entry: the values of a type at a time.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry<'a> {
    values: Vec<Option<f64>>,
    #[serde(borrow)]
    dstypes: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    dsnames: Vec<Cow<'a, str>>,
    time: Option<f64>,
    #[serde(borrow)]
    host: Cow<'a, str>,
    #[serde(borrow)]
    plugin: Cow<'a, str>,
    #[serde(borrow)]
    plugin_instance: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    type_instance: Cow<'a, str>,
}

/// Reads a body.
///
/// # Errors
/// A text when it is no such list; then nothing has been given.
pub fn read(body: &[u8], sink: &mut dyn Sink) -> Result<(), String> {
    if memchr::memchr2_iter(b'{', b'[', body).count() > BRACES_MAX {
        return Err("the list is too long: send fewer values at once (BufferSize)".to_string());
    }
    let entries: Vec<Entry<'_>> = serde_json::from_slice(body).map_err(|error| {
        format!("the body is no list of values as collectd's write_http sends it: {error}")
    })?;
    let mut name = String::new();
    for (index, entry) in entries.iter().enumerate() {
        if let Err(fault) = give(entry, &mut name, sink) {
            sink.refused(Refusal { line: index + 1, text: entry.plugin.as_bytes(), fault });
        }
    }
    Ok(())
}

fn give(entry: &Entry<'_>, name: &mut String, sink: &mut dyn Sink) -> Result<(), Fault> {
    let count = entry.values.len();
    if entry.dstypes.len() != count || entry.dsnames.len() != count {
        return Err(Fault::BadForm);
    }
    if entry.plugin.is_empty() || entry.kind.is_empty() {
        return Err(Fault::NoName);
    }
    let time = entry.time.map(|time| nanoseconds(Number::Float(time)).filter(|time| *time >= 0));
    let time = time.map(|time| time.ok_or(Fault::BadTime)).transpose()?;
    let labels = labels(entry);
    for ((value, ds), ds_type) in entry.values.iter().zip(&entry.dsnames).zip(&entry.dstypes) {
        // What collectd does not know is null.
        let Some(value) = value.filter(|value| value.is_finite()) else { continue };
        let kind = match &**ds_type {
            "gauge" => Kind::Gauge,
            "counter" | "derive" => Kind::Counter,
            "absolute" => Kind::Delta,
            _ => return Err(Fault::UnknownType),
        };
        write_name(name, entry, ds, kind);
        sink.pushed(&Pushed { name, labels: &labels, time, value: Number::Float(value), kind });
    }
    Ok(())
}

fn write_name(name: &mut String, entry: &Entry<'_>, ds: &str, kind: Kind) {
    name.clear();
    name.push_str("collectd_");
    name.push_str(&entry.plugin);
    for (part, is_there) in [(&*entry.kind, entry.kind != entry.plugin), (ds, ds != "value")] {
        if is_there {
            name.push('_');
            name.push_str(part);
        }
    }
    if kind == Kind::Counter {
        name.push_str("_total");
    }
}

fn labels<'a>(entry: &'a Entry<'_>) -> Vec<(&'a str, &'a str)> {
    let mut labels = vec![("instance", &*entry.host)];
    let mut instance_label = &*entry.plugin;
    for instance in [&entry.plugin_instance, &entry.type_instance] {
        if !instance.is_empty() {
            labels.push((instance_label, instance));
            instance_label = "type";
        }
    }
    labels.retain(|(_, value)| !value.is_empty());
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorded, pieces_at_random};

    #[test]
    fn series_have_the_names_of_collectds_exporter() {
        let body = br#"[{"values":[0.5,null],"dstypes":["gauge","gauge"],"dsnames":["shortterm","midterm"],"time":1700000000.250,
            "interval":10.000,"host":"web1","plugin":"load","plugin_instance":"","type":"load","type_instance":"","meta":{"x":[1]}},
            {"values":[17,4],"dstypes":["derive","derive"],"dsnames":["rx","tx"],"time":1700000000.0,"interval":10,"host":"web1",
            "plugin":"interface","plugin_instance":"lo","type":"if_octets","type_instance":""},
            {"values":[3],"dstypes":["gauge"],"dsnames":["value"],"host":"web1","plugin":"cpu","plugin_instance":"0","type":"percent","type_instance":"idle"},
            {"values":[3],"dstypes":[],"dsnames":["value"],"plugin":"cpu","type":"percent"},
            {"values":[3],"dstypes":["odd"],"dsnames":["value"],"plugin":"cpu","type":"percent"}]"#;
        let mut sink = Recorded::default();
        read(body, &mut sink).unwrap();
        assert_eq!(
            sink.lines,
            [
                "collectd_load_shortterm{instance=web1} 0.5 @1700000000250000000 Gauge",
                "collectd_interface_if_octets_rx_total{instance=web1,interface=lo} 17 @1700000000000000000 Counter",
                "collectd_interface_if_octets_tx_total{instance=web1,interface=lo} 4 @1700000000000000000 Counter",
                "collectd_cpu_percent{instance=web1,cpu=0,type=idle} 3 @now Gauge",
                "4 bad_form: cpu",
                "5 unknown_type: cpu",
            ]
        );
        for bad in ["", "{}", "PUTVAL a/b/c 1:2"] {
            assert!(read(bad.as_bytes(), &mut sink).unwrap_err().contains("write_http"), "{bad}");
        }
        assert!(read("[".repeat(BRACES_MAX + 1).as_bytes(), &mut sink).unwrap_err().contains("too long"));
    }

    #[test]
    fn random_lists_cause_no_panic() {
        const PIECES: &[&str] = &[
            "[",
            "{",
            "\"values\":",
            "[1]",
            ",",
            "\"dstypes\":",
            "[\"gauge\"]",
            "\"dsnames\":",
            "[\"value\"]",
            "\"plugin\":",
            "\"a\"",
            "\"type\":",
            "}",
            "]",
            "1e308",
            "null",
        ];
        pieces_at_random(3_000, PIECES, crate::fuzzing::fuzz_collectd_json);
    }
}
