//! Requests: a command with its arguments, unescaped.

use std::borrow::Cow;

use super::command::{Command, Verb};
use super::words::Words;

/// Bytes of an argument.
pub type Word<'a> = Cow<'a, [u8]>;

/// A command with its arguments. Names are as the client wrote them.
#[derive(Clone, Debug)]
pub enum Request<'a> {
    /// UPDATE: the name and the arguments after it.
    Update(Word<'a>, Words<'a>),
    /// FLUSH
    Flush(Word<'a>),
    /// FLUSHALL
    FlushAll,
    /// PENDING
    Pending(Word<'a>),
    /// FORGET
    Forget(Word<'a>),
    /// QUEUE
    Queue,
    /// STATS
    Stats,
    /// HELP, with the command asked about, if it exists.
    Help(Option<&'static Command>),
    /// PING
    Ping,
    /// BATCH
    Batch,
    /// `.`
    End,
    /// FETCH, FETCHBIN or FETCHRES
    Fetch(Fetch<'a>),
    /// INFO
    Info(Word<'a>),
    /// FIRST: the name and the number of the archive.
    First(Word<'a>, i64),
    /// LAST
    Last(Word<'a>),
    /// CREATE
    Create(Word<'a>, Words<'a>),
    /// DUMP: the name and the argument of `-h`.
    Dump(Word<'a>, Option<Word<'a>>),
    /// TUNE: the name and the arguments after it.
    Tune(Word<'a>, Words<'a>),
    /// UPDATEV: the name and the arguments after it.
    UpdateV(Word<'a>, Words<'a>),
    /// EXPORT
    Export(Word<'a>),
    /// IMPORT
    Import(Import<'a>),
    /// LIST: the path, and whether to list recursively.
    List {
        /// Starts with a slash, which stands for the base directory.
        path: Word<'a>,
        /// LIST RECURSIVE
        recursive: bool,
    },
    /// SUSPEND
    Suspend(Word<'a>),
    /// RESUME
    Resume(Word<'a>),
    /// SUSPENDALL
    SuspendAll,
    /// RESUMEALL
    ResumeAll,
    /// QUIT
    Quit,
    /// FRAMES, with the version.
    Frames(Word<'a>),
    /// VERIFY, with what is asked.
    Verify(Word<'a>),
    /// SNAPSHOT, with the name of the directory.
    Snapshot(Word<'a>),
    /// PROMOTE: make this server the primary.
    Promote,
    /// REPLICATION: who follows whom, and how far.
    Replication,
    /// CLUSTER: the nodes and partitions of a cluster; with words, what this node is to do.
    Cluster(Words<'a>),
    /// RENAME: the name now and then.
    Rename(Word<'a>, Word<'a>),
    /// COPY: the name of the RRD and of its copy.
    Copy(Word<'a>, Word<'a>),
    /// REMOVE
    Remove(Word<'a>),
    /// TRASH, with what is asked.
    Trash(Words<'a>),
    /// ADOPTION, with what is asked.
    Adoption(Words<'a>),
    /// STAT: the name of an RRD or directory.
    Stat(Word<'a>),
    /// IMAGE: the name, and the version that the client has.
    Image(Word<'a>, Option<u64>),
    /// ENTRIES
    Entries(Entries<'a>),
    /// CHANGE: the name, the version that it may have, and the readings.
    Change(Word<'a>, u64, Words<'a>),
    /// AUTH, with the token.
    Auth(Word<'a>),
}

/// The arguments of ENTRIES: a part of a directory.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    /// `-f`: even the latest change of a name must be in it.
    pub fresh: bool,
    /// `-s`: with size, time and rights of each RRD.
    pub stat: bool,
    /// The directory, relative to the base directory; `/` for that itself.
    pub directory: Word<'a>,
    /// The most entries.
    pub count: usize,
    /// The name of the entry before, in the directory; `None` = from the first on.
    pub after: Option<Word<'a>>,
}

/// The arguments of FETCH, FETCHBIN and FETCHRES.
#[derive(Clone, Debug)]
pub struct Fetch<'a> {
    /// FETCHBIN
    pub binary: bool,
    /// FETCHRES: the requested seconds per row, unparsed.
    pub resolution: Option<Word<'a>>,
    /// The name.
    pub name: Word<'a>,
    /// The consolidation function.
    pub cf: Word<'a>,
    /// Start, unparsed.
    pub start: Option<Word<'a>>,
    /// End, unparsed.
    pub end: Option<Word<'a>>,
    /// The requested data sources; empty = all.
    pub columns: Vec<Word<'a>>,
}

/// A part of a `.rrd` file.
#[derive(Clone, Debug)]
pub struct Import<'a> {
    /// The name.
    pub name: Word<'a>,
    /// `-O`: keep an existing RRD of that name.
    pub no_overwrite: bool,
    /// `-v`: replace only an RRD of this version.
    pub version: Option<u64>,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Bytes of the file before this part.
    pub offset: u64,
    /// The part, in base64.
    pub piece: Word<'a>,
}

/// The arguments do not match the command's syntax.
#[derive(Clone, Copy, Debug)]
pub struct UsageError(pub &'static Command);

/// Splits a line into the command's name, the command if it is known, and the arguments.
pub fn split(line: &[u8]) -> (Word<'_>, Option<&'static Command>, Words<'_>) {
    let mut words = Words::new(line);
    let word = words.next().unwrap_or_default();
    let command = Command::find(&word);
    (word, command, words)
}

impl<'a> Request<'a> {
    /// Parses the arguments of `command`.
    ///
    /// # Errors
    /// [`UsageError`] when one is missing or in the wrong place. Extra arguments are ignored.
    pub fn parse(command: &'static Command, mut words: Words<'a>) -> Result<Self, UsageError> {
        let usage = UsageError(command);
        let mut name = || words.next().ok_or(usage);
        Ok(match command.verb {
            Verb::Update => Request::Update(name()?, words),
            Verb::Flush => Request::Flush(name()?),
            Verb::FlushAll => Request::FlushAll,
            Verb::Pending => Request::Pending(name()?),
            Verb::Forget => Request::Forget(name()?),
            Verb::Queue => Request::Queue,
            Verb::Stats => Request::Stats,
            Verb::Help => Request::Help(words.next().and_then(|word| Command::find(&word))),
            Verb::Ping => Request::Ping,
            Verb::Batch => Request::Batch,
            Verb::End | Verb::Wrote => Request::End,
            Verb::Fetch => Request::Fetch(Fetch::parse(command.verb, words).ok_or(usage)?),
            Verb::FetchBin | Verb::FetchRes => {
                Request::Fetch(Fetch::parse(command.verb, words).ok_or(usage)?)
            }
            Verb::Info => Request::Info(name()?),
            Verb::First => Request::First(name()?, integer(&words.next().ok_or(usage)?).unwrap_or(0)),
            Verb::Last => Request::Last(name()?),
            Verb::Create => Request::Create(name()?, words),
            Verb::Dump => {
                let name = name()?;
                let header = match words.next() {
                    None => None,
                    Some(word) if *word == *b"-h" => Some(words.next().ok_or(usage)?),
                    Some(_) => return Err(usage),
                };
                Request::Dump(name, header)
            }
            Verb::Tune => Request::Tune(name()?, words),
            Verb::UpdateV => Request::UpdateV(name()?, words),
            Verb::Export => Request::Export(name()?),
            Verb::Import => Request::Import(Import::parse(words).ok_or(usage)?),
            Verb::List => parse_list(words).ok_or(usage)?,
            Verb::Suspend => Request::Suspend(name()?),
            Verb::Resume => Request::Resume(name()?),
            Verb::SuspendAll => Request::SuspendAll,
            Verb::ResumeAll => Request::ResumeAll,
            Verb::Quit => Request::Quit,
            Verb::Frames => Request::Frames(words.next().unwrap_or_default()),
            Verb::Verify => Request::Verify(words.next().unwrap_or_default()),
            Verb::Snapshot => Request::Snapshot(words.next().unwrap_or_default()),
            Verb::Promote => Request::Promote,
            Verb::Replication => Request::Replication,
            Verb::Cluster => Request::Cluster(words),
            Verb::Rename => Request::Rename(name()?, words.next().ok_or(usage)?),
            Verb::Copy => Request::Copy(name()?, words.next().ok_or(usage)?),
            Verb::Remove => Request::Remove(name()?),
            Verb::Trash => Request::Trash(words),
            Verb::Adoption => Request::Adoption(words),
            Verb::Auth => Request::Auth(words.next().ok_or(usage)?),
            Verb::Stat => Request::Stat(name()?),
            Verb::Image => Request::Image(name()?, words.next().as_deref().and_then(number)),
            Verb::Entries => Request::Entries(Entries::parse(words).ok_or(usage)?),
            Verb::Change => {
                let (name, version) = (name()?, words.next().as_deref().and_then(number).ok_or(usage)?);
                Request::Change(name, version, words)
            }
        })
    }
}

impl<'a> Fetch<'a> {
    fn parse(verb: Verb, mut words: Words<'a>) -> Option<Self> {
        let name = words.next()?;
        let cf = words.next()?;
        let resolution = if verb == Verb::FetchRes { Some(words.next()?) } else { None };
        let start = words.next();
        let end = words.next();
        let binary = verb == Verb::FetchBin;
        Some(Fetch { binary, resolution, name, cf, start, end, columns: words.collect() })
    }
}

impl<'a> Import<'a> {
    fn parse(mut words: Words<'a>) -> Option<Self> {
        let name = words.next()?;
        let mut bytes = words.next()?;
        let no_overwrite = *bytes == *b"-O";
        if no_overwrite {
            bytes = words.next()?;
        }
        let mut version = None;
        if *bytes == *b"-v" {
            version = Some(number(&words.next()?)?);
            bytes = words.next()?;
        }
        let (bytes, offset) = (number(&bytes)?, number(&words.next()?)?);
        Some(Import { name, no_overwrite, version, bytes, offset, piece: words.next()? })
    }
}

impl<'a> Entries<'a> {
    fn parse(mut words: Words<'a>) -> Option<Self> {
        let (mut fresh, mut stat, mut word) = (false, false, words.next()?);
        while let flag @ (b"-f" | b"-s") = &*word {
            *(if flag == b"-f" { &mut fresh } else { &mut stat }) = true;
            word = words.next()?;
        }
        let count = usize::try_from(number(&words.next()?)?).ok()?;
        Some(Entries { fresh, stat, directory: word, count, after: words.next() })
    }
}

/// A word that is a number and nothing else.
fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn parse_list(mut words: Words<'_>) -> Option<Request<'_>> {
    let mut path = words.next()?;
    // Compat: the keyword must be in upper case.
    let recursive = *path == *b"RECURSIVE";
    if recursive {
        path = words.next()?;
    }
    path.starts_with(b"/").then_some(Request::List { path, recursive })
}

/// The integer at the start of a word, as C's `strtol` parses it; `None` when there is none.
pub fn integer(word: &[u8]) -> Option<i64> {
    let word = word.trim_ascii_start();
    let (negative, digits) = match word.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, word),
    };
    let mut value: Option<i64> = None;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        let digit = i64::from(digit - b'0');
        let shifted = value.unwrap_or(0).saturating_mul(10);
        value = Some(if negative { shifted.saturating_sub(digit) } else { shifted.saturating_add(digit) });
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Request<'_>, UsageError> {
        let (_, command, words) = split(line.as_bytes());
        Request::parse(command.expect("a command"), words)
    }

    #[test]
    fn arguments_are_parsed() {
        assert!(matches!(parse("flush a.rrd x"), Ok(Request::Flush(name)) if *name == *b"a.rrd"));
        assert!(matches!(parse("FIRST a.rrd 3"), Ok(Request::First(_, 3))));
        assert!(matches!(parse("FIRST a.rrd foo"), Ok(Request::First(_, 0))));
        assert!(matches!(parse("HELP nonsense"), Ok(Request::Help(None))));
        assert!(matches!(parse("HELP fetch"), Ok(Request::Help(Some(command))) if command.name == "FETCH"));
        assert!(matches!(parse("LIST /"), Ok(Request::List { recursive: false, .. })));
        assert!(matches!(parse("LIST RECURSIVE /a"), Ok(Request::List { recursive: true, .. })));
        let Ok(Request::Fetch(fetch)) = parse("FETCHBIN a.rrd MAX 1 2 x y") else { panic!() };
        assert!(fetch.binary && *fetch.cf == *b"MAX" && fetch.columns.len() == 2);
        assert!(fetch.resolution.is_none());
        let Ok(Request::Fetch(fetch)) = parse("FETCHRES a.rrd MAX 60 1 2 x") else { panic!() };
        assert!(!fetch.binary && fetch.resolution.as_deref() == Some(b"60"));
        assert_eq!((fetch.start.as_deref(), fetch.columns.len()), (Some(&b"1"[..]), 1));
        let Ok(Request::Import(import)) = parse("IMPORT a.rrd -O 12 3 AAAA") else { panic!() };
        assert!(import.no_overwrite && (import.bytes, import.offset) == (12, 3) && *import.piece == *b"AAAA");
        let Ok(Request::Import(import)) = parse("IMPORT a.rrd -v 7 12 3 AAAA") else { panic!() };
        assert!(!import.no_overwrite && import.version == Some(7));
        let Ok(Request::Entries(part)) = parse("ENTRIES -s -f a/b 10 c.rrd") else { panic!() };
        assert!(part.fresh && part.stat && *part.directory == *b"a/b" && part.count == 10);
        assert_eq!(part.after.as_deref(), Some(&b"c.rrd"[..]));
        assert!(matches!(parse("IMAGE a.rrd 18446744073709551615"), Ok(Request::Image(_, Some(u64::MAX)))));
        assert!(matches!(parse("CHANGE a.rrd 5 1:2"), Ok(Request::Change(_, 5, _))));
    }

    #[test]
    fn missing_arguments_are_usage_errors() {
        for line in [
            "UPDATE",
            "FLUSH",
            "PENDING",
            "FORGET",
            "FETCH",
            "FETCH a",
            "INFO",
            "FIRST",
            "FIRST a",
            "LAST",
            "CREATE",
            "DUMP",
            "DUMP a -h",
            "DUMP a b",
            "TUNE",
            "UPDATEV",
            "FETCHRES a AVERAGE",
            "EXPORT",
            "IMPORT a 8 0",
            "IMPORT a -O 8 0",
            "IMPORT a 8 x AAAA",
            "IMPORT a -1 0 AAAA",
            "IMPORT a -v x 8 0 AAAA",
            "AUTH",
            "STAT",
            "IMAGE",
            "ENTRIES",
            "ENTRIES /",
            "ENTRIES -s / x",
            "CHANGE a",
            "CHANGE a x 1:2",
            "LIST",
            "LIST a",
            "LIST recursive /",
            "LIST RECURSIVE",
            "SUSPEND",
            "RESUME",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn integers_are_parsed_as_by_strtol() {
        let check = |text: &str, want| assert_eq!(integer(text.as_bytes()), want, "{text:?}");
        check("12", Some(12));
        check(" -12x", Some(-12));
        check("+7", Some(7));
        check("", None);
        check("x1", None);
        check("-", None);
        check("99999999999999999999", Some(i64::MAX));
        check("-99999999999999999999", Some(i64::MIN));
    }
}
