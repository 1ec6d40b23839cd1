//! Wildcards in the files of DEFs: `*`, `?`, `[abc]`, `[a-z]`, `[!abc]`, each within one name of a path.
//!
//! What the wildcards of a pattern stand for is a *match*. Several DEFs with wildcards belong together where
//! their matches are the same texts: `DEF:rx=*/rx.rrd:..` and `DEF:tx=*/tx.rrd:..` meet directory by directory.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::error::QueryError;

/// Stars in one name of a path; matching takes time to the power of them.
pub(crate) const STARS_MAX: usize = 4;

/// What the wildcards of a pattern stand for, in order.
pub(crate) type Match = Vec<Vec<u8>>;

/// Whether `text` has wildcards.
pub(crate) fn has_wildcards(text: &[u8]) -> bool {
    text.iter().any(|byte| b"*?[".contains(byte))
}

/// Refuses what would take too long.
pub(crate) fn check(pattern: &[u8]) -> Result<(), QueryError> {
    let stars = |name: &[u8]| name.iter().filter(|&&byte| byte == b'*').count();
    if pattern.split(|&byte| byte == b'/').any(|name| stars(name) > STARS_MAX) {
        return Err(QueryError::Pattern(String::from_utf8_lossy(pattern).into_owned()));
    }
    Ok(())
}

/// The files that a pattern matches on this host. Directories that cannot be read have none.
pub(crate) fn of_files(pattern: &[u8]) -> BTreeMap<Match, Vec<u8>> {
    let mut found = vec![(Match::new(), PathBuf::new())];
    if pattern.starts_with(b"/") {
        found[0].1.push("/");
    }
    for name in pattern.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
        let mut next = Vec::new();
        for (matched, path) in found {
            if !has_wildcards(name) {
                next.push((matched, path.join(std::ffi::OsStr::from_bytes(name))));
                continue;
            }
            let directory = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.clone() };
            let Ok(entries) = fs::read_dir(directory) else { continue };
            for entry in entries.flatten() {
                let own = entry.file_name();
                if let Some(own_match) = match_name(name, own.as_bytes()) {
                    next.push(([matched.clone(), own_match].concat(), path.join(own)));
                }
            }
        }
        found = next;
    }
    let exists = |(_, path): &(Match, PathBuf)| path.exists();
    found
        .into_iter()
        .filter(exists)
        .map(|(matched, path)| (matched, path.into_os_string().into_vec()))
        .collect()
}

/// Those of `names` that a pattern matches.
pub(crate) fn of_list<'a>(pattern: &[u8], names: impl Iterator<Item = &'a [u8]>) -> BTreeMap<Match, Vec<u8>> {
    names.filter_map(|name| Some((match_path(pattern, name)?, name.to_vec()))).collect()
}

fn match_path(pattern: &[u8], path: &[u8]) -> Option<Match> {
    let parts = |text: &[u8]| -> Vec<Vec<u8>> {
        text.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let (patterns, names) = (parts(pattern), parts(path));
    if patterns.len() != names.len() {
        return None;
    }
    let mut all = Match::new();
    for (pattern, name) in patterns.iter().zip(&names) {
        all.extend(match_name(pattern, name)?);
    }
    Some(all)
}

/// Matches one name of a path; a star takes as little as it can. A name with a dot in front needs one in the
/// pattern.
fn match_name(pattern: &[u8], name: &[u8]) -> Option<Match> {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return None;
    }
    let mut found = Match::new();
    match_rest(pattern, name, &mut found).then_some(found)
}

fn match_rest(pattern: &[u8], name: &[u8], found: &mut Match) -> bool {
    let Some((&first, rest)) = pattern.split_first() else { return name.is_empty() };
    if first == b'*' {
        for length in 0..=name.len() {
            found.push(name[..length].to_vec());
            if match_rest(rest, &name[length..], found) {
                return true;
            }
            found.pop();
        }
        return false;
    }
    let Some((&byte, behind)) = name.split_first() else { return false };
    let (takes, rest, is_wildcard) = match first {
        b'?' => (true, rest, true),
        b'[' => match class(rest, byte) {
            Some((takes, rest)) => (takes, rest, true),
            None => (byte == b'[', rest, false),
        },
        literal => (byte == literal, rest, false),
    };
    if !takes {
        return false;
    }
    let depth = found.len();
    if is_wildcard {
        found.push(vec![byte]);
    }
    let whole = match_rest(rest, behind, found);
    if !whole {
        found.truncate(depth);
    }
    whole
}

/// `abc]`, `a-z]`, `!abc]`: whether `byte` is in it, and what stands behind; `None` when it does not close.
fn class(text: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (inverted, text) = match text {
        [b'!' | b'^', text @ ..] => (true, text),
        text => (false, text),
    };
    // A bracket in front belongs to the class.
    let end = 1 + text.iter().skip(1).position(|&byte| byte == b']')?;
    let (members, rest) = (&text[..end], &text[end + 1..]);
    let mut inside = false;
    let mut index = 0;
    while index < members.len() {
        if members.get(index + 1) == Some(&b'-') && index + 2 < members.len() {
            inside |= (members[index]..=members[index + 2]).contains(&byte);
            index += 3;
        } else {
            inside |= members[index] == byte;
            index += 1;
        }
    }
    Some((inside != inverted, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, path: &str, want: Option<&[&str]>) {
        let got = match_path(pattern.as_bytes(), path.as_bytes());
        let got =
            got.map(|texts| texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect());
        let want: Option<Vec<String>> = want.map(|texts| texts.iter().map(|text| text.to_string()).collect());
        assert_eq!(got, want, "{pattern} {path}");
    }

    #[test]
    fn wildcards_match_within_a_name() {
        check("*.rrd", "a.rrd", Some(&["a"]));
        check("*.rrd", "a/b.rrd", None);
        check("*/if_*.rrd", "host/if_eth0.rrd", Some(&["host", "eth0"]));
        check("/x/?[0-9].rrd", "x/a7.rrd", Some(&["a", "7"]));
        check("a[!b]c", "abc", None);
        check("a[]x]c", "a]c", Some(&["]"]));
        check("a[b", "a[b", Some(&[]));
        check("*", ".hidden", None);
        check(".*", ".hidden", Some(&["hidden"]));
        check("*a*a*a*", "aaaaaaaaab", Some(&["", "", "", "aaaaaab"]));
        check("*b", "aaaa", None);
    }

    #[test]
    fn files_are_found_by_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["a/rx.rrd", "b/rx.rrd", "b/tx.rrd", ".c/rx.rrd"] {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            fs::write(path, "x").expect("written");
        }
        let pattern = format!("{}/*/rx.rrd", directory.path().display());
        let found = of_files(pattern.as_bytes());
        assert_eq!(found.keys().map(|key| key[0].clone()).collect::<Vec<_>>(), [b"a", b"b"]);
        assert!(super::check(b"a/*****.rrd").is_err());
    }
}
