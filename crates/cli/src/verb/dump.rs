//! `rrdtool dump`: an RRD as XML.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use localtime::DumpTimes;
use rrd::codec::xml::{self, Header};
use rrd::content::Rrd;

use crate::failure::{Failure, Result, system_text, text};
use crate::options::{OptionSpec, Options, flag, with_argument};
use crate::target::{Location, Policy, file_failure};
use crate::{Args, Tool};

/// Summary and syntax.
pub const SYNTAX: &str = "dump - an RRD as XML\n\n\
    \trrdtool dump [--header|-h {none,xsd,dtd}]\n\
    \t\t[--no-header|-n]\n\
    \t\t[--daemon|-d address]\n\
    \t\tfile.rrd [file.xml]\n";

const USAGE: &str = "usage rrdtool dump [--header|-h {none,xsd,dtd}]\n[--no-header|-n]\n\
    [--daemon|-d address]\nfile.rrd [file.xml]";

/// The size of C's output buffer.
const BUFFER_BYTES: usize = 4096;

#[derive(Clone, Copy)]
enum Tag {
    Header,
    NoHeader,
    Daemon,
}

const OPTIONS: &[OptionSpec<Tag>] = &[
    with_argument(b'd', "daemon", Tag::Daemon),
    with_argument(b'h', "header", Tag::Header),
    flag(b'n', "no-header", Tag::NoHeader),
];

/// The arguments of `dump`.
struct DumpArgs<'w> {
    name: &'w [u8],
    output: Option<&'w [u8]>,
    header: Header,
    daemon: Option<&'w [u8]>,
}

impl<'w> DumpArgs<'w> {
    fn read(args: Args<'w>) -> Result<Self> {
        let usage = || Failure::new(USAGE);
        let mut options = Options::new(OPTIONS, args);
        let (mut header, mut daemon) = (Header::Dtd, None);
        while let Some(given) = options.next() {
            match given.map_err(|_| usage())? {
                // Compat: any other value changes nothing.
                (Tag::Header, word @ (b"none" | b"dtd" | b"xsd")) => header = Header::from_arg(text(word)?),
                (Tag::Header, _) => {}
                (Tag::NoHeader, _) => header = Header::None,
                (Tag::Daemon, word) => daemon = Some(word),
            }
        }
        match *options.rest() {
            [name] => Ok(DumpArgs { name, output: None, header, daemon }),
            [name, output] => Ok(DumpArgs { name, output: Some(output), header, daemon }),
            _ => Err(usage()),
        }
    }
}

/// What to write: an RRD, or the lines of a daemon's dump.
enum Content {
    Rrd(Box<Rrd>),
    Lines(Vec<Vec<u8>>),
}

/// Runs it: writes to the file if one is named, else to `out`.
pub(crate) fn run(tool: &mut Tool, args: Args<'_>, out: &mut dyn Write) -> Result {
    // Compat: a file that cannot be created is ignored, with success.
    dump(tool, args, out).map(|_| ())
}

/// Writes an RRD to the file if one is named, else to `out`. Returns why that file could not be created.
///
/// # Errors
/// Any other failure.
pub fn dump(tool: &mut Tool, args: Args<'_>, out: &mut dyn Write) -> Result<Option<Failure>> {
    let args = DumpArgs::read(args)?;
    let output = args.output.map(|word| tool.environment.path(word)).transpose()?.map(ToOwned::to_owned);
    let Some(path) = output else { return write(&read(tool, &args)?, args.header, out).map(|()| None) };
    let source = tool.environment.path(args.name)?;
    if is_same(source, &path) {
        // Compat: RRDtool creates the output first, reads that, prints this, and has lost the RRD.
        return Err(Failure::of_name("mmaping file '", args.name, "': Invalid argument"));
    }
    let existed = path.exists();
    let made = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let mut file = match made {
        Ok(file) => file,
        Err(error) => {
            let name = args.output.unwrap_or_default();
            return Ok(Some(Failure::of_name("opening '", name, &format!("': {}", system_text(&error)))));
        }
    };
    let content = read(tool, &args).inspect_err(|_| {
        if !existed {
            remove(&path);
        }
    })?;
    // Fails for anything but a file, which has no length to cut.
    file.set_len(0).ok();
    write(&content, args.header, &mut file).inspect_err(|_| remove(&path)).map(|()| None)
}

fn read(tool: &mut Tool, args: &DumpArgs<'_>) -> Result<Content> {
    Ok(match tool.read_target(Policy::READ_FLUSHED, args.name, args.daemon)? {
        Location::Local(file) => {
            Content::Rrd(Box::new(file.content().map_err(|error| file_failure(&error))?.rrd))
        }
        Location::Remote(remote) => {
            // Written here, with dates in the time zone and language of the caller.
            if let Some(rrd) = remote.whole()? {
                return Ok(Content::Rrd(Box::new(rrd)));
            }
            let header: &[u8] = match args.header {
                Header::None => b"none",
                Header::Dtd => b"dtd",
                Header::Xsd => b"xsd",
            };
            Content::Lines(remote.ask("dump", &[b"-h", header])?.lines)
        }
    })
}

/// Removes an incomplete dump. A device stays, although RRDtool removes that too.
fn remove(path: &Path) {
    if path.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_symlink()) {
        std::fs::remove_file(path).ok();
    }
}

/// Whether both paths lead to the same existing file.
fn is_same(path: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (path.metadata(), other.metadata()) else { return false };
    one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// A sink that counts its bytes.
struct Counting<'s> {
    sink: &'s mut dyn Write,
    bytes: usize,
}

impl Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        self.sink.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

fn write(content: &Content, header: Header, sink: &mut dyn Write) -> Result {
    let mut out = Counting { sink, bytes: 0 };
    let written = write_content(content, header, &mut out).and_then(|()| out.flush());
    written.map_err(|error| {
        // Compat: what fits into C's buffer fails only when that is flushed.
        let what = if out.bytes > BUFFER_BYTES { "writing output file" } else { "flushing output" };
        Failure::new(format!("error {what}: {}", system_text(&error)))
    })
}

fn write_content(content: &Content, header: Header, out: &mut dyn Write) -> io::Result<()> {
    match content {
        Content::Rrd(rrd) => {
            let mut times = DumpTimes::default();
            xml::dump(rrd, header, &mut |time, out| times.push(time, out), out)
        }
        Content::Lines(lines) => {
            let mut text = lines.join(&b'\n');
            text.push(b'\n');
            out.write_all(&text)
        }
    }
}
