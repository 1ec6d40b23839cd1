//! Patterns of nodes: `*`, `?`, `[a-z]`, `[!a-z]` and `{one,other}`, for one node between dots.

use regex::{Regex, RegexBuilder};

/// The most memory that a pattern may take, in bytes.
const REGEX_SIZE_MAX: usize = 4 << 20;

/// A pattern of one node.
#[derive(Clone, Debug)]
pub enum Glob {
    /// One node only.
    Exact(String),
    /// All nodes.
    Any,
    /// `**`: all nodes of any number of levels.
    Levels,
    /// Others.
    Pattern(Regex),
}

impl Glob {
    /// The pattern that a text is. Backslashes are left out.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Glob, String> {
        let text: String = text.chars().filter(|c| *c != '\\').collect();
        match &*text {
            "*" => return Ok(Glob::Any),
            "**" => return Ok(Glob::Levels),
            _ if !text.contains(['*', '?', '[', '{']) => return Ok(Glob::Exact(text)),
            _ => {}
        }
        let source = regex_of(&text);
        let built =
            RegexBuilder::new(&source).size_limit(REGEX_SIZE_MAX).dfa_size_limit(REGEX_SIZE_MAX).build();
        match built {
            Ok(regex) => Ok(Glob::Pattern(regex)),
            Err(regex::Error::CompiledTooBig(_)) => {
                Err("a pattern of a node that takes too much memory: write it shorter".to_owned())
            }
            // Such as [z-a].
            Err(_) => Ok(Glob::Exact(text)),
        }
    }

    /// Whether a node fits.
    pub fn matches(&self, node: &str) -> bool {
        match self {
            Glob::Exact(text) => text == node,
            Glob::Any | Glob::Levels => true,
            Glob::Pattern(regex) => regex.is_match(node),
        }
    }
}

/// The patterns of a path: split at its dots.
///
/// # Errors
/// What is wrong with one of them.
pub fn of_path(path: &str) -> Result<Vec<Glob>, String> {
    path.split('.').map(Glob::new).collect()
}

/// A regular expression that says the same.
fn regex_of(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let braces = matched_braces(&chars);
    let mut out = String::from("^(?s:");
    let mut depth = 0u32;
    let mut index = 0;
    while index < chars.len() {
        let c = chars[index];
        index += 1;
        match c {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '{' if braces[index - 1] => {
                depth += 1;
                out.push_str("(?:");
            }
            '}' if braces[index - 1] => {
                depth -= 1;
                out.push(')');
            }
            ',' if depth > 0 => out.push('|'),
            '[' => match class(&chars[index..]) {
                Some((class, length)) => {
                    out.push_str(&class);
                    index += length;
                }
                None => out.push_str("\\["),
            },
            c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push_str(")$");
    out
}

/// Which characters are braces with a partner.
fn matched_braces(chars: &[char]) -> Vec<bool> {
    let mut matched = vec![false; chars.len()];
    let mut open = Vec::new();
    for (index, c) in chars.iter().enumerate() {
        match c {
            '{' => open.push(index),
            '}' => {
                if let Some(start) = open.pop() {
                    matched[start] = true;
                    matched[index] = true;
                }
            }
            _ => {}
        }
    }
    matched
}

/// The class that begins after a bracket, and how many characters it takes; `None` if it does not end.
fn class(chars: &[char]) -> Option<(String, usize)> {
    let is_not = chars.first() == Some(&'!');
    let start = usize::from(is_not);
    // A bracket that comes first is one of the class.
    let end = start + 1 + chars.get(start + 1..)?.iter().position(|c| *c == ']')?;
    let mut out = String::from(if is_not { "[^" } else { "[" });
    for c in &chars[start..end] {
        if matches!(c, '[' | ']' | '\\' | '^' | '&' | '~') {
            out.push('\\');
        }
        out.push(*c);
    }
    out.push(']');
    Some((out, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_match_as_in_a_shell() {
        let check = |pattern: &str, node: &str| Glob::new(pattern).unwrap().matches(node);
        for (pattern, yes, no) in [
            ("web*", "web1", "db1"),
            ("web?", "web1", "web10"),
            ("web[1-3]", "web2", "web4"),
            ("web[!1-3]", "web4", "web2"),
            ("{web,db}1", "db1", "x1"),
            ("a{b,c{d,e}}", "ace", "ac"),
            ("a{b,}c", "ac", "abbc"),
            ("a{b", "a{b", "ab"),
            ("a*{b", "axx{b", "axb"),
            ("[ab", "[ab", "a"),
            ("a+b*", "a+b", "aab"),
            ("[]]", "]", "["),
            ("[z-a]", "[z-a]", "z"),
            ("a,b*", "a,bc", "a"),
        ] {
            assert!(check(pattern, yes), "{pattern} {yes}");
            assert!(!check(pattern, no), "{pattern} {no}");
        }
        assert!(Glob::new(&format!("a{{{}}}", "\u{100}*,".repeat(60_000))).is_err());
    }
}
