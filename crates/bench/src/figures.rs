//! Repeated measurements of a figure, and numbers as text.

use std::fmt;

/// Measurements of one figure, in the order they were taken.
#[derive(Clone, Debug, Default)]
pub struct Runs(Vec<f64>);

impl Runs {
    /// A figure measured once.
    pub fn one(value: f64) -> Self {
        Runs(vec![value])
    }

    /// Adds a measurement.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Adds the measurements of another series.
    pub fn append(&mut self, mut other: Runs) {
        self.0.append(&mut other.0);
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The value below which `part` of the measurements lie; NaN without any.
    pub fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get((part * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
    }

    /// Each measurement divided by the one of the same run in another series, or by the only one there is.
    pub fn per(&self, other: &Runs) -> Runs {
        let count = self.0.len().max(other.0.len());
        let at = |runs: &Runs, run: usize| runs.0.get(run).or(runs.0.last()).copied().unwrap_or(f64::NAN);
        Runs((0..count).map(|run| at(self, run) / at(other, run)).collect())
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// `median [min..max] unit`, or the only one.
    pub fn text(&self, unit: Unit) -> String {
        let median = unit.text(self.median());
        if self.0.len() < 2 {
            return median;
        }
        format!("{median} [{}..{}]", unit.text(self.quantile(0.0)), unit.text(self.quantile(1.0)))
    }
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things per second.
    PerSecond,
    /// Seconds, shown in a fitting unit.
    Seconds,
    /// Bytes, shown in a fitting unit.
    Bytes,
    /// A bare number.
    Number,
}

impl Unit {
    /// A value with three significant digits.
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::PerSecond => format!("{}/s", thousands(value, &["", " k", " M", " G"])),
            Unit::Bytes => thousands(value, &[" B", " kB", " MB", " GB", " TB"]),
            Unit::Number => thousands(value, &["", " k", " M", " G"]),
            Unit::Seconds if value < 1e-3 => format!("{} us", digits(value * 1e6)),
            Unit::Seconds if value < 1.0 => format!("{} ms", digits(value * 1e3)),
            Unit::Seconds => format!("{} s", digits(value)),
        }
    }
}

fn thousands(value: f64, suffixes: &[&str]) -> String {
    let mut value = value;
    let mut index = 0;
    while value.abs() >= 1000.0 && index + 1 < suffixes.len() {
        value /= 1000.0;
        index += 1;
    }
    format!("{}{}", digits(value), suffixes[index])
}

fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_string(),
        small if small < 10.0 => format!("{value:.2}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The goal of a row of the table: ours against the peer's.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// Ours is at least this many times the peer's.
    Times(f64),
    /// Ours is at most one n-th of the peer's.
    Part(f64),
    /// Ours is at most this much, whatever the peer's.
    AtMost(f64, Unit),
    /// Ours is at least so many per second, whatever the peer's.
    AtLeast(f64),
    /// For orientation only.
    None,
}

impl Goal {
    /// Whether it is met; `None` without a goal or a peer.
    pub fn met(self, ours: f64, peer: f64) -> Option<bool> {
        let ratio = ours / peer;
        match self {
            Goal::Times(times) => ratio.is_finite().then_some(ratio >= times),
            Goal::Part(part) => ratio.is_finite().then_some(ratio * part <= 1.0),
            Goal::AtMost(bound, _) => Some(ours <= bound),
            Goal::AtLeast(bound) => Some(ours >= bound),
            Goal::None => None,
        }
    }

    /// The ratio as this goal is written: `3.2x` or `1/12`.
    pub fn ratio_text(self, ours: f64, peer: f64) -> String {
        let ratio = ours / peer;
        match self {
            _ if !ratio.is_finite() || ratio <= 0.0 => "-".to_string(),
            Goal::Part(_) if ratio < 1.0 => format!("1/{}", digits(1.0 / ratio)),
            _ => format!("{}x", digits(ratio)),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Times(times) => write!(f, "{times}x"),
            Goal::Part(part) if *part < 1.0 => write!(f, "{}x at most", digits(1.0 / part)),
            Goal::Part(part) if *part <= 1.0 => f.write_str("not more"),
            Goal::Part(part) => write!(f, "1/{part}"),
            Goal::AtMost(bound, unit) => f.write_str(&unit.text(*bound)),
            Goal::AtLeast(bound) => f.write_str(&Unit::PerSecond.text(*bound)),
            Goal::None => f.write_str("-"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_give_median_and_spread() {
        let mut runs = Runs::default();
        assert!(runs.median().is_nan());
        for value in [3e6, 1e6, 2e6] {
            runs.push(value);
        }
        assert_eq!(runs.text(Unit::PerSecond), "2.00 M/s [1.00 M/s..3.00 M/s]");
        let mut halves = Runs::one(6e6);
        halves.push(2e6);
        assert_eq!(halves.per(&Runs::one(2e6)).0, [3.0, 1.0]);
        assert_eq!(Runs::one(1.0).per(&halves).0, [1.0 / 6e6, 1.0 / 2e6]);
        assert_eq!(Runs::one(0.0000123).text(Unit::Seconds), "12.3 us");
    }

    #[test]
    fn goals_are_met_or_not() {
        assert_eq!(Goal::Times(6.0).met(12.0, 2.0), Some(true));
        assert_eq!(Goal::Times(6.0).met(11.0, 2.0), Some(false));
        assert_eq!(Goal::Part(8.0).met(1.0, 8.0), Some(true));
        assert_eq!(Goal::Part(8.0).met(1.1, 8.0), Some(false));
        assert_eq!(Goal::Part(8.0).ratio_text(1.0, 16.0), "1/16.0");
        assert_eq!(Goal::AtMost(10.0, Unit::Seconds).met(3.0, f64::NAN), Some(true));
        assert_eq!(Goal::AtLeast(10.0).met(3.0, f64::NAN), Some(false));
        assert_eq!(Goal::None.met(1.0, 1.0), None);
    }
}
