//! Limits the length of functions, duplicate names of types, and words in comments.

use std::collections::BTreeSet;

use roundel_tidy::{files, read, sources};

/// Longest function in lines: one screen.
const LINES_MAX: usize = 70;
/// Exceptions, as (end of the file's name, function): flat lists of cases. This list may only shrink.
const LONGER: &[(&str, &str)] = &[
    ("compare/graph.rs", "sessions"),
    ("oracle/scenarios.rs", "command"),
    ("oracle/session.rs", "session"),
    ("oracle/spellings.rs", "command"),
    ("tests/axis_oracle.rs", "kept_vertical"),
    ("examples/at_rest.rs", "print_shard"),
    ("segment/tests.rs", "the_document_has_these_offsets"),
];
/// Names that a crate may use for several public types. This list may only shrink.
const TWICE: &[&str] = &[
    // One per command, always said with its module.
    "Arguments",
    "Options",
    "Answer",
    "Counters",
    "Damage",
    "Entry",
    "Fetch",
    "Frame",
    "Record",
    "Request",
    "Shard",
    "Shared",
];
/// Words that comments avoid, because they are not idiomatic English for what is meant.
const WORDS: &[&str] = &[
    "anew",
    "behind",
    "herself",
    "himself",
    "nobody",
    "parted",
    "shall",
    "somebody",
    "whoever",
    "whosoever",
    "wish",
    "wishes",
];
/// Phrases that comments avoid: after a path or a quantity they are translations, not English.
const PHRASES: &[&str] =
    &["in front of", "takes apart", "taken apart", "what holds:", "is said as of", "under way"];
/// The functions of a source file with their length in lines. A function ends with the brace at its own indentation.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let Some(name) = function_name(line.trim_start()) else { continue };
        let ends = |line: &&str| line.strip_prefix(indent) == Some("}");
        // A one-line function or a declaration has no such brace before the next blank line or function.
        if !line.ends_with([';', '}'])
            && let Some(more) = lines[start..].iter().position(ends)
        {
            found.push((name, more + 1));
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let mut words = before.split_whitespace();
    let known = ["pub", "const", "async", "unsafe", "extern", "\"C\"", "\"C-unwind\""];
    let all_known = words.all(|word| known.contains(&word) || word.starts_with("pub("));
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (all_known && end > 0).then(|| &after[..end])
}

/// The crate that a source file belongs to.
fn crate_of(name: &str) -> Option<&str> {
    name.strip_prefix("crates/")?.split('/').next()
}

#[test]
fn functions_fit_on_a_screen() {
    let mut long = Vec::new();
    let mut count = 0;
    for (name, text) in sources() {
        for (function, lines) in functions(&text) {
            count += 1;
            let listed = LONGER.iter().any(|(file, longer)| name.ends_with(file) && function == *longer);
            if lines > LINES_MAX && !listed {
                long.push(format!("{name}: {function} has {lines} lines"));
            }
        }
    }
    assert!(count > 3_000, "only {count} functions were found");
    assert!(long.is_empty(), "at most {LINES_MAX} lines:\n{}", long.join("\n"));
}

#[test]
fn types_have_names_of_their_own() {
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    for (name, text) in sources() {
        let Some(owner) = crate_of(&name).filter(|_| name.contains("/src/")) else { continue };
        // It stands in for another file, whose names it has.
        if name.ends_with("_absent.rs") {
            continue;
        }
        for line in text.lines() {
            let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub union ", "pub type "];
            let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else { continue };
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let new = seen.insert((owner.to_owned(), rest[..end].to_owned()));
            assert!(
                new || TWICE.contains(&&rest[..end]),
                "{name}: {owner} has a type {} already",
                &rest[..end]
            );
        }
    }
    assert!(seen.len() > 300, "only {} types were found", seen.len());
}

#[test]
fn comments_avoid_translated_words() {
    for (name, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment).to_lowercase();
            let mut words = comment.split(|c: char| !c.is_alphanumeric());
            let word = words.find(|word| WORDS.contains(word));
            let phrase = PHRASES.iter().find(|phrase| comment.contains(**phrase)).copied();
            if let Some(found) = word.or(phrase) {
                panic!("{name}:{}: \"{found}\" (see `WORDS` in crates/tidy/tests/style.rs)", number + 1);
            }
        }
    }
}

#[test]
fn nothing_cites_what_a_clone_does_not_have() {
    let endings = [".rs", ".md", ".toml", ".sh", "Makefile", "rules", ".pl", ".py", ".c", ".html"];
    let mut all = files(&["crates", "docs", "fuzz", "bench", "debian", ".ci"], &endings);
    for name in ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "Cargo.toml", "Makefile", "README.md"]
    {
        all.push((name.to_owned(), read(name)));
    }
    let shared = ["../", "shared/"].concat();
    for (name, text) in all {
        for (number, line) in text.lines().enumerate() {
            let issue = line.match_indices("issue ").any(|(at, word)| {
                line[at + word.len()..].starts_with(|c: char| c.is_ascii_digit() || c == '#')
            });
            assert!(!issue && !line.contains(&shared), "{name}:{}: {line}", number + 1);
        }
    }
}

#[test]
fn functions_are_measured() {
    let text = "fn one() {}\nimpl A {\n    pub(crate) const fn two(\n    ) {\n        {\n        }\n    }\n}\n// a fn in text\n\
                trait B {\n    fn three();\n}\n";
    assert_eq!(functions(text), [("two", 5)]);
}
