//! FLUSH, FLUSHALL, PENDING, FORGET and QUEUE: the commands about rrdcached's cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use protocol::rrdcached::reply;
use store::engine::{RrdStatus, StoreError};
use store::name::RrdName;

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
#[derive(Debug, Default)]
pub struct FlushAll(Arc<AtomicBool>);

/// Answers PENDING.
pub fn pending(service: &Service, word: &[u8], out: &mut Vec<u8>) {
    // Compat: for an impossible name, nothing is pending.
    let named = service.names.resolve(word).ok();
    let updates = named.map_or_else(Vec::new, |named| service.engine.pending(&named.name));
    reply::push_status(out, updates.len() as i64, b"updates pending");
    updates.iter().for_each(|update| push_line(out, update));
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
            reply::push_status(out, 0, b"Gone!");
            Ok(())
        }
        Ok(_) | Err(StoreError::NoSuchRrd(_)) => Err(missing()),
        Err(error) => Err(Refusal::of_store("", &error)),
    }
}

/// Answers QUEUE.
pub fn queue(service: &Service, out: &mut Vec<u8>) {
    let queue = service.engine.queue();
    reply::push_status(out, queue.len() as i64, b"in queue.");
    for (count, name) in queue {
        let path = service.names.path(name.as_bytes());
        push_line(out, &[count.to_string().as_bytes(), b" ", &*path].concat());
    }
}

/// Whether rrdcached would have it in its cache. rrdcached caches what was updated since it started; here,
/// anything that was ever updated and not forgotten counts.
pub fn is_cached(service: &Service, name: &RrdName, status: &RrdStatus) -> bool {
    status.is_updated && !service.marks.is_forgotten(name)
}

fn push_line(out: &mut Vec<u8>, line: &[u8]) {
    out.extend_from_slice(line);
    out.push(b'\n');
}
