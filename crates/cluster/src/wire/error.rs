//! The store's errors as bytes: a client of another node must see the same words and codes as one of the node itself.
//!
//! Errors that the server tells from others come across with their fields. Of those that it only shows, the words do, in a kind that is
//! treated in the same way.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;

use rrd::plan::PlanError;
use rrd::tune::TuneError;
use rrd::update::UpdateError;
use store::disk::Shortage;
use store::engine::StoreError;
use store::name::NameError;
use store::transfer::{Cursor, DecodeError, put_signed, varint};

use super::answer::{put_time, take_time};
use super::{name, put_name, put_text, text};

use crate::lock::lock;

const NAMES: [NameError; 5] =
    [NameError::Empty, NameError::TooLong, NameError::TooLongForFiles, NameError::Nul, NameError::Outside];

/// Sentences of other nodes that are kept as long as the process lives: as many as all releases have, and a limit.
const SENTENCES_MAX: usize = 256;
/// The longest of them, in bytes.
const SENTENCE_BYTES_MAX: usize = 1024;
/// Instead of what is beyond those limits.
const UNSPOKEN: &str = "the other node refuses it; see its log";

/// The sentence as one that lives as long as the process: the errors of the store hold such.
fn kept(sentence: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut all = lock(&KEPT);
    if let Some(known) = all.get(sentence) {
        return known;
    }
    if all.len() >= SENTENCES_MAX || sentence.len() > SENTENCE_BYTES_MAX {
        return UNSPOKEN;
    }
    let known: &'static str = Box::leak(sentence.into());
    all.insert(known);
    known
}

fn put_update(out: &mut Vec<u8>, error: &UpdateError) {
    match error {
        UpdateError::NotLater { time, last_update, units_per_second } => {
            out.push(1);
            put_time(out, *time);
            put_time(out, *last_update);
            varint::put(out, u64::from(*units_per_second));
        }
        other => {
            out.push(2);
            put_text(out, &other.to_string());
        }
    }
}

fn take_update(cursor: &mut Cursor<'_>) -> Result<UpdateError, DecodeError> {
    let bad = cursor.bad("a kind of refused update");
    match cursor.byte(bad.expected)? {
        1 => Ok(UpdateError::NotLater {
            time: take_time(cursor)?,
            last_update: take_time(cursor)?,
            units_per_second: cursor.number("units per second")?,
        }),
        2 => text(cursor).map(UpdateError::Told),
        _ => Err(bad),
    }
}

fn put_plan(out: &mut Vec<u8>, error: &PlanError) {
    match error {
        PlanError::NoSuchCf => out.push(1),
        PlanError::NoSuchRra => out.push(2),
        PlanError::TimeTooFar { seconds } => {
            out.push(3);
            put_signed(out, *seconds);
        }
        PlanError::TooMany { rows, ds_count, values_max } => {
            out.push(4);
            varint::put(out, *rows);
            varint::put(out, *ds_count as u64);
            varint::put(out, *values_max);
        }
    }
}

fn take_plan(cursor: &mut Cursor<'_>) -> Result<PlanError, DecodeError> {
    let bad = cursor.bad("a kind of refused fetch");
    match cursor.byte(bad.expected)? {
        1 => Ok(PlanError::NoSuchCf),
        2 => Ok(PlanError::NoSuchRra),
        3 => Ok(PlanError::TimeTooFar { seconds: cursor.signed("a time")? }),
        4 => Ok(PlanError::TooMany {
            rows: cursor.varint("a number of rows")?,
            ds_count: cursor.number("a number of data sources")?,
            values_max: cursor.varint("a number of values")?,
        }),
        _ => Err(bad),
    }
}

/// Appends the number of an error in the system, or what it says.
fn put_io(out: &mut Vec<u8>, error: &io::Error) {
    put_signed(out, i64::from(error.raw_os_error().unwrap_or(0)));
    put_text(out, &rrd_file::system_text(error));
}

fn take_io(cursor: &mut Cursor<'_>) -> Result<io::Error, DecodeError> {
    let bad = cursor.bad("the number of an error");
    let number = i32::try_from(cursor.signed(bad.expected)?).map_err(|_| bad)?;
    let said = text(cursor)?;
    Ok(if number == 0 { io::Error::other(said) } else { io::Error::from_raw_os_error(number) })
}

fn put_said(out: &mut Vec<u8>, kind: u8, said: &str) {
    out.push(kind);
    put_text(out, said);
}

pub(super) fn put(out: &mut Vec<u8>, error: &StoreError) {
    match error {
        StoreError::NoSuchRrd(name) => put_named(out, 1, name),
        StoreError::Exists(name) => put_named(out, 2, name),
        StoreError::Changed(name) => put_named(out, 3, name),
        StoreError::Denied(name) => put_named(out, 4, name),
        StoreError::Update(error) => {
            out.push(5);
            put_update(out, error);
        }
        StoreError::Fetch(error) => {
            out.push(6);
            put_plan(out, error);
        }
        StoreError::Tune(error) => put_said(out, 7, &error.to_string()),
        StoreError::Name(error) => {
            let number = NAMES.iter().position(|known| known == error).unwrap_or(0);
            out.extend_from_slice(&[8, number as u8]);
        }
        StoreError::LeadsOut { path } => put_said(out, 9, path),
        StoreError::TooFast(said) => put_said(out, 10, said),
        StoreError::TooLarge(said) => put_said(out, 11, said),
        StoreError::Backlog(said) => put_said(out, 12, said),
        StoreError::Short(shortage) => {
            let number = Shortage::ALL.iter().position(|known| known == shortage).unwrap_or(0);
            out.extend_from_slice(&[13, number as u8]);
        }
        StoreError::Poisoned(said) => put_said(out, 14, said),
        StoreError::Lost(said) => put_said(out, 15, said),
        // To clients, these are all damage.
        StoreError::Segment(_) | StoreError::Damaged { .. } => put_said(out, 15, &error.to_string()),
        StoreError::Locked => out.push(16),
        StoreError::Io { what, error } => {
            put_said(out, 17, what);
            put_io(out, error);
        }
        StoreError::Replica(said) => put_said(out, 18, said),
        // Partitions have no placeholders.
        StoreError::Placeholder(error) => put_said(out, 18, &error.to_string()),
        StoreError::NotPrimary(said) => put_said(out, 19, said),
        StoreError::NotReplicated(said) => put_said(out, 20, said),
        StoreError::Unsupported(said) => put_said(out, 21, said),
        // To clients, the layout cannot have it; partitions have no `.rrd` files.
        StoreError::Unfit { .. } => put_said(out, 21, &error.to_string()),
        StoreError::Unavailable(said) => put_said(out, 22, said),
        StoreError::Stopping => out.push(23),
    }
}

fn put_named(out: &mut Vec<u8>, kind: u8, name: &store::name::RrdName) {
    out.push(kind);
    put_name(out, name);
}

pub(super) fn take(cursor: &mut Cursor<'_>) -> Result<StoreError, DecodeError> {
    let bad = cursor.bad("a kind of error");
    Ok(match cursor.byte(bad.expected)? {
        1 => StoreError::NoSuchRrd(name(cursor)?),
        2 => StoreError::Exists(name(cursor)?),
        3 => StoreError::Changed(name(cursor)?),
        4 => StoreError::Denied(name(cursor)?),
        5 => StoreError::Update(take_update(cursor)?),
        6 => StoreError::Fetch(take_plan(cursor)?),
        7 => StoreError::Tune(TuneError::Told(text(cursor)?)),
        8 => StoreError::Name(*NAMES.get(usize::from(cursor.byte("a number")?)).ok_or(bad)?),
        9 => StoreError::LeadsOut { path: text(cursor)? },
        10 => StoreError::TooFast(text(cursor)?),
        11 => StoreError::TooLarge(text(cursor)?),
        12 => StoreError::Backlog(text(cursor)?),
        13 => StoreError::Short(*Shortage::ALL.get(usize::from(cursor.byte("a number")?)).ok_or(bad)?),
        14 => StoreError::Poisoned(text(cursor)?),
        15 => StoreError::Lost(text(cursor)?),
        16 => StoreError::Locked,
        17 => StoreError::io(text(cursor)?, take_io(cursor)?),
        18 => StoreError::Replica(text(cursor)?),
        19 => StoreError::NotPrimary(kept(&text(cursor)?)),
        20 => StoreError::NotReplicated(kept(&text(cursor)?)),
        21 => StoreError::Unsupported(kept(&text(cursor)?)),
        22 => StoreError::Unavailable(text(cursor)?),
        23 => StoreError::Stopping,
        _ => return Err(bad),
    })
}
