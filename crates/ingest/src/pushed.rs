//! What every push protocol hands on.

use crate::number::Number;
use crate::sample::Kind;

/// A value at a time, with its name and labels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pushed<'a> {
    /// The name.
    pub name: &'a str,
    /// Keys and values, in the order in which the sender had them.
    pub labels: &'a [(&'a str, &'a str)],
    /// When, in nanoseconds since the epoch; `None` is now.
    pub time: Option<i64>,
    /// The value, which is finite.
    pub value: Number,
    /// What it is of.
    pub kind: Kind,
}
