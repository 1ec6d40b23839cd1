//! What this process itself wrote of late, so that the events of that can be told from other programs' without asking the store.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;

use super::RrdNumber;
use crate::name::RrdName;

/// Names that are remembered; then all are forgotten, and asked for.
const NAMES_MAX: usize = 4096;

/// The numbers that were written of late, by name.
#[derive(Debug, Default)]
pub(super) struct OwnWrites(Mutex<HashMap<RrdName, RrdNumber>>);

impl OwnWrites {
    /// Notes what was written.
    pub(super) fn note(&self, name: &RrdName, rrd: Option<RrdNumber>) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match rrd {
            Some(rrd) => {
                if written.len() >= NAMES_MAX {
                    written.clear();
                }
                written.insert(name.clone(), rrd);
            }
            None => drop(written.remove(name)),
        }
    }

    /// What was written last of a name, if that is remembered.
    pub(super) fn last(&self, name: &RrdName) -> Option<RrdNumber> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// Forgets all: RRDs get other names.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
