//! DUMP: what `rrddump(1)` prints, as lines.

use localtime::DumpTimes;
use protocol::rrdcached::reply;
use rrd::codec::xml::{Header, dump as write_xml};
use store::engine::StoreError;

use super::text;
use super::whole::read_whole;
use crate::connection::refusal::Refusal;
use crate::service::Service;

/// Answers DUMP. `header` is the argument of `-h`.
///
/// # Errors
/// When there is no such RRD, or it cannot be read.
pub fn dump(service: &Service, word: &[u8], header: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), Refusal> {
    // A value takes some 30 bytes of XML and a row 80, once in the making and once in the answer.
    let (named, rrd, _share) = read_whole(service, word, 2 * 80)?;
    let header = match header {
        Some(word) => Header::from_arg(text(word)?),
        None => Header::default(),
    };
    let mut xml = Vec::new();
    let mut times = DumpTimes::default();
    let mut time_text = |seconds: i64, out: &mut Vec<u8>| times.push(seconds, out);
    let written = write_xml(&rrd, header, &mut time_text, &mut xml);
    written.map_err(|error| {
        Refusal::of_store("RRD Error: ", &StoreError::io("", std::io::Error::other(error)))
    })?;
    if xml.last() != Some(&b'\n') {
        xml.push(b'\n');
    }
    let lines = memchr::memchr_iter(b'\n', &xml).count();
    let status = [b"Dump of ", &*named.path, b" follows"].concat();
    reply::push_status(out, lines as i64, &status);
    out.append(&mut xml);
    Ok(())
}
