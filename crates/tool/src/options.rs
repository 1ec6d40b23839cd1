//! Options among the words of a verb: [`words::options`].

pub use words::options::*;
