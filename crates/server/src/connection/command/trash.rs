//! TRASH: an administrator's command, for RRDs that were removed, and for those that are kept although their placeholders are missing.

use protocol::rrdcached::reply;
use protocol::rrdcached::words::Words;
use store::engine::{StoreError, Trashed};
use store::name::RrdName;

use super::lines::{self, Lines};
use super::rename::target;
use super::{Kept, text};
use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::service::Service;

/// Bytes that a number takes in a line, with the blank after it.
const NUMBER_BYTES: usize = 21;

/// Answers TRASH.
///
/// # Errors
/// When the words are none of its forms, something is not there, or the store refuses.
pub fn trash(
    service: &Service,
    mut words: Words<'_>,
    kept: &mut Kept,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let usage = || {
        Refusal::new(
            DropReason::Usage,
            "Usage: TRASH LIST|MISSING|KEEP|DROP, TRASH RESTORE <time> <filename> [<new filename>], TRASH ERASE <time> <filename>",
        )
    };
    let refused = |error: &StoreError| Refusal::of_store("RRD Error: ", error);
    let verb = words.next().unwrap_or_default().to_ascii_uppercase();
    let done = match &verb[..] {
        b"LIST" | b"MISSING" => return list(service, &verb, kept),
        b"KEEP" | b"DROP" => service.engine.settle_missing(verb == b"DROP"),
        b"RESTORE" | b"ERASE" => {
            let time = words.next().ok_or_else(usage)?;
            let word = words.next().ok_or_else(usage)?;
            let name = target(service, &word)?.name;
            let removed_ms = text(&time)?.parse().map_err(|_| usage())?;
            let trashed = Trashed { name, removed_ms };
            let to = match words.next() {
                Some(to) => target(service, &to)?.name,
                None => trashed.name.clone(),
            };
            let changed = match &verb[..] {
                b"RESTORE" => service.engine.restore(&trashed, &to),
                _ => service.engine.erase(&trashed),
            };
            changed.map(|()| 1)
        }
        _ => return Err(usage()),
    };
    let count = done.map_err(|error| refused(&error))?;
    reply::push_status(out, 0, format!("{count} RRDs").as_bytes());
    Ok(())
}

fn list(service: &Service, verb: &[u8], kept: &mut Kept) -> Result<(), Refusal> {
    let collect = |hold: store::engine::Hold<'_>| {
        let line = |number: Option<i64>, name: &RrdName| match number {
            Some(number) => [number.to_string().as_bytes(), b" ", name.as_bytes()].concat(),
            None => name.as_bytes().to_vec(),
        };
        let lines: Vec<Vec<u8>> = match verb {
            b"MISSING" => service.engine.missing().iter().map(|name| line(None, name)).collect(),
            _ => {
                let trash = service.engine.trash()?;
                trash.iter().map(|trashed| line(Some(trashed.removed_ms), &trashed.name)).collect()
            }
        };
        let bytes = lines.iter().map(|line| store::tree::name_bytes(line) + NUMBER_BYTES as u64).sum();
        if hold(bytes) { Ok(lines) } else { Err(StoreError::TooLarge("no memory for so many names".into())) }
    };
    let (mut lines, share) =
        lines::collect(service, collect, |error| Err(Refusal::of_store("RRD Error: ", error)))?;
    // A line feed in a name would break the line count, and such a name cannot be requested anyway.
    lines.retain(|line| !line.contains(&b'\n'));
    kept.rest = Some(Lines::new(b"RRDs", lines, share));
    Ok(())
}
