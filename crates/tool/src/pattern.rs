//! Patterns of paths, as a shell has them: `*`, `?`, `[...]`, and a backslash in front of what means itself.
//!
//! Owns the matching of names and the walk through directories. Names that begin with a dot are matched only
//! by a pattern that does. Nothing is said of what cannot be read.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Every path that a pattern matches, in the order of their bytes.
pub fn expand(pattern: &[u8]) -> Vec<Vec<u8>> {
    let mut paths = vec![Vec::new()];
    let mut parts = pattern.split(|&byte| byte == b'/').peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let mut longer = Vec::new();
        for path in paths {
            each_match(path, part, last, &mut longer);
        }
        if !last {
            longer.iter_mut().for_each(|path| path.push(b'/'));
        }
        paths = longer;
    }
    paths.retain(|path| as_path(path).symlink_metadata().is_ok());
    paths.sort();
    paths
}

/// The path with each name behind it that the part matches; only directories where more follows.
fn each_match(path: Vec<u8>, part: &[u8], last: bool, found: &mut Vec<Vec<u8>>) {
    if memchr::memchr3(b'*', b'?', b'[', part).is_none() {
        found.push([path, without_escapes(part)].concat());
        return;
    }
    let directory: &[u8] = if path.is_empty() { b"." } else { &path };
    let Ok(entries) = std::fs::read_dir(as_path(directory)) else { return };
    let names = entries.flatten().map(|entry| entry.file_name().as_bytes().to_vec());
    for name in names.chain([b".".to_vec(), b"..".to_vec()]) {
        if (!name.starts_with(b".") || part.starts_with(b".")) && matches(part, &name) {
            let longer = [&*path, &name].concat();
            if last || as_path(&longer).is_dir() {
                found.push(longer);
            }
        }
    }
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

fn without_escapes(part: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(part.len());
    let mut bytes = part.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(if byte == b'\\' { bytes.next().copied().unwrap_or(byte) } else { byte });
    }
    plain
}

/// Whether a shell pattern of `*`, `?` and `[...]` takes a whole name. Costs at most their lengths multiplied.
fn matches(mut pattern: &[u8], mut name: &[u8]) -> bool {
    // What stands behind the last star, and the name from where that begins: earlier stars need take no more.
    let mut star = None;
    loop {
        if let [b'*', behind @ ..] = pattern {
            (pattern, star) = (behind, Some((behind, name)));
        } else if pattern.is_empty() && name.is_empty() {
            return true;
        } else if let Some(left) = matches_one(pattern, name) {
            (pattern, name) = left;
        } else if let Some((behind, [_, later @ ..])) = star {
            (pattern, name, star) = (behind, later, Some((behind, later)));
        } else {
            return false;
        }
    }
}

/// What is left of a pattern without a star in front and of a name, when the first byte is taken.
fn matches_one<'p, 'n>(pattern: &'p [u8], name: &'n [u8]) -> Option<(&'p [u8], &'n [u8])> {
    let ((&first, pattern), (&byte, name)) = (pattern.split_first()?, name.split_first()?);
    let (takes, pattern) = match first {
        b'\\' if !pattern.is_empty() => (pattern[0] == byte, &pattern[1..]),
        b'?' => (true, pattern),
        b'[' => match set(pattern) {
            Some((takes, pattern)) => (takes(byte), pattern),
            None => (byte == b'[', pattern),
        },
        first => (first == byte, pattern),
    };
    takes.then_some((pattern, name))
}

/// The set behind `[`, and what stands behind its `]`.
fn set(pattern: &[u8]) -> Option<(impl Fn(u8) -> bool, &[u8])> {
    let (negated, body) = match pattern {
        [b'!' | b'^', body @ ..] => (true, body),
        body => (false, body),
    };
    // A bracket that comes first is one of the set.
    let end = 1 + memchr::memchr(b']', body.get(1..)?)?;
    let members = body[..end].to_vec();
    let takes = move |byte: u8| {
        let mut at = 0;
        let mut within = false;
        while at < members.len() {
            if at + 2 < members.len() && members[at + 1] == b'-' {
                within |= (members[at]..=members[at + 2]).contains(&byte);
                at += 3;
            } else {
                within |= members[at] == byte;
                at += 1;
            }
        }
        within != negated
    };
    Some((takes, &body[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_the_shells() {
        for (pattern, name, want) in [
            ("*.rrd", "a.rrd", true),
            ("*.rrd", "a.rrdx", false),
            ("a?c*", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]x", "]x", true),
            ("[x", "[x", true),
            ("**", "", true),
            ("*a*b?*", "xaybabz", true),
            ("*ab", "aab", true),
            ("*[a-c]*d", "xbxdx", false),
            (r"a\*b", "a*b", true),
            (r"a\*b", "axb", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), want, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_come_to_an_end() {
        let (pattern, name) = ("*a".repeat(100), "a".repeat(255));
        assert!(matches(pattern.as_bytes(), name.as_bytes()));
        assert!(!matches((pattern + "b").as_bytes(), name.as_bytes()));
    }
}
