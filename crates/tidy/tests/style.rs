//! How long functions may be, how types are called, and what comments must not say.

use std::collections::{BTreeMap, BTreeSet};

use roundel_tidy::{files, read, sources};

/// Longest function in lines: one screen.
const LINES_MAX: usize = 70;
/// Longer functions, as (end of the file's name, function): flat lists of cases. This list only shrinks.
const LONGER: &[(&str, &str)] = &[
    ("compare/graph.rs", "sessions"),
    ("oracle/scenarios.rs", "command"),
    ("oracle/session.rs", "session"),
    ("oracle/spellings.rs", "command"),
    ("tests/axis_oracle.rs", "kept_vertical"),
    ("examples/at_rest.rs", "print_shard"),
    ("segment/tests.rs", "the_document_has_these_offsets"),
];
/// Types that a crate has twice at the top of a module. This list only shrinks.
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
/// Words that comments do without: they are no idiomatic English for what is meant, or name nothing.
const WORDS: &[&str] = &["behind", "parted", "wish", "wishes", "whoever", "somebody", "nobody", "shall"];
/// How often the comments of all crates together still say one of them. Only shrinks.
const WORDS_MAX: usize = 130;
/// Crates whose comments are free of them, and stay so.
const WORDS_GONE: &[&str] = &[
    "args",
    "bench",
    "collect",
    "graph",
    "librrd",
    "localtime",
    "oracle",
    "query",
    "render",
    "rrd",
    "rrdgraph",
    "tidy",
];

/// The functions of a source file, with how many lines they have. A function ends with the brace under its beginning.
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
fn comments_are_english() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (name, text) in sources() {
        let Some(owner) = crate_of(&name) else { continue };
        for (number, line) in text.lines().enumerate() {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment).to_lowercase();
            for word in comment.split(|c: char| !c.is_alphanumeric()).filter(|word| WORDS.contains(word)) {
                assert!(!WORDS_GONE.contains(&owner), "{name}:{}: \"{word}\"", number + 1);
                *counts.entry(owner.to_owned()).or_default() += 1;
            }
        }
    }
    let all: usize = counts.values().sum();
    assert!(
        all <= WORDS_MAX,
        "{all} comments say one of {WORDS:?}, more than the {WORDS_MAX} of before: {counts:?}"
    );
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
