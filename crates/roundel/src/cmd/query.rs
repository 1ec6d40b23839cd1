//! `roundel query`: rows and values of thousands of RRDs at once.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use graph::language::check_span;
use graph::plan::TimeRange;
use query::{Format, Query};
use rrd::when::at::resolve_pair;

use super::Result;

/// Failures reported one by one; more are only counted.
const TOLD_MAX: usize = 20;

const EXAMPLES: &str = "\
Examples:
  95th percentile of every port in October, for the bill:
    roundel query -s '00:00 20261001' -e '00:00 20261101' --percentile 95 'DEF:in=ports/*.rrd:in:AVERAGE'

  The same with rrdtool's own words, and the sum of both directions:
    roundel query -s -30d 'DEF:rx=ports/*.rrd:in:AVERAGE' 'DEF:tx=ports/*.rrd:out:AVERAGE' \\
        CDEF:both=rx,tx,+ VDEF:p95=both,95,PERCENT VDEF:most=both,MAXIMUM --format csv

  What PRINT prints, a line a port:
    roundel query -s -30d 'DEF:in=ports/*.rrd:in:AVERAGE' VDEF:m=in,MAXIMUM 'PRINT:m:%.1lf %sb/s' PRINT:m:%c:strftime

  Rows of one day in columns, for other programs:
    roundel query -s -1d --step 300 'DEF:load=/var/lib/*/load.rrd:load:AVERAGE' --format parquet -o load.parquet

Wildcards are *, ? and [abc] within one name of a path. DEFs whose wildcards stand for the same texts belong
together. With a VDEF or PRINT and no XPORT there is one line an RRD; else there is one line a row, of the variables
that XPORT names, or of all.";

/// Options of `query`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// DEF:name=file:ds:CF, CDEF, VDEF, PRINT and XPORT, as in rrdgraph_data(1); the file of a DEF may have wildcards
    #[arg(required = true, value_name = "DEF|CDEF|VDEF|PRINT|XPORT")]
    arguments: Vec<OsString>,
    /// Start of the range, as rrdtool takes it: seconds, -1d, "noon yesterday", end-2h
    #[arg(short, long, value_name = "TIME", default_value = "end-1day", allow_hyphen_values = true)]
    start: String,
    /// End of the range
    #[arg(short, long, value_name = "TIME", default_value = "now", allow_hyphen_values = true)]
    end: String,
    /// Minimum seconds per row; finer rows are consolidated [default: the finest available]
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_default_value = true)]
    step: u64,
    /// Maximum number of rows, as in xport; finer rows are consolidated
    #[arg(short, long, value_name = "ROWS")]
    maxrows: Option<u64>,
    /// A percentile (0 to 100) of every exported variable, or of all; may be given more than once
    #[arg(short, long, value_name = "PERCENT")]
    percentile: Vec<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    format: Written,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The daemon to ask: unix:path, a path, host or host:port [default: RRDCACHED_ADDRESS, else the files are read]
    #[arg(short, long, value_name = "ADDRESS")]
    daemon: Option<String>,
    /// Number of threads [default: the number of processors]
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Written {
    /// For people
    Table,
    /// Comma-separated values with a heading
    Csv,
    /// An array of objects
    Json,
    /// Arrow IPC stream
    Arrow,
    /// Parquet
    Parquet,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let (start, end) = resolve_pair(&arguments.start, &arguments.end, now, &localtime::Local)
        .map_err(|error| error.to_string())?;
    check_span(start, end).map_err(|error| error.to_string())?;
    let range = match arguments.maxrows {
        Some(rows) => TimeRange::new(start, end, arguments.step, rows),
        None => TimeRange { start, end, step: arguments.step },
    };
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let query = Query {
        arguments: arguments.arguments.iter().map(|argument| argument.clone().into_vec()).collect(),
        percentiles: arguments.percentile.clone(),
        range,
        now,
        daemon: super::address::daemon(arguments.daemon.as_deref())?,
        threads: arguments.threads.unwrap_or_else(processors),
    };
    let format = match arguments.format {
        Written::Table => Format::Table,
        Written::Csv => Format::Csv,
        Written::Json => Format::Json,
        Written::Arrow => Format::Arrow,
        Written::Parquet => Format::Parquet,
    };
    let mut out: Box<dyn Write + Send> = match &arguments.output {
        Some(path) => {
            let cannot = |error| format!("cannot create \"{}\": {error}", path.display());
            Box::new(BufWriter::new(File::create(path).map_err(cannot)?))
        }
        None => Box::new(BufWriter::new(std::io::stdout())),
    };
    let report = query.run(format, &mut out).map_err(|error| error.to_string())?;
    out.flush().map_err(|error| format!("cannot write the answer: {error}"))?;
    for (name, why) in report.failures.iter().take(TOLD_MAX) {
        eprintln!("roundel: {name}: {why}");
    }
    match report.failures.len() {
        0 => Ok(()),
        failed => Err(format!("{} RRDs answered, {failed} did not", report.answered)),
    }
}
