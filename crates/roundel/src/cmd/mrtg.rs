//! `roundel mrtg`: what becomes of an mrtg.cfg.

use std::path::{Path, PathBuf};

use clap::Args;
use collect::mrtg::report::Report;
use server::collectors::mrtg::files::LoadedConfig;

use super::{Result, print};

/// Options of `mrtg`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The configuration to check
    #[arg(long, value_name = "FILE")]
    check: PathBuf,
    /// Directory that names of RRDs are relative to, as `base` of roundel.toml
    #[arg(long, value_name = "DIR", default_value = ".")]
    base: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result {
    let base = std::path::absolute(&arguments.base).map_err(|error| error.to_string())?;
    let report = read(&arguments.check, &base)?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        print(&(text + "\n"))
    } else {
        print(report.to_string())
    }
}

fn read(path: &Path, base: &Path) -> Result<Report> {
    let loaded = LoadedConfig::read(path, base).map_err(|error| error.text)?;
    loaded.mib_faults.iter().for_each(|fault| eprintln!("{fault}"));
    Ok(Report::new(&loaded.config, &loaded.plan))
}
