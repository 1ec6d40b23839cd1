//! Functions of the values of a range.

use super::scalar::{Mean, Sum, Variance, quantile};
use super::window::Window;

/// The function called so, if it needs only the values and times of a window that is not empty.
pub(super) fn simple(name: &str) -> Option<fn(&Window<'_>) -> Option<f64>> {
    Some(match name {
        "avg_over_time" => |window| Some(mean(window.values)),
        "max_over_time" => |window| Some(extreme(window.values, |new, old| new > old)),
        "min_over_time" => |window| Some(extreme(window.values, |new, old| new < old)),
        "first_over_time" => |window| window.values.first().copied(),
        "last_over_time" => |window| window.values.last().copied(),
        "present_over_time" => |_| Some(1.0),
        "stddev_over_time" => |window| Some(variance(window.values).sqrt()),
        "stdvar_over_time" => |window| Some(variance(window.values)),
        "mad_over_time" => |window| Some(deviation(window.values)),
        "deriv" => |window| {
            let (slope, _) = line(window, window.times.first().copied()?)?;
            Some(slope)
        },
        "ts_of_first_over_time" => |window| window.times.first().map(|time| *time as f64 / 1000.0),
        "ts_of_last_over_time" => |window| window.times.last().map(|time| *time as f64 / 1000.0),
        "ts_of_max_over_time" => |window| Some(time_of(window, |new, old| new >= old)),
        "ts_of_min_over_time" => |window| Some(time_of(window, |new, old| new <= old)),
        _ => return None,
    })
}

/// The sum of values.
pub(super) fn sum(values: &[f64]) -> f64 {
    let mut sum = Sum::default();
    values.iter().for_each(|value| sum.add(*value));
    sum.total()
}

fn mean(values: &[f64]) -> f64 {
    let mut mean = Mean::default();
    values.iter().for_each(|value| mean.add(*value));
    mean.value()
}

fn variance(values: &[f64]) -> f64 {
    let mut variance = Variance::default();
    values.iter().for_each(|value| variance.add(*value));
    variance.value()
}

/// The value that none replaces; any replaces a NaN.
fn extreme(values: &[f64], replaces: impl Fn(f64, f64) -> bool) -> f64 {
    let choose = |old: f64, new: f64| if replaces(new, old) || old.is_nan() { new } else { old };
    values.iter().copied().reduce(choose).unwrap_or(f64::NAN)
}

fn time_of(window: &Window<'_>, replaces: impl Fn(f64, f64) -> bool) -> f64 {
    let mut best = 0;
    for (index, value) in window.values.iter().enumerate() {
        if replaces(*value, window.values[best]) || window.values[best].is_nan() {
            best = index;
        }
    }
    window.times[best] as f64 / 1000.0
}

/// The median distance from the median.
fn deviation(values: &[f64]) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let mut all = values.to_vec();
    let median = quantile(0.5, &mut all);
    let mut distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    quantile(0.5, &mut distances)
}

/// Slope per second and value at `origin` of the line nearest to the values by least squares.
pub(super) fn line(window: &Window<'_>, origin: i64) -> Option<(f64, f64)> {
    if window.len() < 2 {
        return None;
    }
    let first = window.values[0];
    if window.values.iter().all(|value| *value == first) {
        return Some(if first.is_infinite() { (f64::NAN, f64::NAN) } else { (0.0, first) });
    }
    let (mut x_sum, mut y_sum, mut xy_sum, mut xx_sum) =
        (Sum::default(), Sum::default(), Sum::default(), Sum::default());
    for (time, y) in window.times.iter().zip(window.values) {
        let x = (time - origin) as f64 / 1000.0;
        x_sum.add(x);
        y_sum.add(*y);
        xy_sum.add(x * y);
        xx_sum.add(x * x);
    }
    let count = window.len() as f64;
    let (x, y) = (x_sum.total(), y_sum.total());
    let covariance = xy_sum.total() - x * y / count;
    let variance = xx_sum.total() - x * x / count;
    let slope = covariance / variance;
    Some((slope, y / count - slope * x / count))
}

/// A value that follows level and trend, each smoothed by its factor.
pub(super) fn smooth(window: &Window<'_>, level_factor: f64, trend_factor: f64) -> Option<f64> {
    let [first, second, ..] = window.values else { return None };
    let (mut level, mut trend, mut before) = (*first, second - first, 0.0);
    for (index, value) in window.values.iter().enumerate().skip(1) {
        if index > 1 {
            trend = trend_factor * (level - before) + (1.0 - trend_factor) * trend;
        }
        let next = level_factor * value + (1.0 - level_factor) * (level + trend);
        (before, level) = (level, next);
    }
    Some(level)
}

/// The area under the values in seconds: of rectangles with the left (0) or right (1) value, or of trapezes. NaN counts as 0.
pub(super) fn integral(window: &Window<'_>, strategy: i64) -> Option<f64> {
    let mut sum = Sum::default();
    for (times, values) in window.times.windows(2).zip(window.values.windows(2)) {
        let seconds = (times[1] - times[0]) as f64 / 1000.0;
        // Each side for itself: their sum may be larger than any number, and loses what is small.
        let (left, right) = match strategy {
            0 => (1.0, 0.0),
            1 => (0.0, 1.0),
            _ => (0.5, 0.5),
        };
        for (share, value) in [(left, values[0]), (right, values[1])] {
            if share > 0.0 && !value.is_nan() {
                sum.add(value * share * seconds);
            }
        }
    }
    Some(sum.total())
}
