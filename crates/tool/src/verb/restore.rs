//! `rrdtool restore`: an RRD from the XML of a dump.

use std::io::Read;
use std::os::fd::AsFd;

use rrd::codec::xml::{self, RestoreError, RestoreOptions};
use rrd::content::Rrd;
use store::direct::{DirectError, Existing, write_file};

use crate::failure::{Done, Failure};
use crate::options::{Known, Options, flag};
use crate::target::file_failure;
use crate::{Tool, Words};

/// What it does and its syntax.
pub const SYNTAX: &str = "restore - an RRD from the XML of a dump\n\n\
    \trrdtool restore [--range-check|-r] [--force-overwrite|-f] filename.xml filename.rrd\n";

const USAGE: &str = "usage rrdtool restore [--range-check|-r] [--force-overwrite|-f] file.xml file.rrd";
/// The word that stands for standard input.
const STANDARD_INPUT: &[u8] = b"-";

#[derive(Clone, Copy)]
enum Tag {
    RangeCheck,
    Overwrite,
}

const OPTIONS: &[Known<Tag>] =
    &[flag(b'r', "range-check", Tag::RangeCheck), flag(b'f', "force-overwrite", Tag::Overwrite)];

/// Makes a file of a dump.
///
/// # Errors
/// In RRDtool's words; a file that was there stays as it was.
pub fn run(tool: &mut Tool, words: Words<'_>) -> Done {
    let mut options = Options::new(OPTIONS, words);
    let (mut range_check, mut existing) = (false, Existing::Refuse);
    while let Some(given) = options.next() {
        match given?.0 {
            Tag::RangeCheck => range_check = true,
            Tag::Overwrite => existing = Existing::Replace,
        }
    }
    let &[input, output] = &*options.rest() else { return Err(Failure::new(USAGE)) };
    let target = tool.surroundings.path(output)?;
    let bytes = read(tool, input)?;
    let rrd = parse(&bytes, range_check)?;
    if let Ok(Some(_)) = store::placeholder::read(target) {
        let why = "': a store has this RRD; roundel import takes files into it";
        return Err(Failure::of_name("creating '", output, why));
    }
    write_file(target, &rrd, existing).map_err(|error| match error {
        DirectError::Io { error, .. } => Failure::of_name(
            "a file error occurred while creating '",
            output,
            &format!("': {}", crate::failure::system_text(&error)),
        ),
        error => file_failure(&error),
    })
}

fn read(tool: &Tool, input: &[u8]) -> Done<Vec<u8>> {
    let mut bytes = Vec::new();
    if input == STANDARD_INPUT {
        // Not through the buffer: in a session that holds the commands, and is in use.
        let input = std::io::stdin().as_fd().try_clone_to_owned().map_err(|_| malformed())?;
        let read = std::fs::File::from(input).read_to_end(&mut bytes);
        return read.map(|_| bytes).map_err(|_| malformed());
    }
    let path = tool.surroundings.path(input)?;
    let missing = |_| Failure::of_name("Could not create xml reader for: ", input, "");
    let mut file = std::fs::File::open(path).map_err(missing)?;
    // A directory opens and cannot be read; RRDtool takes it for an empty file.
    file.read_to_end(&mut bytes).map(|_| bytes).map_err(|_| malformed())
}

fn malformed() -> Failure {
    Failure::new("error reading/parsing XML: Extra content at the end of the document ")
}

fn parse(bytes: &[u8], range_check: bool) -> Done<Rrd> {
    let options = RestoreOptions { range_check, long_names: false };
    xml::restore(bytes, options).map_err(|error| match error {
        RestoreError::Malformed { .. } if bytes.is_empty() => malformed(),
        error => Failure::new(error.to_string()),
    })
}
