//! Which RRDs the words of an export mean.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use args::pattern::{has_wildcards, matches};

use super::{Peer, Result};

/// The names that the words mean, sorted: names as they are, those that patterns match, those below directories.
///
/// # Errors
/// When the daemon cannot list its RRDs, or a pattern matches none.
pub(super) fn chosen(peer: &Peer, words: &[PathBuf], all: bool) -> Result<Vec<Vec<u8>>> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_os_str().as_bytes()).collect();
    let is_name = |word: &&[u8]| !has_wildcards(word) && word.ends_with(b".rrd");
    let mut chosen: BTreeSet<Vec<u8>> =
        words.iter().filter(|word| is_name(word)).map(|word| word.to_vec()).collect();
    let others: Vec<&[u8]> = words.into_iter().filter(|word| !is_name(word)).collect();
    if !all && others.is_empty() {
        return Ok(chosen.into_iter().collect());
    }
    let known = peer.names()?;
    for word in others {
        let before = chosen.len();
        let taken = known.iter().filter(|name| takes(word, name)).cloned();
        chosen.extend(taken);
        if chosen.len() == before && has_wildcards(word) {
            return Err(format!("no RRD matches \"{}\"", String::from_utf8_lossy(word)));
        }
        if chosen.len() == before {
            // An RRD may have any name; the export says when there is none.
            chosen.insert(word.to_vec());
        }
    }
    if all {
        chosen.extend(known);
    }
    Ok(chosen.into_iter().collect())
}

/// Whether a word means an RRD: its name, a directory that it is below, or a pattern of either.
fn takes(word: &[u8], name: &[u8]) -> bool {
    let mut parts = name.split(|&byte| byte == b'/');
    let mut patterns = word.split(|&byte| byte == b'/').filter(|part| !part.is_empty());
    patterns.all(|pattern| parts.next().is_some_and(|part| pattern == part || matches(pattern, part)))
}

#[cfg(test)]
mod tests {
    use super::takes;

    #[test]
    fn words_mean_names_directories_and_patterns() {
        for (word, name, want) in [
            ("hosts", "hosts/a/load.rrd", true),
            ("hosts/", "hosts/a.rrd", true),
            ("host", "hosts/a.rrd", false),
            ("hosts/*/load.rrd", "hosts/a/load.rrd", true),
            ("hosts/*/load.rrd", "hosts/a/b/load.rrd", false),
            ("*/a*", "hosts/ab/load.rrd", true),
            ("a.rrd", "a.rrd", true),
            ("a.rrd/b", "a.rrd", false),
        ] {
            assert_eq!(takes(word.as_bytes(), name.as_bytes()), want, "{word} {name}");
        }
    }
}
