//! Magnitudes: 1500 is 1.5 k.

/// The symbols, from 10^-18 to 10^18 (for base 1000); the middle one stands for no magnitude.
const SYMBOLS: &[u8; 13] = b"afpnum kMGTPE";
const MIDDLE: i32 = 6;

/// A magnitude.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// What values are divided by.
    pub(crate) factor: f64,
    /// What stands behind them.
    pub(crate) symbol: u8,
}

impl Scale {
    /// The magnitude of `value` in powers of `base`. Compat: beyond the symbols it is `?`, and values so large or
    /// so small that the power is none give a factor of 0, as in RRDtool.
    pub(crate) fn of(value: f64, base: f64) -> Scale {
        if value == 0.0 || value.is_nan() {
            return Scale { factor: 1.0, symbol: b' ' };
        }
        let power = (value.abs().ln() / base.ln()).floor();
        let power = if power.is_finite() { power as i32 } else { i32::MIN };
        let index = usize::try_from(power.saturating_add(MIDDLE)).ok();
        let symbol = index.and_then(|index| SYMBOLS.get(index)).copied().unwrap_or(b'?');
        Scale { factor: base.powf(f64::from(power)), symbol }
    }
}
