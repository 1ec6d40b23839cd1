//! Where rows leave to, whichever it is.

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

impl std::fmt::Debug for RowTarget {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

/// Rows on their way to a target.
pub trait RowWriter {
    /// Adds the rows of one RRD; RRDs come in the order of their names.
    ///
    /// # Errors
    /// Inside, why this RRD cannot leave; outside, why none can.
    fn add(&mut self, name: &[u8], runs: Vec<Run>) -> Result<Result<(), String>, String>;
    /// Completes it; returns how many rows were written.
    ///
    /// # Errors
    /// When the target fails.
    fn finish(self: Box<Self>) -> Result<u64, String>;
}

impl RowTarget {
    /// `parquet:DIR` or `postgres://...`.
    ///
    /// # Errors
    /// When it is neither, or not compiled in.
    pub fn parse(text: &str) -> Result<Self, String> {
        let built = |is_built: bool, feature: &str, target: RowTarget| match is_built {
            true => Ok(target),
            false => Err(format!("this executable is built without the feature {feature}")),
        };
        if let Some(directory) = text.strip_prefix("parquet:").filter(|directory| !directory.is_empty()) {
            return built(cfg!(feature = "arrow"), "arrow", RowTarget::Parquet(directory.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return built(cfg!(feature = "postgres"), "postgres", RowTarget::Postgres(text.to_string()));
        }
        Err("give parquet:DIR or postgres://USER@HOST/DATABASE".to_string())
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
    pub fn begin(&self, selection: &Selection) -> Result<Box<dyn RowWriter>, String> {
        match self {
            #[cfg(feature = "arrow")]
            RowTarget::Parquet(directory) => {
                let partitions = crate::parquet::Partitions { by_month: false, by_tree: true };
                let dataset = crate::parquet::Dataset::open(directory, partitions, selection);
                Ok(Box::new(dataset.map_err(|error| error.to_string())?))
            }
            #[cfg(feature = "postgres")]
            RowTarget::Postgres(url) => {
                let layout = crate::postgres::Layout { schema: "roundel".to_string(), by_tree: false };
                let tables = crate::postgres::Tables::open(url, layout, selection.archives, false);
                Ok(Box::new(tables.map_err(|error| error.to_string())?))
            }
            #[cfg(not(all(feature = "arrow", feature = "postgres")))]
            _ => {
                let _ = selection;
                Err("this executable is built without it".to_string())
            }
        }
    }
}

#[cfg(feature = "arrow")]
impl RowWriter for crate::parquet::Dataset {
    fn add(&mut self, name: &[u8], runs: Vec<Run>) -> Result<Result<(), String>, String> {
        match crate::parquet::Dataset::add(self, name, &runs) {
            Ok(()) => Ok(Ok(())),
            Err(error @ crate::parquet::DatasetError::Name(_)) => Ok(Err(error.to_string())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn finish(self: Box<Self>) -> Result<u64, String> {
        crate::parquet::Dataset::finish(*self, || {})
            .map(|written| written.rows)
            .map_err(|error| error.to_string())
    }
}

#[cfg(feature = "postgres")]
impl RowWriter for crate::postgres::Tables {
    fn add(&mut self, name: &[u8], runs: Vec<Run>) -> Result<Result<(), String>, String> {
        match crate::postgres::Tables::add(self, name, runs) {
            Ok(()) => Ok(Ok(())),
            Err(error @ crate::postgres::connect::PostgresError::Name(_)) => Ok(Err(error.to_string())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn finish(self: Box<Self>) -> Result<u64, String> {
        crate::postgres::Tables::finish(*self).map(|copied| copied.rows).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_words() {
        assert_eq!(RowTarget::parse("parquet:/a b"), Ok(RowTarget::Parquet("/a b".into())));
        let secret = RowTarget::parse("postgresql://ann:pw@db:1/h?sslmode=require").expect("a target");
        assert_eq!(
            (secret.shown().as_str(), format!("{secret:?}").contains("pw")),
            ("postgres://db:1/h", false)
        );
        for bad in ["/a", "parquet:", "mysql://x"] {
            assert!(RowTarget::parse(bad).is_err(), "{bad}");
        }
    }
}
