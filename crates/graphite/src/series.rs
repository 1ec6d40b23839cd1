//! A series: values at even distances, with a name, tags, and how it is to be consolidated.

use crate::number;

/// How several values become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consolidation {
    /// The average of those there are.
    #[default]
    Average,
    /// The average, in which missing values are 0.
    AverageZero,
    /// The sum.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The first there is.
    First,
    /// The last there is.
    Last,
}

impl Consolidation {
    /// The function called `name`.
    pub fn from_name(name: &str) -> Option<Consolidation> {
        Some(match name {
            "average" | "avg" => Consolidation::Average,
            "avg_zero" => Consolidation::AverageZero,
            "sum" => Consolidation::Sum,
            "min" => Consolidation::Min,
            "max" => Consolidation::Max,
            "first" => Consolidation::First,
            "last" => Consolidation::Last,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Consolidation::Average => "average",
            Consolidation::AverageZero => "avg_zero",
            Consolidation::Sum => "sum",
            Consolidation::Min => "min",
            Consolidation::Max => "max",
            Consolidation::First => "first",
            Consolidation::Last => "last",
        }
    }

    fn of(self, values: &[f64]) -> f64 {
        let mut known = values.iter().copied().filter(|value| !value.is_nan());
        let count = known.clone().count() as f64;
        match self {
            Consolidation::Average => known.sum_up() / count,
            Consolidation::AverageZero => known.sum_up() / values.len() as f64,
            Consolidation::Sum => known.sum_up(),
            Consolidation::Min => {
                known.reduce(|least, value| if value < least { value } else { least }).unwrap_or(f64::NAN)
            }
            Consolidation::Max => {
                known.reduce(|most, value| if value > most { value } else { most }).unwrap_or(f64::NAN)
            }
            Consolidation::First => known.next().unwrap_or(f64::NAN),
            Consolidation::Last => known.next_back().unwrap_or(f64::NAN),
        }
    }
}

/// Sums in the order of the values, beginning with 0: the bits of a sum depend on both.
pub trait SumUp {
    /// The sum.
    fn sum_up(self) -> f64;
}

impl<I: Iterator<Item = f64>> SumUp for I {
    fn sum_up(self) -> f64 {
        self.fold(0.0, |sum, value| sum + value)
    }
}

/// How a picture shows a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Style {
    /// A colour as it was given.
    pub color: Option<String>,
    /// How dense it is, from 0 to 1.
    pub alpha: Option<f64>,
    /// The width of its line.
    pub width: Option<f64>,
    /// The length of its dashes.
    pub dashes: Option<f64>,
    /// Whether it stands on the one before.
    pub is_stacked: bool,
    /// Whether it is not drawn.
    pub is_hidden: bool,
}

/// A series. A NaN is no value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name, as shown.
    pub name: String,
    /// The expression that it is of: names of sums are made of these.
    pub expression: String,
    /// Tags, its name among them.
    pub tags: Vec<(String, String)>,
    /// When its first value begins, in seconds since the epoch.
    pub start: i64,
    /// Its end; one step after the last value, or two for an RRD.
    pub end: i64,
    /// Seconds between values, at least 1.
    pub step: i64,
    /// Values.
    pub values: Vec<f64>,
    /// Whether all values are counts, which are written without a fraction.
    pub is_whole: bool,
    /// How it is consolidated.
    pub consolidation: Consolidation,
    /// The share of values that must be known for a consolidated one.
    pub xff: f64,
    /// Values that become one in an answer; 0 is 1.
    pub values_per_point: usize,
    /// How it looks.
    pub style: Style,
}

impl Series {
    /// A series with a single tag, its name.
    pub fn new(name: impl Into<String>, start: i64, end: i64, step: i64, values: Vec<f64>) -> Series {
        let name = name.into();
        Series {
            expression: name.clone(),
            tags: vec![("name".to_owned(), name.clone())],
            name,
            start,
            end,
            step,
            values,
            ..Series::default()
        }
    }

    /// The same with other values, under a new name.
    pub fn derived(self, name: String, values: Vec<f64>) -> Series {
        Series { expression: name.clone(), name, values, is_whole: false, style: Style::default(), ..self }
    }

    /// Sets a tag.
    pub fn set_tag(&mut self, tag: &str, value: impl Into<String>) {
        let value = value.into();
        match self.tags.iter_mut().find(|(name, _)| name == tag) {
            Some(found) => found.1 = value,
            None => self.tags.push((tag.to_owned(), value)),
        }
    }

    /// Sets a tag to a number.
    pub fn set_number(&mut self, tag: &str, value: f64) {
        self.set_tag(tag, number::repr(value));
    }

    /// A tag's value.
    pub fn tag(&self, tag: &str) -> &str {
        self.tags.iter().find(|(name, _)| name == tag).map_or("", |(_, value)| value)
    }

    /// Puts a function around its name, and makes that its expression.
    pub fn rename(&mut self, name: String) {
        self.expression.clone_from(&name);
        self.name = name;
    }

    /// Values of which each stands for `count` of it.
    pub fn consolidated(&self, count: usize) -> Vec<f64> {
        if count <= 1 {
            return self.values.clone();
        }
        let one = |values: &[f64]| {
            let known = values.iter().filter(|value| !value.is_nan()).count();
            match known > 0 && known as f64 / count as f64 >= self.xff {
                true => self.consolidation.of(values),
                false => f64::NAN,
            }
        };
        self.values.chunks(count).map(one).collect()
    }

    /// Whether consolidated values are still counts.
    pub fn stays_whole(&self, count: usize) -> bool {
        let divides = matches!(self.consolidation, Consolidation::Average | Consolidation::AverageZero);
        self.is_whole && (count <= 1 || !divides)
    }

    /// The seconds between values of an answer.
    pub fn point_seconds(&self) -> i64 {
        self.step.saturating_mul(self.values_per_point.max(1) as i64)
    }
}

/// The values of an answer, for at most `points_max` points: bands of values begin at multiples of their length, so that they
/// stay where they are when an answer is asked for again a little later.
pub fn limit_points(all: &mut [Series], points_max: usize) {
    let Some(start) = all.iter().map(|series| series.start).min() else { return };
    let end = all.iter().map(|series| series.end).max().unwrap_or(start);
    if all.iter().all(|series| series.values.is_empty()) || points_max == 0 {
        return;
    }
    let range = end.saturating_sub(start) as f64;
    for series in all {
        if points_max == 1 {
            series.values_per_point = series.values.len();
            continue;
        }
        let count = range / series.step as f64;
        if points_max as f64 >= count {
            continue;
        }
        let per_point = (count / points_max as f64).ceil().max(1.0) as usize;
        let seconds = series.step.saturating_mul(per_point as i64);
        let nudge = seconds + series.start.rem_euclid(series.step) - series.start.rem_euclid(seconds);
        let lost = (nudge / series.step - 1).clamp(0, series.values.len() as i64);
        series.start = series.start.saturating_add(nudge);
        series.values.drain(..lost as usize);
        series.values_per_point = per_point;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(start: i64, count: i64) -> Series {
        Series::new("a", start, start + 10 * count, 10, (0..count).map(|value| value as f64).collect())
    }

    #[test]
    fn values_are_consolidated() {
        let mut it = series(0, 5);
        it.values[1] = f64::NAN;
        let mut check = |consolidation, xff, want: &[f64]| {
            it.consolidation = consolidation;
            it.xff = xff;
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&it.consolidated(2)), bits(want), "{consolidation:?}");
        };
        check(Consolidation::Average, 0.0, &[0.0, 2.5, 4.0]);
        check(Consolidation::Sum, 0.0, &[0.0, 5.0, 4.0]);
        check(Consolidation::Max, 0.6, &[f64::NAN, 3.0, f64::NAN]);
        check(Consolidation::First, 0.0, &[0.0, 2.0, 4.0]);
        check(Consolidation::Last, 0.5, &[0.0, 3.0, 4.0]);
    }

    #[test]
    fn bands_stay_where_they_are() {
        let bands = |start| {
            let mut all = [series(start, 100)];
            limit_points(&mut all, 10);
            let [it] = all;
            (it.start, it.values.len(), it.point_seconds())
        };
        assert_eq!(bands(1000), (1100, 91, 100));
        assert_eq!(bands(1010), (1100, 92, 100));
        assert_eq!(bands(1090), (1100, 100, 100));
    }
}
