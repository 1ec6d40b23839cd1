//! Whether an RRD that is there takes the readings of a collector.
//!
//! The rule: a collector only ever appends data sources. So an RRD whose sources are the first ones of the collector's was made by an
//! earlier release or configuration, and gets the others; its history stays. Sources in another order, or too many, mean that values
//! would get into the wrong places: such readings are refused. Types, limits and names are else the operator's, who may have tuned them, unless the collector
//! tunes types and maxima itself ([`RrdSpec::tunes`]).

use std::fmt::Write as _;
use std::sync::Arc;

use collect::inventory::{RrdId, RrdSpec};
use rrd::definition::{Definition, DsKind};
use store::engine::{Engine, StoreError};
use store::name::RrdName;

use super::WriteError;

/// What becomes of an RRD.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fit {
    /// It takes the readings as it is.
    Good,
    /// It lacks these sources, as `rrdtune(1)` adds them.
    Lacks(Vec<String>),
    /// It takes no such readings, because of this.
    Other(String),
}

/// Checks RRDs, each with its name and what its collector would make, and adds what they lack.
pub(super) async fn fit_all(
    engine: &Arc<dyn Engine>,
    rrds: Vec<(RrdId, Vec<u8>, Arc<RrdSpec>)>,
) -> Vec<(RrdId, Result<(), WriteError>)> {
    if rrds.is_empty() {
        return Vec::new();
    }
    let ids: Vec<RrdId> = rrds.iter().map(|(rrd, ..)| *rrd).collect();
    let engine = Arc::clone(engine);
    let fit_them =
        move || rrds.into_iter().map(|(rrd, name, spec)| (rrd, fit_one(&*engine, &name, &spec))).collect();
    // It may read and write whole RRDs.
    let stopping =
        |_| ids.into_iter().map(|rrd| (rrd, Err(WriteError::Store(StoreError::Stopping)))).collect();
    tokio::task::spawn_blocking(fit_them).await.unwrap_or_else(stopping)
}

fn fit_one(engine: &dyn Engine, name: &[u8], spec: &RrdSpec) -> Result<(), WriteError> {
    let name = RrdName::new(name).map_err(|error| WriteError::Definition(error.to_string()))?;
    let status = engine.status_for_change(&name).map_err(WriteError::Store)?;
    if spec.tunes() {
        tune(engine, &name, &status.definition, spec)?;
    }
    match fit(&status.definition, spec) {
        Fit::Good => Ok(()),
        Fit::Other(cause) => Err(WriteError::Other(cause)),
        Fit::Lacks(sources) => {
            engine.tune(&name, &sources).map_err(WriteError::Store)?;
            tracing::info!(name = %name, "has the new data sources {}", sources.join(" "));
            Ok(())
        }
    }
}

/// Gives the data sources that are there the types and maxima of the collector's, as MRTG does with what it finds.
fn tune(engine: &dyn Engine, name: &RrdName, there: &Definition, spec: &RrdSpec) -> Result<(), WriteError> {
    let args = tune_args(there, spec);
    if args.is_empty() {
        return Ok(());
    }
    engine.tune(name, &args).map_err(WriteError::Store)?;
    tracing::info!(name = %name, "tuned to {}", args.join(" "));
    Ok(())
}

/// What `rrdtune(1)` is given so that an RRD has the types and maxima of a collector's definition.
fn tune_args(there: &Definition, spec: &RrdSpec) -> Vec<String> {
    let mut args = Vec::new();
    for wanted in spec.args.iter().filter_map(|arg| arg.strip_prefix("DS:")) {
        let [name, wanted_type, _heartbeat, _min, wanted_max] = wanted.split(':').collect::<Vec<_>>()[..]
        else {
            continue;
        };
        let source = there.ds.iter().find(|ds| ds.name == name);
        let Some(DsKind::Fed { ds_type, max, .. }) = source.map(|ds| &ds.kind) else { continue };
        if !wanted_max.parse::<f64>().map_or(max.is_nan(), |wanted| wanted == *max) {
            args.extend(["-a".to_string(), format!("{name}:{wanted_max}")]);
        }
        if ds_type.name() != wanted_type {
            args.extend(["-d".to_string(), format!("{name}:{wanted_type}")]);
        }
    }
    args
}

/// What is to be done so that an RRD takes the readings of a collector that would make it by `spec`.
fn fit(definition: &Definition, spec: &RrdSpec) -> Fit {
    let is_fed = |kind: &DsKind| matches!(kind, DsKind::Fed { .. });
    let there: Vec<&str> =
        definition.ds.iter().filter(|ds| is_fed(&ds.kind)).map(|ds| ds.name.as_str()).collect();
    let wanted: Vec<(&str, &String)> =
        spec.args.iter().filter_map(|arg| Some((arg.strip_prefix("DS:")?.split(':').next()?, arg))).collect();
    let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
    let (mut sorted_there, mut sorted_names) = (there.clone(), names.clone());
    sorted_there.sort_unstable();
    sorted_names.sort_unstable();
    if there == names || (there.len() == names.len() && sorted_there != sorted_names) {
        return Fit::Good;
    }
    if names.starts_with(&there) {
        return Fit::Lacks(wanted[there.len()..].iter().map(|(_, arg)| (*arg).clone()).collect());
    }
    let mut text = "its data sources are not this collector's: ".to_string();
    let first = there.iter().zip(&names).position(|(one, other)| one != other);
    let place = first.unwrap_or(there.len().min(names.len()));
    let say = |names: &[&str]| names.get(place).map_or("none".to_string(), |name| format!("\"{name}\""));
    // Writing to a text cannot fail.
    let _ = write!(
        text,
        "it has {} of them, and {} as number {}; the collector has {}, and {} there. Rename the RRD, or export and delete it, \
         and a new one is made",
        there.len(),
        say(&there),
        place + 1,
        names.len(),
        say(&names),
    );
    Fit::Other(text)
}

#[cfg(test)]
mod tests {
    use rrd::definition::text::{CreateOptions, Limits, parse_create};
    use rrd::when::Step;

    use super::*;

    #[test]
    fn types_and_maxima_are_tuned_where_they_differ() {
        let check = |there: &[&str], wanted: &[&str], want: &str| {
            let args = |sources: &[&str]| -> Vec<String> {
                sources.iter().chain(&["RRA:AVERAGE:0.5:1:10"]).map(|arg| arg.to_string()).collect()
            };
            let options = CreateOptions {
                step: Step { units: 10, units_per_second: 1 },
                limits: Limits::FILE,
                file_name: b"x",
            };
            let definition = parse_create(&options, &args(there)).unwrap();
            let spec = RrdSpec { step: 10, starts_before: 1, args: args(wanted) };
            assert_eq!(tune_args(&definition, &spec).join(" "), want);
        };
        let there = ["DS:a:GAUGE:30:0:55", "DS:b:COUNTER:30:0:U"];
        check(&there, &there, "");
        check(&there, &["DS:a:GAUGE:60:0:5.5e1", "DS:b:COUNTER:30:0:0x"], "");
        check(&there, &["DS:a:DERIVE:30:0:U", "DS:b:COUNTER:30:0:7"], "-a a:U -d a:DERIVE -a b:7");
        check(&there, &["DS:c:DERIVE:30:0:U", "DS:b:GAUGE:30:0:U"], "-d b:GAUGE");
    }

    #[test]
    fn sources_are_appended_and_never_exchanged() {
        let args = |names: &str| -> Vec<String> {
            let sources = names.split(' ').map(|name| format!("DS:{name}:GAUGE:30:0:U"));
            sources.chain(["RRA:AVERAGE:0.5:1:10".to_string()]).collect()
        };
        let check = |there: &str, wanted: &str| {
            let options = CreateOptions {
                step: Step { units: 10, units_per_second: 1 },
                limits: Limits::FILE,
                file_name: b"x",
            };
            let definition = parse_create(&options, &args(there)).unwrap();
            fit(&definition, &RrdSpec { step: 10, starts_before: 1, args: args(wanted) })
        };
        assert_eq!(check("a b", "a b"), Fit::Good);
        let lacks = ["DS:b:GAUGE:30:0:U", "DS:c:GAUGE:30:0:U"].map(String::from);
        assert_eq!(check("a", "a b c"), Fit::Lacks(lacks.to_vec()));
        // An operator may rename them.
        assert_eq!(check("a x", "a b"), Fit::Good);
        for (there, wanted, parts) in [
            ("b a", "a b", ["2 of them", "\"b\" as number 1", "has 2, and \"a\""]),
            ("a c", "a b c", ["2 of them", "\"c\" as number 2", "has 3, and \"b\""]),
            ("a b c", "a b", ["3 of them", "\"c\" as number 3", "has 2, and none"]),
        ] {
            let Fit::Other(text) = check(there, wanted) else { panic!("{there} {wanted}") };
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }
}
