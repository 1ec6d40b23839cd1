//! Magnitudes (SI prefixes): 1500 is 1.5 k.

/// The prefixes from 10^-18 to 10^18 (for base 1000); the middle one is none.
const SYMBOLS: &[u8; 13] = b"afpnum kMGTPE";
const MIDDLE: i32 = 6;

/// A magnitude.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// The divisor of values.
    pub(crate) factor: f64,
    /// The prefix.
    pub(crate) symbol: u8,
}

impl Scale {
    /// The magnitude of `value` in powers of `base`. Compat: beyond the prefixes it is `?`, and the
    /// factor is 0 for values so large or small that the power overflows.
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
