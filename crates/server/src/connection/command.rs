//! What each command answers: texts as rrdcached's, rows and states from the store. One file for each command, or for
//! those that belong together.
//!
//! Blocking: a fetch may wait for the disk. Drivers see to that.

pub mod create;
pub mod dump;
pub mod fetch;
pub mod flush;
pub mod info;
pub mod list;
pub mod stats;
pub mod suspend;
pub mod times;
pub mod tune;
pub mod update;
pub mod updatev;
pub mod whole;

use protocol::frames::request::Fetch;
use protocol::rrdcached::request::Request;
use protocol::rrdcached::{help, reply};
use store::engine::{Engine, StoreError};
use store::name::RrdName;

use self::update::RefusedUpdate;
use self::whole::Staged;
use super::refusal::Refusal;
use crate::metrics::DropReason;
use crate::names::Named;
use crate::service::Service;

/// What a session needs the store for to answer.
#[derive(Debug)]
pub enum Ask<'a> {
    /// A command of the text protocol.
    Command(Request<'a>),
    /// A fetch in frames, and the number of its frame.
    Rows(u32, Fetch<'a>),
    /// Why an UPDATE without a good word is refused.
    RefusedUpdate(RefusedUpdate),
}

impl Ask<'_> {
    /// True when the answer waits for a shard at most, or for a cold read: not for an fsync or a whole RRD.
    pub fn is_quick(&self) -> bool {
        match self {
            Ask::Rows(..) => true,
            Ask::RefusedUpdate(_) => false,
            Ask::Command(request) => matches!(
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
            ),
        }
    }
}

/// Finds the answer and appends it. `staged` is what the connection holds of a file that comes in parts.
///
/// # Errors
/// Why there is none; what was appended does not count then.
pub fn answer(
    service: &Service,
    ask: Ask<'_>,
    staged: &mut Option<Staged>,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    match ask {
        Ask::Command(request) => command(service, request, staged, out),
        Ask::Rows(number, wanted) => fetch::fetch_frame(service, &wanted, number, out),
        Ask::RefusedUpdate(refused) => Err(update::refuse(service, &refused)),
    }
}

fn command(
    service: &Service,
    request: Request<'_>,
    staged: &mut Option<Staged>,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    match request {
        Request::Flush(name) => return flush::flush(service, &name, out),
        Request::FlushAll => flush::flush_all(service, out),
        Request::Pending(name) => flush::pending(service, &name, out),
        Request::Forget(name) => return flush::forget(service, &name, out),
        Request::Queue => flush::queue(service, out),
        Request::Stats => stats::statistics(service).push(out),
        Request::Help(command) => help::push_help(out, command),
        Request::Ping => reply::push_status(out, 0, b"PONG"),
        Request::Fetch(request) => return fetch::fetch(service, &request, out),
        Request::Info(name) => return info::info(service, &name, out),
        Request::First(name, rra) => return times::first(service, &name, rra, out),
        Request::Last(name) => return times::last(service, &name, out),
        Request::Dump(name, header) => return dump::dump(service, &name, header.as_deref(), out),
        Request::Tune(name, words) => return tune::tune(service, &name, words, out),
        Request::UpdateV(name, words) => return updatev::updatev(service, &name, words, out),
        Request::Export(name) => return whole::export(service, &name, out),
        Request::Import(part) => return whole::import(service, staged, &part, out),
        Request::List { path, recursive } => return list::list(service, &path, recursive, out),
        Request::Suspend(name) => return suspend::suspend(service, &name, true, out),
        Request::Resume(name) => return suspend::suspend(service, &name, false, out),
        Request::SuspendAll => suspend::suspend_all(service, true, out),
        Request::ResumeAll => suspend::suspend_all(service, false, out),
        // Sessions do these themselves; one that does not must not leave its client without an answer.
        Request::Update(..)
        | Request::Create(..)
        | Request::Batch
        | Request::End
        | Request::Quit
        | Request::Frames(_) => return Err(Refusal::new(DropReason::Usage, "Can't use this command here.")),
    }
    Ok(())
}

/// What `ask` says of the RRD that a word names, with the errors of INFO, FIRST and LAST.
fn find<T>(
    service: &Service,
    word: &[u8],
    ask: impl FnOnce(&dyn Engine, &RrdName) -> Result<T, StoreError>,
) -> Result<(Named, T), Refusal> {
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

/// A word that must be text.
pub fn text(word: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(word).map_err(|_| {
        let word = String::from_utf8_lossy(word);
        Refusal::new(DropReason::Usage, format!("RRD Error: '{word}' is not UTF-8"))
    })
}
