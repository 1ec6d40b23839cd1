//! `roundel agent`.

use std::path::PathBuf;

use clap::Args;
use server::config;

use super::Result;

/// Options of `agent`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Configuration; its section "agent" says who it is and where it sends
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs an agent.
pub fn run(arguments: &Arguments) -> Result {
    let settings = config::load(&arguments.config).map_err(|error| error.to_string())?;
    crate::allocator::give_back_soon();
    server::agent::run(settings)
}
