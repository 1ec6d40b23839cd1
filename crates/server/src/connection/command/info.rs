//! INFO: what `rrdinfo(1)` prints, one item per line with the number of its type.

use protocol::rrdcached::reply;
use rrd::info;

use super::find;
use crate::connection::refusal::Refusal;
use crate::service::Service;

/// Answers INFO.
///
/// # Errors
/// When there is no such RRD, or it cannot be read.
pub fn info(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (named, snapshot) = find(service, word, |engine, name| engine.snapshot(name))?;
    let items = info::info(&snapshot.definition, &snapshot.live, &snapshot.current_rows, &named.path);
    let status = [b"Info for ", &*named.path, b" follows"].concat();
    reply::push_status(out, items.len() as i64, &status);
    info::push_wire(out, &items);
    Ok(())
}
