//! What documents name exists, and what exists is documented.

use roundel_tidy::{files, read, root, sources};

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
    let roots = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"].map(|name| (name.to_owned(), read(name)));
    for (document, text) in roots.into_iter().chain(files(&["docs"], &[".md"])) {
        for path in paths_named(&text) {
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
    for (name, text) in sources() {
        for named in paths_named(&text).iter().filter(|named| named.starts_with("docs/")) {
            assert!(root().join(named).exists(), "{name} names {named}, which is not there");
        }
    }
}

#[test]
fn ci_runs_what_the_readme_says() {
    let (readme, ci) = (read("README.md"), read(".ci/run"));
    let commands = ci.lines().filter(|line| line.starts_with("make "));
    let commands: Vec<&str> = commands.map(|line| line.split(" ||").next().unwrap_or(line)).collect();
    assert_eq!(commands, ["make check", "make test"]);
    for command in commands {
        let said = readme.lines().any(|line| line.trim().starts_with(command));
        assert!(said, "README does not say {command:?}");
    }
}

/// Each test that the configuration of cargo-nextest leaves out of `make test` has a row in CONTRIBUTING.md, and the other way about.
#[test]
fn tests_that_make_test_leaves_out_are_listed() {
    let (config, page) = (read(".config/nextest.toml"), read("CONTRIBUTING.md"));
    let filter = config.split("\"\"\"").nth(1).expect("the filter of the default profile");
    let left_out: Vec<&str> = filter
        .lines()
        .map(|line| line.trim().trim_start_matches("| "))
        .filter(|line| line.contains("binary_id("))
        .map(|line| line.split_once("test(/^").map_or(line, |(_, test)| test.trim_end_matches("/))")))
        .collect();
    let table = page.split("| only in `make test-all` | why |").nth(1).expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let listed: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert!(left_out.len() > 3);
    assert_eq!(left_out, listed);
}

#[test]
fn paths_are_found_in_text() {
    let found = paths_named("see `crates/rrd/src/lib.rs`, `make test`, `a/b` and `docs/*.md`");
    assert_eq!(found, ["crates/rrd/src/lib.rs"]);
}

/// What of the lab needs no root. In a file of its own language, because that is what it tests.
#[test]
fn the_labs_own_tests_pass() {
    let lab = root().join("lab");
    let run = std::process::Command::new("/usr/bin/python3")
        .args(["-B", "-m", "unittest", "-q", "test_lab"])
        .current_dir(lab)
        .output();
    let output = run.expect("/usr/bin/python3, which `make peers` installs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
