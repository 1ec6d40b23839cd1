//! `export --to parquet:DIR` and `--to postgres://...`.

use exchange::target::RowOptions;
pub(super) use exchange::target::RowTarget;

use super::{Arguments, By, Failures, Peer, Result, Tables, names, progress, read, selected};

/// Runs it.
pub(super) fn run(arguments: &Arguments, target: &RowTarget) -> Result {
    let rows = &arguments.rows;
    let selection = selected::selection(rows)?;
    let options = RowOptions {
        by_month: matches!(rows.by, By::Month | By::MonthTree),
        by_tree: matches!(rows.by, By::DayTree | By::MonthTree),
        schema: rows.schema.clone(),
        table_by_tree: rows.tables == Tables::Tree,
        again: rows.again,
    };
    let peer = Peer::find(arguments.from.as_deref(), false)?;
    let names = names::chosen(&peer, &arguments.names, arguments.all)?;
    let mut writer = target.begin(&selection, &options)?;
    let bar = progress(names.len() as u64);
    let mut failures = Failures::default();
    let read = read::in_order(&peer, &names, |name, rrd| {
        bar.inc(1);
        let added = match rrd {
            Err(error) => Err(error),
            Ok(rrd) => writer.add(name, selection.runs(&rrd))?,
        };
        if let Err(error) = added {
            failures.push(format!("{}: {error}", String::from_utf8_lossy(name)));
        }
        Ok(())
    });
    bar.finish_and_clear();
    let closed = peer.close();
    read?;
    let bar = progress(writer.steps());
    let written = writer.finish(&mut || bar.inc(1));
    bar.finish_and_clear();
    println!("exported {} RRDs, {} failed: {}", names.len() - failures.count(), failures.count(), written?);
    failures.report().and(closed)
}
