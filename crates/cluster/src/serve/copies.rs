//! Copies of replicas that other nodes are fetching: each is held until it was not asked for in a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use store::engine::StoreError;

use crate::lock::lock;
use crate::partition::ReplicaCopy;
use crate::routes::Routes;
use crate::wire::{Answer, Request};

/// Copies at once; each keeps files and log that would be removed otherwise.
const COPIES_MAX: usize = 8;
/// How long one is held that is not asked for.
const UNUSED_MAX: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Copies(Mutex<Held>);

#[derive(Default)]
struct Held {
    last: u64,
    copies: HashMap<u64, (Arc<ReplicaCopy>, Instant)>,
}

impl Held {
    /// Lets go of what was not asked for.
    fn expire(&mut self) {
        self.copies.retain(|_, (_, used)| used.elapsed() < UNUSED_MAX);
    }
}

impl Copies {
    /// Answers a request about copies; `None`: it is another request.
    ///
    /// # Errors
    /// When there are too many, or there is no such copy any more.
    pub(super) fn answer(
        &self,
        routes: &dyn Routes,
        partition: u32,
        request: &Request,
    ) -> Option<Result<Answer, StoreError>> {
        match *request {
            Request::BeginCopy => Some(self.begin(routes, partition)),
            Request::ReadCopy { copy, file, offset, count } => {
                Some(self.read(copy, (file as usize, offset, count as usize)))
            }
            _ => None,
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        lock(&self.0)
    }

    fn begin(&self, routes: &dyn Routes, partition: u32) -> Result<Answer, StoreError> {
        let is_full = {
            let mut held = self.held();
            held.expire();
            held.copies.len() >= COPIES_MAX
        };
        if is_full {
            return Err(StoreError::Unavailable(format!(
                "{COPIES_MAX} copies are made already; try again later"
            )));
        }
        let copy = Arc::new(routes.copy(partition)?);
        let head = Box::new(copy.head().clone());
        let mut held = self.held();
        held.last += 1;
        let number = held.last;
        held.copies.insert(number, (copy, Instant::now()));
        Ok(Answer::Copy(number, head))
    }

    fn read(&self, number: u64, (file, offset, count): (usize, u64, usize)) -> Result<Answer, StoreError> {
        let copy = {
            let mut held = self.held();
            held.expire();
            let found = held.copies.get_mut(&number);
            let (copy, used) =
                found.ok_or_else(|| StoreError::Unavailable("the copy is not held any more".into()))?;
            *used = Instant::now();
            Arc::clone(copy)
        };
        let bytes = copy.read(file, offset, count);
        Ok(Answer::Bytes(bytes.map_err(|error| StoreError::io("reading a file for a copy", error))?))
    }
}
