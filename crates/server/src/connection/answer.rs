//! What each command answers: texts as rrdcached's, rows and states from the store.
//!
//! Blocking: a fetch may wait for the disk. The caller sees to that.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use protocol::rrdcached::help;
use protocol::rrdcached::reply::{self, Statistics};
use protocol::rrdcached::request::Request;
use protocol::rrdcached::words::Words;
use rrd::live::HeadShape;
use rrd::time::{MICROS, Timestamp};
use rrd::update::UpdateError;
use store::engine::{Snapshot, StoreError};
use store::name::RrdName;

use super::whole::{self, Staged};
use super::{dump, fetch, info, updatev};
use crate::metrics::Drop;
use crate::names::{NameFailure, Named, Names};
use crate::service::Service;

/// Why a request was not done: the text for the client and the counter for the operator.
#[derive(Debug)]
pub struct Refusal {
    /// As the client sees it, without status.
    pub text: Vec<u8>,
    /// As it is counted.
    pub reason: Drop,
}

impl Refusal {
    /// A refusal of these words.
    pub fn new(reason: Drop, text: impl Into<Vec<u8>>) -> Self {
        Refusal { text: text.into(), reason }
    }

    /// `before`, a path, `after`.
    pub fn of_path(reason: Drop, before: &str, path: &[u8], after: &str) -> Self {
        Refusal { text: [before.as_bytes(), path, after.as_bytes()].concat(), reason }
    }

    /// What the store said, behind `before`.
    pub fn of_store(before: &str, error: &StoreError) -> Self {
        Refusal { text: format!("{before}{error}").into_bytes(), reason: reason(error) }
    }
}

/// How an error of the store is counted.
pub fn reason(error: &StoreError) -> Drop {
    match error {
        StoreError::NoSuchRrd(_) => Drop::NoSuchRrd,
        StoreError::Exists(_)
        | StoreError::Update(_)
        | StoreError::Refused(_)
        | StoreError::Unsupported(_) => Drop::Refused,
        _ => Drop::Store,
    }
}

/// True when the answer waits for a shard at most, or for a cold read: not for an fsync or a whole RRD.
pub fn is_quick(request: &Request<'_>) -> bool {
    matches!(
        request,
        Request::FlushAll
            | Request::Pending(_)
            | Request::Queue
            | Request::Stats
            | Request::Help(_)
            | Request::Ping
            | Request::SuspendAll
            | Request::ResumeAll
            | Request::First(..)
            | Request::Last(_)
            | Request::Info(_)
            | Request::Fetch(_)
    )
}

/// Does a request that a session does not do itself, and appends its answer. `staged` is what the connection holds
/// of a file that comes in pieces.
pub fn answer(
    service: &Service,
    request: Request<'_>,
    staged: &mut Option<Staged>,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    match request {
        Request::Flush(name) => flush(service, &name, out),
        Request::FlushAll => {
            let engine = std::sync::Arc::clone(&service.engine);
            // Compat: it says that it has begun, and no more. What goes wrong is in the log and the metrics.
            tokio::task::spawn_blocking(move || engine.flush(None));
            reply::push_status(out, 0, b"Started flush.");
            Ok(())
        }
        Request::Pending(name) => {
            // Compat: of a name that cannot be, nothing is pending.
            let named = service.names.resolve(&name).ok();
            let updates = named.map_or_else(Vec::new, |named| service.engine.pending(&named.name));
            reply::push_status(out, updates.len() as i64, b"updates pending");
            updates.iter().for_each(|update| push_line(out, update));
            Ok(())
        }
        Request::Forget(name) => forget(service, &name, out),
        Request::Queue => {
            let queue = service.engine.queue();
            reply::push_status(out, queue.len() as i64, b"in queue.");
            for (count, name) in queue {
                let path = service.names.path(name.as_bytes());
                push_line(out, &[count.to_string().as_bytes(), b" ", &*path].concat());
            }
            Ok(())
        }
        Request::Stats => {
            statistics(service).push(out);
            Ok(())
        }
        Request::Help(command) => {
            help::push_help(out, command);
            Ok(())
        }
        Request::Ping => {
            reply::push_status(out, 0, b"PONG");
            Ok(())
        }
        Request::Fetch(request) => fetch::fetch(service, &request, out),
        Request::Info(name) => info::info(service, &name, out),
        Request::First(name, rra) => first(service, &name, rra, out),
        Request::Last(name) => {
            let (_, snapshot) = snapshot(service, &name)?;
            // Compat: rrdcached rounds down to the step (`rrdtool last` on a file does not).
            let mut time = last_update(&snapshot);
            time.whole -= time.whole.rem_euclid(snapshot.definition.step as i64);
            let time = time.in_seconds(snapshot.definition.units_per_second);
            reply::push_number(out, 0);
            out.push(b' ');
            reply::push_number(out, time.whole);
            out.push(b'\n');
            Ok(())
        }
        Request::Dump(name, header) => dump::dump(service, &name, header.as_deref(), out),
        Request::Tune(name, words) => tune(service, &name, words, out),
        Request::UpdateV(name, words) => updatev::updatev(service, &name, words, out),
        Request::Export(name) => whole::export(service, &name, out),
        Request::Import(piece) => whole::import(service, staged, &piece, out),
        Request::List { path, recursive } => list(service, &path, recursive, out),
        Request::Suspend(name) => suspend(service, &name, true, out),
        Request::Resume(name) => suspend(service, &name, false, out),
        Request::SuspendAll => {
            let count = service.marks.suspend_all(true, service.engine.stats().rrd_count);
            reply::push_status(out, 0, format!("{count} rrds suspend").as_bytes());
            Ok(())
        }
        Request::ResumeAll => {
            let count = service.marks.suspend_all(false, service.engine.stats().rrd_count);
            reply::push_status(out, 0, format!("{count} rrds resumed").as_bytes());
            Ok(())
        }
        // Sessions do these themselves; one that does not must not leave its client without an answer.
        Request::Update(..)
        | Request::Create(..)
        | Request::Batch
        | Request::End
        | Request::Quit
        | Request::Frames(_) => Err(Refusal::new(Drop::Usage, "Can't use this command here.")),
    }
}

fn push_line(out: &mut Vec<u8>, line: &[u8]) {
    out.extend_from_slice(line);
    out.push(b'\n');
}

/// That a name leads out of the base directory.
pub fn denied(failure: &NameFailure) -> Refusal {
    Refusal::of_path(Drop::Name, "", failure.path(), ": Permission denied")
}

/// Definition and live head of the RRD a word names, with the errors of INFO, FIRST and LAST.
pub fn snapshot(service: &Service, word: &[u8]) -> Result<(Named, Snapshot), Refusal> {
    let named = match service.names.resolve(word) {
        Ok(named) => named,
        Err(failure @ NameFailure::Denied(_)) => return Err(denied(&failure)),
        Err(NameFailure::Missing(path)) => return Err(no_such_file(&path)),
    };
    match service.engine.snapshot(&named.name) {
        Ok(snapshot) => Ok((named, snapshot)),
        Err(StoreError::NoSuchRrd(_)) => Err(no_such_file(&named.path)),
        Err(error) => Err(Refusal::of_store("RRD Error: ", &error)),
    }
}

/// That there is no RRD at a path, as INFO says it.
pub fn no_such_file(path: &[u8]) -> Refusal {
    Refusal::of_path(Drop::NoSuchRrd, "RRD Error: opening '", path, "': No such file or directory")
}

/// When it was last updated, in units.
pub fn last_update(snapshot: &Snapshot) -> rrd::time::Timestamp {
    HeadShape::of(&snapshot.definition).split(&snapshot.live.words).last_update
}

/// Whether rrdcached would have it in its cache. It caches what was updated since it started; here, what
/// was ever updated and not forgotten.
fn is_cached(service: &Service, name: &RrdName, snapshot: &Snapshot) -> bool {
    let shape = HeadShape::of(&snapshot.definition);
    let updated = shape.split(&snapshot.live.words).pdp.iter().any(|pdp| pdp.last_ds.as_bytes() != b"U");
    updated && !service.marks.is_forgotten(name)
}

fn flush(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    service.metrics.flushes_received.inc();
    let missing = |path: &[u8]| Refusal::of_path(Drop::NoSuchRrd, "No such file: ", path, ".");
    let named = match service.names.resolve(word) {
        Ok(named) => named,
        Err(failure @ NameFailure::Denied(_)) => return Err(denied(&failure)),
        Err(NameFailure::Missing(path)) => return Err(missing(&path)),
    };
    let snapshot = match service.engine.snapshot(&named.name) {
        Ok(snapshot) => snapshot,
        Err(StoreError::NoSuchRrd(_)) => return Err(missing(&named.path)),
        Err(error) => return Err(Refusal::of_store("", &error)),
    };
    service.engine.flush(Some(&named.name)).map_err(|error| Refusal::of_store("", &error))?;
    let what = if is_cached(service, &named.name, &snapshot) {
        "Successfully flushed "
    } else {
        "Nothing to flush: "
    };
    reply::push_status(out, 0, &[what.as_bytes(), &named.path, b"."].concat());
    Ok(())
}

fn forget(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let missing = || Refusal::new(Drop::NoSuchRrd, "No such file or directory");
    let named = match service.names.resolve(word) {
        Ok(named) => named,
        Err(failure @ NameFailure::Denied(_)) => return Err(denied(&failure)),
        Err(NameFailure::Missing(_)) => return Err(missing()),
    };
    match service.engine.snapshot(&named.name) {
        Ok(snapshot) if is_cached(service, &named.name, &snapshot) => {
            service.marks.forget(&named.name);
            reply::push_status(out, 0, b"Gone!");
            Ok(())
        }
        Ok(_) | Err(StoreError::NoSuchRrd(_)) => Err(missing()),
        Err(error) => Err(Refusal::of_store("", &error)),
    }
}

fn suspend(service: &Service, word: &[u8], suspend: bool, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let path = service.names.path(word);
    let missing = || Refusal::of_path(Drop::NoSuchRrd, "", &path, " - No such file or directory");
    let named = service.names.resolve(word).map_err(|_| missing())?;
    match service.engine.snapshot(&named.name) {
        Ok(snapshot) if is_cached(service, &named.name, &snapshot) => {}
        Ok(_) | Err(StoreError::NoSuchRrd(_)) => return Err(missing()),
        Err(error) => return Err(Refusal::of_store("", &error)),
    }
    let what: &[u8] = match (suspend, service.marks.suspend(&named.name, suspend)) {
        (true, Some(true)) => b" suspended",
        (true, Some(false)) => b" already suspended",
        (false, Some(true)) => b" resumed",
        (false, Some(false)) => b" not suspended",
        (_, None) => return Err(Refusal::new(Drop::Refused, "too many suspended RRDs")),
    };
    reply::push_status(out, 0, &[&*path, what].concat());
    Ok(())
}

fn first(service: &Service, word: &[u8], rra: i64, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let Ok(index) = usize::try_from(rra) else {
        return Err(Refusal::new(Drop::Usage, format!("Invalid index specified ({rra})")));
    };
    let (_, snapshot) = snapshot(service, word)?;
    let definition = &snapshot.definition;
    let Some(archive) = definition.rra.get(index) else {
        return Err(Refusal::new(Drop::Refused, "RRD Error: invalid rraindex number"));
    };
    let newest = definition.newest_row(index, last_update(&snapshot).whole);
    let oldest = newest.saturating_sub_unsigned(archive.row_count).saturating_add(1);
    let time = rrd::grid::row_time(oldest, archive.span(definition.step));
    reply::push_number(out, 0);
    out.push(b' ');
    reply::push_number(out, time.div_euclid(i64::from(definition.units_per_second.max(1))));
    out.push(b'\n');
    Ok(())
}

fn statistics(service: &Service) -> Statistics {
    let stats = service.engine.stats();
    Statistics {
        queue_length: stats.queue_length,
        updates_received: service.metrics.updates_received.get(),
        flushes_received: service.metrics.flushes_received.get(),
        updates_written: stats.updates_written,
        data_sets_written: stats.data_sets_written,
        tree_nodes: stats.rrd_count,
        // The depth a balanced tree of as many nodes has: there is none, but graphs are drawn of it.
        tree_depth: u64::from(u64::BITS - stats.rrd_count.leading_zeros()),
        journal_bytes: stats.log_bytes_written,
        journal_rotations: stats.journal_rotations,
    }
}

/// A word that must be text.
pub fn text(word: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(word).map_err(|_| {
        let word = String::from_utf8_lossy(word);
        Refusal::new(Drop::Usage, format!("RRD Error: '{word}' is not UTF-8"))
    })
}

fn tune(service: &Service, word: &[u8], words: Words<'_>, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (named, _) = snapshot(service, word)?;
    let words = words.map(|word| text(&word).map(str::to_string)).collect::<Result<Vec<_>, _>>()?;
    match service.engine.tune(&named.name, &words) {
        Ok(()) => {
            reply::push_status(out, 0, b"RRD tuned OK");
            Ok(())
        }
        Err(error) => Err(Refusal::of_store("RRD Error: ", &error)),
    }
}

fn list(service: &Service, path: &[u8], recursive: bool, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let base = service.names.base();
    let shown = [&base[..base.len() - 1], path].concat();
    let refuse = |why: &str| Err(Refusal::of_path(Drop::Name, "List ", &shown, why));
    let inside = path.iter().position(|&byte| byte != b'/').map_or(path, |at| &path[at..]);
    let directory = match RrdName::new(inside.trim_ascii_end()) {
        Ok(name) => name.as_bytes().to_vec(),
        // The base directory itself, with any number of slashes.
        Err(_) if path.iter().all(|&byte| byte == b'/') => Vec::new(),
        Err(_) => return refuse(": Permission denied"),
    };
    let found = match service.engine.list(&directory, recursive) {
        Ok(found) => found,
        Err(StoreError::NoSuchRrd(_)) => Vec::new(),
        Err(error) => return Err(Refusal::of_store("", &error)),
    };
    let mut names: Vec<&[u8]> = Vec::with_capacity(found.len());
    for name in &found {
        let inside = name.strip_prefix(&*directory).unwrap_or(name);
        let inside = inside.strip_prefix(b"/").unwrap_or(inside);
        names.push(inside.strip_suffix(b"/").unwrap_or(inside));
    }
    // A name may be an RRD instead of a directory.
    let alone = directory.rsplit(|&byte| byte == b'/').next().unwrap_or(&directory);
    if names.is_empty() && !directory.is_empty() {
        match RrdName::new(&directory).map(|name| service.engine.snapshot(&name)) {
            Ok(Ok(_)) => names.push(alone),
            _ if is_directory(&shown) => {}
            _ => return refuse(": No such file or directory"),
        }
    }
    // A line feed in a name would upset the count of lines; such a name cannot be asked for anyway.
    names.retain(|name| !name.contains(&b'\n'));
    reply::push_status(out, names.len() as i64, b"RRDs");
    for name in names {
        out.extend_from_slice(name);
        out.push(b'\n');
    }
    Ok(())
}

/// Whether a directory stands at a path, where there may be no RRD yet.
fn is_directory(path: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(path)).symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// An unusual UPDATE, read.
#[derive(Debug)]
pub struct ReadUpdate {
    /// The good words, parted by single spaces.
    pub values: Vec<u8>,
    /// How many.
    pub words: u32,
    /// The time of the last good word.
    pub last_time: Option<f64>,
    /// The word behind them, if there is one.
    pub malformed: Option<Malformed>,
}

/// A word of an UPDATE that cannot be used.
#[derive(Debug)]
pub enum Malformed {
    /// It does not begin with a number and a colon.
    NoTimestamp(Vec<u8>),
    /// Its time is before 1970.
    Negative(f64),
}

impl Malformed {
    /// What is wrong with it, given the last update as far as it is known.
    pub fn text(&self, known: Option<f64>, stored: impl FnOnce() -> Option<f64>) -> Vec<u8> {
        match self {
            Malformed::NoTimestamp(word) => [b"Cannot find timestamp in '", &**word, b"'!"].concat(),
            Malformed::Negative(time) => {
                let last = known.or_else(stored).unwrap_or(0.0);
                not_later(*time, last).into_bytes()
            }
        }
    }
}

/// A time in seconds as its text had it.
///
/// Compat: RRDtool cuts a time behind its microseconds, and of `1000000020.3`, which no double holds, 299999
/// are kept. The daemon prints what it read; so a last 9 is taken for such a cut.
fn as_seconds(time: Timestamp) -> f64 {
    let cut = time.micros % 10 == 9;
    time.whole as f64 + f64::from(time.micros + u32::from(cut)) / f64::from(MICROS)
}

fn not_later(time: f64, last: f64) -> String {
    format!(
        "illegal attempt to update using time {time:.6} when last update time is {last:.6} (minimum one second step)"
    )
}

/// Reads the words of an UPDATE that is not an ordinary one.
pub fn read_update(names: &Names, name: &[u8], words: Words<'_>) -> Result<(Named, ReadUpdate), Refusal> {
    let named = match names.resolve(name) {
        Ok(named) => named,
        Err(failure @ NameFailure::Denied(_)) => return Err(denied(&failure)),
        Err(NameFailure::Missing(path)) => {
            return Err(Refusal::of_path(Drop::NoSuchRrd, "No such file: ", &path, ""));
        }
    };
    let mut update = ReadUpdate { values: Vec::new(), words: 0, last_time: None, malformed: None };
    for word in words {
        let time = match rrd::number::parse_prefix(&word) {
            Some((time, rest)) if rest.first() == Some(&b':') && !word.contains(&b' ') => time,
            _ => {
                update.malformed = Some(Malformed::NoTimestamp(word.into_owned()));
                break;
            }
        };
        // What is relative to now for RRDtool is long ago for rrdcached.
        if word.starts_with(b"-") {
            update.malformed = Some(Malformed::Negative(time));
            break;
        }
        if update.words > 0 {
            update.values.push(b' ');
        }
        update.values.extend_from_slice(&word);
        update.words += 1;
        update.last_time = Some(time);
    }
    Ok((named, update))
}

/// Why an UPDATE without a good word is refused.
pub fn refuse_update(service: &Service, named: &Named, update: &ReadUpdate) -> Refusal {
    match service.engine.snapshot(&named.name) {
        Ok(snapshot) => {
            let last = last_update(&snapshot);
            let last = as_seconds(last.in_seconds(snapshot.definition.units_per_second));
            let text = match &update.malformed {
                None => b"No values updated.".to_vec(),
                Some(malformed) => malformed.text(None, || Some(last)),
            };
            Refusal::new(Drop::Refused, text)
        }
        Err(StoreError::NoSuchRrd(_)) => Refusal::of_path(Drop::NoSuchRrd, "No such file: ", &named.path, ""),
        Err(error) => Refusal::of_store("", &error),
    }
}

/// Why the store refused an UPDATE, in the daemon's words.
pub fn update_refusal(names: &Names, error: &StoreError) -> Refusal {
    match error {
        StoreError::NoSuchRrd(name) => {
            Refusal::of_path(Drop::NoSuchRrd, "No such file: ", &names.path(name.as_bytes()), "")
        }
        // Compat: the daemon prints these times with six decimals.
        StoreError::Update(UpdateError::NotLater { time, last_update }) => {
            Refusal::new(Drop::Refused, not_later(as_seconds(*time), as_seconds(*last_update)))
        }
        error => Refusal::of_store("", error),
    }
}
