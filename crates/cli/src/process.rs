//! Whole processes: `rrdtool` with its arguments, and the three single-verb programs.

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

/// Exit status of a failed command.
const FAILED: u8 = 1;
/// Exit status of a session that could not enter its directory.
const NO_DIRECTORY: u8 = 2;
/// Exit status when the reader of the output is gone: what a shell reports after SIGPIPE.
const READER_GONE: u8 = 141;

/// A single-verb program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Single {
    /// `rrdupdate`
    Update,
    /// `rrdinfo`
    Info,
    /// `rrdcreate`
    Create,
}

/// Runs the program with this name and these arguments. Returns its exit status, or `None` when it is not one
/// of ours.
pub fn run(name: &OsStr, args: &[OsString]) -> Option<u8> {
    let args: Vec<&[u8]> = args.iter().map(|word| word.as_bytes()).collect();
    match Single::find(name.as_bytes()) {
        Some(program) => Some(single(program, &args)),
        None => (name == "rrdtool").then(|| rrdtool(&args)),
    }
}

/// Runs `rrdtool` with its arguments; returns the exit status.
pub fn rrdtool(args: &[&[u8]]) -> u8 {
    // Compat: the single-verb programs do not do this.
    localtime::locale::adopt();
    let mut out = io::stdout().lock();
    match args {
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
        [verb, args @ ..] => {
            localtime::keep_zone();
            // The process ends, so nothing needs to be dropped.
            let mut tool = ManuallyDrop::new(Tool::new(Environment::of_process()));
            let done = tool.run(verb, args, &mut out);
            finish(done, &mut out, &mut io::stderr())
        }
    }
}

/// Requests small memory pages. The allocator of our executable asks for pages of 2 MB, and clearing one
/// takes longer than a command's own work: a graph of 400x100 pixels takes 5.5 ms of a core with small pages
/// and 8.7 with large ones.
fn use_small_pages() {
    // Fails on a kernel without large pages, which does not matter.
    rustix::thread::disable_transparent_huge_pages(true).ok();
}

/// Runs a single-verb program. Compat: errors go to standard output, with the usage.
pub fn single(program: Single, args: &[&[u8]]) -> u8 {
    let mut out = io::stdout().lock();
    let mut tool = ManuallyDrop::new(Tool::new(Environment::of_process()));
    let (done, usage) = match program {
        Single::Update => (
            tool.run(b"update", args, &mut out),
            "Usage: rrdupdate <filename>\n\
             \t\t\t[--template|-t ds-name[:ds-name]...]\n\
             \t\t\t[--skip-past-updates]\n\
             \t\t\ttime|N:value[:value...]\n\n\
             \t\t\tat-time@value[:value...]\n\n\
             \t\t\t[ time:value[:value...] ..]\n\n",
        ),
        Single::Info => {
            let done = crate::verb::info::run(&mut tool, "rrdinfo", args, &mut out);
            (done.and_then(|()| tool.link.complaint()), "Usage: rrdinfo <filename>\n")
        }
        Single::Create => (
            tool.run(b"create", args, &mut out),
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

/// Flushes the output, then prints the error, if there is one.
fn finish(done: Result, out: &mut dyn Write, errors: &mut dyn Write) -> u8 {
    let flushed = out.flush();
    if flushed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        return READER_GONE;
    }
    match done.and(flushed.map_err(|error| unwritten(&error))) {
        Ok(()) => 0,
        Err(failure) => {
            // A failure of this cannot be reported.
            errors.write_all(&[b"ERROR: ", failure.text(), b"\n"].concat()).ok();
            FAILED
        }
    }
}

/// Runs a session on standard input; given a directory, it cannot leave that.
fn session(directory: Option<&[u8]>, out: &mut dyn Write) -> u8 {
    use_small_pages();
    let mut environment = Environment::of_process();
    // Compat: an empty name means no directory.
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
    // The raw files: a session has its own buffers, so those of Rust would only add a copy.
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
    /// The program with this name.
    pub fn find(name: &[u8]) -> Option<Single> {
        match name {
            b"rrdupdate" => Some(Single::Update),
            b"rrdinfo" => Some(Single::Info),
            b"rrdcreate" => Some(Single::Create),
            _ => None,
        }
    }
}
