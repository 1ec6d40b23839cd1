//! VERIFY: an administrator's command. START begins a pass over the store; a number asks how far it is, and for what it found
//! from that number on.

use protocol::rrdcached::reply;

use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::scrub::Report;
use crate::service::Service;

/// Answers VERIFY.
///
/// # Errors
/// When the word is neither, or the daemon cannot verify.
pub fn verify(service: &Service, word: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    if word.eq_ignore_ascii_case(b"START") {
        if !service.scrub.request() {
            return Err(Refusal::new(DropReason::Refused, "This daemon cannot verify its store."));
        }
        reply::push_status(out, 0, b"Verification has begun");
        return Ok(());
    }
    let from = std::str::from_utf8(word).ok().and_then(|word| word.parse::<usize>().ok());
    let Some(from) = from else {
        return Err(Refusal::new(DropReason::Usage, "Usage: VERIFY START|<number of findings known>"));
    };
    let Report { is_running, failure, checked, total, findings } = service.scrub.report(from);
    let state = match (is_running, &failure) {
        (true, _) => "running",
        (false, None) => "done",
        (false, Some(_)) => "failed",
    };
    reply::push_status(out, findings.len() as i64 + 1, b"Verification");
    let why = failure.unwrap_or_default().replace('\n', " ");
    out.extend_from_slice(format!("{state} {checked} {total} {why}\n").as_bytes());
    for finding in findings {
        out.extend_from_slice(finding.as_bytes());
        out.push(b'\n');
    }
    Ok(())
}
