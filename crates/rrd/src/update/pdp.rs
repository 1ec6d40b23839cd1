//! From readings to primary data points.
//!
//! A reading becomes the sum of rate x time since the last update; cut at multiples of the step, these
//! sums become PDPs. The order of every addition and division is RRDtool's.

use super::UpdateError;
use crate::definition::{Definition, DsKind, DsType};
use crate::grid;
use crate::live::{LastDs, PdpPrep, UNKNOWN};
use crate::number::{self, NumberError, difference};
use crate::time::{MICROS, Timestamp};

/// What RRDtool adds to a counter that decreased: first 2^32 - 1 and, if that is not enough, 2^64 - 2^32.
const COUNTER_WRAPS: [f64; 2] = [4_294_967_295.0, 18_446_744_069_414_584_320.0];

/// The time between two updates, cut at the step. All in units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// From the last update to this one.
    pub interval: f64,
    /// From the last update to the last step boundary passed; the complete interval when none was.
    pub pre: f64,
    /// From that boundary to this update.
    pub post: f64,
    /// The number of the open PDP at the start of this span.
    pub pdp_number: i64,
    /// Boundaries passed.
    pub elapsed: u64,
}

impl Span {
    #[inline]
    pub(super) fn between(last: Timestamp, time: Timestamp, step: u64) -> Span {
        let interval = interval(last, time);
        let (pdp_number, _) = grid::divide(last.whole, step);
        let (number_now, age) = grid::divide(time.whole, step);
        if number_now == pdp_number {
            return Span { interval, pre: interval, post: 0.0, pdp_number, elapsed: 0 };
        }
        let boundary = time.whole - age as i64;
        Span {
            interval,
            pre: (boundary - last.whole) as f64 - f64::from(last.micros) / f64::from(MICROS),
            post: age as f64 + f64::from(time.micros) / f64::from(MICROS),
            pdp_number,
            elapsed: (number_now - pdp_number) as u64,
        }
    }

    /// The part that closes the open PDP, and the rest, when this span passes several boundaries while a PDP is
    /// open. RRDtool closes that PDP separately, with whole units of the interval.
    pub(super) fn split_open(&self, step: u64) -> Option<(Span, Span)> {
        if self.elapsed < 2 {
            return None;
        }
        let open = self.pre as u64 % step;
        if open == 0 {
            return None;
        }
        let open = open as f64;
        let left = Span { interval: open, pre: open, post: 0.0, elapsed: 1, ..*self };
        let rest = Span {
            interval: self.interval - open,
            pre: self.pre - open,
            pdp_number: self.pdp_number + 1,
            elapsed: self.elapsed - 1,
            ..*self
        };
        Some((left, rest))
    }
}

/// Units from one update to the next.
#[inline]
pub(super) fn interval(last: Timestamp, time: Timestamp) -> f64 {
    let micros = (i64::from(time.micros) - i64::from(last.micros)) as f64;
    time.whole.saturating_sub(last.whole) as f64 + micros / f64::from(MICROS)
}

/// Leaves in `sums` the share of the span that [`Span::split_open`] cut off, and moves the rest to `rest_sums`.
pub(super) fn split_sums(sums: &mut [f64], interval: f64, left: &Span, rest_sums: &mut Vec<f64>) {
    rest_sums.clear();
    for sum in sums {
        let left_sum = *sum * left.interval / interval;
        rest_sums.push(*sum - left_sum);
        *sum = left_sum;
    }
}

/// Turns the texts of a reading into sums of rate x time, one for each source (unknown for COMPUTE).
/// Changes nothing but `sums`.
pub(super) fn read(
    definition: &Definition,
    pdp: &[PdpPrep],
    texts: &[&[u8]],
    interval: f64,
    sums: &mut Vec<f64>,
) -> Result<(), UpdateError> {
    sums.clear();
    let mut texts_left = texts.iter();
    for (ds, pdp) in definition.ds.iter().zip(pdp) {
        let DsKind::Fed { ds_type, heartbeat, min, max } = ds.kind else {
            sums.push(UNKNOWN);
            continue;
        };
        let Some(text) = texts_left.next() else {
            let expected = definition.fed_count();
            return Err(UpdateError::TooFewValues { expected, got: texts.len(), time: String::new() });
        };
        // A text that comes too late is not even checked.
        if text.first() == Some(&b'U') || interval > double(heartbeat) {
            sums.push(UNKNOWN);
            continue;
        }
        let (sum, rate) =
            sum_and_rate(ds_type, text, &pdp.last_ds, interval, f64::from(definition.units_per_second))?;
        // Comparisons with an unlimited (NaN) bound are false.
        let outside = rate > max || rate < min;
        sums.push(if rate.is_nan() || outside { UNKNOWN } else { sum });
    }
    Ok(())
}

/// Refuses what [`read`] refuses, without the live head: see [`super::check`].
pub(super) fn check(definition: &Definition, texts: &[&[u8]], interval: f64) -> Result<(), UpdateError> {
    let mut texts = texts.iter();
    for ds in &definition.ds {
        if let DsKind::Fed { ds_type, heartbeat, .. } = ds.kind
            && let Some(text) = texts.next()
            && text.first() != Some(&b'U')
            && interval <= double(heartbeat)
        {
            check_text(ds_type, text)?;
        }
    }
    Ok(())
}

/// Whether a source of this type accepts a text.
#[inline]
fn check_text(ds_type: DsType, text: &[u8]) -> Result<(), UpdateError> {
    let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    match ds_type {
        DsType::Counter if !digits(text) => Err(UpdateError::NotUnsigned { text: lossy(text) }),
        DsType::Derive if !digits(text.strip_prefix(b"-").unwrap_or(text)) => {
            Err(UpdateError::NotSigned { text: lossy(text) })
        }
        DsType::Counter | DsType::Derive => Ok(()),
        DsType::Gauge | DsType::Absolute | DsType::Dcounter | DsType::Dderive => {
            float(ds_type, text).map(|_| ())
        }
    }
}

#[inline]
fn sum_and_rate(
    ds_type: DsType,
    text: &[u8],
    last_ds: &LastDs,
    interval: f64,
    units_per_second: f64,
) -> Result<(f64, f64), UpdateError> {
    let last = last_ds.as_bytes();
    let unknown_before = last.first() == Some(&b'U');
    let change = match ds_type {
        DsType::Gauge => {
            let value = float(ds_type, text)?;
            return Ok((value * interval, value));
        }
        DsType::Absolute => float(ds_type, text)?,
        DsType::Counter => {
            check_text(ds_type, text)?;
            if unknown_before { UNKNOWN } else { unwrapped(difference(text, last)) }
        }
        DsType::Derive => {
            check_text(ds_type, text)?;
            if unknown_before { UNKNOWN } else { difference(text, last) }
        }
        DsType::Dcounter | DsType::Dderive if unknown_before => UNKNOWN,
        DsType::Dcounter => {
            let (new, old) = (float(ds_type, text)?, float(ds_type, last)?);
            let reset = (new > 0.0 && old > new) || (new < 0.0 && new > old);
            if reset { UNKNOWN } else { new - old }
        }
        DsType::Dderive => float(ds_type, text)? - float(ds_type, last)?,
    };
    let sum = change * units_per_second;
    Ok((sum, sum / interval))
}

fn unwrapped(mut difference: f64) -> f64 {
    for wrap in COUNTER_WRAPS {
        if difference < 0.0 {
            difference += wrap;
        }
    }
    difference
}

#[inline]
fn float(ds_type: DsType, text: &[u8]) -> Result<f64, UpdateError> {
    number::parse(text).map_err(|error| match error {
        NumberError::Nothing => UpdateError::NotANumber { ds_type, text: lossy(text) },
        NumberError::Trailing { value, rest } => {
            UpdateError::Trailing { ds_type, text: lossy(text), value, rest: lossy(rest) }
        }
    })
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Adds a sum to the open PDP.
#[inline]
pub(super) fn accumulate(pdp: &mut PdpPrep, sum: f64, interval: f64) {
    if sum.is_nan() {
        pdp.unknown_units = pdp.unknown_units.wrapping_add(interval as u64);
    } else if pdp.value.is_nan() {
        pdp.value = sum;
    } else {
        pdp.value += sum;
    }
}

/// Closes the open PDP (and complete ones after it, which have the same value) and opens the next.
#[inline]
pub(super) fn close(pdp: &mut PdpPrep, sum: f64, span: &Span, heartbeat: u64, step: u64) -> f64 {
    let mut pre_unknown = 0.0;
    if sum.is_nan() {
        pre_unknown = span.pre;
    } else {
        if pdp.value.is_nan() {
            pdp.value = 0.0;
        }
        pdp.value += sum / span.interval * span.pre;
    }
    let too_late = span.interval > double(heartbeat);
    let point = if too_late || pdp.unknown_units.saturating_mul(2) > step {
        UNKNOWN
    } else {
        let known = span.elapsed.wrapping_mul(step).wrapping_sub(pdp.unknown_units);
        canonical(pdp.value / (double(known) - pre_unknown))
    };
    if sum.is_nan() {
        pdp.unknown_units = span.post as u64;
        pdp.value = UNKNOWN;
    } else {
        pdp.unknown_units = 0;
        pdp.value = canonical(sum / span.interval * span.post);
    }
    point
}

/// The double nearest to a count. Counts fit in 63 bits except in damaged files, and a signed conversion takes one
/// instruction where an unsigned one takes five.
#[inline]
pub(super) fn double(count: u64) -> f64 {
    match i64::try_from(count) {
        Ok(count) => count as f64,
        Err(_) => count as f64,
    }
}

/// Maps every NaN to the one that an x86 makes of an invalid operation, on every machine.
#[inline]
pub(super) fn canonical(value: f64) -> f64 {
    if value.is_nan() { UNKNOWN } else { value }
}
