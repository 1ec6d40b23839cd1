//! What documents name exists, and what exists is documented.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Words in backquotes that look like a path of this workspace.
fn paths_named(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (index, piece) in text.split('`').enumerate() {
        let looks = piece.contains('/')
            && !piece.contains(char::is_whitespace)
            && !piece.contains(['*', '{', '<', '$', ':'])
            && ["crates/", "docs/", "tests/", "bench/", "fuzz/", ".ci/"]
                .iter()
                .any(|start| piece.starts_with(start));
        if index % 2 == 1 && looks && !piece.starts_with("bench/work") {
            paths.push(piece.to_string());
        }
    }
    paths
}

#[test]
fn files_that_documents_name_exist() {
    let mut documents = vec!["README.md".to_string(), "ARCHITECTURE.md".to_string()];
    for directory in ["docs", "docs/format", "docs/migrate", "docs/protocol"] {
        let Ok(entries) = fs::read_dir(root().join(directory)) else { continue };
        for entry in entries {
            let path = entry.expect("a directory entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path.strip_prefix(root()).expect("inside").display().to_string());
            }
        }
    }
    for document in documents {
        for path in paths_named(&read(&document)) {
            assert!(root().join(&path).exists(), "{document} names {path}, which is not there");
        }
    }
}

#[test]
fn the_architecture_names_real_files() {
    let paths = paths_named(&read("ARCHITECTURE.md"));
    assert!(paths.len() >= 15, "the walks of ARCHITECTURE.md name only {} files", paths.len());
}

/// Field names of the `struct File...` of the configuration: its keys.
fn configuration_keys() -> Vec<String> {
    let text = read("crates/server/src/config.rs");
    let mut keys = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("struct File") {
            inside = true;
        } else if line.starts_with('}') {
            inside = false;
        } else if inside && let Some((name, _)) = line.trim().split_once(": ") {
            keys.push(name.to_string());
        }
    }
    keys
}

#[test]
fn every_configuration_key_is_documented() {
    let example = read("roundel.example.toml");
    let keys = configuration_keys();
    assert!(keys.len() > 10, "the keys are not where this test looks: {keys:?}");
    for key in keys {
        let documented = example.lines().any(|line| {
            let line = line.trim_start_matches(['#', ':', ' ', '[']);
            line.strip_prefix(&key).is_some_and(|rest| rest.trim_start().starts_with(['=', ']', '.']))
        });
        assert!(documented, "roundel.example.toml does not know the key {key}");
    }
}

#[test]
fn formats_that_the_code_names_are_described() {
    let mut open = vec![root().join("crates")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("a directory entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("UTF-8");
                for named in paths_named(&text).iter().filter(|named| named.starts_with("docs/")) {
                    assert!(
                        root().join(named).exists(),
                        "{} names {named}, which is not there",
                        path.display()
                    );
                }
            }
        }
    }
}

#[test]
fn ci_runs_what_the_readme_says() {
    let readme = read("README.md");
    let ci = read(".ci/run");
    let command =
        ci.lines().rfind(|line| line.starts_with("exec ")).expect("a command").trim_start_matches("exec ");
    assert!(readme.lines().any(|line| line.trim().starts_with(command)), "README does not say {command:?}");
}

#[test]
fn paths_are_found_in_text() {
    let found = paths_named("see `crates/rrd/src/lib.rs`, `make test`, `a/b` and `docs/*.md`");
    assert_eq!(found, ["crates/rrd/src/lib.rs"]);
}
