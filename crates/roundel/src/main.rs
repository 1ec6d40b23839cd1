//! The daemon and its administrator's commands. Under the name `rrdcached` it is rrdcached, otherwise
//! `roundel COMMAND`. The command line is a separate executable, `bin/rrdtool.rs`; its verbs are linked into
//! this one too, so that `roundel rrdtool` needs no other file and never starts another rrdtool by mistake.

mod allocator;
mod cmd;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "roundel", version, about = "Round-robin history for monitoring", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon
    Serve(cmd::serve::Arguments),
    /// Collect on this machine for a store on another one
    Agent(cmd::agent::Arguments),
    /// Check a configuration without starting
    Validate(cmd::serve::ValidateArguments),
    /// Import standard .rrd files into a store
    Import(cmd::import::Arguments),
    /// Export RRDs of a store as standard .rrd files
    Export(cmd::export::Arguments),
    /// Rename an RRD, or all RRDs below a directory
    Rename(cmd::names::PairArguments),
    /// Copy an RRD, or all RRDs below a directory
    Copy(cmd::names::PairArguments),
    /// Remove RRDs: into the trash
    Remove(cmd::names::RemoveArguments),
    /// Restore removed RRDs; with --from, a store of a backup
    Restore(cmd::names::RestoreArguments),
    /// List, restore or delete removed RRDs
    Trash(cmd::names::TrashArguments),
    /// Mount a store as a file system in which every RRD is a .rrd file
    Mount(cmd::mount::Arguments),
    /// Take over what a collectd.conf says
    Collectd(cmd::collectd::Arguments),
    /// Compute with the rows of thousands of RRDs at once
    Query(cmd::query::Arguments),
    /// Write Grafana's data sources and dashboards
    Grafana(cmd::grafana::Arguments),
    /// Show the contents of a store, one of its files, a .rrd file or a placeholder
    Inspect(cmd::inspect::Arguments),
    /// Check every checksum of a store, running or stopped
    Verify(cmd::verify::Arguments),
    /// Make a copy of a store as it is at one moment, running or stopped
    Snapshot(cmd::snapshot::Arguments),
    /// Make a follower the primary
    Promote(cmd::replication::PromoteArguments),
    /// Show whether a server is the primary or follows another one, and how far
    Replication(cmd::replication::StatusArguments),
    /// Show the nodes and partitions of a cluster, compare their copies, and empty a node
    Cluster(cmd::cluster::Arguments),
    /// List, verify and prune the backup of a store
    Backup(cmd::backup::Arguments),
    /// Repair a store whose files are missing or damaged
    Repair(cmd::repair::Arguments),
    /// Show which pages of files are in the page cache
    Fincore(cmd::fincore::Arguments),
    /// Tell the kernel what files are needed for
    Fadvise(cmd::fadvise::Arguments),
    /// Watch page cache, pressure and disk of this system
    Pagecache(cmd::pagecache::Arguments),
    /// Say what so many RRDs need: page faults, memory, disk, and what to buy next
    Capacity(Box<cmd::capacity::Arguments>),
    /// Check what becomes of an mrtg.cfg
    Mrtg(cmd::mrtg::Arguments),
    /// Make, list and revoke the tokens by which clients say who they are
    Token(cmd::token::Arguments),
    /// Find out what SNMP devices have, and test a configuration's
    Snmp(cmd::snmp::Arguments),
    /// Write the manual pages of all commands
    Man(cmd::manual::ManArguments),
    /// Print a completion script for a shell
    Completions(cmd::manual::CompletionsArguments),
    /// Run rrdtool's command line
    #[command(disable_help_flag = true)]
    Rrdtool {
        /// Command and options of rrdtool(1)
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Run the daemon with rrdcached's own options
    #[command(disable_help_flag = true)]
    Rrdcached {
        /// Options of rrdcached(1)
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    let program = Path::new(&called).file_name().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    if program == "rrdcached" {
        return cmd::rrdcached::run(words.into_iter());
    }
    if program == "mount.roundel" {
        return run_for_mount(&words);
    }
    // A link from the time when there was one executable.
    if let Some(status) = cli::process::run(program, &words) {
        return ExitCode::from(status);
    }
    let matches = cmd::absent::marked(Arguments::command()).get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let done = match arguments.command {
        Command::Serve(arguments) => cmd::serve::run(&arguments),
        Command::Agent(arguments) => cmd::agent::run(&arguments),
        Command::Validate(arguments) => cmd::serve::validate(&arguments),
        Command::Import(arguments) => cmd::import::run(&arguments),
        Command::Export(arguments) => cmd::export::run(&arguments),
        Command::Rename(arguments) => cmd::names::rename(&arguments),
        Command::Copy(arguments) => cmd::names::copy(&arguments),
        Command::Remove(arguments) => cmd::names::remove(&arguments),
        Command::Restore(arguments) => cmd::names::restore(&arguments),
        Command::Trash(arguments) => cmd::names::trash(&arguments),
        Command::Mount(arguments) => cmd::mount::run(&arguments),
        Command::Collectd(arguments) => cmd::collectd::run(&arguments),
        Command::Query(arguments) => cmd::query::run(&arguments),
        Command::Grafana(arguments) => cmd::grafana::run(&arguments),
        Command::Inspect(arguments) => cmd::inspect::run(&arguments),
        Command::Verify(arguments) => cmd::verify::run(&arguments),
        Command::Snapshot(arguments) => cmd::snapshot::run(&arguments),
        Command::Promote(arguments) => cmd::replication::promote(&arguments),
        Command::Replication(arguments) => cmd::replication::status(&arguments),
        Command::Cluster(arguments) => cmd::cluster::run(&arguments),
        Command::Backup(arguments) => cmd::backup::run(&arguments),
        Command::Repair(arguments) => cmd::repair::run(&arguments),
        Command::Fincore(arguments) => cmd::fincore::run(&arguments),
        Command::Fadvise(arguments) => cmd::fadvise::run(&arguments),
        Command::Pagecache(arguments) => cmd::pagecache::run(&arguments),
        Command::Capacity(arguments) => cmd::capacity::run(&arguments),
        Command::Mrtg(arguments) => cmd::mrtg::run(&arguments),
        Command::Token(arguments) => cmd::token::run(&arguments),
        Command::Snmp(arguments) => cmd::snmp::run(&arguments),
        Command::Man(arguments) => cmd::manual::man(&arguments, Arguments::command()),
        Command::Completions(arguments) => cmd::manual::completions(&arguments, Arguments::command()),
        Command::Rrdtool { words } => {
            let status = cli::process::run(OsStr::new("rrdtool"), &words);
            return ExitCode::from(status.unwrap_or_default());
        }
        Command::Rrdcached { options } => return cmd::rrdcached::run(options.into_iter()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("roundel: {text}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(feature = "mount")]
use cmd::mount::run_for_mount;

/// In place of the one of the feature `mount`: says that it is missing, with the status that `mount(8)` expects.
#[cfg(not(feature = "mount"))]
fn run_for_mount(_words: &[OsString]) -> ExitCode {
    eprintln!("{}", args::feature::missing("mount.roundel", "mount"));
    ExitCode::from(32)
}
