//! UPDATEV: an update whose answer lists the rows it wrote, as `rrdtool updatev` does.

use protocol::rrdcached::command::{Command, Verb};
use protocol::rrdcached::reply;
use protocol::rrdcached::words::Words;
use rrd::format::push_e;
use rrd::info::Value;
use store::engine::StoreError;

use crate::connection::refusal::{Refusal, code, reason};
use crate::metrics::DropReason;
use crate::names::ResolvedName;
use crate::service::Service;

/// The items with the reason why an argument was refused: a code of `docs/protocol/frames.md`, and a text.
const CODE: &str = "code";
const ERROR: &str = "error";
/// Digits that represent a double exactly.
const DIGITS: usize = 17;

/// Answers UPDATEV. Arguments are parsed and refused as for a file.
///
/// # Errors
/// When there is no such RRD, or it cannot be written.
pub fn updatev(service: &Service, word: &[u8], words: Words<'_>, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (named, values) = named_readings(service, Verb::UpdateV, word, words)?;
    let listed = match service.engine.updatev(&named.name, &values) {
        Ok(listed) => listed,
        Err(StoreError::NoSuchRrd(_)) => return Err(Refusal::no_such_rrd(&named.path)),
        Err(error) => return Err(Refusal::of_store("RRD Error: ", &error)),
    };
    let items = listed.report.items();
    let count = items.len() + if listed.refused.is_some() { 2 } else { 0 };
    reply::push_status(out, count as i64, &[b"Rows of ", &*named.path].concat());
    for item in items {
        let Value::Number(value) = item.value else { continue };
        out.extend_from_slice(item.key.as_bytes());
        out.extend_from_slice(b" 0 ");
        push_e(out, value, DIGITS);
        out.push(b'\n');
    }
    if let Some(error) = listed.refused {
        service.metrics.drop_line(reason(&error));
        let code = code(&error).number();
        out.extend_from_slice(format!("{CODE} 1 {code}\n{ERROR} 2 {error}\n").as_bytes());
    }
    Ok(())
}

/// The RRD that a command updates, and the readings, as the store takes them.
///
/// # Errors
/// When the name is none, there is no reading, or one holds a space.
pub fn named_readings(
    service: &Service,
    verb: Verb,
    word: &[u8],
    words: Words<'_>,
) -> Result<(ResolvedName, Vec<u8>), Refusal> {
    service.metrics.updates_received.inc();
    let named = match service.names.resolve(word) {
        Ok(named) => named,
        Err(failure) => return Err(Refusal::of_name(failure, Refusal::no_such_rrd)),
    };
    let values = readings(words)?;
    if values.is_empty() {
        return Err(Refusal::usage(Command::of(verb)));
    }
    service.marks.remember(named.name.as_bytes());
    Ok((named, values))
}

/// Readings separated by single spaces.
fn readings(words: Words<'_>) -> Result<Vec<u8>, Refusal> {
    let mut values = Vec::new();
    for word in words {
        if word.contains(&b' ') {
            let text = ("RRD Error: '", "': a reading holds no space");
            return Err(Refusal::of_path(DropReason::Refused, text.0, &word, text.1));
        }
        if !values.is_empty() {
            values.push(b' ');
        }
        values.extend_from_slice(&word);
    }
    Ok(values)
}
