//! The limits of the vertical axis.
//!
//! Computed from the range of the data, `--lower-limit`, `--upper-limit`, `--rigid`, `--allow-shrink`,
//! `--alt-autoscale` and its variants, and `--logarithmic`. All arithmetic is in RRDtool's order, so that limits are
//! the same to the bit.

use super::options::{Options, YGrid};
use crate::print::scale::Scale;

/// Round limits that RRDtool chooses, in units of the axis (1, k, M, ...). Measured by sweeping data over 12 decades.
const ROUND: [f64; 46] = [
    1000.0, 900.0, 800.0, 750.0, 700.0, 600.0, 500.0, 400.0, 300.0, 250.0, 200.0, 125.0, 100.0, 90.0, 80.0,
    75.0, 70.0, 60.0, 50.0, 40.0, 30.0, 25.0, 20.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.5, 3.0, 2.5, 2.0,
    1.8, 1.5, 1.2, 1.0, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1,
];

/// The lowest and the highest of the values that a graph shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    low: f64,
    high: f64,
    positive_only: bool,
}

impl Extent {
    /// The extent of no values. A logarithmic axis ignores values that are not positive.
    pub fn new(options: &Options) -> Extent {
        Extent { low: f64::INFINITY, high: f64::NEG_INFINITY, positive_only: options.logarithmic }
    }

    /// Adds a value, after stacking, of a shape without `skipscale`. Compat: NaN and infinities are ignored.
    pub fn add(&mut self, value: f64) {
        if value.is_finite() && !(self.positive_only && value <= 0.0) {
            // Makes 0 of -0.
            let value = value + 0.0;
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
    }

    /// Whether there was any value.
    fn known(&self) -> bool {
        self.low <= self.high
    }
}

/// If the upper limit is below a positive lower one, the lower one becomes this times the upper.
const INVERTED: f64 = 0.99;
/// The same for a lower limit that is not positive.
const INVERTED_BELOW: f64 = 1.01;
/// Limits of a logarithmic axis without data, before they are widened.
const LOGARITHMIC_EMPTY: (f64, f64) = (5.1e-9, 5.1);

/// The limits of the axis: lowest and highest value.
///
/// Compat: the first is greater only if the upper limit is negative and the lower one, of the options, is positive.
pub fn limits(options: &Options, extent: &Extent) -> (f64, f64) {
    let (low, high) = narrow_limits(options, extent);
    if options.logarithmic || options.rigid && !options.allow_shrink {
        return (low, high);
    }
    if let YGrid::Custom { step, label_factor } = options.y_grid {
        let labelled = f64::from(label_factor) * step;
        return (labelled * (low / labelled).floor(), labelled * (high / labelled).ceil());
    }
    let widening = (high - low) * 0.1;
    match (options.alt_autoscale, options.alt_autoscale_min, options.alt_autoscale_max) {
        (true, ..) => spread(options, low, high),
        (false, true, _) => (low - widening, high),
        (false, false, true) => (low, high + widening),
        (false, false, false) => round(options, low, high),
    }
}

/// The limits before they are widened. Compat: the axis takes its unit from these.
pub(super) fn narrow_limits(options: &Options, extent: &Extent) -> (f64, f64) {
    apart(requested(options, extent))
}

/// The extent under the options for limits.
///
/// Compat: a logarithmic axis reaches from half the least value to twice the greatest, except where that value is the
/// option's limit.
fn requested(options: &Options, extent: &Extent) -> (f64, f64) {
    let (mut low, mut high) = match options.logarithmic {
        _ if extent.known() => (extent.low, extent.high),
        true => LOGARITHMIC_EMPTY,
        false => (0.0, 1.0),
    };
    let fixed = options.rigid && !options.allow_shrink;
    if let Some(limit) = options.lower_limit
        && (fixed || if options.rigid { low < limit } else { low > limit })
    {
        low = limit;
    }
    if let Some(limit) = options.upper_limit
        && (fixed || if options.rigid { high > limit } else { high < limit })
    {
        high = limit;
    }
    if options.logarithmic {
        low = if options.lower_limit == Some(low) { low } else { low * 0.5 };
        high = if options.upper_limit == Some(high) { high } else { high * 2.0 };
    }
    (low, high)
}

/// Moves equal limits apart. Compat: also those that single precision hardly tells apart.
fn apart((low, high): (f64, f64)) -> (f64, f64) {
    let low = match low > high {
        true if low > 0.0 => high * INVERTED,
        true => high * INVERTED_BELOW,
        false => low,
    };
    if !alike(low, high) {
        return (low, high);
    }
    let high = match high {
        0.0 => 1.0,
        _ if high > 0.0 => high * 1.01,
        _ => high * 0.99,
    };
    (low, high)
}

/// Whether two numbers are the same in single precision, give or take its last four steps.
fn alike(one: f64, other: f64) -> bool {
    // Integers in the order of the floats.
    let place = |value: f64| {
        let bits = i64::from((value as f32).to_bits() as i32);
        if bits < 0 { i64::from(i32::MIN) - bits } else { bits }
    };
    (place(one) - place(other)).abs() <= 4
}

/// The next round limits outwards.
///
/// Compat: a lower limit that is round and positive moves on to the next one all the same, and so does an upper limit
/// that is round and negative. Limits nearer to 0 than a tenth of the unit or beyond 1000 units (`--base 1024`) stay.
fn round(options: &Options, low: f64, high: f64) -> (f64, f64) {
    let factor = Scale::of(low.abs().max(high.abs()), f64::from(options.base)).factor;
    let (scaled_low, scaled_high) = (low / factor, high / factor);
    let (mut new_low, mut new_high) = (low, high);
    for pair in ROUND.windows(2) {
        let [outer, inner] = [pair[0], pair[1]];
        if outer >= scaled_low && inner <= scaled_low {
            new_low = inner * factor;
        }
        if -outer <= scaled_low && -inner >= scaled_low {
            new_low = -outer * factor;
        }
        if outer >= scaled_high && inner <= scaled_high {
            new_high = outer * factor;
        }
        if -outer <= scaled_high && -inner >= scaled_high {
            new_high = -inner * factor;
        }
    }
    (new_low, new_high)
}

/// Limits of `--alt-autoscale`: wider by a tenth of the range on both sides. The range is at least 2 % of the greater
/// limit's power of ten.
///
/// Compat: that power is taken from the value in its unit, but applied to the value itself.
fn spread(options: &Options, low: f64, high: f64) -> (f64, f64) {
    let range = high - low;
    let greatest = low.abs().max(high.abs());
    let scaled = greatest / Scale::of(greatest, f64::from(options.base)).factor;
    let least = 2.0 * 10_f64.powf(scaled.log10().floor() - 2.0);
    let more = if range < least { (least - range) * 0.55 } else { range * 0.1 };
    (low - more, high + more)
}
