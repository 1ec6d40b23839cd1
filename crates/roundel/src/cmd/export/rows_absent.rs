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
            Some(("parquet" | "postgres" | "postgresql", _)) => {
                // Without what may be a password.
                let scheme = text.split(':').next().unwrap_or_default();
                Err(args::feature::missing(&format!("export --to {scheme}:"), "exchange"))
            }
            _ => Ok(None),
        }
    }
}

/// Is never called.
pub(super) fn run(_arguments: &Arguments, target: &RowTarget) -> Result {
    match target.0 {}
}
