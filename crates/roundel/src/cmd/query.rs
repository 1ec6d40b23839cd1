//! `roundel query`: rows and values of thousands of RRDs at once, in the words of RRDtool, Prometheus or Graphite.

mod asked;
mod graphite;
mod prometheus;

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use graph::language::check_span;
use graph::plan::TimeRange;
use query::{Format, Query, QueryError, write_series};
use rrd::when::at::resolve_pair;

use self::asked::Asked;
use self::prometheus::Times;
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

  The same in Prometheus' words, of a daemon over HTTP; without a start it is the value at the end:
    roundel query --promql 'topk(5, rate(snmp_interface_in_total[1h]))' --url http://127.0.0.1:8080
    roundel query -s -1d --step 300 --promql 'sum by (instance) (host_load_one)' --format csv

  In Graphite's, of a store that no daemon has open:
    roundel query -s -6h --graphite 'groupByNode(net.*.*.in, 1, \"sum\")' --url var/store

Wildcards are *, ? and [abc] within one name of a path. DEFs whose wildcards stand for the same texts belong
together. With a VDEF or PRINT and no XPORT there is one line an RRD; else there is one line a row, of the variables
that XPORT names, or of all. Answers to PromQL and Graphite have a line a point, with the labels as columns (in all
formats but the table). A token is taken from ROUNDEL_TOKEN or ROUNDEL_TOKEN_FILE.";

/// Options of `query`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// DEF:name=file:ds:CF, CDEF, VDEF, PRINT and XPORT, as in rrdgraph_data(1); the file of a DEF may have wildcards
    #[arg(required_unless_present_any = ["promql", "graphite"], value_name = "DEF|CDEF|VDEF|PRINT|XPORT")]
    arguments: Vec<OsString>,
    /// An expression in Prometheus' language (docs/prometheus.md): over the range if there is --start or --step, else at the end
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["graphite", "arguments", "percentile", "daemon", "threads"])]
    promql: Option<String>,
    /// Graphite's targets (docs/graphite.md); of finer rows than --maxrows allows, what it consolidates them to
    #[arg(long, value_name = "TARGET", num_args = 1.., conflicts_with_all = ["arguments", "percentile", "daemon", "threads", "step"])]
    graphite: Vec<String>,
    /// PromQL and Graphite: the daemon, as http://HOST:PORT or https://, or the directory of a store that no daemon has open
    /// [default: the first listen of http in roundel.toml here]
    #[arg(long, value_name = "URL|DIR")]
    url: Option<String>,
    /// PromQL and Graphite: the daemon's configuration, of which the sections metric say what the RRDs of a store at rest are called
    /// [default: roundel.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Start of the range, as rrdtool takes it: seconds, -1d, "noon yesterday", end-2h [default: end-1day]
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<String>,
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
    arguments.format.format().check().map_err(|error| error.to_string())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let start = arguments.start.as_deref().unwrap_or("end-1day");
    let (start, end) =
        resolve_pair(start, &arguments.end, now, &localtime::Local).map_err(|error| error.to_string())?;
    check_span(start, end).map_err(|error| error.to_string())?;
    if arguments.promql.is_some() || !arguments.graphite.is_empty() {
        return ask(arguments, start, end);
    }
    if arguments.url.is_some() || arguments.config.is_some() {
        return Err(
            "--url and --config are for --promql and --graphite; a daemon that DEFs are read of is --daemon"
                .to_owned(),
        );
    }
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
    let mut out = output(arguments)?;
    let run = query.run(arguments.format.format(), &mut out);
    let Some(report) = heard(run.and_then(|report| Ok(out.flush().map(|()| report)?)))? else {
        return Ok(());
    };
    for (name, why) in report.failures.iter().take(TOLD_MAX) {
        eprintln!("roundel: {name}: {why}");
    }
    match report.failures.len() {
        0 => Ok(()),
        failed => Err(format!("{} RRDs answered, {failed} did not", report.answered)),
    }
}

/// Answers PromQL or Graphite.
fn ask(arguments: &Arguments, start: i64, end: i64) -> Result {
    let asked = Asked::find(arguments.url.as_deref(), arguments.config.as_deref())?;
    let answered = match &arguments.promql {
        Some(expression) => {
            let (step, rows) = (arguments.step as i64, arguments.maxrows.map(|rows| rows.max(1) as i64));
            let of_rows = rows.map(|rows| ((end - start) as u64).div_ceil(rows as u64).max(1) as i64);
            let step = if step > 0 { Some(step) } else { of_rows };
            let is_range = arguments.start.is_some() || step.is_some();
            let times = if is_range { Times::Range(start, end, step) } else { Times::At(end) };
            prometheus::ask(&asked, expression, times)
        }
        None => graphite::ask(&asked, &arguments.graphite, (start, end), arguments.maxrows),
    };
    let closed = asked.close();
    let all = answered?;
    let mut out = output(arguments)?;
    let written = write_series(arguments.format.format(), &all, &mut out);
    heard(written.and_then(|()| Ok(out.flush()?)))?;
    closed
}

/// What was written, or `None` when its reader has heard enough, as `head` does.
fn heard<T>(written: std::result::Result<T, QueryError>) -> Result<Option<T>> {
    match written {
        Ok(done) => Ok(Some(done)),
        Err(QueryError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Where the answer goes.
fn output(arguments: &Arguments) -> Result<Box<dyn Write + Send>> {
    Ok(match &arguments.output {
        Some(path) => {
            let cannot = |error| format!("cannot create \"{}\": {error}", path.display());
            Box::new(BufWriter::new(File::create(path).map_err(cannot)?))
        }
        None => Box::new(BufWriter::new(std::io::stdout())),
    })
}

impl Written {
    fn format(self) -> Format {
        match self {
            Written::Table => Format::Table,
            Written::Csv => Format::Csv,
            Written::Json => Format::Json,
            Written::Arrow => Format::Arrow,
            Written::Parquet => Format::Parquet,
        }
    }
}
