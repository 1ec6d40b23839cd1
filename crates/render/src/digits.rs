//! Numbers of the text formats (SVG, EPS), with no more digits than can be seen.
//!
//! A coordinate is rounded once, to integer units of the last decimal place. Differences are taken between these
//! integers, so relative steps of a path never drift.

/// Greatest coordinate in pixels; larger numbers and NaN become this. Printers and cairo count in 1/256 pixel and end at
/// 2^23.
const FURTHEST: f64 = 8e6;

/// How many decimal places there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places(usize);

impl Places {
    /// Enough for a hundredth of a pixel of the zoomed image: the eye sees no more, and cairo rounds to 1/256.
    pub(crate) fn of_zoom(zoom: f64) -> Places {
        Places(2 + zoom.log10().ceil().clamp(0.0, 4.0) as usize)
    }

    /// This many decimal places.
    pub(crate) const fn new(places: usize) -> Places {
        Places(places)
    }

    /// Converts a value to units of the last place.
    pub(crate) fn units(self, value: f64) -> i64 {
        (value.clamp(-FURTHEST, FURTHEST) * self.scale() as f64).round() as i64
    }

    /// Converts units back to a value.
    #[cfg(feature = "pdf")]
    pub(crate) fn value(self, units: i64) -> f64 {
        units as f64 / self.scale() as f64
    }

    /// Writes a count of units.
    pub(crate) fn push_units(self, out: &mut String, units: i64) {
        if units < 0 {
            out.push('-');
        }
        let (whole, mut rest) = (units.unsigned_abs() / self.scale(), units.unsigned_abs() % self.scale());
        if whole > 0 || rest == 0 {
            out.push_str(itoa(whole, &mut [0; 20]));
        }
        if rest > 0 {
            out.push('.');
            let mut place = self.scale() / 10;
            while rest > 0 {
                out.push(char::from(b'0' + (rest / place) as u8));
                rest %= place;
                place /= 10;
            }
        }
    }

    /// Writes a value.
    pub(crate) fn push(self, out: &mut String, value: f64) {
        self.push_units(out, self.units(value));
    }

    fn scale(self) -> u64 {
        10u64.pow(self.0 as u32)
    }
}

/// The digits of a number, in `buffer`: `write!` costs five times as much, and a big picture has 100,000 of them.
fn itoa(mut number: u64, buffer: &mut [u8; 20]) -> &str {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    std::str::from_utf8(&buffer[at..]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(places: usize, value: f64, want: &str) {
        let mut out = String::new();
        Places::new(places).push(&mut out, value);
        assert_eq!(out, want, "{value} with {places} places");
    }

    #[test]
    fn as_few_digits_as_needed() {
        check(2, 0.0, "0");
        check(2, -0.0, "0");
        check(2, 0.004, "0");
        check(2, -0.004, "0");
        check(2, 0.5, ".5");
        check(2, -0.25, "-.25");
        check(2, 12.0, "12");
        check(2, 12.05, "12.05");
        check(2, 99.999, "100");
        check(3, 0.001, ".001");
        check(0, 1.5, "2");
    }

    #[test]
    fn what_is_no_number_or_too_far_is_written_all_the_same() {
        check(2, f64::NAN, "0");
        check(2, f64::INFINITY, "8000000");
        check(2, f64::MIN, "-8000000");
        check(6, 1e300, "8000000");
    }

    #[test]
    fn a_larger_zoom_needs_more_places() {
        assert_eq!(Places::of_zoom(1.0), Places(2));
        assert_eq!(Places::of_zoom(0.1), Places(2));
        assert_eq!(Places::of_zoom(2.0), Places(3));
        assert_eq!(Places::of_zoom(f64::NAN), Places(2));
        assert_eq!(Places::of_zoom(1e300), Places(6));
    }
}
