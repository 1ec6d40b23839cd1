//! Graphite's pickle protocol: a list of `(path, (time, value))`, as Python's `pickle` writes it.
//!
//! A pickle is a program for a stack machine that may construct any object. Here the machine knows numbers, texts, tuples and
//! lists, and has no instruction for anything else: one that it does not know ends the message, and its name is said. `None`,
//! `True` and `False` are taken as what they are, so that they cost only the entry that they stand in.
//! Nothing recurses, and what a message makes is limited by its bytes and by [`ITEMS_MAX`].

mod machine;
mod opcode;

use std::fmt;

use self::machine::{Item, Machine};
use crate::fault::Fault;
use crate::number::Number;

/// Bytes of a message at most, as carbon has it.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// What a message may make at most: an entry takes five, and is not shorter than 20 bytes.
pub const ITEMS_MAX: usize = 400_000;

/// Why a message cannot be used at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickleError {
    /// An instruction that makes something else than numbers, texts, tuples and lists.
    Forbidden {
        /// Its name in Python's documentation.
        name: &'static str,
        /// Where it stands.
        offset: usize,
    },
    /// No instruction of Python's.
    NoOpcode {
        /// The byte.
        byte: u8,
        /// Where it stands.
        offset: usize,
    },
    /// The message ends too early, or an instruction lacks what it works on.
    Broken {
        /// Where.
        offset: usize,
    },
    /// More is made than [`ITEMS_MAX`].
    TooMany {
        /// Where the limit was reached.
        offset: usize,
    },
    /// What it makes is no list.
    NoList,
}

impl PickleError {
    /// Its name as the label of a counter.
    pub fn label(self) -> &'static str {
        match self {
            PickleError::Forbidden { .. } => "pickle_forbidden",
            PickleError::NoOpcode { .. } | PickleError::Broken { .. } => "pickle_broken",
            PickleError::TooMany { .. } => "pickle_too_many",
            PickleError::NoList => "pickle_no_list",
        }
    }
}

impl fmt::Display for PickleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PickleError::Forbidden { name, offset } => write!(
                f,
                "the pickle has the instruction {name} at byte {offset}: only numbers, texts, tuples and lists are taken"
            ),
            PickleError::NoOpcode { byte, offset } => {
                write!(f, "the pickle has the byte {byte:#04x} at {offset}, which is no instruction")
            }
            PickleError::Broken { offset } => {
                write!(f, "the pickle breaks off or contradicts itself at byte {offset}")
            }
            PickleError::TooMany { offset } => {
                write!(f, "the pickle makes more than {ITEMS_MAX} things up to byte {offset}")
            }
            PickleError::NoList => f.write_str("the pickle is no list of (path, (time, value))"),
        }
    }
}

impl std::error::Error for PickleError {}

/// An entry of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PickledPoint<'a> {
    /// The path, with tags as in a plaintext line.
    pub path: &'a [u8],
    /// When, in seconds; -1 means now.
    pub time: Number,
    /// The value.
    pub value: Number,
}

/// Reads a message, without its length in front; `visit` gets each entry, counted from 1, or what is wrong with it.
///
/// # Errors
/// When the message is no list of anything; then nothing was visited.
pub fn read(
    message: &[u8],
    visit: &mut dyn FnMut(usize, Result<PickledPoint<'_>, Fault>),
) -> Result<(), PickleError> {
    let mut machine = Machine::new(message);
    let result = machine.run()?;
    let entries = machine.sequence(&result).ok_or(PickleError::NoList)?;
    for (index, entry) in entries.iter().enumerate() {
        visit(index + 1, point(&machine, entry));
    }
    Ok(())
}

fn point<'m>(machine: &'m Machine<'m>, entry: &Item<'m>) -> Result<PickledPoint<'m>, Fault> {
    let [path, datapoint] = machine.sequence(entry).ok_or(Fault::BadForm)? else {
        return Err(Fault::BadForm);
    };
    let [time, value] = machine.sequence(datapoint).ok_or(Fault::BadForm)? else {
        return Err(Fault::BadForm);
    };
    let path = machine.text(path).ok_or(Fault::NoName)?;
    let time = number(machine, time).ok_or(Fault::BadTime)?;
    let value = number(machine, value).ok_or(Fault::BadValue)?;
    Ok(PickledPoint { path, time, value })
}

/// A number, or a text that is one, as carbon takes both.
fn number<'m>(machine: &'m Machine<'m>, item: &Item<'m>) -> Option<Number> {
    match item {
        Item::Number(number) => Some(*number),
        _ => Number::of_text(machine.text(item)?.trim_ascii()),
    }
}

#[cfg(test)]
mod tests;
