//! Rows from the store for xport and graphs, within a budget.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use graph::plan::{ComputeLimit, Request, Rows};
use rrd::definition::Cf;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::plan::{FETCH_VALUES_MAX, PlanError};
use store::engine::StoreError;
use store::name::RrdName;

use super::failure::Failure;
use super::table::TableRows;
use crate::budget::{MemoryBudget, Share};
use crate::names::NameFailure;
use crate::service::Service;
use crate::small_fetch::{SmallFetch, fetch_small};

/// The most values one request may read: 32 MB. That is a year of 40 data sources in steps of five minutes.
pub const VALUES_MAX: u64 = 4 << 20;
/// The most operations one CDEF may execute over all rows, and values that its sets and windows may touch:
/// about a second.
const WORK_MAX: u64 = 1 << 28;
/// The longest time for one request.
pub const TIME_MAX: Duration = Duration::from_secs(30);

/// What a request may still read, and the memory for clients that it has taken. Its threads share it.
pub struct Budget {
    values: AtomicU64,
    values_max: u64,
    share: Mutex<Share>,
    until: Instant,
}

impl Budget {
    /// The budget of a new request.
    pub fn new(memory: &Arc<MemoryBudget>) -> Budget {
        Budget::of(memory, VALUES_MAX)
    }

    /// The budget of a request that may read so many values, as far as there is memory for them.
    pub fn of(memory: &Arc<MemoryBudget>, values_max: u64) -> Budget {
        let share = Mutex::new(memory.share());
        Budget { values: AtomicU64::new(values_max), values_max, share, until: Instant::now() + TIME_MAX }
    }

    /// Takes `values` out of the budget, and their memory.
    ///
    /// # Errors
    /// 413 when too few are left, 503 when the time is over or too much memory is in use.
    pub fn take(&self, values: u64) -> Result<(), Failure> {
        self.count(values)?;
        self.hold(values.saturating_mul(8))
    }

    /// Takes `values` out of the budget that need no memory.
    ///
    /// # Errors
    /// 413 when too few are left, 503 when the time is over.
    pub fn count(&self, values: u64) -> Result<(), Failure> {
        let take = |left: u64| left.checked_sub(values);
        let taken = self.values.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map_err(|_| Budget::exceeded(self.values_max))?;
        self.check_time()
    }

    /// Takes `bytes` of the memory for clients.
    ///
    /// # Errors
    /// 413 when there is never so much, 503 when too much is in use.
    pub fn hold(&self, bytes: u64) -> Result<(), Failure> {
        let mut share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = share.bytes().saturating_add(bytes);
        match share.try_resize(bytes) {
            true => Ok(()),
            false => Err(Failure::no_memory("this answer", bytes, &share)),
        }
    }

    /// The memory that the request has taken.
    pub fn into_share(self) -> Share {
        self.share.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn exceeded(values_max: u64) -> Failure {
        Failure::too_much(format!("more than {values_max} values: ask for a shorter range or a larger step"))
    }

    /// Takes the rows of a CDEF out of the budget.
    ///
    /// # Errors
    /// As [`Budget::take`]; 413 also for too much work.
    fn compute(&self, rows: usize, words: usize) -> Result<ComputeLimit, Failure> {
        self.take(rows as u64)?;
        if (rows as u64).saturating_mul(words as u64) > WORK_MAX {
            return Err(Failure::too_much("a CDEF of too many words for so many rows"));
        }
        Ok(ComputeLimit { work_max: Some(WORK_MAX) })
    }

    /// When the time for the request ends.
    pub fn deadline(&self) -> Instant {
        self.until
    }

    /// Checks that there is time left.
    ///
    /// # Errors
    /// 503 when there is none.
    fn check_time(&self) -> Result<(), Failure> {
        if Instant::now() < self.until { Ok(()) } else { Err(Budget::overdue()) }
    }

    /// 503: the time is over.
    pub fn overdue() -> Failure {
        let text = format!("longer than {} s: ask for less at once", TIME_MAX.as_secs());
        Failure::new(axum::http::StatusCode::SERVICE_UNAVAILABLE, text)
    }
}

/// The RRD that an argument of a request names.
///
/// # Errors
/// 403 when it leads outside the base directory, 404 when no RRD can have that name.
pub fn name(service: &Service, word: &[u8]) -> Result<RrdName, Failure> {
    match service.names.resolve(word) {
        Ok(named) => Ok(named.name),
        Err(failure) => {
            let path = String::from_utf8_lossy(failure.path());
            Err(match &failure {
                NameFailure::Denied(_) => Failure::new(
                    axum::http::StatusCode::FORBIDDEN,
                    format!("{path} is not in the base directory"),
                ),
                NameFailure::Missing(_) => Failure::new(
                    axum::http::StatusCode::NOT_FOUND,
                    format!("{path}: No such file or directory"),
                ),
            })
        }
    }
}

/// Fetches as `rrdfetch(1)` does, within the budget.
///
/// # Errors
/// Errors of the store, or an exceeded budget.
pub fn fetch(
    service: &Service,
    budget: &Budget,
    word: &[u8],
    request: FetchRequest,
) -> Result<FetchRows, Failure> {
    let name = name(service, word)?;
    let left = request.values_max.min(budget.values.load(Ordering::Relaxed));
    let ask = |values_max| FetchRequest { values_max, ..request };
    match fetch_small(&*service.engine, &name, ask(left)) {
        Ok(SmallFetch::Rows(rows)) => {
            budget.take(rows.values.len() as u64)?;
            Ok(rows)
        }
        Ok(SmallFetch::Larger { rows, ds_count }) => {
            let count = rows.saturating_mul(ds_count as u64);
            if count > FETCH_VALUES_MAX {
                let error = PlanError::TooMany { rows, ds_count, values_max: FETCH_VALUES_MAX };
                return Err(Failure::too_much(error));
            }
            budget.take(count)?;
            service.engine.fetch(&name, ask(count)).map_err(|error| of_fetch(budget, word, error))
        }
        Err(error) => Err(of_fetch(budget, word, error)),
    }
}

fn of_fetch(budget: &Budget, word: &[u8], error: StoreError) -> Failure {
    match error {
        // An archive may have grown since it was asked.
        StoreError::Fetch(PlanError::TooMany { .. }) => Budget::exceeded(budget.values_max),
        StoreError::Fetch(error) => Failure::refused(error),
        error => Failure::of_store(word, &error),
    }
}

/// Rows as they were fetched.
pub struct Fetched {
    rows: FetchRows,
    next: usize,
}

impl Fetched {
    /// All of `rows`.
    pub fn new(rows: FetchRows) -> Fetched {
        Fetched { rows, next: 0 }
    }
}

impl TableRows for Fetched {
    fn each(&mut self, mut row: impl FnMut(i64, &[f64]) -> bool) -> bool {
        let FetchRows { start, step, values, ds_names, .. } = &self.rows;
        let step = i64::try_from(*step).unwrap_or(i64::MAX);
        let (count, columns) = (self.rows.row_count(), ds_names.len());
        while self.next < count {
            let values = &values[self.next * columns..][..columns];
            self.next += 1;
            if !row(start.saturating_add(step.saturating_mul(self.next as i64)), values) {
                break;
            }
        }
        self.next < count
    }
}

/// A source of rows for the graph language; names are relative to the base directory.
pub struct Source<'a> {
    /// The store.
    pub service: &'a Service,
    /// The budget of the request.
    pub budget: &'a Budget,
}

impl Rows for Source<'_> {
    fn fetch(&mut self, request: &Request) -> Result<FetchRows, Box<dyn Error + Send + Sync>> {
        if request.daemon.is_some() {
            return Err(Failure::refused("a DEF over HTTP cannot name a daemon").into());
        }
        Ok(fetch(self.service, self.budget, &request.file, request.fetch)?)
    }

    fn reserve(&mut self, values: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.budget.take(values)?)
    }

    fn compute(&mut self, rows: usize, words: usize) -> Result<ComputeLimit, Box<dyn Error + Send + Sync>> {
        Ok(self.budget.compute(rows, words)?)
    }

    fn is_limit(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        error.downcast_ref::<Failure>().is_some_and(Failure::is_limit)
    }
}

/// The consolidation function called `text`.
///
/// # Errors
/// 400.
pub fn cf(text: &str) -> Result<Cf, Failure> {
    Cf::from_name(text).ok_or_else(|| {
        Failure::bad(format!("unknown consolidation function \"{text}\": give AVERAGE, MIN, MAX or LAST"))
    })
}
