//! `rrdtool graph` and `graphv`: not in this release.

use crate::failure::{Done, Failure};

/// What it does and its syntax.
pub const SYNTAX: &str = "graph - draw RRDs\n\n\
    \trrdtool graph filename [options] [definitions...]\n\n\
    Not in this release: it answers with an error.\n";
/// The same of `graphv`.
pub const SYNTAX_VERBOSE: &str = "graphv - draw RRDs and say what was drawn\n\n\
    \trrdtool graphv filename [options] [definitions...]\n\n\
    Not in this release: it answers with an error.\n";

/// Refuses.
pub(crate) fn run() -> Done {
    Err(Failure::new("graph: not yet in this release of Roundel; xport gives the same rows"))
}
