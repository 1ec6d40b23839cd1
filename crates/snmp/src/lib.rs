//! SNMP on the wire, from a manager's side: object identifiers, BER, and the messages of versions 1, 2c and 3.
//!
//! Requests are encoded into a buffer that is reused, responses are decoded in place: nothing is allocated per message.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod ber;
pub mod fuzzing;
pub mod message;
pub mod mib;
pub mod names;
pub mod oid;
pub mod usm;
pub mod value;
