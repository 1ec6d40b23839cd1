//! Several nodes as one store, over real connections: the same answers as one store, whatever is lost meanwhile.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "cluster/sameness.rs"]
mod sameness;
#[path = "cluster/strangers.rs"]
mod strangers;
#[path = "cluster/trouble.rs"]
mod trouble;
#[path = "cluster/versions.rs"]
mod versions;
#[path = "cluster/world.rs"]
mod world;
