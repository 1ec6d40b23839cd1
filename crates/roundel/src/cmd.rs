//! The commands, one file each. A failure is a text for standard error.

pub mod export;
pub mod import;
pub mod inspect;
pub mod manual;
pub mod peer;
pub mod query;
pub mod rrdcached;
pub mod rrdtool;
pub mod serve;

/// What a command comes to.
pub type Done = Result<(), String>;
