//! Points in time as RRDtool keeps them: whole units since the epoch, and millionths of a unit; and as programs show them.

use std::fmt;

use bytemuck::{Pod, Zeroable};

/// Millionths in one unit.
pub const MICROS: u32 = 1_000_000;

/// A point in time, in *units* of the RRD it belongs to.
///
/// For every RRD that RRDtool can make, the unit is a second. An RRD with a step below one second counts in
/// thousandths (see [`crate::definition::Definition::units_per_second`]), which keeps the engine's arithmetic on
/// steps in integers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
pub struct Timestamp {
    /// Whole units since the epoch.
    pub whole: i64,
    /// Millionths of a unit, `0..1_000_000`.
    pub micros: u32,
    /// Always zero; leaves the struct without padding.
    reserved: u32,
}

impl Timestamp {
    /// A point `micros` millionths after `whole` units. `micros` must be below one million.
    pub const fn new(whole: i64, micros: u32) -> Self {
        debug_assert!(micros < MICROS);
        Timestamp { whole, micros, reserved: 0 }
    }

    /// A point in time without a fraction.
    pub const fn whole(whole: i64) -> Self {
        Timestamp::new(whole, 0)
    }

    /// This point, given in seconds, in an RRD's own units (1 or 1000 per second).
    pub fn in_units(self, units_per_second: u32) -> Self {
        if units_per_second == 1 {
            return self;
        }
        let scaled = u64::from(self.micros) * u64::from(units_per_second);
        Timestamp::new(
            self.whole
                .saturating_mul(i64::from(units_per_second))
                .saturating_add((scaled / u64::from(MICROS)) as i64),
            (scaled % u64::from(MICROS)) as u32,
        )
    }

    /// The reverse of [`Timestamp::in_units`]: whole seconds and microseconds, rounded down.
    pub fn in_seconds(self, units_per_second: u32) -> Self {
        if units_per_second == 1 {
            return self;
        }
        let unit = i64::from(units_per_second);
        let rest = self.whole.rem_euclid(unit) as u64 * u64::from(MICROS) + u64::from(self.micros);
        Timestamp::new(self.whole.div_euclid(unit), (rest / u64::from(units_per_second)) as u32)
    }
}

/// A time as programs show it: whole seconds, or three decimals where the RRD counts thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Units since the epoch.
    pub units: i64,
    /// Units per second: 1 or 1000.
    pub units_per_second: u32,
}

impl Moment {
    /// A whole second.
    pub const fn of_second(seconds: i64) -> Self {
        Moment { units: seconds, units_per_second: 1 }
    }

    /// The second in which it lies.
    pub fn second(self) -> i64 {
        self.units.div_euclid(i64::from(self.units_per_second.max(1)))
    }

    /// Seconds since the epoch, for formats that have only doubles.
    pub fn as_f64(self) -> f64 {
        self.units as f64 / f64::from(self.units_per_second.max(1))
    }

    /// Reads what `Display` writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Moment> {
        let Some((whole, decimals)) = text.split_once('.') else {
            return text.parse().ok().map(Moment::of_second);
        };
        if decimals.len() != 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let negative = whole.starts_with('-');
        let thousandths: i64 = decimals.parse().ok()?;
        let units = whole.parse::<i64>().ok()?.checked_mul(1000)?;
        let units = units.checked_add(if negative { -thousandths } else { thousandths })?;
        Some(Moment { units, units_per_second: 1000 })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.units_per_second <= 1 {
            return write!(f, "{}", self.units);
        }
        let unit = u64::from(self.units_per_second);
        let (sign, units) = (if self.units < 0 { "-" } else { "" }, self.units.unsigned_abs());
        write!(f, "{sign}{}.{:03}", units / unit, units % unit * 1000 / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_it_is_shown() {
        for text in ["1700000000", "1700000000.001", "1700000000.000", "-0.250", "-3.999", "0"] {
            assert_eq!(Moment::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "x", "1.5", "1.0000", "1.2.3", "1.0e3", "9223372036854775.999"] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
        assert_eq!(Moment::parse("-0.250").unwrap().second(), -1);
    }
}
