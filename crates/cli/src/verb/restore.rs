//! `rrdtool restore`: an RRD from the XML of a dump.

use std::io::Read;
use std::os::fd::AsFd;

use rrd::codec::xml::{self, RestoreError, RestoreOptions};
use rrd::content::Rrd;
use rrd_file::Existing;

use crate::failure::{Failure, Result};
use crate::options::{OptionSpec, Options, flag, with_argument};
use crate::{Args, Tool};

/// Summary and syntax.
pub const SYNTAX: &str = "restore - an RRD from the XML of a dump\n\n\
    \trrdtool restore [--range-check|-r] [--force-overwrite|-f]\n\
    \t\t[--daemon|-d address]\n\
    \t\tfilename.xml filename.rrd\n";

const USAGE: &str = "usage rrdtool restore [--range-check|-r] [--force-overwrite|-f] file.xml file.rrd";
/// The argument that means standard input.
const STANDARD_INPUT: &[u8] = b"-";

#[derive(Clone, Copy)]
enum Tag {
    RangeCheck,
    Overwrite,
    Daemon,
}

const OPTIONS: &[OptionSpec<Tag>] = &[
    flag(b'r', "range-check", Tag::RangeCheck),
    flag(b'f', "force-overwrite", Tag::Overwrite),
    with_argument(b'd', "daemon", Tag::Daemon),
];

/// Creates an RRD from a dump: a file, or an RRD of the store in whose tree the name lies.
///
/// # Errors
/// RRDtool's; an existing file is then unchanged.
pub fn run(tool: &mut Tool, args: Args<'_>) -> Result {
    let mut options = Options::new(OPTIONS, args);
    let (mut range_check, mut existing, mut daemon) = (false, Existing::Refuse, None);
    while let Some(given) = options.next() {
        match given? {
            (Tag::RangeCheck, _) => range_check = true,
            (Tag::Overwrite, _) => existing = Existing::Replace,
            (Tag::Daemon, word) => daemon = Some(word),
        }
    }
    let &[input, output] = &*options.rest() else { return Err(Failure::new(USAGE)) };
    tool.environment.path(output)?;
    let bytes = read(tool, input)?;
    let rrd = parse(&bytes, range_check)?;
    tool.put(output, &rrd, existing, daemon)
}

fn read(tool: &Tool, input: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if input == STANDARD_INPUT {
        // Not through the buffer, which holds the commands of a session and is in use.
        let input = std::io::stdin().as_fd().try_clone_to_owned().map_err(|_| malformed())?;
        let read = std::fs::File::from(input).read_to_end(&mut bytes);
        return read.map(|_| bytes).map_err(|_| malformed());
    }
    let path = tool.environment.path(input)?;
    let missing = |_| Failure::of_name("Could not create xml reader for: ", input, "");
    let mut file = std::fs::File::open(path).map_err(missing)?;
    // A directory can be opened but not read; RRDtool treats it as an empty file.
    file.read_to_end(&mut bytes).map(|_| bytes).map_err(|_| malformed())
}

fn malformed() -> Failure {
    Failure::new("error reading/parsing XML: Extra content at the end of the document ")
}

fn parse(bytes: &[u8], range_check: bool) -> Result<Rrd> {
    let options = RestoreOptions { range_check, long_names: false };
    xml::restore(bytes, options).map_err(|error| match error {
        RestoreError::Malformed { .. } if bytes.is_empty() => malformed(),
        error => Failure::new(error.to_string()),
    })
}
