//! The daemon: listeners, connections, HTTP, configuration, start and stop.
//!
//! All asynchronous code is in this crate and in `backup`. A connection is one task, or for frames a thread; it parses
//! requests and sends chunks of updates to the store. The store is synchronous; its blocking calls run where
//! they delay no other connection.

#![forbid(unsafe_code)]

mod accepting;
pub mod access;
pub mod agent;
pub mod agents;
mod arrivals;
#[cfg(feature = "backup")]
mod backing;
pub mod budget;
#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "cluster_absent.rs"]
pub mod cluster;
pub mod collectors;
pub mod config;
mod confine;
pub mod connection;
pub mod connection_limits;
pub mod daemon;
mod durable;
pub mod forward;
mod frames_port;
mod frames_wire;
pub mod grafana;
mod graphite_path;
pub mod http;
pub mod idle_memory;
pub mod ingest;
pub mod layout;
pub mod lifecycle;
pub mod limits;
pub mod listener;
pub mod logging;
mod machine;
pub mod marks;
pub mod metrics;
mod name_index;
pub mod names;
mod parallel;
pub mod peer;
pub mod private;
pub mod privileges;
pub mod push;
mod rate;
mod reload;
pub mod replication;
#[cfg(feature = "backup")]
mod restoring;
pub mod scrub;
pub mod service;
pub mod settings;
#[cfg(feature = "exchange")]
pub mod sink;
#[cfg(not(feature = "exchange"))]
#[path = "sink_absent.rs"]
pub mod sink;
pub mod small_fetch;
pub mod start_check;
pub mod status;
mod takeover;
pub mod tls;
mod watched;
