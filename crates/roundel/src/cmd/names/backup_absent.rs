//! In place of `backup.rs` in a build without the feature `backup`: `restore` takes the options of a backup, and refuses them.

use std::ffi::OsString;

use clap::Args;

use crate::cmd::Result;

/// Options by which `restore` takes a store of a backup. Only `--from` is listed; values are not read.
#[derive(Debug, Args)]
pub struct FromBackup {
    /// Make a store of the backup there [not in this build: feature "backup"]
    #[arg(long, value_name = "URL")]
    from: Option<OsString>,
    #[arg(long, hide = true, allow_hyphen_values = true)]
    at: Option<OsString>,
    #[arg(long, hide = true)]
    position: Option<OsString>,
    #[arg(long, hide = true)]
    early: bool,
    #[arg(long, hide = true)]
    config: Option<OsString>,
    #[arg(long, hide = true)]
    endpoint: Option<OsString>,
    #[arg(long, hide = true)]
    region: Option<OsString>,
    #[arg(long, hide = true)]
    key: Option<OsString>,
}

impl FromBackup {
    /// True if any option of a backup is given.
    pub fn is_given(&self) -> bool {
        let values =
            [&self.from, &self.at, &self.position, &self.config, &self.endpoint, &self.region, &self.key];
        self.early || values.into_iter().any(Option::is_some)
    }
}

/// Refuses.
///
/// # Errors
/// Always: this build lacks the feature.
pub fn restore(_arguments: &FromBackup, _names: &[String], _to: Option<&str>) -> Result {
    Err(args::feature::missing("restore --from", "backup"))
}
