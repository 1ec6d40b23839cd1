//! How an RRD is written down, by format.

pub mod file;
pub mod xml;
