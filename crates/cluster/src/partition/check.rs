//! What a replica answers when it is compared with others.

use std::time::{Duration, Instant};

use store::engine::StoreError;
use store::replication::{LogCopy, RowCheckState};

use super::Replica;
use crate::check::{CheckAnswer, CheckFound, CheckRequest, Unreadable};

/// How long a store may take to be closed that is put aside.
const CLOSING: Duration = Duration::from_secs(20);
/// How often it is looked.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Replica {
    /// Does what a comparison asks.
    ///
    /// # Errors
    /// When it has no open store, or does not lead where it has to; the store's.
    pub fn check(&self, request: CheckRequest) -> Result<CheckAnswer, StoreError> {
        let (engine, end, copy) = {
            let state = self.shared.state();
            let engine = state.engine.clone().ok_or(StoreError::Stopping)?;
            (engine, state.settled.accepted.whole, self.shared.copy_number(state.life))
        };
        match request {
            CheckRequest::Begin { number, ids } => {
                engine.begin_row_check(number, ids).map(CheckAnswer::Begun)
            }
            CheckRequest::Read { number, at, names } => Ok(match engine.row_check(number) {
                RowCheckState::Done(found) => {
                    let unreadable = |(id, why, is_damage): &(u32, String, bool)| Unreadable {
                        id: *id,
                        why: why.clone(),
                        is_damage: *is_damage,
                    };
                    let named = found.names.iter().filter(|_| names);
                    CheckAnswer::Found(CheckFound {
                        copy,
                        hashes: found.hashes.clone(),
                        names: named.map(|name| name.to_vec()).collect(),
                        rows: found.rows,
                        unreadable: found.unreadable.iter().map(unreadable).collect(),
                    })
                }
                // The end is that of before the look: what was read by then would be known.
                RowCheckState::None if end >= at => CheckAnswer::Lacks,
                RowCheckState::None | RowCheckState::Waits => CheckAnswer::Waits(end),
            }),
            CheckRequest::PutAside { copy: meant, .. } if meant != copy => {
                Err(StoreError::Replica("the store was opened again since".into()))
            }
            CheckRequest::PutAside { why, .. } => {
                drop(engine);
                self.put_aside(copy, why)
            }
        }
    }

    /// Has the store put aside, and waits until it is closed.
    fn put_aside(&self, copy: u64, why: String) -> Result<CheckAnswer, StoreError> {
        let mut state = self.shared.state();
        state.aside = Some(why);
        self.shared.changed.notify_all();
        let until = Instant::now() + CLOSING;
        while state.engine.is_some() && self.shared.copy_number(state.life) == copy {
            if Instant::now() > until {
                return Err(StoreError::Replica("the store does not close".into()));
            }
            state = self.shared.wait(state, LOOK_AGAIN);
        }
        Ok(CheckAnswer::PutAside)
    }
}
