//! Answers to commands: texts as in rrdcached, rows and state from the store. Each command, or group of
//! related commands, has a file.
//!
//! Answering may block, for instance on the disk in a fetch; drivers take care of that.

pub mod adoption;
pub mod change;
#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "command/cluster_absent.rs"]
pub mod cluster;
pub mod create;
pub mod dump;
pub mod entries;
pub mod export;
pub mod fetch;
pub mod flush;
pub mod image;
pub mod info;
pub mod lines;
pub mod list;
pub mod rename;
pub mod replication;
pub mod rest;
pub mod snapshot;
pub mod stat;
pub mod stats;
pub mod suspend;
pub mod times;
pub mod trash;
pub mod tune;
pub mod update;
pub mod updatev;
pub mod verify;
pub mod whole;

use protocol::frames::request::Fetch;
use protocol::rrdcached::request::Request;
use protocol::rrdcached::{help, reply};
use store::engine::{Engine, StoreError};
use store::name::RrdName;

use self::rename::Change;
use self::rest::Rest;
use self::update::RefusedUpdate;
use self::whole::StagedImport;
use super::refusal::Refusal;
use crate::limits::ANSWER_BYTES_SHORT;
use crate::metrics::DropReason;
use crate::names::ResolvedName;
use crate::service::Service;

/// A request that a session cannot answer without the store.
#[derive(Debug)]
pub enum Ask<'a> {
    /// A command of the text protocol.
    Command(Request<'a>),
    /// A fetch in frames, with the number of its frame.
    Rows(u32, Fetch<'a>),
    /// An UPDATE without a valid argument, to find out why it is refused.
    RefusedUpdate(RefusedUpdate),
}

/// How long an answer may block its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: it needs nothing but its own text.
    None,
    /// For a shard, or a cold read.
    Short,
    /// For an fsync, or a whole RRD.
    Long,
}

impl Wait {
    /// That of a command's answer.
    pub fn of(request: &Request<'_>) -> Wait {
        match request {
            Request::Help(_) | Request::Ping => Wait::None,
            Request::FlushAll
            | Request::Pending(_)
            | Request::Queue
            | Request::Stats
            | Request::Verify(_)
            | Request::SuspendAll
            | Request::ResumeAll
            | Request::First(..)
            | Request::Last(_)
            | Request::Info(_)
            | Request::Stat(_)
            | Request::Create(..)
            | Request::Fetch(_) => Wait::Short,
            _ => Wait::Long,
        }
    }
}

impl Ask<'_> {
    /// True when it changes nothing, so that a client that has gone does not need it.
    pub fn only_reads(&self) -> bool {
        match self {
            Ask::Rows(..) => true,
            Ask::RefusedUpdate(_) => false,
            Ask::Command(request) => matches!(
                request,
                Request::Pending(_)
                    | Request::Queue
                    | Request::Stats
                    | Request::Help(_)
                    | Request::Ping
                    | Request::First(..)
                    | Request::Last(_)
                    | Request::Info(_)
                    | Request::Fetch(_)
                    | Request::Dump(..)
                    | Request::Export(_)
                    | Request::Stat(_)
                    | Request::Image(..)
                    | Request::Entries(_)
                    | Request::List { .. }
            ),
        }
    }
}

/// What a connection keeps between requests.
#[derive(Debug)]
pub struct Kept {
    /// An IMPORT that has arrived in part.
    pub staged: Option<StagedImport>,
    /// The rest of an answer that is written as the client reads.
    pub rest: Option<Box<dyn Rest>>,
    /// Bytes of the rest, where it is in a frame whose length was sent.
    pub frame_bytes_left: Option<usize>,
    /// Answers are in frames.
    pub is_framed: bool,
    /// Bytes of answers that are made before they are written.
    pub answer_bytes_max: usize,
}

impl Default for Kept {
    fn default() -> Self {
        let (staged, rest, frame_bytes_left) = (None, None, None);
        Kept { staged, rest, frame_bytes_left, is_framed: false, answer_bytes_max: ANSWER_BYTES_SHORT }
    }
}

/// Appends the answer, or its beginning, and leaves the rest in `kept`.
///
/// # Errors
/// The refusal; anything appended must then be discarded.
pub fn answer(service: &Service, ask: Ask<'_>, kept: &mut Kept, out: &mut Vec<u8>) -> Result<(), Refusal> {
    match ask {
        Ask::Command(request) => {
            let start = out.len();
            command(service, request, kept, out)?;
            rest::begin(service, kept, out, start)
        }
        Ask::Rows(number, wanted) => {
            fetch::fetch_frame(service, &wanted, number, kept, out)?;
            rest::start_now(service, kept, out)
        }
        Ask::RefusedUpdate(refused) => Err(update::refuse(service, &refused)),
    }
}

fn command(
    service: &Service,
    request: Request<'_>,
    kept: &mut Kept,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    match request {
        Request::Flush(name) => return flush::flush(service, &name, out),
        Request::FlushAll => flush::flush_all(service, out),
        Request::Pending(name) => return flush::pending(service, &name, kept),
        Request::Forget(name) => return flush::forget(service, &name, out),
        Request::Queue => return flush::queue(service, kept),
        Request::Stats => stats::statistics(service).push(out),
        Request::Help(command) => help::push_help(out, command),
        Request::Ping => reply::push_status(out, 0, b"PONG"),
        Request::Verify(word) => return verify::verify(service, &word, out),
        Request::Snapshot(word) => return snapshot::snapshot(service, &word, out),
        Request::Promote => return replication::promote(service, out),
        Request::Replication => return replication::status(service, out),
        Request::Cluster(words) => return cluster::cluster(service, words, out),
        Request::Fetch(request) => return fetch::fetch(service, &request, kept, out),
        Request::Info(name) => return info::info(service, &name, out),
        Request::First(name, rra) => return times::first(service, &name, rra, out),
        Request::Last(name) => return times::last(service, &name, out),
        Request::Dump(name, header) => return dump::dump(service, &name, header.as_deref(), kept),
        Request::Tune(name, words) => return tune::tune(service, &name, words, out),
        Request::UpdateV(name, words) => return updatev::updatev(service, &name, words, out),
        Request::Export(name) => return export::export(service, &name, kept),
        Request::Import(part) => return whole::import(service, &mut kept.staged, &part, out),
        Request::Rename(from, to) => return rename::rename(service, Change::Rename, &from, &to, out),
        Request::Copy(from, to) => return rename::rename(service, Change::Copy, &from, &to, out),
        Request::Remove(name) => return rename::remove(service, &name, out),
        Request::Stat(name) => return stat::stat(service, &name, out),
        Request::Image(name, known) => return image::image(service, &name, known, kept, out),
        Request::Entries(part) => return entries::entries(service, &part, out),
        Request::Change(name, version, words) => return change::change(service, &name, version, words, out),
        Request::Trash(words) => return trash::trash(service, words, kept, out),
        Request::Adoption(words) => return adoption::adoption(service, words, out),
        Request::List { path, recursive } => return list::list(service, &path, recursive, kept),
        Request::Suspend(name) => return suspend::suspend(service, &name, true, out),
        Request::Resume(name) => return suspend::suspend(service, &name, false, out),
        Request::SuspendAll => suspend::suspend_all(service, true, out),
        Request::ResumeAll => suspend::suspend_all(service, false, out),
        // Sessions handle these themselves; should one not, its client still gets an answer.
        Request::Update(..)
        | Request::Create(..)
        | Request::Batch
        | Request::End
        | Request::Quit
        | Request::Auth(_)
        | Request::Frames(_) => return Err(Refusal::new(DropReason::Usage, "Can't use this command here.")),
    }
    Ok(())
}

/// Calls `ask` with the RRD that `word` names; errors are those of INFO, FIRST and LAST.
fn find<T>(
    service: &Service,
    word: &[u8],
    ask: impl FnOnce(&dyn Engine, &RrdName) -> Result<T, StoreError>,
) -> Result<(ResolvedName, T), Refusal> {
    let named = match service.names.resolve(word) {
        Ok(named) => named,
        Err(failure) => return Err(Refusal::of_name(failure, Refusal::no_such_rrd)),
    };
    match ask(&*service.engine, &named.name) {
        Ok(found) => Ok((named, found)),
        Err(StoreError::NoSuchRrd(_)) => Err(Refusal::no_such_rrd(&named.path)),
        Err(error) => Err(Refusal::of_store("RRD Error: ", &error)),
    }
}

/// An argument that must be text.
///
/// # Errors
/// When it is not UTF-8.
pub fn text(word: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(word).map_err(|_| {
        let word = String::from_utf8_lossy(word);
        Refusal::new(DropReason::Usage, format!("RRD Error: '{word}' is not UTF-8"))
    })
}
