//! The first step of every fetch: a small answer is read at once; for a larger one its memory is asked for first.

use rrd::fetch::{FetchRequest, FetchRows};
use rrd::plan::PlanError;
use store::engine::{Engine, StoreError};
use store::name::RrdName;

/// Values that are read before memory is asked for.
const SMALL_VALUES: u64 = 4096;

/// The answer to a fetch, if it is small.
#[derive(Debug)]
pub enum SmallFetch {
    /// The rows.
    Rows(FetchRows),
    /// There are too many to be read without asking for memory.
    Larger {
        /// Rows of the answer.
        rows: u64,
        /// Values of each row.
        ds_count: usize,
    },
}

/// Reads the rows of a request, unless it is for many; whether so many may be asked for is not checked then.
///
/// # Errors
/// Errors of the store.
pub fn fetch_small(
    engine: &dyn Engine,
    name: &RrdName,
    request: FetchRequest,
) -> Result<SmallFetch, StoreError> {
    let values_max = request.values_max.min(SMALL_VALUES);
    match engine.fetch(name, FetchRequest { values_max, ..request }) {
        Ok(rows) => Ok(SmallFetch::Rows(rows)),
        Err(StoreError::Fetch(PlanError::TooMany { rows, ds_count, .. })) => {
            Ok(SmallFetch::Larger { rows, ds_count })
        }
        Err(error) => Err(error),
    }
}
