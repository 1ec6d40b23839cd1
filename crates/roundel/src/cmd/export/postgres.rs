//! `export --to postgres://...`.

use exchange::postgres::connect::PostgresError;
use exchange::postgres::{Layout, Tables};

use super::{Arguments, Peer, Result, names, progress, read, report, selected};

/// Runs it.
pub(super) fn run(arguments: &Arguments, url: &str) -> Result {
    let selection = selected::selection(&arguments.rows)?;
    let by_tree = arguments.rows.tables == super::Tables::Tree;
    let layout = Layout { schema: arguments.rows.schema.clone(), by_tree };
    let peer = Peer::find(arguments.from.as_deref(), false)?;
    let names = names::chosen(&peer, &arguments.names, arguments.all)?;
    let open = Tables::open(url, layout, selection.archives, arguments.rows.again);
    let mut tables = open.map_err(|error| error.to_string())?;
    let bar = progress(names.len() as u64);
    let mut failures = Vec::new();
    let read = read::in_order(&peer, &names, |name, rrd| {
        bar.inc(1);
        let added = match rrd {
            Err(error) => Err(error),
            Ok(rrd) => match tables.add(name, selection.runs(&rrd)) {
                Err(error @ PostgresError::Name(_)) => Err(error.to_string()),
                Err(error) => return Err(error.to_string()),
                Ok(()) => Ok(()),
            },
        };
        if let Err(error) = added {
            failures.push(format!("{}: {error}", String::from_utf8_lossy(name)));
        }
        Ok(())
    });
    let copied = read.and_then(|()| tables.finish().map_err(|error| error.to_string()));
    bar.finish_and_clear();
    let closed = peer.close();
    let copied = copied?;
    println!("exported {} RRDs, {} failed: {} rows copied", copied.rrds, failures.len(), copied.rows);
    report(&failures).and(closed)
}
