//! Options of `import` for history.

use std::path::PathBuf;

use clap::Args;

/// Options for turning history into RRDs.
#[derive(Debug, Args)]
#[command(next_help_heading = "History (all formats but rrd)")]
pub struct HistoryArguments {
    /// The step of the new RRDs, as 15s or 5m [default: the create rule's, else the usual distance of the samples]
    #[arg(long, value_name = "DURATION")]
    pub(super) step: Option<String>,
    /// The archives of the new RRDs: RRA words of rrdtool create, one each time, or short, standard or long [default: the
    /// create rule's, else standard; of Whisper files their own]
    #[arg(long, value_name = "RRA|SET")]
    pub(super) archives: Vec<String>,
    /// A configuration of the daemon; its create sections say the names and archives of new RRDs
    #[arg(long, value_name = "FILE")]
    pub(super) create: Option<PathBuf>,
    /// Replace RRDs that are in the store already; without this, they get the rows that they do not know
    #[arg(long, conflicts_with = "no_overwrite")]
    pub(super) overwrite: bool,
    /// Servers: which series, as a pattern of Graphite's or a selector of Prometheus'; may be given more than once
    #[arg(long = "match", value_name = "SERIES", required_if_eq_any = [("format", "graphite"), ("format", "prometheus")])]
    pub(super) matches: Vec<String>,
    /// Servers: from when on, as rrdtool takes it
    #[arg(short, long, value_name = "TIME", default_value = "end-1month", allow_hyphen_values = true)]
    pub(super) start: String,
    /// Servers: until when
    #[arg(short, long, value_name = "TIME", default_value = "now", allow_hyphen_values = true)]
    pub(super) end: String,
}
