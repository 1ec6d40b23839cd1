//! SUSPEND, RESUME, SUSPENDALL and RESUMEALL.

use protocol::rrdcached::reply;
use store::engine::StoreError;

use super::flush::is_cached;
use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::service::Service;

/// Answers SUSPEND or RESUME.
///
/// # Errors
/// When there is no such RRD, it is in that state already, or too many are suspended.
pub fn suspend(service: &Service, word: &[u8], suspend: bool, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let path = service.names.path(word);
    let missing = || Refusal::of_path(DropReason::NoSuchRrd, "", &path, " - No such file or directory");
    let named = service.names.resolve(word).map_err(|_| missing())?;
    match service.engine.status(&named.name) {
        Ok(status) if is_cached(service, &named.name, &status) => {}
        Ok(_) | Err(StoreError::NoSuchRrd(_)) => return Err(missing()),
        Err(error) => return Err(Refusal::of_store("", &error)),
    }
    let what: &[u8] = match (suspend, service.marks.suspend(&named.name, suspend)) {
        (true, Some(true)) => b" suspended",
        (true, Some(false)) => b" already suspended",
        (false, Some(true)) => b" resumed",
        (false, Some(false)) => b" not suspended",
        (_, None) => return Err(Refusal::new(DropReason::Refused, "too many suspended RRDs")),
    };
    service.operated(if suspend { "suspend" } else { "resume" }, Some(&named.name.to_string()));
    reply::push_status(out, 0, &[&*path, what].concat());
    Ok(())
}

/// Answers SUSPENDALL or RESUMEALL.
pub fn suspend_all(service: &Service, suspend: bool, out: &mut Vec<u8>) {
    let count = service.marks.suspend_all(suspend, service.engine.stats().rrd_count);
    service.operated(if suspend { "suspend all" } else { "resume all" }, None);
    let what = if suspend { "suspend" } else { "resumed" };
    reply::push_status(out, 0, format!("{count} rrds {what}").as_bytes());
}
