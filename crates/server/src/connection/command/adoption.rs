//! ADOPTION: an administrator's command, which says how far the files of the tree that no program names are taken in, and takes in one.

use protocol::rrdcached::reply;
use protocol::rrdcached::words::Words;
use store::engine::Adoption;

use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::service::Service;

/// Answers ADOPTION: the numbers of files left, taken in and failed, then a line for each of the latest failures. `ADOPTION TAKE|ARCHIVE name path` takes in
/// one file, if it is the one that stands in the tree under this name, and answers how many it has taken in.
///
/// # Errors
/// When the words are none of its forms, a file cannot be taken in, or the daemon takes in only those that are named.
pub fn adoption(service: &Service, mut words: Words<'_>, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let Some(verb) = words.next() else { return progress(service, out) };
    let (Some(name), Some(path), true) =
        (words.next(), words.next(), [&b"TAKE"[..], b"ARCHIVE"].contains(&&*verb))
    else {
        let usage = "Usage: ADOPTION, ADOPTION TAKE|ARCHIVE <filename> <path>";
        return Err(Refusal::new(DropReason::Usage, usage));
    };
    let mut count = 0;
    if let (Ok(named), Ok(found)) = (service.names.resolve(&name), service.names.resolve(&path))
        && named.name == found.name
    {
        let taken = service.engine.adopt(&named.name, *verb == *b"ARCHIVE");
        count = u64::from(taken.map_err(|error| Refusal::of_store("RRD Error: ", &error))?);
    }
    reply::push_status(out, 1, b"Adoption");
    out.extend_from_slice(format!("{count}\n").as_bytes());
    Ok(())
}

fn progress(service: &Service, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let Some(Adoption { left, taken, failed, failures }) = service.engine.adoption() else {
        let text = "This daemon takes in files only when they are named (adopt, adopt_unused).";
        return Err(Refusal::new(DropReason::Refused, text));
    };
    reply::push_status(out, failures.len() as i64 + 1, b"Adoption");
    out.extend_from_slice(format!("{left} {taken} {failed}\n").as_bytes());
    for (name, why) in failures {
        // A line feed in a name would break the count of lines.
        out.extend_from_slice(format!("{name}: {why}").replace('\n', " ").as_bytes());
        out.push(b'\n');
    }
    Ok(())
}
