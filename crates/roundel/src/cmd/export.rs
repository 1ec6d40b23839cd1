//! `roundel export`: RRDs of a store as standard `.rrd` files that rrdtool reads, or their rows as Parquet or in PostgreSQL.

mod names;
#[cfg(feature = "exchange")]
mod read;
#[cfg(feature = "exchange")]
mod rows;
#[cfg(not(feature = "exchange"))]
#[path = "export/rows_absent.rs"]
mod rows;
#[cfg(feature = "exchange")]
mod selected;

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use store::name::RrdName;

use super::Result;
use super::import::{Failures, progress};
use super::peer::Peer;

const EXAMPLES: &str = "\
Examples:
  Every RRD as a standard .rrd file, to leave Roundel or to keep a copy:
    roundel export --all --to /srv/rrd

  All rows as Parquet, a directory a day and tree; again each night, which adds what is new:
    roundel export --all --to parquet:/srv/history
    duckdb -c \"SELECT name, ds, avg(value) FROM read_parquet('/srv/history/**/*.parquet', hive_partitioning = true)
               WHERE day >= DATE '2026-11-01' AND cf = 'AVERAGE' GROUP BY ALL\"

  Yesterday's rows of all routers' ports into PostgreSQL; again each hour, which copies what is new:
    roundel export 'routers/*/port*.rrd' -s 'midnight yesterday' --to postgres://monitor@db/history

Rows leave with the time of their end, as rrdtool fetch shows them; unknown rows and the row that is still open
stay. The page docs/export.md has the tables and columns, and what happens when an export is interrupted.";

/// Options of `export`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Names of RRDs, relative to the daemon's base directory; a directory means all below it, and *, ? and letters in brackets stand for
    /// any characters within one name of a path
    #[arg(required_unless_present = "all")]
    names: Vec<PathBuf>,
    /// All RRDs
    #[arg(long)]
    all: bool,
    /// Where to: DIR writes .rrd files, each under its name; parquet:DIR writes a data set; postgres://USER@HOST/DATABASE
    /// copies into tables
    #[arg(long, value_name = "DIR|parquet:DIR|URL")]
    to: String,
    /// The daemon's address, as in RRDCACHED_ADDRESS, or the directory of a store that no daemon holds [default:
    /// RRDCACHED_ADDRESS, else unix:var/rrdcached.sock]
    #[arg(long, value_name = "ADDRESS|DIR")]
    from: Option<String>,
    #[command(flatten)]
    rows: RowArguments,
}

/// Which rows leave, and how they are arranged.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rows (Parquet and PostgreSQL)")]
struct RowArguments {
    /// Rows of which archives
    #[arg(long, value_enum, default_value = "finest")]
    archives: Which,
    /// Only rows of this function; may be given more than once [default: AVERAGE, MIN, MAX and LAST]
    #[arg(long, value_name = "CF")]
    cf: Vec<String>,
    /// Only rows after this time, as rrdtool takes it: seconds, -1d, "noon yesterday"
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<String>,
    /// Only rows up to this time
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<String>,
    /// Parquet: what makes a directory of its own
    #[arg(long, value_enum, default_value = "day-tree", value_name = "PARTITIONS")]
    by: By,
    /// PostgreSQL: one table of rows, or one for each first directory of the names
    #[arg(long, value_enum, default_value = "one")]
    tables: Tables,
    /// PostgreSQL: the schema that the tables are in; made if it is not there
    #[arg(long, value_name = "SCHEMA", default_value = "roundel")]
    schema: String,
    /// PostgreSQL: export the chosen RRDs' rows from the beginning, in place of those that are there, after an import of older
    /// history
    #[arg(long)]
    again: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// For each time the finest that has a row; no time twice
    Finest,
    /// All: coarser rows also where finer ones are
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Each day and tree (the first directory of a name)
    DayTree,
    /// Each day
    Day,
    /// Each month and tree
    MonthTree,
    /// Each month
    Month,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tables {
    /// One table
    One,
    /// One for each tree (the first directory of a name)
    Tree,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result {
    match rows::RowTarget::parse(&arguments.to)? {
        Some(target) => rows::run(arguments, &target),
        None => files(arguments, Path::new(&arguments.to)),
    }
}

/// Exports as `.rrd` files.
fn files(arguments: &Arguments, to: &Path) -> Result {
    let peer = Peer::find(arguments.from.as_deref(), false)?;
    let names = names::chosen(&peer, &arguments.names, arguments.all)?;
    let bar = progress(names.len() as u64);
    let mut failures = Failures::default();
    for name in &names {
        if let Err(error) = export_one(&peer, name, to) {
            failures.push(format!("{}: {error}", String::from_utf8_lossy(name)));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let closed = peer.close();
    println!("exported {} RRDs, {} failed", names.len() - failures.count(), failures.count());
    failures.report().and(closed)
}

fn export_one(peer: &Peer, name: &[u8], to: &Path) -> Result {
    let name = RrdName::new(name).map_err(|error| error.to_string())?;
    let bytes = peer.export(&name)?;
    let path = to.join(OsStr::from_bytes(name.as_bytes()));
    write(&path, &bytes).map_err(|error| format!("cannot write \"{}\": {error}", path.display()))
}

/// Writes under another name first, so that the file is complete or missing.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut temporary = path.as_os_str().to_os_string();
    temporary.push(".partial");
    let mut file = std::fs::File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}
