//! Versions 3 and 4 of frames: what an agent on another machine sends, and what the store answers (`docs/protocol/agents.md`).
//!
//! An agent numbers its [`block`]s of readings; the store says up to which number it has applied them for good
//! ([`session`]), and what is to be
//! polled ([`work`]). This module owns the encoding in both directions: no socket, clock or file.

pub mod block;
pub mod labels;
pub mod session;
pub mod work;

/// The version of frames that agents speak.
pub const VERSION: u32 = 4;
/// The version before, which an agent or a store of an earlier release speaks: without [`session::PROFILE`] and [`session::LABELS`].
pub const VERSION_BEFORE: u32 = 3;

/// The longest body of a frame from an agent: a block that does not compress, and its head.
pub const AGENT_BODY_BYTES_MAX: usize = block::BLOCK_PLAIN_BYTES_MAX + (64 << 10);
/// The longest body of a frame from the store.
pub const STORE_BODY_BYTES_MAX: usize = 1 << 20;
/// The longest name of an agent.
pub const NAME_BYTES_MAX: usize = 128;

/// Tags of an agent. Guessed: an agent has a place, a network and a few roles.
pub const TAGS_MAX: usize = 64;

/// What follows an agent's name in the name of its second stream, whose blocks do not wait for those of the first.
pub const LIVE_STREAM: &str = "/live";

/// True for what an agent may be called: 1 to [`NAME_BYTES_MAX`] printable ASCII characters, no space.
pub fn is_agent_name(name: &[u8]) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic)
}
