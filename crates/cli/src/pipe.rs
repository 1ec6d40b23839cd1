//! A session: commands as lines of standard input, each answered by its output and `OK` or `ERROR: `.
//!
//! Compat, found by running Debian's rrdtool: arguments are separated by spaces; quotes of either kind
//! protect spaces and are removed, backslashes have no meaning; blanks and line ends around the arguments are
//! removed; a NUL hides the rest of the line and its end. Answers are sent at once when no more input is
//! waiting, else together with the next ones, but at most a few milliseconds later.

use std::borrow::Cow;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::Tool;
use crate::failure::{Failure, Result, system_text};
use crate::usage;

/// Longest line that is accepted. RRDtool accepts any; the longest in use hold a few hundred readings.
pub const LINE_BYTES_MAX: usize = 64 << 20;
/// Bytes per read.
const INPUT_BYTES: usize = 64 << 10;
/// Writes of at least this many bytes are not buffered.
const DIRECT_BYTES: usize = 16 << 10;
/// How long an answer may wait for the next one while more commands wait to be read.
const ANSWER_WAITS: Duration = Duration::from_millis(3);
/// How old the times after an OK may be; they are shown in hundredths of a second.
const STATUS_AGE: Duration = Duration::from_millis(1);

/// A session.
struct Session<'s> {
    tool: &'s mut Tool,
    out: Output<'s>,
    started: Instant,
    /// The OK of the last success, with the time it was made.
    status: Vec<u8>,
    status_of: Option<Instant>,
}

/// Buffered output, and since when it waits.
struct Output<'s> {
    sink: &'s mut dyn Write,
    buffer: Vec<u8>,
    since: Instant,
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let direct = bytes.len() >= DIRECT_BYTES;
        if direct || self.buffer.len() + bytes.len() > INPUT_BYTES {
            self.flush()?;
        }
        if direct {
            self.sink.write_all(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let sent = self.sink.write_all(&self.buffer).and_then(|()| self.sink.flush());
        self.buffer.clear();
        sent
    }
}

/// The kind of a line.
enum Line {
    /// A line, which is in the buffer.
    Read,
    /// A line longer than [`LINE_BYTES_MAX`], which was skipped.
    TooLong,
    /// The end of the input.
    End,
}

/// Whether the session continues.
#[derive(PartialEq, Eq)]
enum Next {
    More,
    Quit,
}

/// Answers the lines of `input` until its end or `quit`.
///
/// # Errors
/// When `input` or `output` fails.
pub fn serve(tool: &mut Tool, input: impl Read, output: &mut dyn Write) -> io::Result<()> {
    let started = Instant::now();
    let out = Output { sink: output, buffer: Vec::with_capacity(INPUT_BYTES), since: started };
    let mut session = Session { tool, out, started, status: Vec::new(), status_of: None };
    let mut input = io::BufReader::with_capacity(INPUT_BYTES, input);
    let mut line = Vec::new();
    loop {
        let next = match read_line(&mut input, &mut line)? {
            Line::End => Next::Quit,
            Line::TooLong => session.answer(Err(Failure::new(format!(
                "cannot take a line of more than {LINE_BYTES_MAX} bytes; give fewer readings at once"
            )))),
            Line::Read => session.take(&line),
        };
        if next == Next::Quit {
            return session.out.flush();
        }
        let waited = session.out.since.elapsed() > ANSWER_WAITS;
        if waited || memchr::memchr(b'\n', input.buffer()).is_none() {
            session.out.flush()?;
            session.out.since = Instant::now();
        }
    }
}

/// Reads up to a line end that is not hidden by a NUL. Memory is limited by [`LINE_BYTES_MAX`].
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    let mut too_long = false;
    loop {
        let start = line.len();
        let found = input.by_ref().take((LINE_BYTES_MAX - start) as u64 + 1).read_until(b'\n', line)?;
        let ended = line.last() == Some(&b'\n');
        if found == 0 {
            return Ok(match (too_long, line.is_empty()) {
                (true, _) => Line::TooLong,
                (false, true) => Line::End,
                (false, false) => Line::Read,
            });
        }
        if line.len() > LINE_BYTES_MAX {
            too_long = true;
            line.clear();
        }
        if let Some(nul) = memchr::memchr(b'\0', &line[start.min(line.len())..]) {
            line.truncate(start + nul);
            continue;
        }
        if ended {
            return Ok(if too_long { Line::TooLong } else { Line::Read });
        }
    }
}

impl Session<'_> {
    /// Runs one line and answers it.
    fn take(&mut self, line: &[u8]) -> Next {
        let done = match split(line) {
            // Compat: RRDtool's answer to spaces at the end of the input without a line end.
            _ if line.iter().all(|&byte| byte == b' ') => Err(Failure::new("not enough arguments")),
            None => Err(Failure::new("creating arguments")),
            Some(args) => {
                let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
                match &*args {
                    [b"quit"] => return Next::Quit,
                    args => self.run(args),
                }
            }
        };
        self.answer(done)
    }

    fn answer(&mut self, done: Result) -> Next {
        // If the output fails, the session ends at the next flush.
        let written = match done {
            Ok(()) => {
                self.refresh_status();
                self.out.write_all(&self.status)
            }
            Err(failure) => self.out.write_all(&[b"ERROR: ", failure.text(), b"\n"].concat()),
        };
        written.map_or(Next::Quit, |()| Next::More)
    }

    /// Formats the answer to a success: `OK`, and the seconds of user, system and real time so far. Costs one
    /// system call per millisecond, not per answer.
    fn refresh_status(&mut self) {
        let now = Instant::now();
        if self.status_of.is_some_and(|then| now - then < STATUS_AGE) {
            return;
        }
        let seconds = |time: nix::sys::time::TimeVal| time.num_microseconds() as f64 / 1e6;
        let (user, system) = getrusage(UsageWho::RUSAGE_SELF)
            .map_or((0.0, 0.0), |usage| (seconds(usage.user_time()), seconds(usage.system_time())));
        let real = (now - self.started).as_secs_f64();
        let text = format!("OK u:{user:.2} s:{system:.2} r:{real:.2}\n");
        self.status = text.replace('.', &self.tool.environment.decimal_point).into_bytes();
        self.status_of = Some(now);
    }

    fn run(&mut self, args: &[&[u8]]) -> Result {
        let Some((&verb, arguments)) = args.split_first() else { return self.usage() };
        let wrong_count =
            || Failure::new(format!("invalid parameter count for {}", String::from_utf8_lossy(verb)));
        match (verb, arguments) {
            (b"cd", [directory]) => self.change_directory(directory),
            (b"mkdir", [directory]) => self.make_directory(directory),
            (b"pwd", []) => self.print_directory(),
            (b"ls", []) => self.list_directory(),
            (b"cd" | b"mkdir" | b"pwd" | b"ls" | b"quit", _) => Err(wrong_count()),
            (_, []) => self.usage(),
            _ if usage::is_help(verb) => self.usage(),
            _ if usage::is_version(verb) => {
                crate::print(&mut self.out, usage::version_number_line().as_bytes())
            }
            _ => self.tool.run(verb, arguments, &mut self.out),
        }
    }

    fn usage(&mut self) -> Result {
        crate::print(&mut self.out, usage::page(None, true).as_bytes())
    }

    fn change_directory(&mut self, word: &[u8]) -> Result {
        let fail = |why: &str| Failure::of_name("chdir ", word, &format!(" {why}"));
        let path = self.tool.environment.path(word).map_err(|_| fail("Permission denied"))?;
        std::env::set_current_dir(path).map_err(|error| fail(&system_text(&error)))
    }

    fn make_directory(&mut self, word: &[u8]) -> Result {
        let fail = |why: &str| Failure::of_name("mkdir ", word, &format!(": {why}"));
        let path = self.tool.environment.path(word).map_err(|_| fail("Permission denied"))?;
        std::fs::create_dir(path).map_err(|error| fail(&system_text(&error)))
    }

    fn print_directory(&mut self) -> Result {
        let path = std::env::current_dir()
            .map_err(|error| Failure::new(format!("getcwd {}", system_text(&error))))?;
        crate::print(&mut self.out, &[path.as_os_str().as_bytes(), b"\n"].concat())
    }

    /// Compat: directories, including `.` and `..`, and regular files with the suffix in any case, in the
    /// order of the file system.
    fn list_directory(&mut self) -> Result {
        let mut text = Vec::new();
        let names = directory_names(Path::new("."))
            .map_err(|error| Failure::new(format!("opendir .: {}", system_text(&error))))?;
        for name in names {
            let Ok(found) = std::fs::metadata(std::ffi::OsStr::from_bytes(&name)) else { continue };
            let suffix = name.len() > 4 && name[name.len() - 4..].eq_ignore_ascii_case(b".rrd");
            let mark: &[u8] = match (found.is_dir(), found.is_file() && suffix) {
                (true, _) => b"d ",
                (false, true) => b"- ",
                (false, false) => continue,
            };
            text.extend_from_slice(&[mark, &name, b"\n"].concat());
        }
        crate::print(&mut self.out, &text)
    }
}

/// The names in a directory as the system lists them, including `.` and `..`.
fn directory_names(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let directory = std::fs::File::open(path)?;
    let entries = rustix::fs::Dir::read_from(directory)?;
    entries.map(|entry| Ok(entry?.file_name().to_bytes().to_vec())).collect()
}

/// Splits a line into arguments; `None` when a quote is not closed.
pub fn split(line: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    let line = trim(line);
    if memchr::memchr2(b'"', b'\'', line).is_some() {
        return split_quoted(line);
    }
    let args = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    Some(args.map(Cow::Borrowed).collect())
}

fn split_quoted(line: &[u8]) -> Option<Vec<Cow<'static, [u8]>>> {
    let mut args = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    for &byte in line {
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (None, b' ') => args.extend(word.take().map(Cow::Owned)),
            (_, byte) => word.get_or_insert_default().push(byte),
        }
    }
    args.extend(word.map(Cow::Owned));
    quote.is_none().then_some(args)
}

/// The line without leading and trailing blanks as C defines them.
fn trim(line: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = line.iter().position(|byte| !blank(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !blank(byte)).map_or(start, |at| at + 1);
    &line[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_as_in_rrdtool() {
        let check = |line: &str, want: Option<&[&str]>| {
            let got = split(line.as_bytes());
            let got = got.map(|args| {
                args.into_iter().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect::<Vec<_>>()
            });
            assert_eq!(got, want.map(|args| args.iter().map(ToString::to_string).collect()), "{line:?}");
        };
        check("", Some(&[]));
        check("  last  a.rrd \r\n", Some(&["last", "a.rrd"]));
        check("\tlast\ta", Some(&["last\ta"]));
        check(r#"last "a b" 'c d'"#, Some(&["last", "a b", "c d"]));
        check(r#"a"b c"d'"'"#, Some(&["ab cd\""]));
        check(r#"last "" ''"#, Some(&["last", "", ""]));
        check(r"b\ c \n", Some(&[r"b\", "c", r"\n"]));
        check("last 'a", None);
        check("last '\n", None);
    }

    #[test]
    fn lines_end_where_no_nul_hides_it() {
        let mut input = io::BufReader::new(&b"a\nb\0c\nd\n\0x\ny"[..]);
        let mut line = Vec::new();
        let mut lines = Vec::new();
        while matches!(read_line(&mut input, &mut line).unwrap(), Line::Read) {
            lines.push(String::from_utf8(line.clone()).unwrap());
        }
        assert_eq!(lines, ["a\n", "bd\n", "y"]);
    }

    #[test]
    fn an_endless_line_takes_limited_memory() {
        let mut input =
            io::BufReader::new(io::repeat(b'x').take(LINE_BYTES_MAX as u64 * 3).chain(&b"\nlast\n"[..]));
        let mut line = Vec::new();
        assert!(matches!(read_line(&mut input, &mut line).unwrap(), Line::TooLong));
        assert!(line.capacity() <= LINE_BYTES_MAX * 2 + INPUT_BYTES);
        assert!(matches!(read_line(&mut input, &mut line).unwrap(), Line::Read));
        assert_eq!(line, b"last\n");
    }
}
