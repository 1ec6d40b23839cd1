//! `rrdtool list`: the RRDs and directories of a directory.
//!
//! Compat: in the order of the file system; names that end in `.rrd` (even of a pipe), and directories; the
//! path may be a pattern, which then matches any name. For a path that cannot be listed nothing is printed
//! and the command succeeds; the reason goes to standard error.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use client::{ClientError, Daemon};
use rustix::io::Errno;

use crate::daemon::failure;
use crate::failure::{Failure, Result, system_text};
use crate::options::{OptionSpec, Options, flag, with_argument};
use crate::pattern;
use crate::{Args, Tool, print};

/// Summary and syntax.
pub const SYNTAX: &str = "list - the RRDs of a directory\n\n\
    \trrdtool list [--daemon|-d address] [--noflush|-F] [--recursive|-r] directory\n";

const USAGE: &str = "Usage: rrdtool list [--daemon <addr> [--noflush]] [--recursive] <directory>";
/// The deepest nesting of directories that is followed. Guessed; a path has at most 4096 bytes.
const DEPTH_MAX: usize = 2048;

#[derive(Clone, Copy)]
enum Tag {
    Daemon,
    NoFlush,
    Recursive,
}

const OPTIONS: &[OptionSpec<Tag>] = &[
    with_argument(b'd', "daemon", Tag::Daemon),
    flag(b'F', "noflush", Tag::NoFlush),
    flag(b'r', "recursive", Tag::Recursive),
];

/// The names, one per line.
///
/// # Errors
/// In RRDtool's words. A directory that cannot be listed is `Ok(Err(...))`.
pub fn list(tool: &mut Tool, args: Args<'_>) -> Result<io::Result<Vec<u8>>> {
    let mut options = Options::new(OPTIONS, args);
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
        // A daemon given on the command line must be reachable.
        tool.link.connect(address.as_deref().unwrap_or_default())?;
    }
    if let Some(daemon) = tool.link.reach(address.as_deref()) {
        let text = remote(&daemon, directory, flush, recursive);
        return text.map(Ok).map_err(|error| failure(daemon.address(), error));
    }
    if daemon.is_some() {
        // Compat: an empty address means no daemon, and nothing is listed, with success.
        return Ok(Err(io::Error::other("Error connecting to rrdcached\n")));
    }
    tool.environment.path(plain_part(directory))?;
    if directory.windows(2).any(|pair| pair == b"..") {
        // Compat: two dots are refused anywhere, even within a name.
        return Ok(Err(Errno::ACCESS.into()));
    }
    let mut found = Vec::new();
    let allowed = |path: &[u8]| tool.environment.path(path).is_ok();
    Ok(local(directory, recursive, &allowed, &mut found).map(|()| found))
}

fn remote(daemon: &Daemon, directory: &[u8], flush: bool, recursive: bool) -> Result<Vec<u8>, ClientError> {
    if flush {
        daemon.ask("flushall", &[])?;
    }
    let args: &[&[u8]] = if recursive { &[b"RECURSIVE", directory] } else { &[directory] };
    let mut text = daemon.ask("list", args)?.lines.join(&b'\n');
    if !text.is_empty() {
        text.push(b'\n');
    }
    Ok(text)
}

/// The directory of an argument that is a pattern: everything before the first part with a wildcard.
fn plain_part(word: &[u8]) -> &[u8] {
    let Some(at) = memchr::memchr3(b'*', b'?', b'[', word).filter(|_| is_pattern(word)) else { return word };
    match memchr::memrchr(b'/', &word[..at]) {
        Some(slash) => &word[..slash + 1],
        None => b".",
    }
}

/// Lists an argument locally. Compat: it is a pattern only with a slash and a `*` or `?` somewhere; a file is
/// listed only by a path whose first `.rrd` is at its end.
fn local(
    word: &[u8],
    recursive: bool,
    allowed: &dyn Fn(&[u8]) -> bool,
    found: &mut Vec<u8>,
) -> io::Result<()> {
    let path = Path::new(OsStr::from_bytes(word));
    if is_pattern(word) {
        return if recursive { Err(Errno::INVAL.into()) } else { matching(word, allowed, found) };
    }
    let suffix = b".rrd";
    if memchr::memmem::find(word, suffix).is_some_and(|at| at + suffix.len() == word.len()) {
        return match (path.metadata()?.is_file(), base_name(word)) {
            (true, Some(name)) => {
                push_line(found, name);
                Ok(())
            }
            (true, None) => Err(Errno::INVAL.into()),
            (false, _) => Err(Errno::NXIO.into()),
        };
    }
    if recursive {
        let metadata = path.metadata()?;
        let mut above = vec![(metadata.dev(), metadata.ino())];
        return descend(path, &mut PathBuf::new(), &mut above, found);
    }
    each(path, |name, directory| {
        if directory || name.ends_with(suffix) {
            push_line(found, name);
        }
        Ok(())
    })
}

/// The last part of every path that matches a pattern, in the order of the paths.
fn matching(pattern: &[u8], allowed: &dyn Fn(&[u8]) -> bool, found: &mut Vec<u8>) -> io::Result<()> {
    let mut paths = if pattern.contains(&b'/') { pattern::expand(pattern) } else { Vec::new() };
    paths.retain(|path| allowed(path));
    if paths.is_empty() {
        return Err(Errno::NOENT.into());
    }
    for path in paths {
        push_line(found, base_name(&path).unwrap_or(&path));
    }
    Ok(())
}

fn is_pattern(word: &[u8]) -> bool {
    memchr::memchr2(b'*', b'?', word).is_some()
}

/// What follows the last slash, if there is one.
fn base_name(path: &[u8]) -> Option<&[u8]> {
    memchr::memrchr(b'/', path).map(|at| &path[at + 1..])
}

fn push_line(text: &mut Vec<u8>, line: &[u8]) {
    text.extend_from_slice(line);
    text.push(b'\n');
}

/// Every `.rrd` below, as a path relative to the start. Links are followed, except into directories being
/// listed.
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
                // An unreadable directory does not hide the others.
                descend(&path, prefix, above, found).ok();
                above.pop();
            }
        } else if name.as_bytes().ends_with(b".rrd") {
            push_line(found, prefix.as_os_str().as_bytes());
        }
        prefix.pop();
        Ok(())
    })
}

/// Calls `take` with each name in a directory and whether it is itself a directory; dangling links are
/// skipped.
fn each(directory: &Path, mut take: impl FnMut(&[u8], bool) -> io::Result<()>) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if let Ok(metadata) = std::fs::metadata(entry.path()) {
            take(entry.file_name().as_bytes(), metadata.is_dir())?;
        }
    }
    Ok(())
}

/// Runs it.
pub(crate) fn run(tool: &mut Tool, args: Args<'_>, out: &mut dyn Write) -> Result {
    match list(tool, args)? {
        Ok(names) => print(out, &names),
        Err(error) => {
            // A failure of this cannot be reported.
            io::stderr().write_all(system_text(&error).as_bytes()).ok();
            Ok(())
        }
    }
}
