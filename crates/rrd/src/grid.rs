//! All modulo arithmetic on rows. Time is cut at multiples of `step * pdp_per_row` since the epoch.
//!
//! A *row time* is the end of a row. A *row number* is the row time divided by the row's span: it counts
//! rows since the epoch, is the same for all RRDs of a geometry, and needs no pointer into a ring.

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

/// The position of row `number` in a ring of `row_count` rows, where the choice is ours.
///
/// RRDtool starts each ring at a random position. Any position is valid; ours follows from the time.
pub fn ring_index(number: i64, row_count: u64) -> u64 {
    number.rem_euclid(row_count as i64) as u64
}

/// Quotient and remainder of a count of units or PDPs, rounded down; `by` is 1 to 2^53.
///
/// Dividing two 32-bit numbers, the usual case, takes half the time.
#[inline]
pub fn divide(number: i64, by: u64) -> (i64, u64) {
    if let (Ok(number), Ok(by)) = (u32::try_from(number), u32::try_from(by)) {
        return (i64::from(number / by), u64::from(number % by));
    }
    (number.div_euclid(by as i64), number.rem_euclid(by as i64) as u64)
}

/// Divides PDP numbers by one archive's PDPs per row without a division instruction.
///
/// The archives of an RRD divide by the same few numbers at every update. Multiplying by the reciprocal,
/// rounded up in 64 bits, is exact while `number * by < 2^64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Divider {
    by: u64,
    reciprocal: u64,
    number_max: u64,
}

impl Divider {
    /// Divides by `by`, which is 1 to 2^53.
    pub fn new(by: u64) -> Self {
        // The reciprocal of 1 does not fit; `number_max` 0 selects the plain division.
        if by <= 1 {
            return Divider { by, reciprocal: 0, number_max: 0 };
        }
        Divider { by, reciprocal: u64::MAX / by + 1, number_max: u64::MAX / by }
    }

    /// Quotient and remainder, rounded down, as [`divide`].
    #[inline]
    pub fn divide(self, number: i64) -> (i64, u64) {
        if self.by == 1 {
            return (number, 0);
        }
        if number as u64 <= self.number_max && number >= 0 {
            let number = number as u64;
            let quotient = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64;
            return (quotient as i64, number - quotient * self.by);
        }
        divide(number, self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_divider_divides() {
        fn check(number: i64, by: u64) {
            assert_eq!(Divider::new(by).divide(number), divide(number, by), "{number} / {by}");
        }
        for by in
            [1, 2, 3, 7, 50, 223, 2635, 65_536, 1_000_003, (1 << 32) - 1, 1 << 32, (1 << 53) - 1, 1 << 53]
        {
            let border = (u64::MAX / by).min(1 << 53) as i64;
            for near in [0, 1, by as i64, 170_000_000, 1_700_000_000, border, border / by as i64 * by as i64]
            {
                for number in near - 2..=near + 2 {
                    check(number, by);
                    check(-number, by);
                }
            }
        }
        let mut number = 1i64;
        for _ in 0..10_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            check(number >> 11, (number as u64 >> 40) % 5000 + 1);
        }
    }
}
