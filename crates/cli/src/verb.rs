//! The verbs, one file each, and the table of them.

pub mod create;
pub mod dump;
pub mod fetch;
pub mod first;
pub mod flushcached;
pub mod graph;
pub mod info;
pub mod last;
pub mod lastupdate;
pub mod list;
pub mod resize;
pub mod restore;
pub mod tune;
pub mod update;
pub mod updatev;
pub mod xport;

use std::io::Write;

use crate::failure::Result;
use crate::{Args, Tool};

/// A verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the commands of rrdtool(1)")]
pub enum Verb {
    Create,
    Update,
    Updatev,
    Graph,
    Graphv,
    Dump,
    Restore,
    Last,
    Lastupdate,
    First,
    Info,
    List,
    Fetch,
    Tune,
    Resize,
    Xport,
    Flushcached,
}

impl Verb {
    /// All verbs, in the order of rrdtool's own list. [`Verb::find`] knows no others; [`crate::usage::page`] lists
    /// them too.
    pub const ALL: [Verb; 17] = [
        Verb::Create,
        Verb::Update,
        Verb::Updatev,
        Verb::Graph,
        Verb::Graphv,
        Verb::Dump,
        Verb::Restore,
        Verb::Last,
        Verb::Lastupdate,
        Verb::First,
        Verb::Info,
        Verb::List,
        Verb::Fetch,
        Verb::Tune,
        Verb::Resize,
        Verb::Xport,
        Verb::Flushcached,
    ];

    /// The verb of this name.
    pub fn find(name: &[u8]) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| verb.name().as_bytes() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Updatev => "updatev",
            Verb::Graph => "graph",
            Verb::Graphv => "graphv",
            Verb::Dump => "dump",
            Verb::Restore => "restore",
            Verb::Last => "last",
            Verb::Lastupdate => "lastupdate",
            Verb::First => "first",
            Verb::Info => "info",
            Verb::List => "list",
            Verb::Fetch => "fetch",
            Verb::Tune => "tune",
            Verb::Resize => "resize",
            Verb::Xport => "xport",
            Verb::Flushcached => "flushcached",
        }
    }

    /// Its summary and syntax.
    pub fn syntax(self) -> &'static str {
        match self {
            Verb::Create => create::SYNTAX,
            Verb::Update => update::SYNTAX,
            Verb::Updatev => updatev::SYNTAX,
            Verb::Graph => graph::SYNTAX,
            Verb::Graphv => graph::SYNTAX_VERBOSE,
            Verb::Dump => dump::SYNTAX,
            Verb::Restore => restore::SYNTAX,
            Verb::Last => last::SYNTAX,
            Verb::Lastupdate => lastupdate::SYNTAX,
            Verb::First => first::SYNTAX,
            Verb::Info => info::SYNTAX,
            Verb::List => list::SYNTAX,
            Verb::Fetch => fetch::SYNTAX,
            Verb::Tune => tune::SYNTAX,
            Verb::Resize => resize::SYNTAX,
            Verb::Xport => xport::SYNTAX,
            Verb::Flushcached => flushcached::SYNTAX,
        }
    }

    /// Runs it.
    pub(crate) fn run(self, tool: &mut Tool, args: Args<'_>, out: &mut dyn Write) -> Result {
        match self {
            Verb::Create => create::run(tool, args),
            Verb::Update => update::run(tool, args),
            Verb::Updatev => updatev::run(tool, args, out),
            Verb::Graph => graph::run(tool, args, out, false),
            Verb::Graphv => graph::run(tool, args, out, true),
            Verb::Dump => dump::run(tool, args, out),
            Verb::Restore => restore::run(tool, args),
            Verb::Last => last::run(tool, args, out),
            Verb::Lastupdate => lastupdate::run(tool, args, out),
            Verb::First => first::run(tool, args, out),
            Verb::Info => info::run(tool, "info", args, out),
            Verb::List => list::run(tool, args, out),
            Verb::Fetch => fetch::run(tool, args, out),
            Verb::Tune => tune::run(tool, args),
            Verb::Resize => resize::run(tool, args),
            Verb::Xport => xport::run(tool, args, out),
            Verb::Flushcached => flushcached::run(tool, args),
        }
    }
}
