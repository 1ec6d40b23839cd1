//! In place of `history.rs` in a build without the feature `exchange`.

use std::sync::Mutex;

use store::name::RrdName;

use super::options::HistoryArguments;
use super::{Arguments, Result, SourceFormat};
use crate::cmd::peer::Peer;

/// Nothing.
pub(super) struct HistoryTable;

/// Nothing.
///
/// # Errors
/// Never.
pub(super) fn table(_arguments: &HistoryArguments) -> Result<HistoryTable> {
    Ok(HistoryTable)
}

/// Refuses.
///
/// # Errors
/// Always: this build lacks the feature.
pub(super) fn run(arguments: &Arguments) -> Result {
    Err(missing(arguments.format))
}

/// Refuses.
///
/// # Errors
/// Always: this build lacks the feature.
pub(super) fn import_file(
    _peer: &Peer,
    _name: &RrdName,
    _bytes: &[u8],
    _table: &Mutex<HistoryTable>,
    arguments: &Arguments,
) -> Result {
    Err(missing(arguments.format))
}

fn missing(format: SourceFormat) -> String {
    args::feature::missing(&format!("import --format {}", format!("{format:?}").to_lowercase()), "exchange")
}
