//! DUMP: what `rrddump(1)` prints, as lines.

use protocol::rrdcached::reply;
use rrd::codec::xml::{Header, dump as write_xml};
use store::engine::StoreError;

use super::answer::{self, Refusal};
use crate::service::Service;

/// Answers DUMP. `header` is the word behind `-h`.
pub fn dump(service: &Service, word: &[u8], header: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (named, _) = answer::snapshot(service, word)?;
    let refuse = |error: StoreError| Refusal::of_store("RRD Error: ", &error);
    let rrd = service.engine.read(&named.name).map_err(refuse)?;
    let header = match header {
        Some(word) => Header::from_word(answer::text(word)?),
        None => Header::default(),
    };
    let mut xml = Vec::new();
    let zone = jiff::tz::TimeZone::system();
    let mut time_text =
        |seconds: i64, out: &mut Vec<u8>| out.extend_from_slice(local_time(seconds, &zone).as_bytes());
    let written = write_xml(&rrd, header, &mut time_text, &mut xml);
    written.map_err(|error| refuse(StoreError::Io(error.to_string())))?;
    if xml.last() != Some(&b'\n') {
        xml.push(b'\n');
    }
    let lines = memchr::memchr_iter(b'\n', &xml).count();
    let status = [b"Dump of ", &*named.path, b" follows"].concat();
    reply::push_status(out, lines as i64, &status);
    out.append(&mut xml);
    Ok(())
}

/// Seconds since 1970 in the daemon's time zone, as RRDtool's comments have them.
fn local_time(seconds: i64, zone: &jiff::tz::TimeZone) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => {
            let zoned = time.to_zoned(zone.clone());
            zoned.strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
        }
        // Beyond the year 9999.
        Err(_) => seconds.to_string(),
    }
}
