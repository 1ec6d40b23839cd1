//! Columns: consecutive rows of many RRDs, one compressed column per data source.
//!
//! A *run* is the rows `first_row..first_row + count` of one RRD and source. Each of its data sources is one
//! column, which [`codec`] compresses independently. [`crate::segment`] stores runs in files. Nothing here
//! does I/O.

pub mod codec;
