//! rrdcached's text protocol, as `rrdcached(1)` describes it and Debian's daemon implements it.
//!
//! A request is a line: a command and its arguments, words separated by single spaces, in which a backslash
//! escapes the next byte. There are no quotes. A BATCH is many requests with one answer. Nothing here
//! allocates for an ordinary `UPDATE` line, and no input panics.

pub mod address;
pub mod client;
pub mod command;
pub mod files;
pub mod help;
pub mod limits;
pub mod line;
pub mod reply;
pub mod request;
pub mod rows;
pub mod update;
pub mod whole;
pub mod words;
