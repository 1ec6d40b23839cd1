//! FIRST and LAST.

use protocol::rrdcached::reply;
use rrd::time::Moment;

use super::find;
use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::service::Service;

/// Answers FIRST: the end of the oldest row of an archive.
///
/// # Errors
/// When there is no such RRD or archive.
pub fn first(service: &Service, word: &[u8], rra: i64, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let Ok(index) = usize::try_from(rra) else {
        return Err(Refusal::new(DropReason::Usage, format!("Invalid index specified ({rra})")));
    };
    let (_, status) = find(service, word, |engine, name| engine.status(name))?;
    let definition = &status.definition;
    let Some(archive) = definition.rra.get(index) else {
        return Err(Refusal::new(DropReason::Refused, "RRD Error: invalid rraindex number"));
    };
    let newest = definition.newest_row(index, status.last_update.whole);
    let oldest = newest.saturating_sub_unsigned(archive.row_count).saturating_add(1);
    let time = rrd::grid::row_time(oldest, archive.span(definition.step));
    push_time(out, definition.moment(time));
    Ok(())
}

/// Answers LAST. Compat: rrdcached rounds down to the step (`rrdtool last` on a file does not).
///
/// # Errors
/// When there is no such RRD.
pub fn last(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (_, status) = find(service, word, |engine, name| engine.status(name))?;
    let (definition, mut time) = (&status.definition, status.last_update);
    time.whole -= time.whole.rem_euclid(definition.step as i64);
    push_time(out, definition.moment(time.whole));
    Ok(())
}

fn push_time(out: &mut Vec<u8>, time: Moment) {
    reply::push_status(out, 0, time.to_string().as_bytes());
}
