//! Integers that cluster around one number: minima above their floor, maxima below their ceiling, sums around
//! their mean, rounding errors around zero; and integers spread evenly over a range that is no power of two.
//!
//! Each distance from the base is split into `low` bits, stored verbatim, and a quotient. For the clustered
//! shapes, quotients are stored in unary (Rice coding): within an eighth of a bit of the entropy of an
//! exponential or normal distribution, without a table, and therefore for columns of any length. For an even
//! spread, quotients are the digits of a number. Reading and writing take about twice as long as a frame.

use super::CodecError;
use super::bits::{self, BitReader, BitWriter, packed_bytes, width_of};
use rrd::codec::varint;

/// Shorter columns gain less than the head of the layout costs.
pub(super) const VALUES_MIN: usize = 16;
/// Wider columns do not cluster, and distances must not overflow.
const WIDTH_MAX: u32 = 56;
/// Larger quotients are outliers: another layout patches them.
const QUOTIENT_MAX: u64 = 48;
/// The most values of a digit; beyond that, the range is as good as a power of two.
const DIGIT_VALUES_MAX: u64 = 24;
const LOW_MASK: u8 = 63;
const SHAPE_SHIFT: u32 = 6;

/// How the values are distributed around their base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// At it and above.
    Above,
    /// At it and below.
    Below,
    /// On both sides.
    Around,
    /// Evenly above it.
    Even,
}

const SHAPES: [Shape; 4] = [Shape::Above, Shape::Below, Shape::Around, Shape::Even];

/// The layout of a column, and its size in bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rice {
    shape: Shape,
    base: i64,
    low: u32,
    /// Number of values of a digit; [`Shape::Even`] only.
    digit_values: u64,
    pub(super) bits: usize,
}

impl Shape {
    #[inline]
    fn distance(self, value: i64, base: i64) -> u64 {
        match self {
            Shape::Above | Shape::Even => value.wrapping_sub(base) as u64,
            Shape::Below => base.wrapping_sub(value) as u64,
            Shape::Around => varint::zigzag(value.wrapping_sub(base)),
        }
    }

    #[inline]
    fn value(self, distance: u64, base: i64) -> i64 {
        match self {
            Shape::Above | Shape::Even => base.wrapping_add(distance as i64),
            Shape::Below => base.wrapping_sub(distance as i64),
            Shape::Around => base.wrapping_add(varint::unzigzag(distance)),
        }
    }
}

impl Rice {
    /// The shortest of these layouts, if any suits `values`.
    pub(super) fn of(values: &[i64]) -> Option<Rice> {
        let (min, max) = super::ints::range(values);
        let spread = (max as u64).wrapping_sub(min as u64);
        if values.len() < VALUES_MIN || spread < 2 || width_of(spread) > WIDTH_MAX {
            return None;
        }
        let count = values.len() as u64;
        // At most 4,096 values of 56 bits.
        let sum: u64 =
            values.iter().map(|&value| value.wrapping_sub(min) as u64).try_fold(0u64, u64::checked_add)?;
        let mean = min.wrapping_add((sum / count) as i64);
        let mut best = Rice::even(values.len(), min, spread);
        for (shape, base) in [(Shape::Above, min), (Shape::Below, max), (Shape::Around, mean)] {
            let found = Rice::unary(values, shape, base);
            if found.is_some_and(|found| found.bits < best.bits) {
                best = found?;
            }
        }
        Some(best)
    }

    fn head_bits(base: i64) -> usize {
        16 + super::ints::varint_bits(varint::zigzag(base))
    }

    fn even(count: usize, base: i64, spread: u64) -> Rice {
        let mut low = 0;
        while (spread >> low) + 1 > DIGIT_VALUES_MAX {
            low += 1;
        }
        let digit_values = (spread >> low) + 1;
        let (digits, width) = digits_a_word(digit_values);
        let words = count / digits;
        let bits = count * low as usize
            + words * width as usize
            + width_of_digits(digit_values, count % digits) as usize;
        Rice { shape: Shape::Even, base, low, digit_values, bits: Rice::head_bits(base) + 24 + bits }
    }

    fn unary(values: &[i64], shape: Shape, base: i64) -> Option<Rice> {
        let distances = || values.iter().map(|&value| shape.distance(value, base));
        let (mut sum, mut max) = (0u64, 0);
        for distance in distances() {
            sum = sum.checked_add(distance)?;
            max = max.max(distance);
        }
        // The best split is near the mean times the logarithm of two; its two neighbours are tried as well.
        let near = width_of(sum / values.len() as u64 * 11 / 16).saturating_sub(1);
        let from = near.saturating_sub(1).max(width_of(max / QUOTIENT_MAX));
        let bits = |low: u32| {
            let quotients: u64 = distances().map(|distance| distance >> low).sum();
            values.len() * (low as usize + 1) + quotients as usize
        };
        let (low, bits) = (from..from + 3).map(|low| (low, bits(low))).min_by_key(|(_, bits)| *bits)?;
        Some(Rice { shape, base, low, digit_values: 0, bits: Rice::head_bits(base) + 12 + bits })
    }

    /// Appends `values`, after the layout byte.
    pub(super) fn put(&self, values: &[i64], out: &mut Vec<u8>) {
        out.push(self.low as u8 | (self.shape as u8) << SHAPE_SHIFT);
        varint::put(out, varint::zigzag(self.base));
        let distances = || values.iter().map(|&value| self.shape.distance(value, self.base));
        let quotients = || distances().map(|distance| distance >> self.low);
        if self.shape == Shape::Even {
            out.push(self.digit_values as u8);
        }
        let mask = (1 << self.low) - 1;
        bits::pack(out, distances().map(|distance| distance & mask), self.low);
        let mut writer = BitWriter::new(out);
        if self.shape == Shape::Even {
            let (digits, _) = digits_a_word(self.digit_values);
            let quotients: Vec<u64> = quotients().collect();
            for word in quotients.chunks(digits) {
                let number = word.iter().rev().fold(0, |number, digit| number * self.digit_values + digit);
                writer.put(number, width_of_digits(self.digit_values, word.len()));
            }
        } else {
            quotients().for_each(|quotient| writer.put(1 << quotient, quotient as u32 + 1));
        }
        writer.finish();
    }
}

/// How many digits of `digit_values` fit into a 64-bit word, and the bits they take.
fn digits_a_word(digit_values: u64) -> (usize, u32) {
    let mut digits = 0;
    let mut bound = 1u64;
    while let Some(next) = bound.checked_mul(digit_values) {
        bound = next;
        digits += 1;
    }
    (digits, width_of(bound - 1))
}

fn width_of_digits(digit_values: u64, digits: usize) -> u32 {
    let bound = (0..digits).fold(1u64, |bound, _| bound.saturating_mul(digit_values));
    width_of(bound - 1)
}

/// Decodes `count` numbers into `out` and advances `bytes`, which start after the layout byte, past them.
pub(super) fn decode(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), CodecError> {
    let head = super::take(bytes, 1)?[0];
    let (low, shape) = (u32::from(head & LOW_MASK), SHAPES[usize::from(head >> SHAPE_SHIFT)]);
    let base = varint::unzigzag(varint::take(bytes).ok_or(CodecError::Cut)?);
    if low > WIDTH_MAX {
        return Err(CodecError::Field("low bits"));
    }
    let digit_values = if shape == Shape::Even { u64::from(super::take(bytes, 1)?[0]) } else { 2 };
    if digit_values < 2 {
        return Err(CodecError::Field("digit"));
    }
    let mut lows = BitReader::new(super::take(bytes, packed_bytes(count, low))?);
    let mut quotients = BitReader::new(bytes);
    if shape == Shape::Even {
        let (digits, width) = digits_a_word(digit_values);
        let mut left = count;
        while left > 0 {
            let here = left.min(digits);
            let mut number =
                quotients.take(if here == digits { width } else { width_of_digits(digit_values, here) });
            for _ in 0..here {
                out.push(shape.value((number % digit_values) << low | lows.take(low), base));
                number /= digit_values;
            }
            left -= here;
        }
    } else {
        for _ in 0..count {
            let quotient = quotients.take_unary(QUOTIENT_MAX as u32).ok_or(CodecError::Field("quotient"))?;
            out.push(shape.value(u64::from(quotient) << low | lows.take(low), base));
        }
    }
    let taken = quotients.end().ok_or(CodecError::Cut)?;
    *bytes = &bytes[taken..];
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The column's size in bytes, after a round trip.
    fn check(values: &[i64], want: Shape) -> usize {
        let rice = Rice::of(values).unwrap();
        assert_eq!(rice.shape, want);
        let mut bytes = Vec::new();
        rice.put(values, &mut bytes);
        let (mut rest, mut back) = (&bytes[..], Vec::new());
        decode(&mut rest, values.len(), &mut back).unwrap();
        assert!(rest.is_empty());
        assert_eq!(back, values);
        assert!(bytes.len() * 8 <= rice.bits + 8, "{} bytes, {} bits reckoned", bytes.len(), rice.bits);
        for cut in 0..bytes.len() {
            let _ = decode(&mut &bytes[..cut], values.len(), &mut Vec::new());
        }
        bytes.len()
    }

    /// Evenly spread over 0..2^32.
    fn random(index: i64) -> u64 {
        (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }

    #[test]
    fn distributions_are_coded_near_their_entropy() {
        let exponential = |index: i64| ((random(index) as f64 + 1.0) / 4_294_967_297.0).ln() * -450.0;
        let bits = |bytes: usize| bytes as f64 * 8.0 / 400.0;
        let above: Vec<i64> = (0..400).map(|index| 77_000 + exponential(index) as i64).collect();
        // log2(450 e) = 10.26.
        assert!(bits(check(&above, Shape::Above)) < 10.5);
        let below: Vec<i64> = above.iter().map(|value| 200_000 - value).collect();
        assert!(bits(check(&below, Shape::Below)) < 10.5);
        let normal = |index: i64| (0..12).map(|part| random(index * 12 + part) as i64 % 1000).sum::<i64>();
        let around: Vec<i64> = (0..400).map(|index| normal(index) - 9_000).collect();
        // A standard deviation of 1,000 has 12.01.
        assert!(bits(check(&around, Shape::Around)) < 12.5);
        let even: Vec<i64> = (0..400).map(|index| 5 + random(index) as i64 % 40_000).collect();
        // log2(40,000) = 15.29.
        assert!(bits(check(&even, Shape::Even)) < 15.5);
    }

    #[test]
    fn other_columns_are_refused() {
        assert!(Rice::of(&[1; 400]).is_none());
        assert!(Rice::of(&[1, 2, 3]).is_none());
        let far: Vec<i64> = (0..40).map(|index| if index == 7 { i64::MAX } else { index }).collect();
        assert!(Rice::of(&far).is_none());
        let mut back = Vec::new();
        assert_eq!(decode(&mut &[63u8, 0][..], 1, &mut back), Err(CodecError::Field("low bits")));
        assert_eq!(decode(&mut &[192u8, 0, 1][..], 1, &mut back), Err(CodecError::Field("digit")));
        assert_eq!(
            decode(&mut &[0u8, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], 1, &mut back),
            Err(CodecError::Field("quotient"))
        );
    }
}
