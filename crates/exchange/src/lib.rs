//! History out of RRDs into databases and files for analysis, and into RRDs out of what other tools kept.
//!
//! Out: [`rows`] chooses which rows of an RRD leave; `parquet` writes them as a data set that is partitioned by day and
//! tree, `postgres` copies them into tables. In: `history`. Whole RRDs come in, from a daemon or a store: this crate opens neither.

#![forbid(unsafe_code)]

pub mod history;
#[cfg(feature = "arrow")]
pub mod parquet;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod rows;
pub mod target;
