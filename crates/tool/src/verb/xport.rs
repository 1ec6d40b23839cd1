//! `rrdtool xport`: rows of several RRDs, computed with, as XML or JSON.

use std::io::Write;

use crate::failure::{Done, Failure};
use crate::{Tool, Words};

/// What it does and its syntax.
pub const SYNTAX: &str = "xport - rows of several RRDs as XML or JSON\n\n\
    \trrdtool xport [-s|--start seconds] [-e|--end seconds]\n\
    \t\t[-m|--maxrows rows]\n\
    \t\t[--step seconds]\n\
    \t\t[--enumds] [--json] [--showtime]\n\
    \t\t[-d|--daemon address]\n\
    \t\t[DEF:vname=rrd:ds-name:CF]\n\
    \t\t[CDEF:vname=rpn-expression]\n\
    \t\t[XPORT:vname:legend]\n";

/// Runs it.
pub(crate) fn run(_tool: &mut Tool, _words: Words<'_>, _out: &mut dyn Write) -> Done {
    Err(Failure::new("xport: the graph language is being built"))
}
