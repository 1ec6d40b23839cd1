//! CHANGE: updates an RRD only if it is of a certain version, for clients whose readings follow from what they read before.

use protocol::rrdcached::command::Verb;
use protocol::rrdcached::reply;
use protocol::rrdcached::words::Words;
use store::engine::{StoreError, VersionChange};

use super::updatev::named_readings;
use crate::connection::refusal::Refusal;
use crate::service::Service;

/// Answers CHANGE.
///
/// # Errors
/// When there is no such RRD, it is of another version, or a reading is refused.
pub fn change(
    service: &Service,
    word: &[u8],
    version: u64,
    words: Words<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let (named, values) = named_readings(service, Verb::Change, word, words)?;
    match service.engine.change(&named.name, version, VersionChange::Update(values)) {
        Ok(version) => {
            reply::push_status(out, 0, version.to_string().as_bytes());
            Ok(())
        }
        Err(StoreError::NoSuchRrd(_)) => Err(Refusal::no_such_rrd(&named.path)),
        Err(error) => Err(Refusal::of_store("RRD Error: ", &error)),
    }
}
