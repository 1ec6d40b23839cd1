//! The tables: their names, and how they are made.

use ::postgres::{Client, Transaction};

use super::connect::PostgresError;

/// Longest name of a tree that has a table of its own: PostgreSQL cuts names after 63 bytes, and an index needs a few more.
const TREE_BYTES_MAX: usize = 48;

/// Where the tables are, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The schema.
    pub schema: String,
    /// A table of rows for each first directory of the names, instead of one.
    pub by_tree: bool,
}

/// A name in a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Layout {
    /// The table of series.
    pub(super) fn series(&self) -> String {
        format!("{}.series", quoted(&self.schema))
    }

    /// The table of the rows of a tree.
    pub(super) fn table(&self, tree: Option<&str>) -> String {
        self.named("rows", tree)
    }

    fn named(&self, what: &str, tree: Option<&str>) -> String {
        match tree {
            None => format!("{}.{what}", quoted(&self.schema)),
            Some(tree) => format!("{}.{}", quoted(&self.schema), quoted(&format!("{what}_{tree}"))),
        }
    }

    /// The tree of a name, if trees have tables of their own.
    pub(super) fn tree(&self, name: &str) -> Option<String> {
        let (tree, _) = name.split_once('/')?;
        self.by_tree.then(|| tree.to_string())
    }

    /// Refuses a name whose tree cannot be a table's.
    pub(super) fn check_name(&self, name: &str) -> Result<(), PostgresError> {
        match self.tree(name) {
            Some(tree) if tree.len() > TREE_BYTES_MAX => Err(PostgresError::Name(format!(
                "\"{name}\", whose first directory is longer than the {TREE_BYTES_MAX} bytes of a table's name"
            ))),
            _ => Ok(()),
        }
    }
}

/// Makes what is not there, and takes the lock of the schema for as long as the connection lasts.
///
/// # Errors
/// When it may not be made; when another export has the lock.
pub(super) fn make(client: &mut Client, layout: &Layout) -> Result<(), PostgresError> {
    let lock = format!("roundel export to {}", layout.schema);
    let row = client.query_one("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", &[&lock])?;
    if !row.try_get::<_, bool>(0)? {
        return Err(PostgresError::InUse(layout.schema.clone()));
    }
    let mut transaction = client.transaction()?;
    // A user who may not create schemas may use one that is there.
    let there = transaction.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", &[&layout.schema])?;
    if there.is_empty() {
        transaction.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(&layout.schema)))?;
    }
    transaction.batch_execute(&format!(
        "CREATE TABLE IF NOT EXISTS {} (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name text NOT NULL, ds text NOT NULL, cf text NOT NULL, step double precision NOT NULL,
            exported_to timestamptz,
            UNIQUE (name, ds, cf, step))",
        layout.series()
    ))?;
    make_table(&mut transaction, layout, None)?;
    transaction.commit()?;
    Ok(())
}

/// Makes the table of a tree's rows and its view, if they are not there; a hypertable where TimescaleDB is.
pub(super) fn make_table(
    transaction: &mut Transaction<'_>,
    layout: &Layout,
    tree: Option<&str>,
) -> Result<(), PostgresError> {
    let table = layout.table(tree);
    let there = transaction.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table])?;
    if there.try_get::<_, bool>(0)? {
        return Ok(());
    }
    transaction.batch_execute(&format!(
        "CREATE TABLE {table} (
            series bigint NOT NULL, time timestamptz NOT NULL, value double precision NOT NULL,
            PRIMARY KEY (series, time));
         CREATE OR REPLACE VIEW {view} AS
            SELECT s.name, s.ds, s.cf, s.step, r.time, r.value FROM {table} r JOIN {series} s ON s.id = r.series",
        view = layout.named("history", tree),
        series = layout.series(),
    ))?;
    let timescale =
        transaction.query("SELECT 1 FROM pg_proc WHERE proname = 'create_hypertable' LIMIT 1", &[])?;
    if !timescale.is_empty() {
        transaction.execute(
            "SELECT create_hypertable($1::text::regclass, 'time', if_not_exists => true)",
            &[&table],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_statements_are_quoted() {
        let layout = Layout { schema: "a\"b".into(), by_tree: true };
        assert_eq!(layout.series(), "\"a\"\"b\".series");
        assert_eq!(layout.table(layout.tree("x\";/y.rrd").as_deref()), "\"a\"\"b\".\"rows_x\"\";\"");
        assert_eq!(layout.tree("y.rrd"), None);
        assert!(layout.check_name(&format!("{}/y.rrd", "x".repeat(49))).is_err());
    }
}
