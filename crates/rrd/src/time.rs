//! Points in time as RRDtool keeps them: whole units since the epoch, and millionths of a unit.

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
