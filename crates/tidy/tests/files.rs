//! How long files may be, and how they begin.

use roundel_tidy::{read, sources};

/// Longest source file in lines; a longer one is two things.
const LINES_MAX: usize = 1_000;
/// Files that are longer all the same. This list only shrinks.
const LONGER: &[&str] = &[];

#[test]
fn files_are_one_thing() {
    for (name, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX || LONGER.contains(&name.as_str()), "{name} has {lines} lines");
    }
    for name in LONGER {
        let lines = read(name).lines().count();
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
