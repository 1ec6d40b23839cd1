//! How an RRD is written down, one module per format, and the integers that our own formats share.

pub mod file;
pub mod varint;
pub mod xml;
