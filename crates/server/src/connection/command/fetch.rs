//! FETCH, FETCHBIN and FETCHRES.

use std::ops::Range;

use protocol::frames::answer::{push_rows, push_rows_head, push_values};
use protocol::frames::request::Fetch as FrameFetch;
use protocol::rrdcached::request::{Fetch, integer};
use protocol::rrdcached::rows::{
    push_binary, push_binary_head, push_binary_name, push_binary_values, push_text, push_text_head,
    push_text_rows,
};
use rrd::definition::Cf;
use rrd::fetch::{FetchRequest, FetchRows};
use rrd::live::UNKNOWN;
use rrd::plan::plan;
use store::engine::{Engine, RrdStatus, StoreError};

use super::Kept;
use super::rest::{Rest, StoredRows};
use crate::connection::refusal::Refusal;
use crate::limits::ANSWER_VALUES_PER_PIECE;
use crate::metrics::DropReason;
use crate::names::ResolvedName;
use crate::service::Service;
use crate::small_fetch::{SmallFetch, fetch_small};

/// Default start, in seconds before now.
const START_BEFORE_NOW: i64 = 24 * 3600;

/// Answers FETCH, FETCHBIN or FETCHRES.
///
/// # Errors
/// When there is no such RRD, an argument is invalid, or the rows cannot be read.
pub fn fetch(
    service: &Service,
    fetch: &Fetch<'_>,
    kept: &mut Kept,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let named = resolve(service, &fetch.name)?;
    let now = service.now();
    let start = time(fetch.start.as_deref(), "start", now, now - START_BEFORE_NOW)?;
    let end = time(fetch.end.as_deref(), "end", now, now)?;
    let step = fetch.resolution.as_deref().map_or(Ok(1), resolution)?;
    let request = FetchRequest::new(function(&fetch.cf)?, start, end, step);
    match rows(service, &named, request)? {
        Found::Few(rows) => {
            let columns = columns(fetch, &rows.ds_names)?;
            match fetch.binary {
                true => push_binary(out, &rows, &columns),
                false => push_text(out, &rows, &columns),
            }
        }
        Found::Many(mut rest) => {
            let columns = columns(fetch, &rest.head.ds_names)?;
            rest.format = match fetch.binary {
                true => Format::Binary(columns),
                false => Format::Text(columns),
            };
            if fetch.binary && rest.head.ds_names.len() > 1 {
                let values = service.memory.max() / COLUMNS_SHARE / 8;
                rest.stored.enlarge_parts(usize::try_from(values).unwrap_or(usize::MAX));
            }
            kept.rest = Some(rest);
        }
    }
    Ok(())
}

/// Precedes the store's errors.
const ERROR_PREFIX: &str = "rrd_fetch_r failed: ";
/// An answer that needs the same rows for each of its columns holds this part of the memory for clients, if it is free.
const COLUMNS_SHARE: u64 = 16;

/// A long answer to a fetch in the making.
#[derive(Debug)]
pub struct FetchRest {
    /// The answer without its values.
    head: FetchRows,
    format: Format,
    stored: StoredRows,
    rra: usize,
    /// The rows of the answer, by number, and those of them that the archive had when the answer began.
    wanted: Range<i64>,
    known: Range<i64>,
    /// The next column of a binary answer, and the next row; none before the head.
    column: usize,
    next: Option<i64>,
    /// Rows that the archive does not have.
    unknown: Vec<f64>,
}

/// How rows are written; the indexes are those of the data sources.
#[derive(Debug)]
enum Format {
    Text(Vec<usize>),
    Binary(Vec<usize>),
    /// A frame with this number.
    Frame(u32),
}

impl FetchRest {
    fn row_count(&self) -> usize {
        (self.wanted.end - self.wanted.start) as usize
    }

    fn push_head(&self, out: &mut Vec<u8>) {
        match &self.format {
            Format::Text(columns) => push_text_head(out, &self.head, columns, self.row_count()),
            Format::Binary(columns) => {
                push_binary_head(out, &self.head, columns);
                if let Some(&column) = columns.first() {
                    push_binary_name(out, &self.head.ds_names[column], self.row_count());
                }
            }
            Format::Frame(number) => push_rows_head(out, *number, &self.head, self.row_count()),
        }
    }

    /// After the last row: the next column, if there is one.
    fn next_column(&mut self, out: &mut Vec<u8>) -> bool {
        let Format::Binary(columns) = &self.format else { return false };
        out.push(b'\n');
        self.column += 1;
        self.next = Some(self.wanted.start);
        let Some(&column) = columns.get(self.column) else { return false };
        push_binary_name(out, &self.head.ds_names[column], self.row_count());
        true
    }
}

impl Rest for FetchRest {
    fn push_piece(&mut self, engine: &dyn Engine, out: &mut Vec<u8>) -> Result<bool, StoreError> {
        let Some(next) = self.next else {
            self.push_head(out);
            self.next = Some(self.wanted.start);
            return Ok(true);
        };
        let width = self.head.ds_names.len().max(1);
        let values = if self.known.contains(&next) {
            self.stored.piece(engine, self.rra, next..self.known.end)?
        } else {
            let end = match next < self.known.start {
                true => self.known.start.min(self.wanted.end),
                false => self.wanted.end,
            };
            let most = (ANSWER_VALUES_PER_PIECE / width).max(1);
            self.unknown.resize(most.min((end - next) as usize) * width, UNKNOWN);
            &self.unknown[..]
        };
        match &self.format {
            Format::Text(columns) => {
                push_text_rows(out, &self.head, columns, (next - self.wanted.start) as usize, values);
            }
            Format::Binary(columns) => push_binary_values(out, width, columns[self.column], values),
            Format::Frame(_) => push_values(out, values),
        }
        let next = next + (values.len() / width) as i64;
        self.next = Some(next);
        Ok(next < self.wanted.end || self.next_column(out))
    }

    fn restart(&mut self) {
        (self.column, self.next) = (0, None);
    }

    fn error_prefix(&self) -> &'static str {
        ERROR_PREFIX
    }
}

/// Answers a fetch in frames.
///
/// # Errors
/// When there is no such RRD or function, or the rows cannot be read.
pub fn fetch_frame(
    service: &Service,
    fetch: &FrameFetch<'_>,
    number: u32,
    kept: &mut Kept,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let named = resolve(service, fetch.name)?;
    match rows(service, &named, fetch.request.map_err(unknown_function)?)? {
        Found::Few(rows) => push_rows(out, number, &rows),
        Found::Many(mut rest) => {
            rest.format = Format::Frame(number);
            kept.rest = Some(rest);
        }
    }
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

/// The rows of an answer.
enum Found {
    Few(FetchRows),
    Many(Box<FetchRest>),
}

/// The rows, or where they are if they are many.
fn rows(service: &Service, named: &ResolvedName, request: FetchRequest) -> Result<Found, Refusal> {
    let found = match fetch_small(&*service.engine, &named.name, request) {
        Ok(SmallFetch::Rows(rows)) => Ok(Found::Few(rows)),
        // Says the limit of the request, if it is beyond that.
        Ok(SmallFetch::Larger { .. }) => many(service, named, &request),
        Err(error) => Err(error),
    };
    match found {
        // Compat: RRDtool's message for a negative number of rows.
        Ok(Found::Few(rows)) if request.end < request.start && rows.values.is_empty() => {
            Err(Refusal::new(DropReason::Usage, "rrd_fetch_r failed: malloc fetch data area"))
        }
        Ok(found) => Ok(found),
        Err(StoreError::NoSuchRrd(_)) => Err(no_such_rrd(&named.path)),
        Err(error) => Err(Refusal::of_store(ERROR_PREFIX, &error)),
    }
}

fn many(service: &Service, named: &ResolvedName, request: &FetchRequest) -> Result<Found, StoreError> {
    let RrdStatus { definition, last_update, .. } = service.engine.status(&named.name)?;
    let plan = plan(&definition, last_update.whole, request).map_err(StoreError::Fetch)?;
    let newest = definition.newest_row(plan.rra, last_update.whole);
    let oldest = newest - definition.rra[plan.rra].row_count as i64 + 1;
    let share = service.memory.share();
    Ok(Found::Many(Box::new(FetchRest {
        head: FetchRows::new(&definition, &plan, Vec::new()),
        format: Format::Frame(0),
        stored: StoredRows::new(named.name.clone(), definition, share),
        rra: plan.rra,
        known: plan.rows.start.max(oldest)..plan.rows.end.min(newest + 1),
        wanted: plan.rows,
        column: 0,
        next: None,
        unknown: Vec::new(),
    })))
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
