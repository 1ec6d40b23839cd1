//! The daemon: listeners, connections, HTTP, configuration, and how it starts and stops.
//!
//! Everything asynchronous is here, and here only: one task a connection, which parses and hands pieces to
//! the store. The store is synchronous; its blocking calls run where they hold up nobody else.

#![forbid(unsafe_code)]

pub mod collect_host;
pub mod config;
pub mod connection;
pub mod daemon;
pub mod http;
pub mod layout;
pub mod lifecycle;
pub mod limits;
pub mod listener;
pub mod logging;
pub mod marks;
pub mod metrics;
pub mod names;
pub mod privileges;
pub mod service;
pub mod settings;
