//! Options, numbers and time ranges among words, as RRDtool's verbs read them.
//!
//! Shared by whoever is given a verb's words: the command line, the graph's options, the daemon's HTTP door.
//! Words in, values or RRDtool's message out; no file, environment or clock - what time it is and how local
//! days go comes through [`times::Clock`].

pub mod integer;
pub mod options;
pub mod times;
