//! A request, done by a store.

use std::sync::Arc;

use store::engine::{Engine, Reply, StoreError};

use crate::wire::{Answer, Request};

/// The most memory that a list takes on the node that makes it, in bytes: ten million names.
const LIST_BYTES_MAX: u64 = 1 << 30;

/// Does what is asked. Updates and creations answer once the store has them, other requests before this returns.
pub(crate) fn run(engine: &dyn Engine, request: Request, reply: Reply<Result<Answer, StoreError>>) {
    match request {
        Request::Update(batch) => {
            engine.update(batch, Box::new(move |failures| reply(Ok(Answer::Failures(failures)))));
        }
        Request::Create(name, request) => {
            engine.create(name, request, Box::new(move |result| reply(result.map(|()| Answer::Done))));
        }
        other => reply(answer(engine, other)),
    }
}

/// Whether [`run`] answers such a request without making its thread wait for more than room in a queue.
pub(crate) fn is_quick(request: &Request) -> bool {
    matches!(request, Request::Update(_) | Request::Create(..))
}

/// Does what is asked, and waits for it.
///
/// # Errors
/// The store's.
pub(crate) fn answer(engine: &dyn Engine, request: Request) -> Result<Answer, StoreError> {
    Ok(match request {
        Request::Update(_) | Request::Create(..) => return wait(engine, request),
        Request::Updatev(name, values) => Answer::Written(engine.updatev(&name, &values)?),
        Request::Import(name, rrd, no_overwrite) => {
            engine.import(name, Arc::unwrap_or_clone(rrd), no_overwrite)?;
            Answer::Done
        }
        Request::Tune(name, args) => done(engine.tune(&name, &args))?,
        Request::Change(name, version, change) => Answer::Version(engine.change(&name, version, change)?),
        Request::Delete(name) => done(engine.delete(&name))?,
        Request::Rename(from, to) => done(engine.rename(&from, &to))?,
        Request::Copy(from, to) => done(engine.copy(&from, &to))?,
        Request::Trash => Answer::Trashed(engine.trash()?),
        Request::Restore(trashed, to) => done(engine.restore(&trashed, &to))?,
        Request::Erase(trashed) => done(engine.erase(&trashed))?,
        Request::Snapshot(name) => Answer::Snapshot(Box::new(engine.snapshot(&name)?)),
        Request::Status(name) => Answer::Status(engine.status(&name)?),
        Request::StatusForChange(name) => Answer::Status(engine.status_for_change(&name)?),
        Request::Fetch(name, request) => Answer::Fetched(engine.fetch(&name, request)?),
        Request::Read(name) => Answer::Whole(Box::new(engine.read(&name)?)),
        Request::Rows(name, of, rra, rows) => Answer::Values(engine.rows(&name, &of, rra, rows)?),
        Request::List(directory, recursive) => {
            let mut held = 0u64;
            Answer::Names(engine.list_within(&directory, recursive, &mut |bytes| {
                held = held.saturating_add(bytes);
                held <= LIST_BYTES_MAX
            })?)
        }
        Request::HasDirectory(directory) => Answer::Is(engine.has_directory(&directory)?),
        Request::Flush(name) => done(engine.flush(name.as_ref()))?,
        Request::Sync => done(engine.sync())?,
        Request::StreamPosition(name) => Answer::Position(engine.stream_position(&name)?),
        Request::SetStreamPosition(name, position) => done(engine.set_stream_position(&name, position))?,
        Request::Stats => Answer::Stats(Box::new(engine.stats())),
        // Those who listen for other nodes answer it, which have more than the store.
        Request::BeginCopy | Request::ReadCopy { .. } | Request::Check(_) => {
            return Err(StoreError::Unsupported("a store alone is no replica"));
        }
    })
}

fn done(result: Result<(), StoreError>) -> Result<Answer, StoreError> {
    result.map(|()| Answer::Done)
}

fn wait(engine: &dyn Engine, request: Request) -> Result<Answer, StoreError> {
    let (sender, receiver) = std::sync::mpsc::channel();
    run(engine, request, Box::new(move |result| drop(sender.send(result))));
    receiver.recv().unwrap_or(Err(StoreError::Stopping))
}
