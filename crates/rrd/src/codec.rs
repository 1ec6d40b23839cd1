//! How an RRD is written down, one module per format.

pub mod file;
pub mod xml;
