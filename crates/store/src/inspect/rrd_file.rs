//! Describes a standard `.rrd` file or a placeholder.

use std::io;
use std::path::Path;

use rrd::codec::file as codec;

use super::{Report, moment_of};
use crate::placeholder::{self, PlaceholderError};

/// Describes a placeholder.
pub(super) fn placeholder(path: &Path, report: &mut Report<'_>) {
    match placeholder::read(path) {
        Ok(Some(found)) => {
            let store: String = found.store.0.iter().map(|byte| format!("{byte:02x}")).collect();
            report.line(format_args!("placeholder of \"{}\" in store {store}", found.name));
        }
        Ok(None) => report.damage("no placeholder any more"),
        Err(error @ PlaceholderError::Version(_)) => report.line(format_args!("placeholder: {error}")),
        Err(error) => report.damage(error),
    }
}

/// Describes a `.rrd` file.
pub(super) fn file(path: &Path, report: &mut Report<'_>) -> io::Result<()> {
    let bytes = std::fs::read(path)?;
    let parts = match codec::decode(&bytes) {
        Ok(parts) => parts,
        Err(error) => {
            report.damage(error.named(&path.display().to_string()));
            return Ok(());
        }
    };
    let definition = &parts.rrd.definition;
    let head = parts.rrd.shape().split(&parts.rrd.live.words);
    report.line(format_args!(
        ".rrd file version {:04}, step {} s, last update {}, {} bytes",
        definition.version,
        definition.step,
        moment_of(head.last_update, 1),
        bytes.len()
    ));
    for ds in &definition.ds {
        report.line(format_args!("  DS {} {}", ds.name, ds.kind.name()));
    }
    for (index, rra) in definition.rra.iter().enumerate() {
        let known = parts.rrd.archives[index].iter().filter(|value| !value.is_nan()).count();
        report.line(format_args!(
            "  RRA {} {} PDPs a row, {} rows, {known} values known",
            rra.cf.cf().name(),
            rra.pdp_per_row,
            rra.row_count
        ));
    }
    Ok(())
}
