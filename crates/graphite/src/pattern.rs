//! Regular expressions of functions such as `aliasSub`, in Python's spelling as far as the language is regular.

use regex::{Regex, RegexBuilder};

/// The longest regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 16 * 1024;
/// The most memory that one may take, in bytes.
const REGEX_SIZE_MAX: usize = 4 << 20;

/// A regular expression.
///
/// # Errors
/// What is wrong with it: too long or large, not one, or beyond regular languages (`(?=`, `\1`).
pub fn compile(text: &str) -> Result<Regex, String> {
    if text.len() > REGEX_BYTES_MAX {
        return Err(format!("a regular expression of {} bytes, more than {REGEX_BYTES_MAX}", text.len()));
    }
    let built = RegexBuilder::new(text).size_limit(REGEX_SIZE_MAX).dfa_size_limit(REGEX_SIZE_MAX).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            format!("the regular expression {text:?} takes too much memory: write it shorter")
        }
        error => {
            let lines = error.to_string();
            format!("the regular expression {text:?}: {}", lines.lines().last().unwrap_or_default())
        }
    })
}

/// Python's replacement text (`\1`, `\g<name>`) as the library writes it (`${1}`).
pub fn replacement(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '$' => out.push_str("$$"),
            '\\' => rest = escape(&mut out, rest),
            c => out.push(c),
        }
    }
    out
}

/// Appends what a backslash and the beginning of `rest` mean; gives what is left.
fn escape<'a>(out: &mut String, rest: &'a str) -> &'a str {
    let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        out.push_str(&format!("${{{}}}", &rest[..digits]));
        return &rest[digits..];
    }
    let named = rest.strip_prefix("g<").and_then(|after| after.split_once('>'));
    if let Some((name, after)) = named {
        out.push_str(&format!("${{{name}}}"));
        return after;
    }
    let mut chars = rest.chars();
    match chars.next() {
        Some('n') => out.push('\n'),
        Some('t') => out.push('\t'),
        Some('$') => out.push_str("$$"),
        Some(c) => out.push(c),
        None => out.push('\\'),
    }
    chars.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_replaced() {
        let sub = |search: &str, replace: &str, text: &str| {
            compile(search).unwrap().replace_all(text, replacement(replace)).into_owned()
        };
        assert_eq!(sub(r"^.*\.(\w+)\.(\w+)$", r"\2-\1", "a.b.c"), "c-b");
        assert_eq!(sub(r"(?P<x>b)", r"[\g<x>]$1", "abc"), "a[b]$1c");
        assert_eq!(sub("b", r"\\", "abc"), r"a\c");
        assert!(compile("(?=a)").unwrap_err().contains("look-around"));
        assert!(compile("((a{1000}){1000}){1000}").unwrap_err().contains("memory"));
    }
}
