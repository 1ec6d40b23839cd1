//! `rrdtool updatev`: `update` that lists the rows it wrote.

use std::io::Write;

use rrd::info::InfoItem;
use store::direct::DirectError;

use super::info::text_of;
use super::update::{Tag, Wish};
use crate::failure::{Done, Failure};
use crate::options::{Known, flag, with_argument};
use crate::target::file_failure;
use crate::{Tool, Words, print};

/// What it does and its syntax.
pub const SYNTAX: &str = "updatev - update, and list the rows that were written\n\n\
    \trrdtool updatev filename\n\
    \t\t[--template|-t ds-name:ds-name:...]\n\
    \t\t[--skip-past-updates|-s]\n\
    \t\t[--locking|-L try|block|none]\n\
    \t\ttime|N:value[:value...]\n\
    \t\tat-time@value[:value...] ...\n";

const OPTIONS: &[Known<Tag>] = &[
    with_argument(b't', "template", Tag::Template),
    flag(b's', "skip-past-updates", Tag::SkipPast),
    with_argument(b'L', "locking", Tag::Locking),
];

/// What an update wrote: the rows, also those in front of what went wrong.
pub struct Written {
    /// `[time]RRA[cf][pdp_per_row]DS[name]` and the value.
    pub items: Vec<InfoItem>,
    /// What went wrong.
    pub failure: Option<Failure>,
}

/// Updates a file.
///
/// # Errors
/// Words that make no sense; what goes wrong with the file is in the result.
pub fn updatev(tool: &mut Tool, words: Words<'_>) -> Done<Written> {
    let wish = Wish::read(OPTIONS, words)?;
    apply(tool, &wish)
}

/// Updates a file as it is wished.
///
/// # Errors
/// As [`updatev`].
pub fn apply(tool: &mut Tool, wish: &Wish<'_>) -> Done<Written> {
    tool.surroundings.path(wish.name)?;
    Ok(match wish.apply(&tool.surroundings, true) {
        Ok(report) => Written { items: report.items(), failure: None },
        Err(DirectError::Placeholder { .. }) => {
            let why = "': a store has it, which does not list rows; use update";
            Written { items: Vec::new(), failure: Some(Failure::of_name("opening '", wish.name, why)) }
        }
        Err(ref error @ DirectError::Update { ref report, .. }) => {
            Written { items: report.items(), failure: Some(file_failure(error)) }
        }
        Err(error) => Written { items: Vec::new(), failure: Some(file_failure(&error)) },
    })
}

/// Runs it.
pub(crate) fn run(tool: &mut Tool, words: Words<'_>, out: &mut dyn Write) -> Done {
    let written = updatev(tool, words)?;
    let status = if written.failure.is_none() { "return_value = 0\n" } else { "return_value = -1\n" };
    let mut text = status.as_bytes().to_vec();
    text.extend_from_slice(&text_of(&written.items, &tool.surroundings));
    print(out, &text)?;
    written.failure.map_or(Ok(()), Err)
}
