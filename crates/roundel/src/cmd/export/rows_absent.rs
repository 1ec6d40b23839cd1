//! In place of `rows.rs` in a build without the feature `exchange`.

use std::convert::Infallible;

use super::{Arguments, Result};

/// Never exists.
pub(super) struct RowTarget(Infallible);

impl RowTarget {
    /// `None` for a directory of `.rrd` files.
    ///
    /// # Errors
    /// For the other targets: this build lacks the feature.
    pub(super) fn parse(text: &str) -> Result<Option<Self>> {
        match text.split_once(':') {
            // The scheme alone: the rest may hold a password.
            Some((scheme @ "parquet", _)) => Err(missing(scheme, "exchange")),
            Some((scheme @ ("postgres" | "postgresql"), _)) => Err(missing(scheme, "postgres")),
            _ => Ok(None),
        }
    }
}

fn missing(scheme: &str, feature: &str) -> String {
    args::feature::missing(&format!("export --to {scheme}"), feature)
}

/// Is never called.
pub(super) fn run(_arguments: &Arguments, target: &RowTarget) -> Result {
    match target.0 {}
}
