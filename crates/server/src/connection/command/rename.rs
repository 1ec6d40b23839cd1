//! RENAME, COPY and REMOVE: what `mv`, `cp` and `rm` do to files.

use protocol::rrdcached::reply;

use super::find;
use crate::connection::refusal::Refusal;
use crate::names::ResolvedName;
use crate::service::Service;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The RRD gets the other name.
    Rename,
    /// A copy gets the other name.
    Copy,
}

/// Answers RENAME and COPY.
///
/// # Errors
/// When there is no such RRD, the other name cannot be one, or the store refuses.
pub fn rename(
    service: &Service,
    change: Change,
    from: &[u8],
    to: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let (from, _) = find(service, from, |engine, name| match change {
        Change::Rename => engine.status_for_change(name),
        Change::Copy => engine.status(name),
    })?;
    let to = target(service, to)?;
    let engine = &service.engine;
    let (done, status) = match change {
        Change::Rename => (engine.rename(&from.name, &to.name), &b"RRD renamed OK"[..]),
        Change::Copy => (engine.copy(&from.name, &to.name), &b"RRD copied OK"[..]),
    };
    done.map_err(|error| Refusal::of_store("RRD Error: ", &error))?;
    reply::push_status(out, 0, status);
    Ok(())
}

/// Answers REMOVE.
///
/// # Errors
/// When there is no such RRD, or the store refuses.
pub fn remove(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    find(service, word, |engine, name| engine.delete(name))?;
    reply::push_status(out, 0, b"RRD removed OK");
    Ok(())
}

/// The name that an RRD is to get.
///
/// # Errors
/// When it cannot be one.
pub fn target(service: &Service, word: &[u8]) -> Result<ResolvedName, Refusal> {
    service.names.resolve(word).map_err(|failure| Refusal::of_name(failure, Refusal::no_such_rrd))
}
