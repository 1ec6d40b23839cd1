//! How long files may be, and how they begin.

use std::fs;
use std::path::{Path, PathBuf};

/// Longest source file in lines; a longer one is two things.
const LINES_MAX: usize = 1_000;
/// Files that are longer all the same. This list only shrinks.
const LONGER: &[&str] = &[];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// All Rust sources, as (path inside the workspace, text).
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().join("crates"), root().join("fuzz")];
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry.expect("a directory entry").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).expect("inside").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("UTF-8")));
            }
        }
    }
    found.sort();
    assert!(found.len() > 20, "the sources are not where this test looks");
    found
}

#[test]
fn files_are_one_thing() {
    for (name, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX || LONGER.contains(&name.as_str()), "{name} has {lines} lines");
    }
    for name in LONGER {
        let lines = fs::read_to_string(root().join(name)).expect("listed files exist").lines().count();
        assert!(lines > LINES_MAX, "{name} has become short enough: take it off the list");
    }
}

#[test]
fn files_say_what_they_are() {
    for (name, text) in sources() {
        let part_of_another = name.ends_with("/tests.rs");
        assert!(part_of_another || text.trim_start().starts_with("//!"), "{name} has no module header");
    }
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here, so that this file does not find itself.
    let words = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["XX", "X"].concat()];
    for (name, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment);
            for word in &words {
                let found = comment.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word);
                assert!(!found, "{name}:{}: {word}", number + 1);
            }
        }
    }
}

#[test]
fn unsafe_code_says_why() {
    // Put together here, so that this file does not find itself.
    let starts = [["unsafe", " {"].concat(), ["unsafe", " impl"].concat()];
    let mut missing = Vec::new();
    for (name, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if starts.iter().any(|start| code.contains(start)) {
                let from = number.saturating_sub(6);
                let why = lines[from..=number].iter().any(|line| line.contains("SAFETY:"));
                if !why {
                    missing.push(format!("{name}:{}", number + 1));
                }
            }
        }
    }
    assert!(missing.is_empty(), "unsafe without SAFETY: {missing:?}");
}
