//! TUNE.

use protocol::rrdcached::reply;
use protocol::rrdcached::words::Words;

use super::{find, text};
use crate::connection::refusal::Refusal;
use crate::service::Service;

/// Answers TUNE.
///
/// # Errors
/// When there is no such RRD, or the arguments are refused.
pub fn tune(service: &Service, word: &[u8], words: Words<'_>, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (named, _) = find(service, word, |engine, name| engine.status_for_change(name))?;
    let words = words.map(|word| text(&word).map(str::to_string)).collect::<Result<Vec<_>, _>>()?;
    match service.engine.tune(&named.name, &words) {
        Ok(()) => {
            reply::push_status(out, 0, b"RRD tuned OK");
            Ok(())
        }
        Err(error) => Err(Refusal::of_store("RRD Error: ", &error)),
    }
}
