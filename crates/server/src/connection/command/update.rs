//! UPDATE: the texts of refusals, as in rrdcached.

use protocol::frames::code::ErrorCode;
use protocol::rrdcached::update::{BadWord, not_later};
use rrd::time::{MICROS, Timestamp};
use rrd::update::UpdateError;
use store::engine::StoreError;

use crate::connection::refusal::Refusal;
use crate::metrics::DropReason;
use crate::names::{Names, ResolvedName};
use crate::service::Service;

/// An UPDATE without a valid argument.
#[derive(Debug)]
pub struct RefusedUpdate {
    /// The RRD.
    pub named: ResolvedName,
    /// Its first argument, if it has one.
    pub bad: Option<BadWord>,
}

/// The refusal, which depends on whether the RRD exists.
pub fn refuse(service: &Service, update: &RefusedUpdate) -> Refusal {
    match service.engine.status_for_change(&update.named.name) {
        Ok(status) => {
            let units_per_second = status.definition.units_per_second;
            let last = status.last_update.in_seconds(units_per_second);
            let text = match &update.bad {
                None => b"No values updated.".to_vec(),
                Some(bad) => bad.text(as_seconds(last, units_per_second)),
            };
            let code = update.bad.as_ref().map_or(ErrorCode::Syntax, code);
            Refusal::new(DropReason::Refused, text).with_code(code)
        }
        Err(StoreError::NoSuchRrd(_)) => no_such_rrd(&update.named.path),
        Err(error) => Refusal::of_store("", &error),
    }
}

/// The refusal for an UPDATE that the store refused.
pub fn refusal(names: &Names, error: &StoreError) -> Refusal {
    match error {
        StoreError::NoSuchRrd(name) => no_such_rrd(&names.path(name.as_bytes())),
        // Compat: the daemon prints these times with six decimals.
        StoreError::Update(UpdateError::NotLater { time, last_update, units_per_second }) => {
            let seconds = |time: &Timestamp| as_seconds(*time, *units_per_second);
            let text = not_later(seconds(time), seconds(last_update));
            Refusal::new(DropReason::Refused, text).with_code(ErrorCode::IllegalTime)
        }
        error => Refusal::of_store("", error),
    }
}

/// The error code for an invalid argument.
pub fn code(bad: &BadWord) -> ErrorCode {
    match bad {
        BadWord::NoTimestamp(_) => ErrorCode::Syntax,
        BadWord::Negative(_) => ErrorCode::IllegalTime,
    }
}

/// The refusal when there is no RRD at a path.
pub fn no_such_rrd(path: &[u8]) -> Refusal {
    Refusal::of_path(DropReason::NoSuchRrd, "No such file: ", path, "")
}

/// A time in seconds, with the digits of its text.
///
/// Compat: RRDtool cuts a time after its microseconds; of `1000000020.3`, which no double represents, 299999
/// remain. The daemon prints what it received, so a final 9 is taken as the result of such a cut. An RRD with a step
/// below a second has exact times.
fn as_seconds(time: Timestamp, units_per_second: u32) -> f64 {
    let cut = units_per_second == 1 && time.micros % 10 == 9;
    time.whole as f64 + f64::from(time.micros + u32::from(cut)) / f64::from(MICROS)
}
