//! FLUSH, FLUSHALL, PENDING, FORGET and QUEUE: the commands about rrdcached's cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use protocol::rrdcached::reply;
use store::engine::{Hold, RrdStatus, StoreError};
use store::name::RrdName;

use super::Kept;
use super::lines::{self, Lines};
use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::service::Service;

/// Answers FLUSH.
///
/// # Errors
/// When there is no such RRD, or writing fails.
pub fn flush(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    service.metrics.flushes_received.inc();
    let missing = |path: &[u8]| Refusal::of_path(DropReason::NoSuchRrd, "No such file: ", path, ".");
    let named = match service.names.resolve(word) {
        Ok(named) => named,
        Err(failure) => return Err(Refusal::of_name(failure, missing)),
    };
    let status = match service.engine.status(&named.name) {
        Ok(status) => status,
        Err(StoreError::NoSuchRrd(_)) => return Err(missing(&named.path)),
        Err(error) => return Err(Refusal::of_store("", &error)),
    };
    service.engine.flush(Some(&named.name)).map_err(|error| Refusal::of_store("", &error))?;
    let what =
        if is_cached(service, &named.name, &status) { "Successfully flushed " } else { "Nothing to flush: " };
    reply::push_status(out, 0, &[what.as_bytes(), &named.path, b"."].concat());
    Ok(())
}

/// Answers FLUSHALL. Compat: the answer only says that it has started. Failures are in the log and the
/// metrics.
pub fn flush_all(service: &Service, out: &mut Vec<u8>) {
    let FlushAll(waits) = &service.flush_all;
    // One that has not begun does what this one asks for.
    if !waits.swap(true, Ordering::AcqRel) {
        let (engine, waits) = (Arc::clone(&service.engine), Arc::clone(waits));
        tokio::task::spawn_blocking(move || {
            waits.store(false, Ordering::Release);
            engine.flush(None)
        });
    }
    reply::push_status(out, 0, b"Started flush.");
}

/// Whether a FLUSHALL waits for its thread.
#[derive(Clone, Debug, Default)]
pub struct FlushAll(Arc<AtomicBool>);

/// Answers PENDING.
///
/// # Errors
/// When there is not enough memory for the answer.
pub fn pending(service: &Service, word: &[u8], kept: &mut Kept) -> Result<(), Refusal> {
    // Compat: for an impossible name, nothing is pending.
    let named = service.names.resolve(word).ok();
    let pending = |hold: Hold<'_>| match &named {
        Some(named) => service.engine.pending(&named.name, hold),
        None => Ok(Vec::new()),
    };
    let (updates, share) = lines::collect(service, pending, refuse)?;
    kept.rest = Some(Lines::new(b"updates pending", updates, share));
    Ok(())
}

fn refuse<T>(error: &StoreError) -> Result<T, Refusal> {
    Err(Refusal::of_store("", error))
}

/// Answers FORGET.
///
/// # Errors
/// When there is no such RRD in the cache.
pub fn forget(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let missing = || Refusal::new(DropReason::NoSuchRrd, "No such file or directory");
    let named = match service.names.resolve(word) {
        Ok(named) => named,
        Err(failure) => return Err(Refusal::of_name(failure, |_| missing())),
    };
    match service.engine.status(&named.name) {
        Ok(status) if is_cached(service, &named.name, &status) => {
            service.marks.forget(&named.name);
            service.operated("forget", Some(&named.name.to_string()));
            reply::push_status(out, 0, b"Gone!");
            Ok(())
        }
        Ok(_) | Err(StoreError::NoSuchRrd(_)) => Err(missing()),
        Err(error) => Err(Refusal::of_store("", &error)),
    }
}

/// Answers QUEUE.
///
/// # Errors
/// When there is not enough memory for the answer.
pub fn queue(service: &Service, kept: &mut Kept) -> Result<(), Refusal> {
    let path = |(count, name): (u64, RrdName)| {
        [count.to_string().as_bytes(), b" ", &*service.names.path(name.as_bytes())].concat()
    };
    let queue = |hold: Hold<'_>| {
        let queue = service.engine.queue(hold)?;
        // With each name, a number and the base directory.
        match hold((queue.len() * (service.names.base().len() + 32)) as u64) {
            true => Ok(queue.into_iter().map(path).collect()),
            false => Err(StoreError::TooLarge(String::new())),
        }
    };
    let (queue, share) = lines::collect(service, queue, refuse)?;
    kept.rest = Some(Lines::new(b"in queue.", queue, share));
    Ok(())
}

/// Whether rrdcached would have it in its cache. rrdcached caches what was updated since it started; here,
/// anything that was ever updated and not forgotten counts.
pub fn is_cached(service: &Service, name: &RrdName, status: &RrdStatus) -> bool {
    status.is_updated && !service.marks.is_forgotten(name)
}
