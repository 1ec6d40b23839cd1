//! `rrdtool tune`: changes an existing RRD.
//!
//! Compat: RRDtool parses the arguments twice, first for the file's name and the daemon's address, then for
//! the rest. An option whose argument is missing at the end takes the name of the file for it.

use rrd_file::WriteFile;

use crate::failure::{Failure, Result, text};
use crate::options::{OptionError, OptionSpec, Options, with_argument};
use crate::target::{Location, Policy, Remote, file_failure};
use crate::{Args, Tool};

/// Summary and syntax.
pub const SYNTAX: &str = "tune - changes to an RRD that exists\n\n\
    \trrdtool tune filename\n\
    \t\t[--heartbeat|-h ds-name:heartbeat]\n\
    \t\t[--data-source-type|-d ds-name:DST]\n\
    \t\t[--data-source-rename|-r old-name:new-name]\n\
    \t\t[--minimum|-i ds-name:min] [--maximum|-a ds-name:max]\n\
    \t\t[--deltapos|-p scale-value] [--deltaneg|-n scale-value]\n\
    \t\t[--failure-threshold|-f integer]\n\
    \t\t[--window-length|-w integer]\n\
    \t\t[--alpha|-x adaptation-parameter]\n\
    \t\t[--beta|-y adaptation-parameter]\n\
    \t\t[--gamma|-z adaptation-parameter]\n\
    \t\t[--gamma-deviation|-v adaptation-parameter]\n\
    \t\t[--smoothing-window|-s fraction-of-season]\n\
    \t\t[--smoothing-window-deviation|-S fraction-of-season]\n\
    \t\t[--aberrant-reset|-b ds-name]\n\
    \t\t[--step|-t newstep]\n\
    \t\t[--daemon|-D address]\n\
    \t\t[DEL:ds-name]\n\
    \t\t[DS:ds-spec]\n\
    \t\t[DELRRA:index]\n\
    \t\t[RRA:rra-spec]\n\
    \t\t[RRA#index:[+-=]number]\n";

const OPTIONS: &[OptionSpec<u8>] = &[
    with_argument(b'h', "heartbeat", b'h'),
    with_argument(b'i', "minimum", b'i'),
    with_argument(b'a', "maximum", b'a'),
    with_argument(b'd', "data-source-type", b'd'),
    with_argument(b'r', "data-source-rename", b'r'),
    with_argument(b'p', "deltapos", b'p'),
    with_argument(b'n', "deltaneg", b'n'),
    with_argument(b'w', "window-length", b'w'),
    with_argument(b'f', "failure-threshold", b'f'),
    with_argument(b'x', "alpha", b'x'),
    with_argument(b'y', "beta", b'y'),
    with_argument(b'z', "gamma", b'z'),
    with_argument(b'v', "gamma-deviation", b'v'),
    with_argument(b's', "smoothing-window", b's'),
    with_argument(b'S', "smoothing-window-deviation", b'S'),
    with_argument(b'b', "aberrant-reset", b'b'),
    with_argument(b't', "step", b't'),
    with_argument(b'D', "daemon", b'D'),
];

/// The most bytes of a data source's name in a file.
const NAME_BYTES_MAX: usize = 19;

/// The result of the first pass.
struct TuneArgs<'w> {
    name: &'w [u8],
    daemon: Option<&'w [u8]>,
    /// The arguments of the second pass, without the file's name.
    settings: Vec<Vec<u8>>,
}

impl<'w> TuneArgs<'w> {
    fn read(args: Args<'w>) -> Result<Self> {
        let missing = || Failure::new("missing file name");
        let mut options = Options::new(OPTIONS, args);
        let (mut daemon, mut settings, mut dangling, mut bare) = (None, Vec::new(), None, None);
        while let Some(given) = options.next() {
            match given {
                Ok((b'D', argument)) => daemon = Some(argument),
                // An empty argument must be separate, or the next one would be taken for it.
                Ok((letter, b"")) => settings.extend([vec![b'-', letter], Vec::new()]),
                Ok((letter, argument)) => settings.push([&[b'-', letter], argument].concat()),
                // A letter too: the message of the second pass is the same.
                Err(OptionError::Invalid(name)) => settings.push([b"--", &*name].concat()),
                Err(OptionError::MissingShort(letter)) => dangling = Some(letter),
                Err(OptionError::MissingLong(name)) => bare = Some(name),
                Err(_) => return Err(missing()),
            }
        }
        let rest = options.rest();
        let (&name, layout) = rest.split_first().ok_or_else(missing)?;
        match (dangling, bare) {
            (Some(letter), _) => settings.push([&[b'-', letter], name].concat()),
            // The second pass takes the name of the file for the option, and has no name if nothing follows it.
            (None, Some(_)) if layout.is_empty() => return Err(missing()),
            (None, Some(bare)) => settings.push([b"--", bare.as_bytes()].concat()),
            (None, None) => {
                settings.push(b"--".to_vec());
                settings.extend(layout.iter().map(|word| word.to_vec()));
            }
        }
        Ok(TuneArgs { name, daemon, settings })
    }
}

/// Changes the RRD.
///
/// # Errors
/// In RRDtool's words; nothing has changed.
pub fn run(tool: &mut Tool, args: Args<'_>) -> Result {
    let args = TuneArgs::read(args)?;
    tool.environment.path(args.name)?;
    let address = tool.address(args.daemon)?;
    let daemon = match &address {
        Some(address) => {
            let connected = tool.link.connect(address);
            Some(connected.map_err(|_| Failure::new("Cannot connect to daemon"))?)
        }
        None => None,
    };
    let settings: Vec<&[u8]> = args.settings.iter().map(Vec::as_slice).collect();
    let path = match tool.write_target(Policy::CHANGE, args.name, args.daemon)? {
        Location::Remote(remote) => return remote.ask("tune", &settings).map(|_| ()),
        Location::Local(path) => path,
    };
    let remote = daemon.map(|daemon| Remote::named(daemon, args.name, &tool.environment)).transpose()?;
    if let Some(remote) = &remote {
        remote.flush()?;
    }
    let file = WriteFile::open(&path, tool.environment.locking).map_err(|error| file_failure(&error))?;
    let settings: Vec<&str> =
        settings.into_iter().map(|word| text(word).map(cut_name)).collect::<Result<_>>()?;
    file.tune(&settings).map_err(|error| file_failure(&error))?;
    if let Some(remote) = remote {
        // What the daemon knows of the old layout counts no more.
        remote.ask("forget", &[]).ok();
    }
    Ok(())
}

/// Compat: a new name of a data source that is too long for a file is cut.
fn cut_name(word: &str) -> &str {
    let Some((_, name)) = word.strip_prefix("-r").and_then(|argument| argument.split_once(':')) else {
        return word;
    };
    let most = word.len() - name.len() + NAME_BYTES_MAX;
    &word[..word.floor_char_boundary(most)]
}
