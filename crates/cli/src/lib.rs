//! RRDtool's verbs: arguments in; text and exit status out.
//!
//! It uses `rrd-file` for files, `client` for daemons, and the pure crates; never the async runtime. It has
//! two callers: the command line (a single command, or a session through a pipe), and the C library, whose
//! functions take the same arguments. Output and failures are RRDtool's, byte for byte, found by running
//! Debian's rrdtool side by side (`tests/`); `docs/compatibility.md` lists the differences.

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

/// The arguments after a command's verb. File names may be any bytes.
pub type Args<'w> = &'w [&'w [u8]];

/// A function that returns the rows of a fetch.
pub type Callback = fn(&graph::plan::Request) -> Result<rrd::fetch::FetchRows>;

/// Runs commands. Holds their environment, their daemon connection, and the renderer of graphs.
pub struct Tool {
    /// Environment variables, the clock, and permissions.
    pub environment: Environment,
    /// The daemon connection that commands share.
    pub link: daemon::Link,
    /// The source of rows for `DEF:x=cb//...`: a function that a program registered with the C library.
    pub callback: Option<Callback>,
    /// The renderer of graphs.
    pub(crate) renderer: rrdgraph::Renderer,
}

impl Tool {
    /// A tool with this environment.
    pub fn new(environment: Environment) -> Self {
        Tool { environment, link: daemon::Link::default(), callback: None, renderer: Default::default() }
    }

    /// Runs the verb with its arguments. Output goes to `out`, which the caller must flush.
    ///
    /// # Errors
    /// [`Failure`]; anything printed before it stays.
    pub fn run(&mut self, verb: &[u8], args: Args<'_>, out: &mut dyn Write) -> Result {
        let Some(verb) = verb::Verb::find(verb) else {
            return Err(Failure::of_name("unknown function '", verb, "'"));
        };
        verb.run(self, args, out)?;
        self.link.complaint()
    }
}

/// Writes to standard output or its substitute.
///
/// # Errors
/// When that fails, in RRDtool's words.
pub(crate) fn print(out: &mut dyn Write, bytes: &[u8]) -> Result {
    out.write_all(bytes).map_err(|error| unwritten(&error))
}

/// The failure of output, in RRDtool's words.
pub(crate) fn unwritten(error: &std::io::Error) -> Failure {
    Failure::new(format!("error flushing output: {}", failure::system_text(error)))
}
