//! Wildcards in the files of DEFs ([`args::pattern`]), each within one name of a path.
//!
//! What the wildcards of a pattern stand for is a *match*. Several DEFs with wildcards belong together where
//! their matches are the same texts: `DEF:rx=*/rx.rrd:..` and `DEF:tx=*/tx.rrd:..` meet directory by directory.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use args::pattern::{captures, has_wildcards, without_escapes};

/// What the wildcards of a pattern stand for, in order.
pub(crate) type Match = Vec<Vec<u8>>;

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
                next.push((matched, path.join(std::ffi::OsStr::from_bytes(&without_escapes(name)))));
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

/// Matches one name of a path. A name with a leading dot needs one in the pattern.
fn match_name(pattern: &[u8], name: &[u8]) -> Option<Match> {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return None;
    }
    Some(captures(pattern, name)?.into_iter().map(<[u8]>::to_vec).collect())
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
    }
}
