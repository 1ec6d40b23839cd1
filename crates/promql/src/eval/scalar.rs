//! Operators and functions of numbers.

use rrd::when::calendar::{Calendar, Civil, Utc};

use crate::ast::BinaryOperator;
use crate::calendar::days_in_month;

/// The result of an operator; a comparison answers 1 or 0.
pub fn binary(operator: BinaryOperator, left: f64, right: f64) -> f64 {
    let truth = |truth: bool| if truth { 1.0 } else { 0.0 };
    match operator {
        BinaryOperator::Add => left + right,
        BinaryOperator::Subtract => left - right,
        BinaryOperator::Multiply => left * right,
        BinaryOperator::Divide => left / right,
        BinaryOperator::Modulo => left % right,
        BinaryOperator::Power => left.powf(right),
        BinaryOperator::Atan2 => left.atan2(right),
        BinaryOperator::Equal => truth(left == right),
        BinaryOperator::NotEqual => truth(left != right),
        BinaryOperator::Greater => truth(left > right),
        BinaryOperator::Less => truth(left < right),
        BinaryOperator::GreaterOrEqual => truth(left >= right),
        BinaryOperator::LessOrEqual => truth(left <= right),
        BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Unless => f64::NAN,
    }
}

/// Functions of one number that need nothing else.
pub(super) fn simple(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "abs" => f64::abs,
        "acos" => f64::acos,
        "acosh" => f64::acosh,
        "asin" => f64::asin,
        "asinh" => f64::asinh,
        "atan" => f64::atan,
        "atanh" => f64::atanh,
        "ceil" => f64::ceil,
        "cos" => f64::cos,
        "cosh" => f64::cosh,
        "deg" => f64::to_degrees,
        "exp" => f64::exp,
        "floor" => f64::floor,
        "ln" => f64::ln,
        "log10" => f64::log10,
        "log2" => f64::log2,
        "rad" => f64::to_radians,
        "sin" => f64::sin,
        "sinh" => f64::sinh,
        "sqrt" => f64::sqrt,
        "tan" => f64::tan,
        "tanh" => f64::tanh,
        "sgn" => |value| {
            if value > 0.0 {
                1.0
            } else if value < 0.0 {
                -1.0
            } else {
                value
            }
        },
        _ => return None,
    })
}

/// Functions of a time in seconds.
pub(super) fn calendar(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "day_of_month" => |time| f64::from(civil(time).day),
        "day_of_week" => |time| f64::from(civil(time).weekday),
        "day_of_year" => |time| f64::from(civil(time).year_day + 1),
        "days_in_month" => |time| {
            let civil = civil(time);
            f64::from(days_in_month(civil.year, civil.month + 1))
        },
        "hour" => |time| f64::from(civil(time).hour),
        "minute" => |time| f64::from(civil(time).minute),
        "month" => |time| f64::from(civil(time).month + 1),
        "year" => |time| f64::from(civil(time).year),
        _ => return None,
    })
}

fn civil(seconds: f64) -> Civil {
    Utc.local(seconds as i64)
}

/// `value` to the nearest multiple of `nearest`, halves upwards.
pub(super) fn round(value: f64, nearest: f64) -> f64 {
    // Dividing by the inverse is exact for decimal fractions such as 0.1.
    let inverse = 1.0 / nearest;
    (value * inverse + 0.5).floor() / inverse
}

/// A sum that keeps what its rounding loses, after Neumaier.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub sum: f64,
    /// What the sum is too small by.
    pub lost: f64,
}

impl Sum {
    pub(super) fn add(&mut self, value: f64) {
        let total = self.sum + value;
        if total.is_infinite() {
            self.lost = 0.0;
        } else if self.sum.abs() >= value.abs() {
            self.lost += (self.sum - total) + value;
        } else {
            self.lost += (value - total) + self.sum;
        }
        self.sum = total;
    }

    pub(super) fn total(&self) -> f64 {
        if self.sum.is_infinite() { self.sum } else { self.sum + self.lost }
    }

    fn is_overflowing(&self) -> bool {
        self.sum.is_infinite()
    }

    /// The average of the `count` values of this sum, as [`Mean`] has it; `None` if the sum is no number any more.
    pub(super) fn average(&self, count: f64) -> Option<f64> {
        self.sum.is_finite().then(|| self.sum / count + self.lost / count)
    }
}

/// An average whose sum may be larger than any number: then it goes on as an average.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: Sum,
    /// The average so far, once sums are too large.
    running: Option<(f64, f64)>,
    count: f64,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        if self.running.is_none() {
            let mut sum = self.sum;
            sum.add(value);
            if self.count == 1.0 || !sum.is_overflowing() {
                self.sum = sum;
                return;
            }
            let before = self.count - 1.0;
            self.running = Some((self.sum.sum / before, self.sum.lost / before));
        }
        let Some((mean, lost)) = &mut self.running else { return };
        if mean.is_infinite() {
            if value.is_infinite() && (*mean > 0.0) == (value > 0.0) {
                return;
            }
            if !value.is_infinite() && !value.is_nan() {
                return;
            }
        }
        let share = (self.count - 1.0) / self.count;
        let mut sum = Sum { sum: share * *mean, lost: share * *lost };
        sum.add(value / self.count);
        (*mean, *lost) = (sum.sum, sum.lost);
    }

    pub(super) fn value(&self) -> f64 {
        match self.running {
            Some((mean, _)) if !mean.is_finite() => mean,
            Some((mean, lost)) => mean + lost,
            None => self.sum.sum / self.count + self.sum.lost / self.count,
        }
    }
}

/// The variance of a population, in one pass after Welford.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variance {
    count: f64,
    mean: Sum,
    squares: Sum,
}

impl Variance {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        let delta = value - self.mean.total();
        self.mean.add(delta / self.count);
        self.squares.add(delta * (value - self.mean.total()));
    }

    pub(super) fn value(&self) -> f64 {
        self.squares.total() / self.count
    }
}

/// The quantile of values, which are put in order; NaN is the smallest.
pub(super) fn quantile(q: f64, values: &mut [f64]) -> f64 {
    if values.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan())));
    let rank = q * (values.len() as f64 - 1.0);
    let lower = rank.floor().max(0.0) as usize;
    let upper = (lower + 1).min(values.len() - 1);
    let weight = rank - rank.floor();
    if weight == 0.0 { values[lower] } else { values[lower] * (1.0 - weight) + values[upper] * weight }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_small_parts() {
        let mut sum = Sum::default();
        [1e100, 1.0, -1e100].into_iter().for_each(|value| sum.add(value));
        assert_eq!(sum.total(), 1.0);
    }

    #[test]
    fn averages_of_huge_numbers_are_finite() {
        let mut mean = Mean::default();
        [f64::MAX, f64::MAX, f64::MAX].into_iter().for_each(|value| mean.add(value));
        assert!((mean.value() / f64::MAX - 1.0).abs() < 1e-15);
        let mut mean = Mean::default();
        [1.0, f64::INFINITY, f64::NEG_INFINITY].into_iter().for_each(|value| mean.add(value));
        assert!(mean.value().is_nan());
    }

    #[test]
    fn quantiles_lie_between_values() {
        assert_eq!(quantile(0.5, &mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(quantile(1.5, &mut [1.0]), f64::INFINITY);
        assert_eq!(round(2.5, 1.0), 3.0);
        assert_eq!(round(-2.5, 1.0), -2.0);
    }
}
