//! Answers as bytes: a byte that says which, and what was found.

use std::sync::Arc;

use rrd::fetch::FetchRows;
use rrd::time::Timestamp;
use rrd::updatev::{UpdateReport, WrittenRow};
use store::engine::{RrdStatus, Snapshot, Stats, StreamPosition, Trashed, UpdateFailure, UpdatevOutcome};
use store::transfer::{
    Cursor, DecodeError, put_counted, put_definition, put_doubles, put_live, put_signed, take_definition,
    take_doubles, take_live, varint,
};

use super::request::{put_rrd, put_trashed, take_rrd, take_trashed};
use super::{Answer, check, copy, error, flag, put_text, text};

/// How many counters there are.
const COUNTER_COUNT: usize = 21;

/// All counters, in the order in which they are sent. A new one goes to the end, and only to connections of a
/// new [`super::VERSION_MAX`].
fn counters(stats: &mut Stats) -> [&mut u64; COUNTER_COUNT] {
    // Every field by its name, so that none is forgotten.
    let Stats {
        updates_received,
        updates_written,
        data_sets_written,
        flushes_received,
        queue_length,
        rrd_count,
        missing_count,
        trash_count,
        files_left,
        files_taken,
        files_failed,
        name_changes,
        updates_refused,
        log_bytes_written,
        journal_rotations,
        log_bytes_live,
        segment_bytes_written,
        checkpoint_bytes_written,
        segment_bytes,
        segment_count,
        read_only,
    } = stats;
    [
        updates_received,
        updates_written,
        data_sets_written,
        flushes_received,
        queue_length,
        rrd_count,
        missing_count,
        trash_count,
        files_left,
        files_taken,
        files_failed,
        name_changes,
        updates_refused,
        log_bytes_written,
        journal_rotations,
        log_bytes_live,
        segment_bytes_written,
        checkpoint_bytes_written,
        segment_bytes,
        segment_count,
        read_only,
    ]
}

/// Adds the counters of a partition to those of others; [`Stats::read_only`] is 1 if it is anywhere.
pub(crate) fn add(total: &mut Stats, mut more: Stats) {
    let read_only = total.read_only.max(more.read_only);
    for (sum, value) in counters(total).into_iter().zip(counters(&mut more)) {
        *sum = sum.saturating_add(*value);
    }
    total.read_only = read_only;
}

fn put_failures(out: &mut Vec<u8>, failures: &[UpdateFailure]) {
    varint::put(out, failures.len() as u64);
    for failure in failures {
        varint::put(out, u64::from(failure.line));
        varint::put(out, u64::from(failure.accepted));
        error::put(out, &failure.error);
    }
}

fn take_failures(cursor: &mut Cursor<'_>) -> Result<Vec<UpdateFailure>, DecodeError> {
    let count = cursor.count(3, "the number of failures")?;
    let mut failures = Vec::new();
    for _ in 0..count {
        let [line, accepted] = [cursor.number("a line")?, cursor.number("a number of arguments")?];
        failures.push(UpdateFailure { line, accepted, error: error::take(cursor)? });
    }
    Ok(failures)
}

fn put_written(out: &mut Vec<u8>, outcome: &UpdatevOutcome) {
    let UpdateReport { applied, skipped, rows, definition } = &outcome.report;
    varint::put(out, *applied);
    varint::put(out, *skipped);
    out.push(u8::from(definition.is_some()));
    if let Some(definition) = definition {
        put_definition(out, definition);
    }
    varint::put(out, rows.len() as u64);
    for row in rows {
        put_signed(out, row.time);
        varint::put(out, row.rra as u64);
        put_doubles(out, &row.values);
    }
    out.push(u8::from(outcome.refused.is_some()));
    if let Some(refused) = &outcome.refused {
        error::put(out, refused);
    }
}

fn take_written(cursor: &mut Cursor<'_>) -> Result<UpdatevOutcome, DecodeError> {
    let [applied, skipped] =
        [cursor.varint("a number of arguments")?, cursor.varint("a number of arguments")?];
    let definition = if flag(cursor)? { Some(Arc::new(take_definition(cursor)?)) } else { None };
    let rra_count = definition.as_ref().map_or(0, |definition| definition.rra.len());
    let count = cursor.count(3, "the number of rows")?;
    let mut rows = Vec::new();
    for _ in 0..count {
        let time = cursor.signed("a time")?;
        let rra_at = cursor.bad("an archive of the definition");
        let rra = cursor.number(rra_at.expected)?;
        if rra >= rra_count {
            return Err(rra_at);
        }
        rows.push(WrittenRow { time, rra, values: take_doubles(cursor)? });
    }
    let refused = if flag(cursor)? { Some(error::take(cursor)?) } else { None };
    Ok(UpdatevOutcome { report: UpdateReport { applied, skipped, rows, definition }, refused })
}

pub(super) fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    put_signed(out, time.whole);
    varint::put(out, u64::from(time.micros));
}

pub(super) fn take_time(cursor: &mut Cursor<'_>) -> Result<Timestamp, DecodeError> {
    let whole = cursor.signed("a time")?;
    let bad = cursor.bad("millionths of a second");
    match cursor.number(bad.expected)? {
        micros @ 0..1_000_000 => Ok(Timestamp::new(whole, micros)),
        _ => Err(bad),
    }
}

fn put_snapshot(out: &mut Vec<u8>, snapshot: &Snapshot) {
    put_definition(out, &snapshot.definition);
    put_live(out, &snapshot.live);
    varint::put(out, snapshot.current_rows.len() as u64);
    snapshot.current_rows.iter().for_each(|&row| varint::put(out, row));
    varint::put(out, snapshot.identity);
}

fn take_snapshot(cursor: &mut Cursor<'_>) -> Result<Snapshot, DecodeError> {
    let definition = take_definition(cursor)?;
    let live = take_live(cursor, &definition)?;
    let bad = cursor.bad("the current row of each archive");
    if cursor.count(1, bad.expected)? != definition.rra.len() {
        return Err(bad);
    }
    let current_rows = definition.rra.iter().map(|_| cursor.varint("a row")).collect::<Result<_, _>>()?;
    let identity = cursor.varint("an identity")?;
    Ok(Snapshot { definition: Arc::new(definition), live, current_rows, identity })
}

fn put_status(out: &mut Vec<u8>, status: &RrdStatus) {
    put_definition(out, &status.definition);
    put_time(out, status.last_update);
    out.push(u8::from(status.is_updated));
}

fn take_status(cursor: &mut Cursor<'_>) -> Result<RrdStatus, DecodeError> {
    let definition = Arc::new(take_definition(cursor)?);
    Ok(RrdStatus { definition, last_update: take_time(cursor)?, is_updated: flag(cursor)? })
}

fn put_fetched(out: &mut Vec<u8>, rows: &FetchRows) {
    put_signed(out, rows.start);
    put_signed(out, rows.end);
    varint::put(out, rows.step);
    varint::put(out, u64::from(rows.units_per_second));
    varint::put(out, rows.ds_names.len() as u64);
    rows.ds_names.iter().for_each(|name| put_text(out, name));
    put_doubles(out, &rows.values);
}

fn take_fetched(cursor: &mut Cursor<'_>) -> Result<FetchRows, DecodeError> {
    let [start, end] = [cursor.signed("a start")?, cursor.signed("an end")?];
    let step = cursor.varint("a step")?;
    let units_per_second = cursor.number("units per second")?;
    let count = cursor.count(1, "the number of data sources")?;
    let ds_names = (0..count).map(|_| text(cursor)).collect::<Result<_, _>>()?;
    Ok(FetchRows { start, end, step, units_per_second, ds_names, values: take_doubles(cursor)? })
}

fn put_names(out: &mut Vec<u8>, names: &[Vec<u8>]) {
    varint::put(out, names.len() as u64);
    names.iter().for_each(|name| put_counted(out, name));
}

fn take_names(cursor: &mut Cursor<'_>) -> Result<Vec<Vec<u8>>, DecodeError> {
    let count = cursor.count(1, "the number of names")?;
    (0..count).map(|_| cursor.counted_bytes("a name").map(<[u8]>::to_vec)).collect()
}

fn take_all_trashed(cursor: &mut Cursor<'_>) -> Result<Vec<Trashed>, DecodeError> {
    let count = cursor.count(2, "the number of removed RRDs")?;
    (0..count).map(|_| take_trashed(cursor)).collect()
}

fn put_position(out: &mut Vec<u8>, position: Option<StreamPosition>) {
    out.push(u8::from(position.is_some()));
    if let Some(position) = position {
        varint::put(out, position.epoch);
        varint::put(out, position.sequence);
    }
}

fn take_position(cursor: &mut Cursor<'_>) -> Result<Option<StreamPosition>, DecodeError> {
    match flag(cursor)? {
        true => {
            let [epoch, sequence] = [cursor.varint("an epoch")?, cursor.varint("a number")?];
            Ok(Some(StreamPosition { epoch, sequence }))
        }
        false => Ok(None),
    }
}

fn take_stats(cursor: &mut Cursor<'_>) -> Result<Stats, DecodeError> {
    let mut stats = Stats::default();
    for counter in counters(&mut stats) {
        *counter = cursor.varint("a counter")?;
    }
    Ok(stats)
}

pub(super) fn put(out: &mut Vec<u8>, answer: &Answer) {
    let kind_at = out.len();
    out.push(0);
    out[kind_at] = match answer {
        Answer::Done => 1,
        Answer::Failures(failures) => {
            put_failures(out, failures);
            2
        }
        Answer::Written(outcome) => {
            put_written(out, outcome);
            3
        }
        Answer::Version(version) => {
            varint::put(out, *version);
            4
        }
        Answer::Trashed(trashed) => {
            varint::put(out, trashed.len() as u64);
            trashed.iter().for_each(|one| put_trashed(out, one));
            5
        }
        Answer::Snapshot(snapshot) => {
            put_snapshot(out, snapshot);
            6
        }
        Answer::Status(status) => {
            put_status(out, status);
            7
        }
        Answer::Fetched(rows) => {
            put_fetched(out, rows);
            8
        }
        Answer::Whole(rrd) => {
            put_rrd(out, rrd);
            9
        }
        Answer::Values(values) => {
            put_doubles(out, values);
            10
        }
        Answer::Names(names) => {
            put_names(out, names);
            11
        }
        Answer::Is(is) => {
            out.push(u8::from(*is));
            12
        }
        Answer::Position(position) => {
            put_position(out, *position);
            13
        }
        Answer::Stats(stats) => {
            counters(&mut stats.clone()).into_iter().for_each(|counter| varint::put(out, *counter));
            14
        }
        Answer::Copy(number, head) => {
            varint::put(out, *number);
            copy::put(out, head);
            15
        }
        Answer::Bytes(bytes) => {
            put_counted(out, bytes);
            16
        }
        Answer::Check(answer) => check::put_answer(out, answer),
    };
}

pub(super) fn take(cursor: &mut Cursor<'_>) -> Result<Answer, DecodeError> {
    let bad = cursor.bad("a kind of answer");
    Ok(match cursor.byte(bad.expected)? {
        1 => Answer::Done,
        2 => Answer::Failures(take_failures(cursor)?),
        3 => Answer::Written(take_written(cursor)?),
        4 => Answer::Version(cursor.varint("a version")?),
        5 => Answer::Trashed(take_all_trashed(cursor)?),
        6 => Answer::Snapshot(Box::new(take_snapshot(cursor)?)),
        7 => Answer::Status(take_status(cursor)?),
        8 => Answer::Fetched(take_fetched(cursor)?),
        9 => Answer::Whole(Box::new(take_rrd(cursor)?)),
        10 => Answer::Values(take_doubles(cursor)?),
        11 => Answer::Names(take_names(cursor)?),
        12 => Answer::Is(flag(cursor)?),
        13 => Answer::Position(take_position(cursor)?),
        14 => Answer::Stats(Box::new(take_stats(cursor)?)),
        15 => Answer::Copy(cursor.varint("a copy")?, Box::new(copy::take(cursor)?)),
        16 => Answer::Bytes(cursor.counted_bytes("a part of a copy")?.to_vec()),
        kind @ 17..=21 => Answer::Check(check::take_answer(kind, cursor)?),
        _ => return Err(bad),
    })
}
