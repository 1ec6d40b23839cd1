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

/// The longest text that a replacement may make, in bytes.
pub const REPLACED_BYTES_MAX: usize = 64 * 1024;

/// A replacement in Python's spelling: `\1` and `\g<name>` stand for groups.
pub struct Replacement(Vec<Part>);

enum Part {
    Text(String),
    /// A group by its number or name; one that is not there is empty.
    Group(String),
}

impl Replacement {
    /// The replacement that a text is.
    pub fn new(text: &str) -> Replacement {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            if c != '\\' {
                plain.push(c);
                continue;
            }
            let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
            let named = rest.strip_prefix("g<").and_then(|after| after.split_once('>'));
            let (group, after) = match named {
                _ if digits > 0 => rest.split_at(digits),
                Some(named) => named,
                None => {
                    rest = escape(&mut plain, rest);
                    continue;
                }
            };
            parts.extend([Part::Text(std::mem::take(&mut plain)), Part::Group(group.to_owned())]);
            rest = after;
        }
        parts.push(Part::Text(plain));
        Replacement(parts)
    }

    /// A text with this in place of all that fits.
    ///
    /// # Errors
    /// When it becomes longer than [`REPLACED_BYTES_MAX`].
    pub fn apply(&self, regex: &Regex, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut push = |part: &str| match out.len() + part.len() > REPLACED_BYTES_MAX {
            true => Err(format!("the replacement makes a name of more than {REPLACED_BYTES_MAX} bytes")),
            false => {
                out.push_str(part);
                Ok(())
            }
        };
        let mut end = 0;
        for found in regex.captures_iter(text) {
            let Some(all) = found.get(0) else { continue };
            push(&text[end..all.start()])?;
            end = all.end();
            for part in &self.0 {
                push(match part {
                    Part::Text(text) => text,
                    Part::Group(group) => {
                        let by_number = group.parse().ok().and_then(|number| found.get(number));
                        by_number.or_else(|| found.name(group)).map_or("", |group| group.as_str())
                    }
                })?;
            }
        }
        push(&text[end..])?;
        Ok(out)
    }
}

/// Appends what a backslash and the beginning of `rest` mean; gives what is left.
fn escape<'a>(out: &mut String, rest: &'a str) -> &'a str {
    let mut chars = rest.chars();
    out.push(match chars.next() {
        Some('n') => '\n',
        Some('t') => '\t',
        Some(c) => c,
        None => '\\',
    });
    chars.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_replaced() {
        let sub = |search: &str, replace: &str, text: &str| {
            Replacement::new(replace).apply(&compile(search).unwrap(), text).unwrap()
        };
        assert_eq!(sub(r"^.*\.(\w+)\.(\w+)$", r"\2-\1", "a.b.c"), "c-b");
        assert_eq!(sub(r"(?P<x>b)", r"[\g<x>]$1", "abc"), "a[b]$1c");
        assert_eq!(sub("b", r"\\", "abc"), r"a\c");
        assert_eq!(sub("(b)|c", r"[\1\7]", "abcd"), "a[b][]d");
        let long = Replacement::new(&r"\1".repeat(10_000));
        assert!(long.apply(&compile("(.*)").unwrap(), &"a".repeat(10_000)).unwrap_err().contains("65536"));
        assert!(compile("(?=a)").unwrap_err().contains("look-around"));
        assert!(compile("((a{1000}){1000}){1000}").unwrap_err().contains("memory"));
    }
}
