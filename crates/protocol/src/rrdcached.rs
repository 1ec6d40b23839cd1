//! rrdcached's text protocol, as `rrdcached(1)` describes it and Debian's daemon speaks it.
//!
//! A request is a line: a command word and words parted by single spaces, where a backslash takes the
//! next byte as it is. There are no quotes. A BATCH is many requests with one answer. What always holds:
//! nothing here allocates for an ordinary `UPDATE` line, and no input makes anything here panic.

pub mod address;
pub mod client;
pub mod command;
pub mod help;
pub mod limits;
pub mod line;
pub mod reply;
pub mod request;
pub mod rows;
pub mod update;
pub mod whole;
pub mod words;
