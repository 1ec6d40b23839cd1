//! More than one machine: the RRDs of a cluster in partitions, each a store of one shard on several nodes, which a replicated log keeps the same.
//!
//! Of the replicas of a partition one *leads*: it takes the changes, decides them as a single server does, and writes its store's log, record by record,
//! to the replicated log ([`log::ReplicatedLog`]; in production Kafka). All others read that and apply it at the same positions. Who leads is claimed
//! in the log itself ([`message`]): the first claim of an epoch ends all earlier ones, wherever their writers may be. So nothing
//! here agrees on anything by other means than the order of one log per partition.

#![forbid(unsafe_code)]

pub mod check;
mod chores;
pub mod engine;
mod execute;
mod frames;
pub mod handshake;
pub mod key;
pub mod leads;
mod lock;
pub mod log;
pub mod members;
pub mod message;
pub mod node;
pub mod partition;
mod peer;
pub mod plan;
mod room;
pub mod routes;
pub mod serve;
pub mod spool;
mod stream;
pub mod succession;
pub mod tls;
pub mod tree;
pub mod wire;
