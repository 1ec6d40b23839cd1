//! All modulo arithmetic on rows: time is cut at multiples of `step * pdp_per_row` since the epoch.
//!
//! A *row time* is the end of a row. A *row number* is the row time divided by the row's span, so it
//! counts rows since the epoch, is the same for every RRD of a geometry, and needs no pointer into a ring.

/// The span of a row in units: `step * pdp_per_row`.
pub fn row_span(step: u64, pdp_per_row: u64) -> i64 {
    (step * pdp_per_row) as i64
}

/// The number of the newest complete row at time `whole` (units since the epoch).
pub fn row_number(whole: i64, span: i64) -> i64 {
    whole.div_euclid(span)
}

/// The row time (end of the row) of row `number`.
pub fn row_time(number: i64, span: i64) -> i64 {
    number * span
}

/// Where row `number` stands in a ring of `row_count` rows when we choose the place ourselves.
///
/// RRDtool draws the start of each ring at random; any value is valid, so ours follows from the time.
pub fn ring_index(number: i64, row_count: u64) -> u64 {
    number.rem_euclid(row_count as i64) as u64
}

/// Quotient and remainder of a count of units or PDPs, rounded down; `by` is 1 to 2^53.
///
/// Two 32-bit numbers, the usual case, divide in half the time.
#[inline]
pub fn divide(number: i64, by: u64) -> (i64, u64) {
    if let (Ok(number), Ok(by)) = (u32::try_from(number), u32::try_from(by)) {
        return (i64::from(number / by), u64::from(number % by));
    }
    (number.div_euclid(by as i64), number.rem_euclid(by as i64) as u64)
}
