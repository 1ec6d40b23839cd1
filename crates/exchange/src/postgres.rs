//! Rows into PostgreSQL by COPY: a table of series, a table of their rows (or one for each tree), a view of both.
//!
//! How far each series is exported stands beside it and changes in the same transaction as its rows arrive, so rows
//! neither double nor are lost, however an export ends, without a look at what is there.

pub mod connect;
mod copy;
mod schema;

use std::collections::{BTreeMap, HashMap};

use ::postgres::{Client, Transaction};

use crate::rows::{Archives, MS, Run};
use connect::PostgresError;
pub use schema::Layout;

/// Rows that wait to be copied: some 60 MB in both forms. Guessed..
const BATCH_ROWS_MAX: usize = 1 << 20;
/// RRDs of a batch: as many as one question about their series may name.
const BATCH_RRDS_MAX: usize = 1000;

/// What an export has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// RRDs looked at.
    pub rrds: u64,
    /// Rows copied.
    pub rows: u64,
}

/// An export to a database.
pub struct Tables {
    client: Client,
    layout: Layout,
    archives: Archives,
    /// Rows are copied from the beginning, in place of those that are there.
    again: bool,
    waiting: Vec<(String, Vec<Run>)>,
    waiting_rows: usize,
    copied: Copied,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tables({:?})", self.layout)
    }
}

/// A series in the database.
struct Known {
    id: i64,
    /// How far it is exported, in milliseconds since the epoch.
    exported_to: Option<i64>,
}

/// The key of a series: name, data source, function, step in milliseconds.
type Key = (String, String, &'static str, i64);

impl Tables {
    /// Connects and makes the tables that are not there yet.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses; when another export writes to the same schema.
    pub fn open(url: &str, layout: Layout, archives: Archives, again: bool) -> Result<Self, PostgresError> {
        let mut client = connect::connect(url)?;
        schema::make(&mut client, &layout)?;
        let (waiting, waiting_rows, copied) = (Vec::new(), 0, Copied::default());
        Ok(Tables { client, layout, archives, again, waiting, waiting_rows, copied })
    }

    /// Adds the rows of one RRD.
    ///
    /// # Errors
    /// [`PostgresError::Name`], after which others may follow; when the server fails, after which none may.
    pub fn add(&mut self, name: &[u8], runs: Vec<Run>) -> Result<(), PostgresError> {
        let Some(name) = std::str::from_utf8(name).ok().filter(|name| !name.contains('\0')) else {
            return Err(PostgresError::Name(format!("\"{}\"", name.escape_ascii())));
        };
        self.layout.check_name(name)?;
        self.copied.rrds += 1;
        self.waiting_rows += runs.iter().map(|run| run.times.len()).sum::<usize>();
        self.waiting.push((name.to_string(), runs));
        if self.waiting_rows >= BATCH_ROWS_MAX || self.waiting.len() >= BATCH_RRDS_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Copies what waits.
    ///
    /// # Errors
    /// When the server fails.
    pub fn finish(mut self) -> Result<Copied, PostgresError> {
        self.flush()?;
        Ok(self.copied)
    }

    fn flush(&mut self) -> Result<(), PostgresError> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_rows = 0;
        if waiting.is_empty() {
            return Ok(());
        }
        let mut transaction = self.client.transaction()?;
        let known = series(&mut transaction, &self.layout, &waiting)?;
        let how = How { layout: &self.layout, archives: self.archives, again: self.again };
        let mut batch = Batch::default();
        for (name, runs) in waiting {
            for group in runs.chunk_by(|a, b| (&a.ds, a.cf) == (&b.ds, b.cf)) {
                batch.add(&name, group, &known, how);
            }
        }
        if self.again {
            for (table, (ids, from)) in &batch.replaced {
                let table = self.layout.table(table.as_deref());
                let delete = format!(
                    "DELETE FROM {table} r USING unnest($1::bigint[], $2::bigint[]) AS n (id, ms) \
                     WHERE r.series = n.id AND r.time >= 'epoch'::timestamptz + n.ms * interval '1 millisecond'"
                );
                transaction.execute(&delete, &[ids, from])?;
            }
        }
        let mut rows = 0;
        for (tree, bytes) in batch.tables {
            if let Some(tree) = &tree {
                schema::make_table(&mut transaction, &self.layout, Some(tree))?;
            }
            rows += bytes.send(&mut transaction, &self.layout.table(tree.as_deref()))?;
        }
        let update = format!(
            "UPDATE {} s SET exported_to = 'epoch'::timestamptz + n.ms * interval '1 millisecond' \
             FROM unnest($1::bigint[], $2::bigint[]) AS n (id, ms) WHERE s.id = n.id",
            self.layout.series()
        );
        transaction.execute(&update, &[&batch.reached.0, &batch.reached.1])?;
        transaction.commit()?;
        self.copied.rows += rows;
        Ok(())
    }
}

/// How rows are chosen.
#[derive(Clone, Copy)]
struct How<'a> {
    layout: &'a Layout,
    archives: Archives,
    again: bool,
}

/// What one transaction changes.
#[derive(Default)]
struct Batch {
    /// By tree, where trees have tables of their own.
    tables: BTreeMap<Option<String>, copy::CopyRows>,
    /// With `again`: the series whose rows are replaced, and from when on, by tree.
    replaced: BTreeMap<Option<String>, (Vec<i64>, Vec<i64>)>,
    /// Series, and how far they are exported now.
    reached: (Vec<i64>, Vec<i64>),
}

impl Batch {
    /// Adds the runs of one data source and function.
    fn add(&mut self, name: &str, group: &[Run], known: &HashMap<Key, Known>, how: How<'_>) {
        let of = |run: &Run| known.get(&(name.to_string(), run.ds.clone(), run.cf.name(), run.step));
        let farthest = group.iter().filter_map(|run| of(run)?.exported_to).max();
        let oldest = group.iter().filter_map(|run| run.times.first()).min().copied();
        let tree = how.layout.tree(name);
        for run in group {
            let Some(series) = of(run) else { continue };
            let after = match (how.again, how.archives) {
                (true, _) => None,
                (false, Archives::Finest) => farthest,
                (false, Archives::All) => series.exported_to,
            };
            if let (true, Some(oldest)) = (how.again, oldest) {
                let replaced = self.replaced.entry(tree.clone()).or_default();
                replaced.0.push(series.id);
                replaced.1.push(oldest);
            }
            let from = after.map_or(0, |after| run.times.partition_point(|&time| time <= after));
            if from < run.times.len() {
                let rows = self.tables.entry(tree.clone()).or_default();
                rows.push(series.id, &run.times[from..], &run.values[from..]);
            }
            if series.exported_to.is_none_or(|before| before < run.newest) {
                self.reached.0.push(series.id);
                self.reached.1.push(run.newest);
            }
        }
    }
}

/// The series of these RRDs, made if they are not there.
fn series(
    transaction: &mut Transaction<'_>,
    layout: &Layout,
    waiting: &[(String, Vec<Run>)],
) -> Result<HashMap<Key, Known>, PostgresError> {
    let names: Vec<&str> = waiting.iter().map(|(name, _)| name.as_str()).collect();
    let mut known = ask(transaction, layout, &names)?;
    let (mut of, mut ds, mut cf, mut step) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, runs) in waiting {
        for run in runs {
            if !known.contains_key(&(name.clone(), run.ds.clone(), run.cf.name(), run.step)) {
                of.push(name.as_str());
                ds.push(run.ds.as_str());
                cf.push(run.cf.name());
                step.push(run.step as f64 / MS as f64);
            }
        }
    }
    if !of.is_empty() {
        let insert = format!(
            "INSERT INTO {} (name, ds, cf, step) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) \
             ON CONFLICT DO NOTHING",
            layout.series()
        );
        transaction.execute(&insert, &[&of, &ds, &cf, &step])?;
        known = ask(transaction, layout, &names)?;
    }
    Ok(known)
}

fn ask(
    transaction: &mut Transaction<'_>,
    layout: &Layout,
    names: &[&str],
) -> Result<HashMap<Key, Known>, PostgresError> {
    let select = format!(
        "SELECT id, name, ds, cf, step, (extract(epoch FROM exported_to) * 1000)::bigint FROM {} WHERE name = ANY ($1)",
        layout.series()
    );
    let mut known = HashMap::new();
    for row in transaction.query(&select, &[&names])? {
        let (id, name, ds): (i64, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let (cf, step, exported_to): (String, f64, Option<i64>) =
            (row.try_get(3)?, row.try_get(4)?, row.try_get(5)?);
        let Some(cf) = rrd::definition::Cf::from_name(&cf) else { continue };
        known.insert((name, ds, cf.name(), (step * MS as f64).round() as i64), Known { id, exported_to });
    }
    Ok(known)
}
