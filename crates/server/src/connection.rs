//! Connections: one module per protocol, and the stream they run on.

pub mod answer;
pub mod create;
pub mod dump;
pub mod fetch;
pub mod frames;
pub mod info;
pub mod piece;
pub mod rrdcached;
pub mod stream;
pub mod updatev;
pub mod whole;
