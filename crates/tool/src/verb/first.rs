//! `rrdtool first`: the time of the oldest row of an archive.

use std::io::Write;

use protocol::rrdcached::client::Answer;

use crate::failure::{Done, Failure};
use crate::options::{Known, Options, with_argument};
use crate::target::Target;
use crate::{Tool, Words, print};

/// What it does and its syntax.
pub const SYNTAX: &str = "first - the time of the oldest row of an archive\n\n\
    \trrdtool first filename.rrd [--rraindex number] [--daemon|-d address]\n";

const USAGE: &str = "usage rrdtool first [--rraindex number] [--daemon|-d <addr>] file.rrd";

#[derive(Clone, Copy)]
enum Tag {
    Archive,
    Daemon,
}

const OPTIONS: &[Known<Tag>] = &[
    Known { short: None, long: "rraindex", argument: true, tag: Tag::Archive },
    with_argument(b'd', "daemon", Tag::Daemon),
];

/// The time of the oldest row, in seconds.
///
/// # Errors
/// In RRDtool's words.
pub fn first(tool: &mut Tool, words: Words<'_>) -> Done<i64> {
    let mut options = Options::new(OPTIONS, words);
    let (mut archive, mut daemon) = (0, None);
    while let Some(given) = options.next() {
        match given? {
            (Tag::Archive, argument) => {
                archive = integer(argument);
                if archive < 0 {
                    return Err(Failure::new("invalid rraindex number"));
                }
            }
            (Tag::Daemon, argument) => daemon = Some(argument),
        }
    }
    // Compat: more words than one are ignored.
    let rest = options.rest();
    let Some(name) = rest.first() else { return Err(Failure::new(USAGE)) };
    match tool.target(name, daemon)? {
        Target::File(file) => {
            let definition = file.definition();
            let index = usize::try_from(archive).unwrap_or(usize::MAX);
            let units = rrd::plan::first(definition, file.last_update().whole, index)
                .map_err(|error| Failure::new(error.to_string()))?;
            Ok(units.div_euclid(i64::from(definition.units_per_second)))
        }
        Target::Remote(mut remote) => number(&remote.ask("first", &[archive.to_string().as_bytes()])?),
    }
}

/// Runs it: RRDtool prints -1 in front of an error.
pub(crate) fn run(tool: &mut Tool, words: Words<'_>, out: &mut dyn Write) -> Done {
    let first = first(tool, words);
    print(out, format!("{}\n", first.as_ref().unwrap_or(&-1)).as_bytes())?;
    first.map(|_| ())
}

/// Compat: as `strtol` reads it: blanks and a sign in front, anything behind, 0 when there is no number.
pub(crate) fn integer(word: &[u8]) -> i64 {
    let word = word.trim_ascii_start();
    let (negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let size = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0i64, |size, byte| size.saturating_mul(10).saturating_add(i64::from(byte - b'0')));
    if negative { -size } else { size }
}

/// The number that an answer of one line is.
pub(crate) fn number(answer: &Answer) -> Done<i64> {
    answer
        .text
        .trim()
        .parse()
        .map_err(|_| Failure::new(format!("rrdcached answers what is no number: {}", answer.text)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn integers_are_read_as_in_c() {
        for (text, want) in
            [("1", 1), (" -3x", -3), ("+7", 7), ("x", 0), ("", 0), ("99999999999999999999", i64::MAX)]
        {
            assert_eq!(super::integer(text.as_bytes()), want, "{text}");
        }
    }
}
