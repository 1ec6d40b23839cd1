//! A store that must not be called: a session leaves that to its driver.

use std::ops::Range;
use std::sync::Arc;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::fetch::{FetchRequest, FetchRows};
use store::engine::{
    CreateRequest, Engine, Hold, Reply, Snapshot, Stats, StoreError, UpdateBatch, UpdateFailure,
    UpdatevOutcome,
};
use store::name::RrdName;

/// Panics on every request.
pub struct NoEngine;

const WHY: &str = "a session asks no store";

impl Engine for NoEngine {
    fn update(&self, _: UpdateBatch, _: Reply<Vec<UpdateFailure>>) {
        unreachable!("{WHY}")
    }
    fn updatev(&self, _: &RrdName, _: &[u8]) -> Result<UpdatevOutcome, StoreError> {
        unreachable!("{WHY}")
    }
    fn create(&self, _: RrdName, _: CreateRequest, _: Reply<Result<(), StoreError>>) {
        unreachable!("{WHY}")
    }
    fn import(&self, _: RrdName, _: Rrd, _: bool) -> Result<(), StoreError> {
        unreachable!("{WHY}")
    }
    fn tune(&self, _: &RrdName, _: &[String]) -> Result<(), StoreError> {
        unreachable!("{WHY}")
    }
    fn delete(&self, _: &RrdName) -> Result<(), StoreError> {
        unreachable!("{WHY}")
    }
    fn rename(&self, _: &RrdName, _: &RrdName) -> Result<(), StoreError> {
        unreachable!("{WHY}")
    }
    fn copy(&self, _: &RrdName, _: &RrdName) -> Result<(), StoreError> {
        unreachable!("{WHY}")
    }
    fn snapshot(&self, _: &RrdName) -> Result<Snapshot, StoreError> {
        unreachable!("{WHY}")
    }
    fn fetch(&self, _: &RrdName, _: FetchRequest) -> Result<FetchRows, StoreError> {
        unreachable!("{WHY}")
    }
    fn read(&self, _: &RrdName) -> Result<Rrd, StoreError> {
        unreachable!("{WHY}")
    }
    fn rows(
        &self,
        _: &RrdName,
        _: &Arc<Definition>,
        _: usize,
        _: Range<i64>,
    ) -> Result<Vec<f64>, StoreError> {
        unreachable!("{WHY}")
    }
    fn list_within(&self, _: &[u8], _: bool, _: Hold<'_>) -> Result<Vec<Vec<u8>>, StoreError> {
        unreachable!("{WHY}")
    }
    fn flush(&self, _: Option<&RrdName>) -> Result<(), StoreError> {
        unreachable!("{WHY}")
    }
    fn stats(&self) -> Stats {
        unreachable!("{WHY}")
    }
    fn stop(&self) -> Result<(), StoreError> {
        unreachable!("{WHY}")
    }
}
