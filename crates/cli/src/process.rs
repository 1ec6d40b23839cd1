//! A whole process: `rrdtool` by its words, and the three programs of one verb beside it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::failure::{Failure, Result, system_text};
use crate::usage::{self, Topic};
use crate::{Tool, pipe, unwritten};

/// Status of a command that failed.
const FAILED: u8 = 1;
/// Status of a session that could not go to its directory.
const NO_DIRECTORY: u8 = 2;
/// Status of a process whose reader has gone: what a shell says of one that SIGPIPE ended.
const READER_GONE: u8 = 141;

/// A program of one verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Single {
    /// `rrdupdate`
    Update,
    /// `rrdinfo`
    Info,
    /// `rrdcreate`
    Create,
}

/// Runs the program of this name with the words after it; its exit status, or `None` when the name is none of ours.
pub fn run(name: &OsStr, words: &[OsString]) -> Option<u8> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    match Single::find(name.as_bytes()) {
        Some(program) => Some(single(program, &words)),
        None => (name == "rrdtool").then(|| rrdtool(&words)),
    }
}

/// Runs `rrdtool` with the words after its name; the exit status.
pub fn rrdtool(words: &[&[u8]]) -> u8 {
    // Compat: the programs of one verb do not.
    localtime::locale::adopt();
    let mut out = io::stdout().lock();
    match words {
        [] => page(&mut out, None),
        [b"-"] => session(None, &mut out),
        [b"-", directory] => session(Some(directory), &mut out),
        [topic] => page(&mut out, Topic::find(topic)),
        [verb, topic] if usage::is_help(verb) => page(&mut out, Topic::find(topic)),
        [verb, ..] if usage::is_help(verb) => page(&mut out, None),
        [verb, ..] if usage::is_version(verb) => {
            let done = crate::print(&mut out, usage::version_number_line().as_bytes());
            finish(done, &mut out, &mut io::stderr())
        }
        [verb, words @ ..] => {
            localtime::keep_zone();
            // The process ends: what the tool has needs no tidying.
            let mut tool = ManuallyDrop::new(Tool::new(Environment::of_process()));
            let done = tool.run(verb, words, &mut out);
            finish(done, &mut out, &mut io::stderr())
        }
    }
}

/// Has memory given by small pages. The allocator of our executable asks for pages of 2 MB, and to have one cleared
/// takes longer than what a command does in it: a graph of 400x100 pixels takes 5.5 ms of a core with small pages and 8.7 with large
/// ones.
fn use_small_pages() {
    // A kernel without large pages need not be asked.
    rustix::thread::disable_transparent_huge_pages(true).ok();
}

/// Runs a program of one verb. Compat: errors, with the usage, go to standard output.
pub fn single(program: Single, words: &[&[u8]]) -> u8 {
    let mut out = io::stdout().lock();
    let mut tool = ManuallyDrop::new(Tool::new(Environment::of_process()));
    let (done, usage) = match program {
        Single::Update => (
            tool.run(b"update", words, &mut out),
            "Usage: rrdupdate <filename>\n\
             \t\t\t[--template|-t ds-name[:ds-name]...]\n\
             \t\t\t[--skip-past-updates]\n\
             \t\t\ttime|N:value[:value...]\n\n\
             \t\t\tat-time@value[:value...]\n\n\
             \t\t\t[ time:value[:value...] ..]\n\n",
        ),
        Single::Info => {
            let done = crate::verb::info::run(&mut tool, "rrdinfo", words, &mut out);
            (done.and_then(|()| tool.link.complaint()), "Usage: rrdinfo <filename>\n")
        }
        Single::Create => (
            tool.run(b"create", words, &mut out),
            "Usage: rrdcreate <filename>\n\
             \t\t\t[--start|-b start time]\n\
             \t\t\t[--step|-s step]\n\
             \t\t\t[--no-overwrite]\n\
             \t\t\t[DS:ds-name:DST:dst arguments]\n\
             \t\t\t[RRA:CF:cf arguments]\n\n",
        ),
    };
    let Err(failure) = done else { return finish(Ok(()), &mut out, &mut io::stderr()) };
    let page = format!("{}\n{usage}", usage::version_line());
    let text = [page.as_bytes(), b"ERROR: ", failure.text(), b"\n"].concat();
    match finish(crate::print(&mut out, &text), &mut out, &mut io::stderr()) {
        0 => FAILED,
        status => status,
    }
}

fn page(out: &mut dyn Write, topic: Option<Topic>) -> u8 {
    let done = crate::print(out, usage::page(topic, false).as_bytes());
    finish(done, out, &mut io::stderr())
}

/// Sends what was printed, then says what went wrong, if anything did.
fn finish(done: Result, out: &mut dyn Write, errors: &mut dyn Write) -> u8 {
    let flushed = out.flush();
    if flushed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        return READER_GONE;
    }
    match done.and(flushed.map_err(|error| unwritten(&error))) {
        Ok(()) => 0,
        Err(failure) => {
            // Nobody to tell if that fails.
            errors.write_all(&[b"ERROR: ", failure.text(), b"\n"].concat()).ok();
            FAILED
        }
    }
}

/// A session on standard input, in a directory that it cannot leave when one is given.
fn session(directory: Option<&[u8]>, out: &mut dyn Write) -> u8 {
    use_small_pages();
    let mut environment = Environment::of_process();
    // Compat: no name is no directory.
    if let Some(word) = directory.filter(|word| !word.is_empty()) {
        match enter(word) {
            Ok(base) => environment.confined_to = Some(base),
            Err(error) => {
                let text = [b"ERROR: chdir ", word, b" ", system_text(&error).as_bytes(), b"\n"].concat();
                io::stderr().write_all(&text).ok();
                return NO_DIRECTORY;
            }
        }
    }
    let mut tool = Tool::new(environment);
    // The files themselves: a session gathers what it reads and writes, and Rust's output would once more.
    let files = io::stdin().as_fd().try_clone_to_owned().and_then(|input| {
        Ok((std::fs::File::from(input), std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?)))
    });
    let (input, mut output) = match files {
        Ok(files) => files,
        Err(error) => return finish(Err(Failure::new(system_text(&error))), out, &mut io::stderr()),
    };
    match pipe::serve(&mut tool, input, &mut output) {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => READER_GONE,
        Err(error) => finish(Err(Failure::new(system_text(&error))), out, &mut io::stderr()),
    }
}

fn enter(word: &[u8]) -> io::Result<PathBuf> {
    let path = Path::new(OsStr::from_bytes(word)).canonicalize()?;
    std::env::set_current_dir(&path)?;
    Ok(path)
}

impl Single {
    /// The program of this name.
    pub fn find(name: &[u8]) -> Option<Single> {
        match name {
            b"rrdupdate" => Some(Single::Update),
            b"rrdinfo" => Some(Single::Info),
            b"rrdcreate" => Some(Single::Create),
            _ => None,
        }
    }
}
