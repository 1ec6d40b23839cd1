//! Wildcards as a shell has them, within one name of a path: `*`, `?`, `[abc]`, `[a-z]`, `[!abc]`, and a backslash that
//! makes the next byte mean itself. Names are bytes.

use std::ops::Range;

/// Whether `text` has wildcards.
pub fn has_wildcards(text: &[u8]) -> bool {
    text.iter().any(|byte| b"*?[".contains(byte))
}

/// Whether a pattern takes a whole name.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    captures(pattern, name).is_some()
}

/// What each wildcard of a pattern stands for in a name, in order; `None` when the pattern does not take the whole name.
/// A star takes as little as it can. Costs at most the two lengths multiplied.
pub fn captures<'n>(pattern: &[u8], name: &'n [u8]) -> Option<Vec<&'n [u8]>> {
    let (mut at, mut from) = (0, 0);
    let mut found: Vec<Range<usize>> = Vec::new();
    // The last star, by its capture, and where the pattern goes on: earlier stars never need to take more.
    let mut star = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((found.len(), at));
            found.push(from..from);
        } else if at == pattern.len() && from == name.len() {
            return Some(found.into_iter().map(|range| &name[range]).collect());
        } else if let Some((bytes, is_wildcard)) = take_one(&pattern[at..], &name[from..]) {
            if is_wildcard {
                found.push(from..from + 1);
            }
            (at, from) = (at + bytes, from + 1);
        } else {
            let (index, after) = star?;
            found.truncate(index + 1);
            if found[index].end == name.len() {
                return None;
            }
            found[index].end += 1;
            (at, from) = (after, found[index].end);
        }
    }
}

/// A pattern without its escapes.
pub fn without_escapes(pattern: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(if byte == b'\\' { bytes.next().copied().unwrap_or(byte) } else { byte });
    }
    plain
}

/// Whether the first element of a pattern, which is no star, takes the first byte of a name: the bytes of the element,
/// and whether it is a wildcard.
fn take_one(pattern: &[u8], name: &[u8]) -> Option<(usize, bool)> {
    let (&first, rest) = pattern.split_first()?;
    let &byte = name.first()?;
    let (takes, bytes, is_wildcard) = match first {
        b'\\' if !rest.is_empty() => (rest[0] == byte, 2, false),
        b'?' => (true, 1, true),
        b'[' => match take_set(rest, byte) {
            Some((takes, bytes)) => (takes, 1 + bytes, true),
            None => (byte == b'[', 1, false),
        },
        literal => (literal == byte, 1, false),
    };
    takes.then_some((bytes, is_wildcard))
}

/// Whether the set after a `[` has a byte, and the bytes of the set with its `]`; `None` when it does not close.
fn take_set(text: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(text.first(), Some(b'!' | b'^'));
    let start = usize::from(negated);
    // A bracket that comes first is a member.
    let end = start + 1 + text.get(start + 1..)?.iter().position(|&byte| byte == b']')?;
    let members = &text[start..end];
    let (mut at, mut within) = (0, false);
    while at < members.len() {
        if at + 2 < members.len() && members[at + 1] == b'-' {
            within |= (members[at]..=members[at + 2]).contains(&byte);
            at += 3;
        } else {
            within |= members[at] == byte;
            at += 1;
        }
    }
    Some((within != negated, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_the_shells() {
        let check = |pattern: &str, name: &str, want: Option<&[&str]>| {
            let got = captures(pattern.as_bytes(), name.as_bytes());
            let want: Option<Vec<&[u8]>> =
                want.map(|texts| texts.iter().map(|text| text.as_bytes()).collect());
            assert_eq!(got, want, "{pattern} {name}");
        };
        check("*.rrd", "a.rrd", Some(&["a"]));
        check("*.rrd", "a.rrdx", None);
        check("a?c*", "abc", Some(&["b", ""]));
        check("[a-c]x", "bx", Some(&["b"]));
        check("[!a-c]x", "bx", None);
        check("[]]x", "]x", Some(&["]"]));
        check("[x", "[x", Some(&[]));
        check("**", "", Some(&["", ""]));
        check("**", "ab", Some(&["", "ab"]));
        check("*a*b?*", "xaybabz", Some(&["x", "y", "a", "bz"]));
        check("*ab", "aab", Some(&["a"]));
        check("*a*a*a*", "aaaaaaaaab", Some(&["", "", "", "aaaaaab"]));
        check("*[a-c]*d", "xbxdx", None);
        check("*b", "aaaa", None);
        check(r"a\*b", "a*b", Some(&[]));
        check(r"a\*b", "axb", None);
        assert_eq!(without_escapes(br"a\*b\\"), br"a*b\");
    }

    #[test]
    fn many_stars_come_to_an_end() {
        let (pattern, name) = ("*a".repeat(100), "a".repeat(255));
        assert!(matches(pattern.as_bytes(), name.as_bytes()));
        assert!(!matches((pattern + "b").as_bytes(), name.as_bytes()));
    }
}
