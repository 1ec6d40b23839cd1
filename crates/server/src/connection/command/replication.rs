//! PROMOTE and REPLICATION: for `roundel promote` and `roundel replication`.

use protocol::rrdcached::reply;

use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::replication::state::ReplicationState;
use crate::service::Service;

/// Answers PROMOTE: this server is the primary from then on. The second line says how old its content was, in milliseconds, if that is
/// known.
///
/// # Errors
/// When it is the primary already, or cannot become it.
pub fn promote(service: &Service, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let state = state(service)?;
    let age = state.following.age();
    let epoch = state.promote().map_err(|error| Refusal::of_store("", &error))?;
    service.operated("promote", None);
    reply::push_status(out, 1, b"This server is the primary now");
    let age = age.map_or("unknown".to_string(), |age| age.as_millis().to_string());
    out.extend_from_slice(format!("{epoch} {age}\n").as_bytes());
    Ok(())
}

/// Answers REPLICATION: lines of a key and a value.
///
/// # Errors
/// When the store has no log.
pub fn status(service: &Service, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let lines = state(service)?.lines();
    reply::push_status(out, lines.len() as i64, b"Replication");
    lines.iter().for_each(|line| out.extend_from_slice(format!("{line}\n").as_bytes()));
    Ok(())
}

fn state(service: &Service) -> Result<&ReplicationState, Refusal> {
    let none = || Refusal::new(DropReason::Refused, "This store has no log that others could follow.");
    service.metrics.replication.get().map(|state| &**state).ok_or_else(none)
}
