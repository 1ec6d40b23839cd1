//! `rrdtool list`: the RRDs and directories of a directory.
//!
//! Compat: in the order of the file system; what ends in `.rrd` (a pipe too), and directories; the last part
//! of the path may be a pattern, which then takes any name. What cannot be listed prints nothing and is no
//! error; the reason goes to standard error.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::failure::{Done, Failure, system_text};
use crate::options::{Known, Options, flag, with_argument};
use crate::{Tool, Words, print};

/// What it does and its syntax.
pub const SYNTAX: &str = "list - the RRDs of a directory\n\n\
    \trrdtool list [--daemon|-d address] [--noflush|-F] [--recursive|-r] directory\n";

const USAGE: &str = "Usage: rrdtool list [--daemon <addr> [--noflush]] [--recursive] <directory>";
/// How deep directories are followed. Guessed; a path has at most 4096 bytes.
const DEPTH_MAX: usize = 2048;

#[derive(Clone, Copy)]
enum Tag {
    Daemon,
    NoFlush,
    Recursive,
}

const OPTIONS: &[Known<Tag>] = &[
    with_argument(b'd', "daemon", Tag::Daemon),
    flag(b'F', "noflush", Tag::NoFlush),
    flag(b'r', "recursive", Tag::Recursive),
];

/// The names, one a line.
///
/// # Errors
/// In RRDtool's words. A directory that cannot be listed is `Ok(Err(...))`.
pub fn list(tool: &mut Tool, words: Words<'_>) -> Done<io::Result<Vec<u8>>> {
    let mut options = Options::new(OPTIONS, words);
    let (mut daemon, mut flush, mut recursive) = (None, true, false);
    while let Some(given) = options.next() {
        match given? {
            (Tag::Daemon, word) => daemon = Some(word),
            (Tag::NoFlush, _) => flush = false,
            (Tag::Recursive, _) => recursive = true,
        }
    }
    let &[directory] = &*options.rest() else { return Err(Failure::new(USAGE)) };
    let address = tool.address(daemon)?;
    if daemon.is_some_and(|address| !address.is_empty()) {
        // Named on the command line it must be there.
        tool.link.connect(address.as_deref().unwrap_or_default())?;
    }
    if tool.link.reach(address.as_deref()) {
        return remote(tool, directory, flush, recursive).map(Ok);
    }
    if daemon.is_some() {
        // Compat: an empty address is none, and nothing is listed, with success.
        return Ok(Err(io::Error::other("Error connecting to rrdcached")));
    }
    tool.surroundings.path(parent_of_pattern(directory))?;
    if directory.windows(2).any(|pair| pair == b"..") {
        // Compat: two dots anywhere, in a name as well.
        return Ok(Err(Errno::ACCESS.into()));
    }
    let path = Path::new(OsStr::from_bytes(directory));
    let mut found = Vec::new();
    Ok(local(path, recursive, &mut found).map(|()| found))
}

fn remote(tool: &mut Tool, directory: &[u8], flush: bool, recursive: bool) -> Done<Vec<u8>> {
    let mut daemon = tool.link.current();
    if flush {
        daemon.ask("flushall", &[])?;
    }
    let words: &[&[u8]] = if recursive { &[b"RECURSIVE", directory] } else { &[directory] };
    let mut text = daemon.ask("list", words)?.lines.join(&b'\n');
    if !text.is_empty() {
        text.push(b'\n');
    }
    Ok(text)
}

/// The directory that has to be there: in front of a pattern, or the whole.
fn parent_of_pattern(directory: &[u8]) -> &[u8] {
    match memchr::memrchr(b'/', directory) {
        Some(at) if directory.contains(&b'*') || directory.contains(&b'?') => &directory[..at + 1],
        _ => directory,
    }
}

fn local(path: &Path, recursive: bool, found: &mut Vec<u8>) -> io::Result<()> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            if recursive {
                let mut above = vec![(metadata.dev(), metadata.ino())];
                descend(path, &mut PathBuf::new(), &mut above, found)
            } else {
                each(path, |name, directory| {
                    if directory || name.ends_with(b".rrd") {
                        found.extend_from_slice(name);
                        found.push(b'\n');
                    }
                    Ok(())
                })
            }
        }
        Ok(_) => Err(io::Error::from_raw_os_error(Errno::INVAL.raw_os_error())),
        Err(error) => matching(path, recursive, found, error),
    }
}

/// A pattern as the last part of the path: every name it matches. `error` is why the path itself is none.
fn matching(path: &Path, recursive: bool, found: &mut Vec<u8>, error: io::Error) -> io::Result<()> {
    let (Some(parent), Some(pattern)) = (path.parent(), path.file_name()) else { return Err(error) };
    let pattern = pattern.as_bytes();
    let is_pattern = pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['));
    if parent.as_os_str().is_empty() || !is_pattern || !parent.is_dir() {
        return Err(error);
    }
    if recursive {
        return Err(io::Error::from_raw_os_error(Errno::INVAL.raw_os_error()));
    }
    let mut names: Vec<Vec<u8>> = std::fs::read_dir(parent)?
        .flatten()
        .map(|entry| entry.file_name().as_bytes().to_vec())
        .filter(|name| (!name.starts_with(b".") || pattern.starts_with(b".")) && matches(pattern, name))
        .collect();
    names.sort();
    if names.is_empty() {
        return Err(error);
    }
    for name in names {
        found.extend_from_slice(&name);
        found.push(b'\n');
    }
    Ok(())
}

/// Every `.rrd` below, by its path from the start. Links are followed, but not into what is being listed.
fn descend(
    directory: &Path,
    prefix: &mut PathBuf,
    above: &mut Vec<(u64, u64)>,
    found: &mut Vec<u8>,
) -> io::Result<()> {
    each(directory, |name, is_directory| {
        let name = OsStr::from_bytes(name);
        prefix.push(name);
        if is_directory {
            let path = directory.join(name);
            let identity = path.metadata().map(|found| (found.dev(), found.ino()));
            if let Ok(identity) = identity
                && !above.contains(&identity)
                && above.len() < DEPTH_MAX
            {
                above.push(identity);
                // What cannot be read below does not hide the rest.
                descend(&path, prefix, above, found).ok();
                above.pop();
            }
        } else if name.as_bytes().ends_with(b".rrd") {
            found.extend_from_slice(prefix.as_os_str().as_bytes());
            found.push(b'\n');
        }
        prefix.pop();
        Ok(())
    })
}

/// Calls `take` with each name of a directory and whether it is one itself; dangling links are left out.
fn each(directory: &Path, mut take: impl FnMut(&[u8], bool) -> io::Result<()>) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if let Ok(metadata) = std::fs::metadata(entry.path()) {
            take(entry.file_name().as_bytes(), metadata.is_dir())?;
        }
    }
    Ok(())
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

/// Runs it.
pub(crate) fn run(tool: &mut Tool, words: Words<'_>, out: &mut dyn Write) -> Done {
    match list(tool, words)? {
        Ok(names) => print(out, &names),
        Err(error) => {
            // Nobody to tell if that fails.
            io::stderr().write_all(system_text(&error).as_bytes()).ok();
            Ok(())
        }
    }
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
