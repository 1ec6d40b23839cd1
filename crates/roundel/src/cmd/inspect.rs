//! `roundel inspect`: the contents of a store, one of its files, or a `.rrd` file, read-only.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use store::inspect::{InspectError, Options, inspect};

use super::Result;

/// Options of `inspect`.
#[derive(Debug, Args)]
#[command(
    about = "Show the contents of a store, a file of it, a journal or a .rrd file, read-only",
    long_about = "Show the contents of a store, a file of it, a journal or a .rrd file. Nothing is written and no lock is \
                  taken: a store may be looked at while its daemon runs. Damage is shown with its file and byte, \
                  counted, and read around; any damage makes the exit status 1.",
    after_long_help = AFTER_HELP
)]
pub struct Arguments {
    /// Stores, shards, journal directories, or single files
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// In a store or shard, also read every block of every segment and count the rows
    #[arg(long)]
    verify: bool,
}

const AFTER_HELP: &str = "\
What each shows:
  STORE (a directory)      identity; for each shard manifest, checkpoint with its catalogue counts and groups,
                           log files with positions, what the log behind the checkpoint amounts to, and
                           segments with level, retention class, time span, runs, rows and bytes
  shard-NNN                one shard of it
  log-GGGGGGGG-...         every record: byte in the file, position (generation:offset), kind, bytes, content;
                           damage with its byte; where recovery would end the log
  segment-...              head, footer, and for each archive the time span, runs, rows and bytes; every block is
                           read and its checksum checked; without a footer, the blocks as far as they go
  checkpoint-...           every page with its byte and position, and the sum of them
  *.journal, a directory   the journal of --layout files: records, and what each RRD had waiting
  STORE, manifest          as text
  placeholder, .rrd        the RRD it stands for; DS, RRA and how many values are known

Examples:
  roundel inspect var/store                            the store that `make run` serves
  roundel inspect --verify var/store                   the same, checking every block
  roundel inspect var/store/shard-000/log-00000000-*   what was logged since the last checkpoint

A time such as 2026-01-02T03:04:05Z is UTC. A position is where recovery starts or a record stands in the log.";

/// Runs it.
pub fn run(arguments: &Arguments) -> Result {
    let options = Options { verify: arguments.verify };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let (mut failed, mut damages) = (0, 0);
    for path in &arguments.paths {
        let found = writeln!(out, "{}:", path.display())
            .map_err(InspectError::Write)
            .and_then(|()| inspect(path, options, &mut out));
        match found {
            Ok(found) => damages += found.damage_count,
            // The reader has closed the pipe, as `head` does.
            Err(InspectError::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Ok(());
            }
            Err(error) => {
                failed += 1;
                let _ = out.flush();
                eprintln!("roundel: {error}");
            }
        }
    }
    match out.flush() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error.to_string()),
        _ => {}
    }
    match (failed, damages) {
        (0, 0) => Ok(()),
        (0, damages) => Err(format!("{damages} damaged places; the lines that say DAMAGE tell which")),
        (failed, _) => Err(format!("{failed} could not be read")),
    }
}
