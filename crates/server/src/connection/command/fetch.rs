//! FETCH, FETCHBIN and FETCHRES.

use protocol::frames;
use protocol::rrdcached::request::{Fetch, integer};
use protocol::rrdcached::rows::{push_binary, push_text, push_text_head, push_text_rows};
use rrd::definition::Cf;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::plan::PlanError;
use store::engine::StoreError;

use crate::budget::Share;
use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::names::ResolvedName;
use crate::service::Service;

/// Default start, in seconds before now.
const START_BEFORE_NOW: i64 = 24 * 3600;

/// Answers FETCH, FETCHBIN or FETCHRES.
///
/// # Errors
/// When there is no such RRD, an argument is invalid, or the rows cannot be read.
pub fn fetch(
    service: &Service,
    fetch: &Fetch<'_>,
    rest: &mut Option<TextRows>,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let named = resolve(service, &fetch.name)?;
    let now = service.now();
    let start = time(fetch.start.as_deref(), "start", now, now - START_BEFORE_NOW)?;
    let end = time(fetch.end.as_deref(), "end", now, now)?;
    let step = fetch.resolution.as_deref().map_or(Ok(1), resolution)?;
    let request = FetchRequest::new(function(&fetch.cf)?, start, end, step);
    let (rows, share) = rows(service, &named, request)?;
    let columns = columns(fetch, &rows.ds_names)?;
    if fetch.binary {
        push_binary(out, &rows, &columns);
    } else if rows.values.len() as u64 <= SMALL_VALUES {
        push_text(out, &rows, &columns);
    } else {
        push_text_head(out, &rows, &columns);
        *rest = Some(TextRows { rows, columns, next: 0, _share: share });
    }
    Ok(())
}

/// Values that are answered in one piece.
const SMALL_VALUES: u64 = 4096;
/// Values per piece of a longer answer: some 100 kB of text.
const PIECE_VALUES: usize = 4096;

/// Rows that become text as the client reads.
#[derive(Debug)]
pub struct TextRows {
    rows: FetchRows,
    columns: Vec<usize>,
    next: usize,
    /// Holds the values' part of the budget.
    _share: Share,
}

impl TextRows {
    /// Appends a piece; false when that was the last one.
    pub fn push_piece(&mut self, out: &mut Vec<u8>) -> bool {
        let count = self.rows.row_count();
        let end = count.min(self.next + (PIECE_VALUES / self.rows.ds_names.len().max(1)).max(1));
        push_text_rows(out, &self.rows, &self.columns, self.next..end);
        self.next = end;
        end < count
    }
}

/// Answers a fetch in frames.
///
/// # Errors
/// When there is no such RRD, or the rows cannot be read.
pub fn fetch_frame(
    service: &Service,
    fetch: &frames::request::Fetch<'_>,
    number: u32,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let named = resolve(service, fetch.name)?;
    let (rows, _share) = rows(service, &named, fetch.request.map_err(unknown_function)?)?;
    frames::answer::push_rows(out, number, &rows);
    Ok(())
}

fn no_such_rrd(path: &[u8]) -> Refusal {
    let (before, after) = ("rrd_fetch_r failed: opening '", "': No such file or directory");
    Refusal::of_path(DropReason::NoSuchRrd, before, path, after)
}

fn resolve(service: &Service, word: &[u8]) -> Result<ResolvedName, Refusal> {
    service.names.resolve(word).map_err(|failure| Refusal::of_name(failure, no_such_rrd))
}

fn function(word: &[u8]) -> Result<Cf, Refusal> {
    std::str::from_utf8(word).ok().and_then(Cf::from_name).ok_or_else(|| unknown_function(word))
}

fn unknown_function(word: &[u8]) -> Refusal {
    let cf = String::from_utf8_lossy(word);
    Refusal::new(DropReason::Usage, format!("rrd_fetch_r failed: unknown consolidation function '{cf}'"))
}

/// The rows, with a share of the memory budget for them if they are many.
fn rows(
    service: &Service,
    named: &ResolvedName,
    request: FetchRequest,
) -> Result<(FetchRows, Share), Refusal> {
    let mut share = service.memory.share();
    let few = FetchRequest { values_max: request.values_max.min(SMALL_VALUES), ..request };
    let fetched = match service.engine.fetch(&named.name, few) {
        Err(StoreError::Fetch(PlanError::TooMany { rows, ds_count, .. }))
            if rows.saturating_mul(ds_count as u64) <= request.values_max =>
        {
            let bytes = rows.saturating_mul(8 * ds_count as u64);
            if !share.try_resize(bytes) {
                return Err(Refusal::no_memory("this answer", bytes, &share));
            }
            service.engine.fetch(&named.name, request)
        }
        // Says the limit of the request, not ours.
        Err(StoreError::Fetch(PlanError::TooMany { .. })) => service.engine.fetch(&named.name, request),
        fetched => fetched,
    };
    let rows = match fetched {
        Ok(rows) => rows,
        Err(StoreError::NoSuchRrd(_)) => return Err(no_such_rrd(&named.path)),
        Err(error) => return Err(Refusal::of_store("rrd_fetch_r failed: ", &error)),
    };
    if request.end < request.start && rows.values.is_empty() {
        // Compat: RRDtool's message for a negative number of rows.
        return Err(Refusal::new(DropReason::Usage, "rrd_fetch_r failed: malloc fetch data area"));
    }
    Ok((rows, share))
}

/// Compat: parsed like `strtol`; zero and negative values are relative to now.
fn time(word: Option<&[u8]>, what: &str, now: i64, default: i64) -> Result<i64, Refusal> {
    let Some(word) = word else { return Ok(default) };
    match integer(word) {
        Some(time) if time > 0 => Ok(time),
        Some(time) => Ok(now.saturating_add(time)),
        None => {
            let before = format!("Cannot parse {what} time `");
            Err(Refusal::of_path(DropReason::Usage, &before, word, "': Only simple integers are allowed."))
        }
    }
}

/// The requested seconds per row.
fn resolution(word: &[u8]) -> Result<u64, Refusal> {
    let seconds = integer(word).and_then(|seconds| u64::try_from(seconds).ok());
    seconds.ok_or_else(|| {
        Refusal::of_path(DropReason::Usage, "Cannot parse resolution `", word, "': Only seconds are allowed.")
    })
}

fn columns(fetch: &Fetch<'_>, names: &[String]) -> Result<Vec<usize>, Refusal> {
    if fetch.columns.is_empty() {
        return Ok((0..names.len()).collect());
    }
    if fetch.columns.len() > names.len() {
        return Err(Refusal::new(DropReason::Usage, "too many fields given - duplicates!"));
    }
    let find = |column: &[u8]| {
        names.iter().position(|name| name.as_bytes() == column).ok_or_else(|| {
            let column = String::from_utf8_lossy(column);
            Refusal::new(DropReason::Usage, format!("field {column} not found in {}", names.join(" ")))
        })
    };
    fetch.columns.iter().map(|column| find(column)).collect()
}
