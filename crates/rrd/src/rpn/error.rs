//! Why a text is no expression.

use std::fmt;

/// Why a CDEF or a VDEF was refused. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RpnError {
    /// A CDEF without any text.
    Empty,
    /// What begins here is no number, operator or variable; the rest of the expression.
    NotUnderstood(String),
}

impl fmt::Display for RpnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RpnError::Empty => f.write_str("can not parse an empty rpn expression"),
            RpnError::NotUnderstood(rest) => write!(f, "don't understand '{rest}'"),
        }
    }
}

impl std::error::Error for RpnError {}
