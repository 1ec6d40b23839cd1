//! Options among the words of a verb: [`args::options`].

pub use args::options::*;
