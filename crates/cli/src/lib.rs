//! RRDtool's verbs: argument words in, text and exit status out.
//!
//! Knows the store's door for single files, the daemon's protocol and the pure core; never the async
//! runtime. Built for two callers: the command line (one shot, or a session through a pipe), and the C
//! library, whose calls take the same words. What a verb prints and how it fails is RRDtool's, byte for
//! byte, found by running Debian's rrdtool beside it (`tests/`); `docs/compatibility.md` lists what differs.

#![forbid(unsafe_code)]

pub mod daemon;
pub mod environment;
pub mod failure;
pub mod options;
mod pattern;
pub mod pipe;
pub mod process;
mod source;
pub mod target;
pub mod times;
pub mod usage;
pub mod verb;

use std::io::Write;

pub use environment::Environment;
pub use failure::{Failure, Result};

/// The words of a command behind its verb. File names may be any bytes.
pub type Words<'w> = &'w [&'w [u8]];

/// Gives the rows of a fetch.
pub type Callback = fn(&graph::plan::Request) -> Result<rrd::fetch::FetchRows>;

/// Runs commands: what they are given, the daemon they have talked to last, and what pictures are drawn with.
pub struct Tool {
    /// The environment, the clock, and what is allowed.
    pub environment: Environment,
    /// The connection that commands share.
    pub link: daemon::Link,
    /// Where rows of `DEF:x=cb//...` come from: a function that a program has registered with the C library.
    pub callback: Option<Callback>,
    /// What pictures are drawn with.
    pub(crate) renderer: rrdgraph::Renderer,
}

impl Tool {
    /// A tool in these environment.
    pub fn new(environment: Environment) -> Self {
        Tool { environment, link: daemon::Link::default(), callback: None, renderer: Default::default() }
    }

    /// Runs the verb with its words; what it prints goes to `out`, which is flushed by the caller.
    ///
    /// # Errors
    /// [`Failure`], with what was printed before it standing.
    pub fn run(&mut self, verb: &[u8], words: Words<'_>, out: &mut dyn Write) -> Result {
        let Some(verb) = verb::Verb::find(verb) else {
            return Err(Failure::of_name("unknown function '", verb, "'"));
        };
        verb.run(self, words, out)?;
        self.link.complaint()
    }
}

/// Writes to standard output or whatever stands for it.
///
/// # Errors
/// What the system says, in RRDtool's words.
pub(crate) fn print(out: &mut dyn Write, bytes: &[u8]) -> Result {
    out.write_all(bytes).map_err(|error| unwritten(&error))
}

/// Why output could not be written, in RRDtool's words.
pub(crate) fn unwritten(error: &std::io::Error) -> Failure {
    Failure::new(format!("error flushing output: {}", failure::system_text(error)))
}
