//! IMAGE: the bytes of a standard `.rrd` file as they are, with its version, unless the client has that version.

use protocol::frames::ANSWER_BYTES_MAX;
use protocol::rrdcached::files::Entry;
use protocol::rrdcached::reply;
use rrd::codec::file::{FileLayout, encode};
use rrd::content::Rrd;
use rrd::footprint;
use store::engine::{Engine, StoreError};
use store::memory;
use store::version::version;

use super::stat::of_rrd;
use super::{Kept, find};
use crate::budget::Share;
use crate::connection::command::rest::Rest;
use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::names::ResolvedName;
use crate::service::Service;

/// Bytes of an image that are written at once.
const PIECE_BYTES: usize = 1 << 20;
/// How often an RRD is read that is replaced by others meanwhile.
const TRIES: usize = 10;

/// Answers IMAGE.
///
/// # Errors
/// When there is no such RRD, it cannot be read, or no file or frame can hold it.
pub fn image(
    service: &Service,
    word: &[u8],
    known: Option<u64>,
    kept: &mut Kept,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let refuse = |error: &StoreError| Refusal::of_store("RRD Error: ", error);
    let (named, snapshot) = find(service, word, |engine, name| engine.snapshot(name))?;
    if known == Some(snapshot.version()) {
        let file = of_rrd(service, &named, &snapshot.definition, snapshot.last_update());
        reply::push_status(out, 0, Entry::Rrd(file, known).to_string().as_bytes());
        return Ok(());
    }
    let definition = &snapshot.definition;
    memory::check_whole(definition).map_err(|error| refuse(&error))?;
    let bytes = FileLayout::of(definition).file_bytes;
    if kept.is_framed && bytes.saturating_add(1024) > ANSWER_BYTES_MAX as u64 {
        return Err(Refusal::new(DropReason::Usage, TOO_LARGE));
    }
    // The rows and the bytes that they become.
    let wanted = footprint::live_bytes(definition) + 8 * footprint::value_count(definition) + bytes;
    let mut share = service.memory.share();
    if !share.try_resize(wanted) {
        return Err(Refusal::no_memory("this RRD", wanted, &share));
    }
    let (rrd, version) = read(&*service.engine, &named).map_err(|error| refuse(&error))?;
    let file = encode_as_exported(&rrd, &named).map_err(|error| refuse(&error))?;
    let last_update = rrd.shape().split(&rrd.live.words).last_update;
    let about = of_rrd(service, &named, &rrd.definition, last_update);
    let mut status = Vec::new();
    reply::push_status(&mut status, 1, Entry::Rrd(about, Some(version)).to_string().as_bytes());
    drop(rrd);
    share.resize(file.len() as u64);
    kept.rest = Some(Box::new(ImageRest { status, file, next: 0, _share: share }));
    Ok(())
}

/// Begins the refusal of what is too large for a frame.
const TOO_LARGE: &str = "the file is too large for a frame: ask in text";

/// An RRD and its version, both of one moment.
fn read(engine: &dyn Engine, named: &ResolvedName) -> Result<(Rrd, u64), StoreError> {
    let mut identity = engine.snapshot(&named.name)?.identity;
    for _ in 0..TRIES {
        let rrd = engine.read(&named.name)?;
        let after = engine.snapshot(&named.name)?.identity;
        if after == identity {
            let version = version(identity, &rrd.definition, &rrd.live);
            return Ok((rrd, version));
        }
        identity = after;
    }
    Err(StoreError::Changed(named.name.clone()))
}

/// The bytes that EXPORT gives: the newest row of each archive comes first.
fn encode_as_exported(rrd: &Rrd, named: &ResolvedName) -> Result<Vec<u8>, StoreError> {
    encode(rrd, &vec![0; rrd.definition.rra.len()])
        .map_err(|error| StoreError::Unfit { path: named.name.to_string(), error })
}

/// An answer in the making.
#[derive(Debug)]
struct ImageRest {
    status: Vec<u8>,
    file: Vec<u8>,
    /// The next byte of the file.
    next: usize,
    /// What the file takes of the memory for clients.
    _share: Share,
}

impl Rest for ImageRest {
    fn push_piece(&mut self, _: &dyn Engine, out: &mut Vec<u8>) -> Result<bool, StoreError> {
        if self.next == 0 {
            out.extend_from_slice(&self.status);
        }
        let end = self.file.len().min(self.next + PIECE_BYTES);
        out.extend_from_slice(&self.file[self.next..end]);
        self.next = end;
        Ok(end < self.file.len())
    }

    fn restart(&mut self) {
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_client_knows_what_is_too_large_for_a_frame() {
        assert!(super::TOO_LARGE.starts_with(protocol::rrdcached::files::TOO_LARGE_FOR_FRAME));
    }
}
