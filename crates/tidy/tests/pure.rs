//! Promises of crates: which have no unsafe code, and which are pure functions of their arguments.

use std::fs;
use std::path::PathBuf;

use roundel_tidy::{read, root};

/// Crates that need unsafe code: the C interface, the C library's calendar, `mincore` and `cachestat`, fontconfig, the start of
/// rrdtool and the options of mimalloc. This list only shrinks.
const UNSAFE: &[&str] = &["librrd", "localtime", "pagecache", "render", "roundel"];
/// Crates whose functions depend on their arguments alone: no files, environment, clock, threads or sockets.
const PURE: &[&str] = &[
    "access", "args", "collect", "graph", "graphite", "ingest", "promql", "protocol", "render", "rrd",
    "snmp", "suggest",
];
/// The lints that the `lib.rs` of a pure crate denies. Its `clippy.toml` is a copy of `crates/tidy/pure-clippy.toml`: a
/// symbolic link does not survive every way of copying the tree.
const PURE_LINTS: &str =
    "deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)";

fn crates() -> PathBuf {
    root().join("crates")
}

/// The roots of a crate's library and executables, as text.
fn roots(name: &str) -> Vec<(PathBuf, String)> {
    let source = crates().join(name).join("src");
    let mut paths = vec![source.join("lib.rs"), source.join("main.rs")];
    if let Ok(entries) = fs::read_dir(source.join("bin")) {
        paths.extend(entries.map(|entry| entry.expect("a directory entry").path()));
    }
    paths.into_iter().filter_map(|path| Some((path.clone(), fs::read_to_string(path).ok()?))).collect()
}

#[test]
fn unsafe_code_is_forbidden_where_there_is_none() {
    let mut seen = 0;
    for entry in fs::read_dir(crates()).expect("the crates") {
        let name = entry.expect("a directory entry").file_name().into_string().expect("UTF-8");
        for (path, text) in roots(&name) {
            seen += 1;
            let forbidden = text.lines().any(|line| line == "#![forbid(unsafe_code)]");
            let listed = UNSAFE.contains(&name.as_str());
            assert!(forbidden || listed, "{} does not say #![forbid(unsafe_code)]", path.display());
            assert!(!forbidden || !listed, "{name} has no unsafe code: remove it from the list");
        }
    }
    assert!(seen > 10, "too few crates were found");
}

#[test]
fn pure_crates_forbid_files_clocks_and_environment() {
    let list = read("crates/tidy/pure-clippy.toml");
    for name in PURE {
        let own = fs::read_to_string(crates().join(name).join("clippy.toml")).unwrap_or_default();
        assert!(own == list, "crates/{name}/clippy.toml is not a copy of crates/tidy/pure-clippy.toml");
        for (path, text) in roots(name) {
            let found = text.lines().any(|line| line.starts_with("#![") && line.contains(PURE_LINTS));
            assert!(found, "{} does not say {PURE_LINTS}", path.display());
        }
    }
}
