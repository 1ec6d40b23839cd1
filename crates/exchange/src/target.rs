//! Where rows leave to, whichever it is.

use std::fmt;
use std::path::PathBuf;

use crate::rows::{Run, Selection};

/// Where to.
#[derive(Clone, PartialEq, Eq)]
pub enum RowTarget {
    /// A data set of Parquet files in this directory, by day and tree.
    Parquet(PathBuf),
    /// Tables in the schema `roundel` of a PostgreSQL.
    Postgres(String),
}

impl fmt::Debug for RowTarget {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

/// How rows are arranged there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOptions {
    /// Parquet: a directory for each month instead of each day.
    pub by_month: bool,
    /// Parquet: in each of these one for each first directory of the names.
    pub by_tree: bool,
    /// PostgreSQL: the schema of the tables.
    pub schema: String,
    /// PostgreSQL: a table of rows for each first directory of the names.
    pub table_by_tree: bool,
    /// PostgreSQL: rows are copied from the beginning, in place of those that are there.
    pub again: bool,
}

impl Default for RowOptions {
    fn default() -> Self {
        let schema = "roundel".to_string();
        RowOptions { by_month: false, by_tree: true, schema, table_by_tree: false, again: false }
    }
}

/// What became of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsWritten {
    /// Rows written; of partitions all in them.
    pub rows: u64,
    /// Partitions written, and those that had it all already, if there are any.
    pub partitions: Option<(u64, u64)>,
}

impl fmt::Display for RowsWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.partitions {
            Some((written, unchanged)) => {
                write!(f, "{written} partitions written with {} rows, {unchanged} unchanged", self.rows)
            }
            None => write!(f, "{} rows copied", self.rows),
        }
    }
}

/// Rows on their way to a target.
pub trait RowWriter {
    /// Adds the rows of one RRD; RRDs come in the order of their names.
    ///
    /// # Errors
    /// Inside, why this RRD cannot leave; outside, why none can.
    fn add(&mut self, name: &[u8], runs: Vec<Run>) -> Result<Result<(), String>, String>;
    /// How often [`RowWriter::finish`] calls `step`.
    fn steps(&self) -> u64;
    /// Completes it; calls `step` after each part.
    ///
    /// # Errors
    /// When the target fails.
    fn finish(self: Box<Self>, step: &mut dyn FnMut()) -> Result<RowsWritten, String>;
}

impl RowTarget {
    /// `parquet:DIR` or `postgres://...`; `None` when it is neither.
    ///
    /// # Errors
    /// When there is no directory, or when it is not compiled in.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let built = |is_built: bool, feature: &str, target: RowTarget| match is_built {
            true => Ok(Some(target)),
            false => {
                let scheme = text.split(':').next().unwrap_or_default();
                Err(args::feature::missing(&format!("the target {scheme}"), feature))
            }
        };
        match text.split_once(':') {
            None if text == "parquet" => Err("give the directory, too: parquet:DIR".to_string()),
            Some(("parquet", "")) => Err("give a directory: parquet:DIR".to_string()),
            Some(("parquet", directory)) => {
                built(cfg!(feature = "arrow"), "arrow", RowTarget::Parquet(directory.into()))
            }
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                built(cfg!(feature = "postgres"), "postgres", RowTarget::Postgres(text.to_string()))
            }
            _ => Ok(None),
        }
    }

    /// The target without what is secret.
    pub fn shown(&self) -> String {
        match self {
            RowTarget::Parquet(directory) => format!("parquet:{}", directory.display()),
            RowTarget::Postgres(url) => {
                let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
                format!("postgres://{}", place.split('?').next().unwrap_or_default())
            }
        }
    }

    /// Begins to write the rows of this selection.
    ///
    /// # Errors
    /// When the target cannot be used.
    pub fn begin(&self, selection: &Selection, options: &RowOptions) -> Result<Box<dyn RowWriter>, String> {
        match self {
            #[cfg(feature = "arrow")]
            RowTarget::Parquet(directory) => {
                let partitions =
                    crate::parquet::Partitions { by_month: options.by_month, by_tree: options.by_tree };
                let dataset = crate::parquet::Dataset::open(directory, partitions, selection);
                Ok(Box::new(dataset.map_err(|error| error.to_string())?))
            }
            #[cfg(feature = "postgres")]
            RowTarget::Postgres(url) => {
                let (schema, by_tree) = (options.schema.clone(), options.table_by_tree);
                let layout = crate::postgres::Layout { schema, by_tree };
                let tables = crate::postgres::Tables::open(url, layout, selection.archives, options.again);
                Ok(Box::new(tables.map_err(|error| error.to_string())?))
            }
            #[cfg(not(all(feature = "arrow", feature = "postgres")))]
            _ => {
                let _ = (selection, options);
                unreachable!("parse refuses what is not built")
            }
        }
    }
}

#[cfg(feature = "arrow")]
impl RowWriter for crate::parquet::Dataset {
    fn add(&mut self, name: &[u8], runs: Vec<Run>) -> Result<Result<(), String>, String> {
        match crate::parquet::Dataset::add(self, name, &runs) {
            Ok(()) => Ok(Ok(())),
            Err(error @ crate::parquet::DatasetError::Rrd(_)) => Ok(Err(error.to_string())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn steps(&self) -> u64 {
        self.partition_count()
    }

    fn finish(self: Box<Self>, step: &mut dyn FnMut()) -> Result<RowsWritten, String> {
        let written = crate::parquet::Dataset::finish(*self, step).map_err(|error| error.to_string())?;
        Ok(RowsWritten { rows: written.rows, partitions: Some((written.written, written.unchanged)) })
    }
}

#[cfg(feature = "postgres")]
impl RowWriter for crate::postgres::Tables {
    fn add(&mut self, name: &[u8], runs: Vec<Run>) -> Result<Result<(), String>, String> {
        match crate::postgres::Tables::add(self, name, runs) {
            Ok(()) => Ok(Ok(())),
            Err(error @ crate::postgres::connect::PostgresError::Rrd(_)) => Ok(Err(error.to_string())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn steps(&self) -> u64 {
        0
    }

    fn finish(self: Box<Self>, _step: &mut dyn FnMut()) -> Result<RowsWritten, String> {
        let rows = crate::postgres::Tables::finish(*self).map_err(|error| error.to_string())?;
        Ok(RowsWritten { rows, partitions: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_words() {
        assert_eq!(RowTarget::parse("parquet:/a b"), Ok(Some(RowTarget::Parquet("/a b".into()))));
        let secret = RowTarget::parse("postgresql://ann:pw@db:1/h?sslmode=require");
        let secret = secret.expect("a target").expect("a target");
        assert_eq!(
            (secret.shown().as_str(), format!("{secret:?}").contains("pw")),
            ("postgres://db:1/h", false)
        );
        for bad in ["parquet", "parquet:"] {
            assert!(RowTarget::parse(bad).is_err(), "{bad}");
        }
        for other in ["/a", "mysql://x", "postgres:x"] {
            assert_eq!(RowTarget::parse(other), Ok(None));
        }
    }
}
