//! The time of an argument: `N`, seconds, or seconds relative to now.
//!
//! An RRD that counts seconds gets RRDtool's arithmetic, which makes 1700000000.1 a double and then .099999. An RRD
//! that counts thousandths, which RRDtool does not have, gets what the digits say.

use super::{SECONDS_DIGITS_MAX, TIME_MAX, leading_digits, lossy};
use crate::number::{self, NumberError};
use crate::time::{MICROS, Timestamp};
use crate::update::UpdateError;

/// Digits of a double's whole part that still are no time: longer numbers are out of range.
const WHOLE_DIGITS_MAX: i32 = 24;
/// Digits after the point that count; later ones are cut off.
const DECIMALS: i32 = MICROS.ilog10() as i32;

/// The time of an argument in seconds: `N`, a number, or a negative number relative to `now`. With `exact`, decimals
/// are what they say, down to a millionth of a second.
///
/// # Errors
/// [`UpdateError::TimeNotANumber`] and [`UpdateError::TimeTrailing`].
pub(super) fn parse_time(text: &[u8], now: Timestamp, exact: bool) -> Result<Timestamp, UpdateError> {
    if let (seconds, digits @ 1..=SECONDS_DIGITS_MAX) = leading_digits(text)
        && digits == text.len()
    {
        return Ok(Timestamp::whole(seconds));
    }
    if text == b"N" {
        return Ok(now);
    }
    let seconds = number::parse(text).map_err(|error| match error {
        NumberError::Nothing => UpdateError::TimeNotANumber { text: lossy(text) },
        NumberError::Trailing { value, rest } => {
            UpdateError::TimeTrailing { text: lossy(text), value, rest: lossy(rest) }
        }
    })?;
    if exact && seconds.is_finite() {
        return Ok(decimal(text, now));
    }
    Ok(as_rrdtool(seconds, now))
}

/// RRDtool's arithmetic.
fn as_rrdtool(mut seconds: f64, now: Timestamp) -> Timestamp {
    if seconds < 0.0 {
        seconds += now.whole as f64 + f64::from(now.micros) / 1e6;
    }
    let floor = seconds.floor();
    // Compat: a time that does not fit becomes the smallest integer, as x86 converts it in RRDtool, and is then
    // refused as being in the past.
    if !(-9.3e18..9.3e18).contains(&floor) || floor as i64 == i64::MAX {
        return Timestamp::whole(i64::MIN);
    }
    Timestamp::new(floor as i64, ((seconds - floor) * 1e6) as u32)
}

/// The time that the digits of a number say, rounded down to a millionth of a second. What is too large for any time
/// becomes one second more than [`TIME_MAX`].
fn decimal(text: &[u8], now: Timestamp) -> Timestamp {
    let number = number::decimal(text);
    if number.point > WHOLE_DIGITS_MAX && !number.is_zero() {
        return Timestamp::whole(TIME_MAX + 1);
    }
    let per_second = i128::from(MICROS);
    let mut micros = number.to_the_left_of(number.point + DECIMALS);
    if number.negative && !number.is_zero() {
        let beyond = number.has_digits_from(number.point + DECIMALS);
        micros = i128::from(now.whole) * per_second + i128::from(now.micros) - micros - i128::from(beyond);
    }
    let whole = micros.div_euclid(per_second).clamp(-i128::from(TIME_MAX) - 1, i128::from(TIME_MAX) + 1);
    Timestamp::new(whole as i64, micros.rem_euclid(per_second) as u32)
}
