//! What receives samples, and what is told of those that do not count.

use crate::fault::Fault;
use crate::pushed::Pushed;

/// Something that does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// Which line of the body or datagram, which entry of a message or which point, counted from 1.
    pub line: usize,
    /// It, or its name.
    pub text: &'a [u8],
    /// Why.
    pub fault: Fault,
}

/// Takes samples as they are read.
pub trait Sink {
    /// A sample.
    fn pushed(&mut self, pushed: &Pushed<'_>);
    /// Something that does not count; what is around it does.
    fn refused(&mut self, refusal: Refusal<'_>);
}
