//! The one executable. Called `rrdcached` it is rrdcached, called `rrdtool`, `rrdupdate`, `rrdinfo` or
//! `rrdcreate` it is that; else it is `roundel COMMAND`.

mod cmd;
mod memory;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: memory::Memory = memory::Memory;

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
    /// Check a configuration without starting
    Validate(cmd::serve::ValidateArguments),
    /// Take standard .rrd files into a store
    Import(cmd::import::Arguments),
    /// Write RRDs of a store as standard .rrd files
    Export(cmd::export::Arguments),
    /// Compute with the rows of thousands of RRDs at once
    Query(cmd::query::Arguments),
    /// Show what a store, one of its files, a .rrd file or a placeholder holds
    Inspect(cmd::inspect::Arguments),
    /// Write the manual pages of all commands
    Man(cmd::manual::ManArguments),
    /// Print what a shell completes our commands by
    Completions(cmd::manual::CompletionsArguments),
    /// Do what rrdtool does, with its words
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
    let program = Path::new(&called).file_name().unwrap_or_default().as_encoded_bytes();
    if program == b"rrdcached" {
        return cmd::rrdcached::run(words);
    }
    if let Some(status) = cmd::rrdtool::run(program, words) {
        return status;
    }
    let done = match Arguments::parse().command {
        Command::Serve(arguments) => cmd::serve::run(&arguments),
        Command::Validate(arguments) => cmd::serve::validate(&arguments),
        Command::Import(arguments) => cmd::import::run(&arguments),
        Command::Export(arguments) => cmd::export::run(&arguments),
        Command::Query(arguments) => cmd::query::run(&arguments),
        Command::Inspect(arguments) => cmd::inspect::run(&arguments),
        Command::Man(arguments) => cmd::manual::man(&arguments, Arguments::command()),
        Command::Completions(arguments) => cmd::manual::completions(&arguments, Arguments::command()),
        Command::Rrdtool { words } => return cmd::rrdtool::rrdtool(words),
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
