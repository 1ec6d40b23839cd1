//! `export --to parquet:DIR`.

use std::path::Path;

use exchange::parquet::{Dataset, DatasetError, Partitions};

use super::{Arguments, By, Peer, Result, names, progress, read, report, selected};

/// Runs it.
pub(super) fn run(arguments: &Arguments, directory: &Path) -> Result {
    let selection = selected::selection(&arguments.rows)?;
    let by = arguments.rows.by;
    let partitions = Partitions {
        by_month: matches!(by, By::Month | By::MonthTree),
        by_tree: matches!(by, By::DayTree | By::MonthTree),
    };
    let peer = Peer::find(arguments.from.as_deref(), false)?;
    let names = names::chosen(&peer, &arguments.names, arguments.all)?;
    let mut dataset = Dataset::open(directory, partitions, &selection).map_err(|error| error.to_string())?;
    let bar = progress(names.len() as u64);
    let mut failures = Vec::new();
    let read = read::in_order(&peer, &names, |name, rrd| {
        bar.inc(1);
        let added = match rrd {
            Err(error) => Err(error),
            Ok(rrd) => match dataset.add(name, &selection.runs(&rrd)) {
                Err(error @ DatasetError::Name(_)) => Err(error.to_string()),
                Err(error) => return Err(error.to_string()),
                Ok(()) => Ok(()),
            },
        };
        if let Err(error) = added {
            failures.push(format!("{}: {error}", String::from_utf8_lossy(name)));
        }
        Ok(())
    });
    bar.finish_and_clear();
    let closed = peer.close();
    read?;
    let bar = progress(dataset.partition_count());
    let written = dataset.finish(|| bar.inc(1)).map_err(|error| error.to_string());
    bar.finish_and_clear();
    let written = written?;
    println!(
        "exported {} RRDs, {} failed: {} partitions written with {} rows, {} unchanged",
        names.len() - failures.len(),
        failures.len(),
        written.written,
        written.rows,
        written.unchanged
    );
    report(&failures).and(closed)
}
