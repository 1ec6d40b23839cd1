//! Requests as bytes: a byte that says which, and what it takes.

use std::sync::Arc;

use rrd::content::Rrd;
use rrd::definition::{Cf, Definition};
use rrd::fetch::FetchRequest;
use store::engine::{CreateRequest, StreamPosition, Trashed, UpdateBatch, UpdateLine, VersionChange};
use store::streams::STREAM_NAME_BYTES_MAX;
use store::transfer::{
    Cursor, DecodeError, decode_rrd, encode_rrd, put_counted, put_definition, put_signed, take_definition,
    varint,
};

use super::{PART_BYTES_MAX, Request, check, checked_name, flag, name, put_name, put_text, text};

/// Most arguments of a tune: RRDtool's command line has no limit, a machine's is far above this.
const TUNE_ARGS_MAX: usize = 1 << 16;

/// Appends a batch as docs/format/log.md has it of a record of kind 12, which a spool keeps: both change together.
pub(crate) fn put_update(out: &mut Vec<u8>, batch: &UpdateBatch) {
    out.push(1);
    varint::put(out, batch.lines.len() as u64);
    for line in &batch.lines {
        varint::put(out, line.name.len() as u64);
        varint::put(out, line.values.len() as u64);
    }
    for line in &batch.lines {
        out.extend_from_slice(batch.name(line));
        out.extend_from_slice(batch.values(line));
    }
}

fn take_update(cursor: &mut Cursor<'_>) -> Result<UpdateBatch, DecodeError> {
    let count = cursor.count(2, "the number of updates")?;
    let mut lines = Vec::with_capacity(count);
    let bad = cursor.bad("lengths of names and values that fit the bytes");
    let mut end = 0u32;
    for _ in 0..count {
        let [name, values]: [u32; 2] = [cursor.number(bad.expected)?, cursor.number(bad.expected)?];
        let middle = end.checked_add(name).ok_or(bad)?;
        let last = middle.checked_add(values).ok_or(bad)?;
        lines.push(UpdateLine { name: end..middle, values: middle..last });
        end = last;
    }
    let text = cursor.bytes(end as usize, bad.expected)?.to_vec();
    let batch = UpdateBatch { text, lines };
    let names_at = cursor.bad("names in normal form");
    match batch.lines.iter().all(|line| is_name(batch.name(line))) {
        true => Ok(batch),
        false => Err(names_at),
    }
}

/// Reads what [`put_update`] wrote.
///
/// # Errors
/// When it is something else.
pub(crate) fn take_batch(bytes: &[u8]) -> Result<UpdateBatch, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let bad = cursor.bad("a batch of updates");
    if cursor.byte(bad.expected)? != 1 {
        return Err(bad);
    }
    let batch = take_update(&mut cursor)?;
    cursor.end()?;
    Ok(batch)
}

fn is_name(bytes: &[u8]) -> bool {
    store::name::RrdName::is_normal(bytes) || checked_name(bytes).is_some()
}

pub(super) fn put_trashed(out: &mut Vec<u8>, trashed: &Trashed) {
    put_name(out, &trashed.name);
    put_signed(out, trashed.removed_ms);
}

pub(super) fn take_trashed(cursor: &mut Cursor<'_>) -> Result<Trashed, DecodeError> {
    Ok(Trashed { name: name(cursor)?, removed_ms: cursor.signed("a time")? })
}

fn put_fetch(out: &mut Vec<u8>, request: &FetchRequest) {
    out.push(request.cf as u8);
    put_signed(out, request.start);
    put_signed(out, request.end);
    varint::put(out, request.step);
    varint::put(out, request.values_max);
}

fn take_fetch(cursor: &mut Cursor<'_>) -> Result<FetchRequest, DecodeError> {
    let bad = cursor.bad("the number of a consolidation function");
    let cf = *Cf::ALL.get(usize::from(cursor.byte(bad.expected)?)).ok_or(bad)?;
    let [start, end] = [cursor.signed("a start")?, cursor.signed("an end")?];
    let [step, values_max] = [cursor.varint("a step")?, cursor.varint("a number of values")?];
    Ok(FetchRequest { cf, start, end, step, values_max })
}

pub(super) fn put_rrd(out: &mut Vec<u8>, rrd: &Rrd) {
    put_counted(out, &encode_rrd(rrd));
}

/// Takes an RRD whose rows fit its definition: the store relies on that.
pub(super) fn take_rrd(cursor: &mut Cursor<'_>) -> Result<Rrd, DecodeError> {
    let bad = cursor.bad("an RRD whose rows fit its definition");
    let rrd = decode_rrd(cursor.counted_bytes(bad.expected)?)?;
    if has_all_rows(&rrd) { Ok(rrd) } else { Err(bad) }
}

fn has_all_rows(rrd: &Rrd) -> bool {
    let Definition { ds, rra, .. } = &rrd.definition;
    let values = |rows: u64| rows.checked_mul(ds.len() as u64);
    let is_season = |index: usize| rrd.live.seasons.iter().any(|season| season.rra == index);
    rra.iter().zip(&rrd.archives).enumerate().all(|(index, (rra, rows))| {
        values(rra.row_count) == Some(rows.len() as u64) || rows.is_empty() && is_season(index)
    }) && rrd.live.seasons.iter().all(|season| {
        let row_count = rra[season.rra].row_count;
        values(row_count) == Some(season.values.len() as u64) && season.current_row < row_count
    })
}

fn put_change(out: &mut Vec<u8>, change: &VersionChange) {
    match change {
        VersionChange::Update(values) => {
            out.push(1);
            put_counted(out, values);
        }
        VersionChange::Replace(rrd) => {
            out.push(2);
            put_rrd(out, rrd);
        }
    }
}

fn take_change(cursor: &mut Cursor<'_>) -> Result<VersionChange, DecodeError> {
    let bad = cursor.bad("a kind of change");
    match cursor.byte(bad.expected)? {
        1 => Ok(VersionChange::Update(cursor.counted_bytes("values")?.to_vec())),
        2 => Ok(VersionChange::Replace(Box::new(take_rrd(cursor)?))),
        _ => Err(bad),
    }
}

fn put_create(out: &mut Vec<u8>, request: &CreateRequest) {
    put_signed(out, request.start);
    out.push(u8::from(request.no_overwrite));
    put_definition(out, &request.definition);
}

fn take_create(cursor: &mut Cursor<'_>) -> Result<CreateRequest, DecodeError> {
    let start = cursor.signed("a start")?;
    let no_overwrite = flag(cursor)?;
    Ok(CreateRequest { definition: take_definition(cursor)?, start, no_overwrite })
}

fn take_args(cursor: &mut Cursor<'_>) -> Result<Vec<String>, DecodeError> {
    let bad = cursor.bad("a number of arguments");
    let count = cursor.count(1, bad.expected)?;
    if count > TUNE_ARGS_MAX {
        return Err(bad);
    }
    (0..count).map(|_| text(cursor)).collect()
}

fn take_stream(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, DecodeError> {
    let bad = cursor.bad("the name of a stream");
    let name = cursor.counted_bytes(bad.expected)?;
    // One more, so that the store says what is wrong with it.
    if name.len() > STREAM_NAME_BYTES_MAX + 1 { Err(bad) } else { Ok(name.to_vec()) }
}

fn put_named(out: &mut Vec<u8>, kind: u8, name: &store::name::RrdName) {
    out.push(kind);
    put_name(out, name);
}

pub(super) fn put(out: &mut Vec<u8>, request: &Request) {
    match request {
        Request::Update(batch) => put_update(out, batch),
        Request::Updatev(name, values) => {
            put_named(out, 2, name);
            put_counted(out, values);
        }
        Request::Create(name, request) => {
            put_named(out, 3, name);
            put_create(out, request);
        }
        Request::Import(name, rrd, no_overwrite) => {
            put_named(out, 4, name);
            out.push(u8::from(*no_overwrite));
            put_rrd(out, rrd);
        }
        Request::Tune(name, args) => {
            put_named(out, 5, name);
            varint::put(out, args.len() as u64);
            args.iter().for_each(|arg| put_text(out, arg));
        }
        Request::Change(name, version, change) => {
            put_named(out, 6, name);
            varint::put(out, *version);
            put_change(out, change);
        }
        Request::Delete(name) => put_named(out, 7, name),
        Request::Rename(from, to) => {
            put_named(out, 8, from);
            put_name(out, to);
        }
        Request::Copy(from, to) => {
            put_named(out, 9, from);
            put_name(out, to);
        }
        Request::Trash => out.push(10),
        Request::Restore(trashed, to) => {
            out.push(11);
            put_trashed(out, trashed);
            put_name(out, to);
        }
        Request::Erase(trashed) => {
            out.push(12);
            put_trashed(out, trashed);
        }
        reads => put_read(out, reads),
    }
}

/// Requests that change no RRD.
fn put_read(out: &mut Vec<u8>, request: &Request) {
    match request {
        Request::Snapshot(name) => put_named(out, 13, name),
        Request::Status(name) => put_named(out, 14, name),
        Request::StatusForChange(name) => put_named(out, 15, name),
        Request::Fetch(name, request) => {
            put_named(out, 16, name);
            put_fetch(out, request);
        }
        Request::Read(name) => put_named(out, 17, name),
        Request::Rows(name, of, rra, rows) => {
            put_named(out, 18, name);
            put_definition(out, of);
            varint::put(out, *rra as u64);
            put_signed(out, rows.start);
            put_signed(out, rows.end);
        }
        Request::List(directory, recursive) => {
            out.push(19);
            out.push(u8::from(*recursive));
            put_counted(out, directory);
        }
        Request::HasDirectory(directory) => {
            out.push(20);
            put_counted(out, directory);
        }
        Request::Flush(None) => out.push(21),
        Request::Flush(Some(name)) => put_named(out, 22, name),
        Request::Sync => out.push(23),
        Request::StreamPosition(name) => {
            out.push(24);
            put_counted(out, name);
        }
        Request::SetStreamPosition(name, position) => {
            out.push(25);
            put_counted(out, name);
            varint::put(out, position.epoch);
            varint::put(out, position.sequence);
        }
        Request::BeginCopy => out.push(27),
        Request::ReadCopy { copy, file, offset, count } => {
            out.push(28);
            for number in [*copy, u64::from(*file), *offset, u64::from(*count)] {
                varint::put(out, number);
            }
        }
        Request::Check(request) => check::put_request(out, request),
        _ => out.push(26),
    }
}

fn take_part(cursor: &mut Cursor<'_>) -> Result<Request, DecodeError> {
    let (copy, file) = (cursor.varint("a copy")?, cursor.number("a file")?);
    let offset = cursor.varint("an offset")?;
    let bad = cursor.bad("a length of a part");
    match cursor.number(bad.expected)? {
        count @ 0..=PART_BYTES_MAX => Ok(Request::ReadCopy { copy, file, offset, count }),
        _ => Err(bad),
    }
}

pub(super) fn take(cursor: &mut Cursor<'_>) -> Result<Request, DecodeError> {
    let bad = cursor.bad("a kind of request");
    Ok(match cursor.byte(bad.expected)? {
        1 => Request::Update(take_update(cursor)?),
        2 => Request::Updatev(name(cursor)?, cursor.counted_bytes("values")?.to_vec()),
        3 => Request::Create(name(cursor)?, take_create(cursor)?),
        4 => {
            let (name, no_overwrite) = (name(cursor)?, flag(cursor)?);
            Request::Import(name, Arc::new(take_rrd(cursor)?), no_overwrite)
        }
        5 => Request::Tune(name(cursor)?, take_args(cursor)?),
        6 => Request::Change(name(cursor)?, cursor.varint("a version")?, take_change(cursor)?),
        7 => Request::Delete(name(cursor)?),
        8 => Request::Rename(name(cursor)?, name(cursor)?),
        9 => Request::Copy(name(cursor)?, name(cursor)?),
        10 => Request::Trash,
        11 => Request::Restore(take_trashed(cursor)?, name(cursor)?),
        12 => Request::Erase(take_trashed(cursor)?),
        13 => Request::Snapshot(name(cursor)?),
        14 => Request::Status(name(cursor)?),
        15 => Request::StatusForChange(name(cursor)?),
        16 => Request::Fetch(name(cursor)?, take_fetch(cursor)?),
        17 => Request::Read(name(cursor)?),
        18 => {
            let (name, of) = (name(cursor)?, take_definition(cursor)?);
            let rra_at = cursor.bad("an archive of the definition");
            let rra: usize = cursor.number(rra_at.expected)?;
            if rra >= of.rra.len() {
                return Err(rra_at);
            }
            Request::Rows(name, Arc::new(of), rra, cursor.signed("a row")?..cursor.signed("a row")?)
        }
        19 => {
            let recursive = flag(cursor)?;
            Request::List(cursor.counted_bytes("a directory")?.to_vec(), recursive)
        }
        20 => Request::HasDirectory(cursor.counted_bytes("a directory")?.to_vec()),
        21 => Request::Flush(None),
        22 => Request::Flush(Some(name(cursor)?)),
        23 => Request::Sync,
        24 => Request::StreamPosition(take_stream(cursor)?),
        25 => {
            let name = take_stream(cursor)?;
            let [epoch, sequence] = [cursor.varint("an epoch")?, cursor.varint("a number")?];
            Request::SetStreamPosition(name, StreamPosition { epoch, sequence })
        }
        26 => Request::Stats,
        27 => Request::BeginCopy,
        28 => take_part(cursor)?,
        kind @ 29..=31 => Request::Check(check::take_request(kind, cursor)?),
        _ => return Err(bad),
    })
}
