//! Who may depend on whom: an arrow may only point down (`ARCHITECTURE.md`).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Crates of the house and the crates of the house they may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("rrd", &[]),
    ("localtime", &["rrd"]),
    ("store", &["rrd"]),
    ("protocol", &["rrd"]),
    ("words", &["rrd"]),
    ("graph", &["rrd", "words"]),
    ("paint", &["graph"]),
    ("collect", &["protocol", "rrd"]),
    ("server", &["collect", "graph", "localtime", "paint", "protocol", "store", "words", "rrd"]),
    ("tool", &["graph", "localtime", "paint", "protocol", "store", "words", "rrd"]),
    ("query", &["graph", "localtime", "protocol", "store", "rrd"]),
    (
        "roundel",
        &["server", "tool", "query", "collect", "protocol", "store", "localtime", "graph", "paint", "rrd"],
    ),
    ("librrd", &["tool", "graph", "localtime", "protocol", "store", "words", "rrd"]),
    // Tools: nobody may depend on them.
    ("oracle", &["rrd"]),
    ("bench", &[]),
    ("house", &[]),
];
/// Crates that only tests may use.
const FOR_TESTS: &[&str] = &["oracle", "proptest", "tempfile", "house", "bench"];
/// Crates outside that only some of the house may use.
const FENCED: &[(&str, &[&str])] = &[
    ("tokio", &["server", "roundel"]),
    ("axum", &["server"]),
    ("clap", &["roundel", "bench"]),
    ("clap_complete", &["roundel"]),
    ("clap_mangen", &["roundel"]),
    ("indicatif", &["roundel", "bench"]),
    ("procfs", &["collect", "bench", "server"]),
    ("krilla", &["paint"]),
    ("flate2", &["paint"]),
    ("harfrust", &["paint"]),
    ("png", &["paint"]),
    ("skrifa", &["paint"]),
    ("unicode-bidi", &["paint"]),
    ("unicode-script", &["paint"]),
    ("yeslogic-fontconfig-sys", &["paint"]),
];
/// All that the pure core may use: no I/O, no clock, no threads.
const CORE: &[&str] = &["bytemuck", "memchr", "quick-xml", "jiff", "foldhash", "hashbrown"];

/// Normal dependencies of each crate of the house.
fn dependencies(kind: Option<&str>) -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let mut all = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let names = package["dependencies"]
            .as_array()
            .expect("dependencies")
            .iter()
            .filter(|dependency| dependency["kind"].as_str() == kind)
            .map(|dependency| dependency["name"].as_str().expect("a name").to_string())
            .collect();
        all.insert(package["name"].as_str().expect("a name").to_string(), names);
    }
    all
}

#[test]
fn arrows_point_down() {
    let rules: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    for (name, used) in dependencies(None) {
        let Some(allowed) = rules.get(name.as_str()) else {
            panic!("crate {name} has no place in the house: add it to ARROWS and ARCHITECTURE.md");
        };
        for other in used.iter().filter(|other| rules.contains_key(other.as_str())) {
            assert!(allowed.contains(&other.as_str()), "{name} must not know {other}");
        }
    }
}

#[test]
fn test_tools_stay_in_tests() {
    for (name, used) in dependencies(None) {
        if FOR_TESTS.contains(&name.as_str()) {
            continue;
        }
        for other in &used {
            assert!(!FOR_TESTS.contains(&other.as_str()), "{name} uses {other} outside its tests");
        }
    }
}

#[test]
fn the_outside_is_fenced() {
    for (name, used) in dependencies(None) {
        for (fenced, may) in FENCED {
            assert!(!used.contains(*fenced) || may.contains(&name.as_str()), "{name} must not know {fenced}");
        }
        if name == "rrd" {
            for other in &used {
                assert!(CORE.contains(&other.as_str()), "the pure core must not know {other}");
            }
        }
    }
}
