//! Stripes: consecutive rows of many RRDs as compressed columns.
//!
//! A *run* is rows `first_row..first_row + count` of one RRD and source; each of its data sources is one
//! column, compressed by itself by [`codec`]. [`crate::segment`] puts runs into files. Nothing here does I/O.

pub mod codec;
pub mod varint;
