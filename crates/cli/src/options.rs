//! Options among a verb's arguments: [`args::options`].

pub use args::options::*;
