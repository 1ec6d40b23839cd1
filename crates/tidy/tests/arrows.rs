//! Who may depend on whom: an arrow may only point down (`ARCHITECTURE.md`); and every dependency is used.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use roundel_tidy::sources;
use serde_json::Value;

/// Crates of the house and the crates of the house they may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("rrd", &[]),
    ("localtime", &["rrd"]),
    ("disk", &[]),
    ("rrd-file", &["disk", "rrd"]),
    ("store", &["disk", "rrd", "rrd-file"]),
    ("backup", &["store"]),
    ("cluster", &["args", "disk", "rrd", "rrd-file", "store"]),
    ("protocol", &["rrd"]),
    ("args", &["rrd"]),
    ("client", &["protocol", "rrd-file", "rrd"]),
    ("graph", &["rrd", "args"]),
    ("render", &["args", "graph"]),
    ("snmp", &[]),
    ("collect", &["protocol", "args", "rrd", "snmp"]),
    ("suggest", &["args", "rrd"]),
    ("access", &["args", "protocol"]),
    ("ingest", &["rrd"]),
    ("promql", &["rrd"]),
    ("graphite", &["rrd"]),
    ("exchange", &["args", "client", "ingest", "rrd"]),
    ("pagecache", &["graph", "rrd", "rrd-file"]),
    ("rrdgraph", &["graph", "localtime", "render", "args", "rrd"]),
    (
        "server",
        &[
            "backup",
            "client",
            "cluster",
            "collect",
            "exchange",
            "rrdgraph",
            "graph",
            "localtime",
            "render",
            "protocol",
            "snmp",
            "store",
            "access",
            "suggest",
            "promql",
            "graphite",
            "ingest",
            "args",
            "rrd",
        ],
    ),
    ("cli", &["client", "rrdgraph", "graph", "localtime", "protocol", "rrd-file", "args", "rrd"]),
    ("mount", &["client", "protocol", "rrd", "rrd-file"]),
    ("query", &["args", "client", "rrdgraph", "graph", "protocol", "rrd-file", "rrd"]),
    (
        "roundel",
        &[
            "access",
            "args",
            "server",
            "backup",
            "exchange",
            "ingest",
            "cli",
            "client",
            "mount",
            "pagecache",
            "query",
            "collect",
            "protocol",
            "snmp",
            "store",
            "localtime",
            "graph",
            "render",
            "rrd",
            "rrd-file",
        ],
    ),
    ("librrd", &["cli", "client", "graph", "localtime", "protocol", "rrd-file", "rrd"]),
    // Tools: no crate may depend on them.
    ("testkit", &[]),
    ("bench", &[]),
    ("tidy", &[]),
];
/// Crates that only tests may use.
const FOR_TESTS: &[&str] = &["testkit", "tempfile", "tidy", "bench"];
/// Crates outside that only some of the house may use.
const FENCED: &[(&str, &[&str])] = &[
    ("tokio", &["server", "backup", "roundel"]),
    ("axum", &["server"]),
    ("clap", &["roundel", "bench"]),
    ("clap_complete", &["roundel"]),
    ("clap_mangen", &["roundel"]),
    ("indicatif", &["roundel", "bench"]),
    ("procfs", &["collect", "bench", "server"]),
    ("fuser", &["mount"]),
    ("krilla", &["render"]),
    // `rustix` has all but what the workspace's Cargo.toml names.
    ("nix", &["server", "cli", "store"]),
    ("flate2", &["collect", "render", "server"]),
    ("bcrypt", &["server"]),
    ("rustls", &["backup", "bench", "client", "cluster", "server"]),
    ("object_store", &["backup"]),
    ("rdkafka", &["cluster"]),
    ("ring", &["backup", "cluster"]),
    ("serde-saphyr", &["server"]),
    ("harfrust", &["render"]),
    ("png", &["render"]),
    ("skrifa", &["render"]),
    ("unicode-bidi", &["render"]),
    ("unicode-script", &["render"]),
    ("yeslogic-fontconfig-sys", &["render"]),
];
/// Dependencies whose name the sources do not say: (crate, dependency, what they say instead, if anything).
const NAMED_OTHERWISE: &[(&str, &str, Option<&str>)] = &[
    ("render", "yeslogic-fontconfig-sys", Some("fontconfig_sys")),
    // For a feature that object_store's copy of it needs.
    ("backup", "reqwest", None),
    // Itself, with its features.
    ("cluster", "cluster", Some("roundel_cluster")),
    // For librrd.so beside the tests.
    ("roundel", "librrd", None),
];
/// All that the pure core may use: no I/O, no clock, no threads.
const CORE: &[&str] = &["bytemuck", "memchr", "quick-xml", "foldhash", "hashbrown"];

/// A package's name without the prefix that all crates of the workspace but the executable carry.
fn short(name: &Value) -> String {
    let name = name.as_str().expect("a name");
    name.strip_prefix("roundel-").unwrap_or(name).to_string()
}

/// The packages of the workspace as `cargo metadata` tells them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    match metadata["packages"].take() {
        Value::Array(packages) => packages,
        other => panic!("packages: {other}"),
    }
}

/// The dependencies of one kind of each crate of the house.
fn dependencies(kind: Option<&str>) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for package in packages() {
        let names = package["dependencies"]
            .as_array()
            .expect("dependencies")
            .iter()
            .filter(|dependency| dependency["kind"].as_str() == kind)
            .map(|dependency| short(&dependency["name"]))
            .collect();
        all.insert(short(&package["name"]), names);
    }
    all
}

/// Whether a line of code, not of a comment, names the crate: `name::` or `name;`.
fn names_crate(text: &str, name: &str) -> bool {
    let mut code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.any(|line| {
        line.match_indices(name).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = &line[at + name.len()..];
            let starts = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
            starts && (after.starts_with("::") || after.starts_with(';') || after.starts_with(" as "))
        })
    })
}

/// Where a dependency of this kind must be named: the library's own code, its tests, or the build script.
fn may_name(kind: Option<&str>, path: &str) -> bool {
    let build = path.ends_with("/build.rs");
    match kind {
        Some("build") => build,
        Some(_) => !build,
        None => path.contains("/src/") && !path.ends_with("/tests.rs") && !path.contains("/tests/"),
    }
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

#[test]
fn dependencies_are_used() {
    let all = sources();
    let mut unused = Vec::new();
    for package in packages() {
        let owner = short(&package["name"]);
        let folder = format!("crates/{owner}/");
        let files = || all.iter().filter(|(path, _)| path.starts_with(&folder));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let name = short(&dependency["name"]);
            let otherwise = NAMED_OTHERWISE.iter().find(|entry| entry.0 == owner && entry.1 == name);
            let said = match otherwise {
                Some((_, _, None)) => continue,
                Some((_, _, Some(said))) => (*said).to_owned(),
                None => dependency["rename"].as_str().unwrap_or(&name).replace('-', "_"),
            };
            let kind = dependency["kind"].as_str();
            let used = files().any(|(path, text)| {
                // What stands under `cfg(test)` at the foot of a file is a test.
                let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
                may_name(kind, path) && names_crate(if kind.is_none() { own } else { text }, &said)
            });
            if !used {
                unused.push(format!("{owner} -> {name}"));
            }
        }
    }
    assert!(unused.is_empty(), "dependencies that nothing uses: {unused:?}");
}
