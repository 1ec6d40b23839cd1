//! Parts that a build leaves out say so: which feature is missing, and which build has it. In a build with all features, this file
//! only tests that the commands are listed without a mark. `make variants` runs it for the default build.

use std::process::{Command, Output};

fn roundel(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundel"));
    command.args(words).env_remove("RRDCACHED_ADDRESS").output().expect("roundel runs")
}

/// What a refusal says: one line, status 1.
#[cfg(not(feature = "full"))]
fn refused(words: &[&str], subject: &str, feature: &str) {
    let output = roundel(words);
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let want = format!(
        "{subject}: this build lacks the feature \"{feature}\"; the Debian packages have it, and so has the build by make run FEATURES=full"
    );
    assert!(text.contains(&want), "{words:?}: {text}");
}

#[test]
fn commands_are_listed_and_marked_if_they_are_missing() {
    let help = String::from_utf8(roundel(&["--help"]).stdout).unwrap();
    for (command, is_built) in [
        ("backup", cfg!(feature = "backup")),
        ("capacity", cfg!(feature = "pagecache")),
        ("cluster", cfg!(feature = "cluster")),
        ("fadvise", cfg!(feature = "pagecache")),
        ("fincore", cfg!(feature = "pagecache")),
        ("mount", cfg!(feature = "mount")),
        ("pagecache", cfg!(feature = "pagecache")),
        ("serve", true),
    ] {
        let line = help.lines().find(|line| line.trim_start().starts_with(&format!("{command} ")));
        let line = line.unwrap_or_else(|| panic!("no {command}: {help}"));
        assert_eq!(line.contains("[not in this build: feature"), !is_built, "{line}");
    }
}

#[cfg(not(feature = "full"))]
#[test]
fn a_missing_command_names_its_feature() {
    for (command, feature, is_built) in [
        ("backup", "backup", cfg!(feature = "backup")),
        ("capacity", "pagecache", cfg!(feature = "pagecache")),
        ("cluster", "cluster", cfg!(feature = "cluster")),
        ("mount", "mount", cfg!(feature = "mount")),
    ] {
        for words in [&[command][..], &[command, "--to", "x", "--help"]] {
            if !is_built {
                refused(words, command, feature);
            }
        }
    }
}

#[cfg(not(feature = "full"))]
#[test]
fn a_missing_section_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("roundel.toml");
    for (text, subject, feature, is_built) in [
        ("[cluster]\nname = 'c'\n", "[cluster]", "cluster", cfg!(feature = "cluster")),
        ("[backup]\nto = '/b'\n", "[backup]", "backup", cfg!(feature = "backup")),
        ("[[sink]]\nto = 'parquet:/x'\n", "[[sink]]", "exchange", cfg!(feature = "exchange")),
        (
            "[[forward]]\nname = 'p'\nto = 'http://127.0.0.1:1/'\n",
            "[[forward]] to an http:// or https:// URL",
            "http-client",
            cfg!(feature = "http-client"),
        ),
    ] {
        std::fs::write(&config, text).unwrap();
        if !is_built {
            refused(&["validate", config.to_str().unwrap()], subject, feature);
        }
    }
}

#[cfg(not(feature = "full"))]
#[test]
fn a_missing_format_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let rrd = directory.path().join("a.rrd");
    let rrd = rrd.to_str().unwrap();
    let run = |words: &[&str]| roundel(&[&["rrdtool"], words].concat());
    assert!(run(&["create", rrd, "DS:x:GAUGE:600:U:U", "RRA:LAST:0.5:1:10"]).status.success());
    if cfg!(not(feature = "pdf")) {
        let picture = directory.path().join("a.pdf");
        let picture = picture.to_str().unwrap();
        let output = run(&["graph", picture, "-a", "PDF", &format!("DEF:x={rrd}:x:LAST"), "LINE:x#000000"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && text.contains("PDF: this build lacks the feature \"pdf\""),
            "{text}"
        );
    }
    if cfg!(not(feature = "arrow")) {
        let def = format!("DEF:x={rrd}:x:LAST");
        refused(&["query", &def, "--format", "parquet"], "Parquet", "arrow");
    }
    if cfg!(not(feature = "exchange")) {
        refused(&["export", "--all", "--to", "parquet:x"], "export --to parquet:", "exchange");
        refused(&["import", "--format", "whisper", "x"], "import --format whisper", "exchange");
    }
}
