//! SNMP: devices are polled on their steps, and what they answer becomes readings.
//!
//! [`engine`] decides when what is sent and what an answer means, for devices that each have a [`plan`]; it has neither sockets
//! nor a clock. Who uses it implements [`engine::Handler`].

pub mod answer;
pub mod collector;
pub mod device;
pub mod engine;
pub mod outbox;
mod pass;
pub mod plan;
pub mod profile;
pub mod rules;
pub mod source;
pub mod template;
pub mod totals;
pub mod users;
mod walk;
mod wheel;

#[cfg(test)]
pub(crate) mod tests;
