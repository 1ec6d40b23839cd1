//! Backups of a running store to an S3 server or a directory, all the time, and stores made of them.
//!
//! What never changes (segments, checkpoints) is sent once, the log in short intervals; each round ends with a manifest that
//! names all that makes the store up at its moment. Names of objects follow from their contents. Of the place nothing is
//! needed but plain PUT, GET, HEAD and DELETE: no conditions, no list that is complete. The crate has async code, because the
//! client of the object store has; it runs on a thread with a small runtime of its own, and the store knows nothing of it.

#![forbid(unsafe_code)]

pub mod fuzzing;
pub mod keep;
pub mod later;
pub mod location;
pub mod manifest;
pub mod moments;
pub mod objects;
pub mod own;
pub mod parts;
pub mod prune;
pub mod replicas;
pub mod restore;
pub mod run;
pub mod seal;
pub mod sent;
pub mod upload;
