//! `roundel inspect`: what a file of ours or of RRDtool's holds, read-only.

use std::path::PathBuf;

use clap::Args;
use rrd::codec::file;
use store::placeholder;

use super::Done;

/// Options of `inspect`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// .rrd files or placeholders
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Done {
    let mut failed = 0;
    for path in &arguments.files {
        match describe(path) {
            Ok(text) => println!("{}: {text}", path.display()),
            Err(error) => {
                failed += 1;
                eprintln!("{}: {error}", path.display());
            }
        }
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} could not be read")) }
}

fn describe(path: &PathBuf) -> Result<String, String> {
    match placeholder::read(path) {
        Ok(Some(found)) => {
            let store: String = found.store.0.iter().map(|byte| format!("{byte:02x}")).collect();
            return Ok(format!("placeholder of \"{}\" in store {store}", found.name));
        }
        Ok(None) => {}
        Err(error) => return Err(error.to_string()),
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let parts = file::decode(&bytes).map_err(|error| error.named(&path.display().to_string()).to_string())?;
    let definition = &parts.rrd.definition;
    let head = parts.rrd.shape().split(&parts.rrd.live.words).last_update;
    let mut text = format!(
        ".rrd file version {:04}, step {} s, last update {}, {} bytes",
        definition.version,
        definition.step,
        head.whole,
        bytes.len()
    );
    for ds in &definition.ds {
        text.push_str(&format!("\n  DS {} {}", ds.name, ds.kind.name()));
    }
    for (index, rra) in definition.rra.iter().enumerate() {
        let known = parts.rrd.archives[index].iter().filter(|value| !value.is_nan()).count();
        text.push_str(&format!(
            "\n  RRA {} {} PDPs a row, {} rows, {known} values known",
            rra.cf.cf().name(),
            rra.pdp_per_row,
            rra.row_count
        ));
    }
    Ok(text)
}
