//! Comparisons of whole replicas, as bytes.

use store::replication::{BegunCheck, Position};
use store::transfer::{Cursor, DecodeError, put_counted, varint};

use super::{flag, put_text, text};
use crate::check::{CheckAnswer, CheckFound, CheckRequest, Unreadable};

fn put_place(out: &mut Vec<u8>, position: Position) {
    varint::put(out, u64::from(position.generation));
    varint::put(out, position.offset);
}

fn take_place(cursor: &mut Cursor<'_>) -> Result<Position, DecodeError> {
    Ok(Position { generation: cursor.number("a generation")?, offset: cursor.varint("an offset")? })
}

/// The numbers 29 to 31 of requests.
pub(super) fn put_request(out: &mut Vec<u8>, request: &CheckRequest) {
    match request {
        CheckRequest::Begin { number, ids } => {
            out.push(29);
            varint::put(out, *number);
            varint::put(out, u64::from(ids.start));
            varint::put(out, u64::from(ids.end));
        }
        CheckRequest::Read { number, at, names } => {
            out.push(30);
            varint::put(out, *number);
            put_place(out, *at);
            out.push(u8::from(*names));
        }
        CheckRequest::PutAside { copy, why } => {
            out.push(31);
            varint::put(out, *copy);
            put_text(out, why);
        }
    }
}

pub(super) fn take_request(kind: u8, cursor: &mut Cursor<'_>) -> Result<CheckRequest, DecodeError> {
    Ok(match kind {
        29 => {
            let number = cursor.varint("a number of a check")?;
            let [start, end] = [cursor.number("an id")?, cursor.number("an id")?];
            CheckRequest::Begin { number, ids: start..end }
        }
        30 => {
            let number = cursor.varint("a number of a check")?;
            CheckRequest::Read { number, at: take_place(cursor)?, names: flag(cursor)? }
        }
        _ => CheckRequest::PutAside { copy: cursor.varint("a store")?, why: text(cursor)? },
    })
}

/// Appends the answer; returns its number, 17 to 21.
pub(super) fn put_answer(out: &mut Vec<u8>, answer: &CheckAnswer) -> u8 {
    match answer {
        CheckAnswer::Begun(begun) => {
            varint::put(out, u64::from(begun.count));
            varint::put(out, u64::from(begun.next_id));
            put_place(out, begun.end);
            17
        }
        CheckAnswer::Waits(end) => {
            put_place(out, *end);
            18
        }
        CheckAnswer::Lacks => 19,
        CheckAnswer::Found(found) => {
            put_found(out, found);
            20
        }
        CheckAnswer::PutAside => 21,
    }
}

pub(super) fn take_answer(kind: u8, cursor: &mut Cursor<'_>) -> Result<CheckAnswer, DecodeError> {
    Ok(match kind {
        17 => {
            let [count, next_id] = [cursor.number("a number of ids")?, cursor.number("an id")?];
            CheckAnswer::Begun(BegunCheck { count, next_id, end: take_place(cursor)? })
        }
        18 => CheckAnswer::Waits(take_place(cursor)?),
        19 => CheckAnswer::Lacks,
        20 => CheckAnswer::Found(take_found(cursor)?),
        _ => CheckAnswer::PutAside,
    })
}

fn put_found(out: &mut Vec<u8>, found: &CheckFound) {
    varint::put(out, found.copy);
    varint::put(out, found.rows);
    varint::put(out, found.hashes.len() as u64);
    found.hashes.iter().for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
    varint::put(out, found.names.len() as u64);
    found.names.iter().for_each(|name| put_counted(out, name));
    varint::put(out, found.unreadable.len() as u64);
    for Unreadable { id, why, is_damage } in &found.unreadable {
        varint::put(out, u64::from(*id));
        put_text(out, why);
        out.push(u8::from(*is_damage));
    }
}

fn take_found(cursor: &mut Cursor<'_>) -> Result<CheckFound, DecodeError> {
    let [copy, rows] = [cursor.varint("a store")?, cursor.varint("a number of rows")?];
    let count = cursor.count(8, "a number of hashes")?;
    let words = cursor.bytes(count * 8, "hashes")?.chunks_exact(8);
    let hashes = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect();
    let count = cursor.count(1, "a number of names")?;
    let names =
        (0..count).map(|_| cursor.counted_bytes("a name").map(<[u8]>::to_vec)).collect::<Result<_, _>>()?;
    let count = cursor.count(3, "a number of RRDs")?;
    let unreadable = (0..count)
        .map(|_| Ok(Unreadable { id: cursor.number("an id")?, why: text(cursor)?, is_damage: flag(cursor)? }))
        .collect::<Result<_, DecodeError>>()?;
    Ok(CheckFound { copy, hashes, names, rows, unreadable })
}
