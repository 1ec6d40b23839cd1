//! Functions that make one value of several: over the values of a series, and over series at each time.

use std::borrow::Cow;

use crate::series::{Series, SumUp};

/// Such a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// The average of those there are.
    Average,
    /// The average, in which missing values are 0.
    AverageZero,
    /// The middle one, or the average of the two in the middle.
    Median,
    /// The sum.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The first, less the others.
    Diff,
    /// The standard deviation of the whole population.
    StdDev,
    /// How many there are.
    Count,
    /// The largest less the smallest.
    Range,
    /// The product, if none is missing.
    Multiply,
    /// The last there is.
    Last,
}

/// Functions by their names, the other names after them.
const NAMES: [(&str, Aggregation); 16] = [
    ("average", Aggregation::Average),
    ("avg_zero", Aggregation::AverageZero),
    ("median", Aggregation::Median),
    ("sum", Aggregation::Sum),
    ("min", Aggregation::Min),
    ("max", Aggregation::Max),
    ("diff", Aggregation::Diff),
    ("stddev", Aggregation::StdDev),
    ("count", Aggregation::Count),
    ("range", Aggregation::Range),
    ("multiply", Aggregation::Multiply),
    ("last", Aggregation::Last),
    ("rangeOf", Aggregation::Range),
    ("avg", Aggregation::Average),
    ("total", Aggregation::Sum),
    ("current", Aggregation::Last),
];

impl Aggregation {
    /// The function called `name`, which may end with `Series`.
    pub fn from_name(name: &str) -> Option<Aggregation> {
        let name = name.strip_suffix("Series").unwrap_or(name);
        NAMES.iter().find(|(one, _)| *one == name).map(|(_, function)| *function)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// The value for several; NaN if there is none.
    pub fn of(self, values: &[f64]) -> f64 {
        let mut known = values.iter().copied().filter(|value| !value.is_nan());
        let count = known.clone().count();
        if count == 0 && !matches!(self, Aggregation::Count | Aggregation::AverageZero) {
            return f64::NAN;
        }
        match self {
            Aggregation::Average => known.sum_up() / count as f64,
            Aggregation::AverageZero if values.is_empty() => f64::NAN,
            Aggregation::AverageZero => known.sum_up() / values.len() as f64,
            Aggregation::Median => median(known.collect()),
            Aggregation::Sum => known.sum_up(),
            Aggregation::Min => least(known),
            Aggregation::Max => most(known),
            Aggregation::Diff => {
                let first = known.next().unwrap_or(f64::NAN);
                // As a sum that begins at 0.
                known.fold(0.0 + first, |rest, value| rest + -value)
            }
            Aggregation::StdDev => deviation(known, count),
            Aggregation::Count => count as f64,
            Aggregation::Range => most(known.clone()) - least(known),
            Aggregation::Multiply if count < values.len() => f64::NAN,
            Aggregation::Multiply => known.reduce(|product, value| product * value).unwrap_or(f64::NAN),
            Aggregation::Last => known.next_back().unwrap_or(f64::NAN),
        }
    }

    /// Whether what it makes of counts are counts.
    pub fn keeps_whole(self) -> bool {
        use Aggregation::{Count, Diff, Last, Max, Min, Sum};
        matches!(self, Sum | Min | Max | Diff | Last | Count)
    }

    /// At each time, the value for those of all columns. Where fewer than `xff` of them are known, there is none.
    pub fn over(self, columns: &[Cow<'_, [f64]>], xff: f64) -> Vec<f64> {
        let length = columns.iter().map(|column| column.len()).max().unwrap_or(0);
        if matches!(
            self,
            Aggregation::Sum
                | Aggregation::Average
                | Aggregation::Count
                | Aggregation::Min
                | Aggregation::Max
        ) {
            return self.by_columns(columns, length, xff);
        }
        let mut row = vec![f64::NAN; columns.len()];
        (0..length)
            .map(|index| {
                for (value, column) in row.iter_mut().zip(columns) {
                    *value = column.get(index).copied().unwrap_or(f64::NAN);
                }
                let known = row.iter().filter(|value| !value.is_nan()).count();
                if is_enough(known, columns.len(), xff) { self.of(&row) } else { f64::NAN }
            })
            .collect()
    }

    /// The same column by column, which reads memory in its order. The order of additions is that of the columns.
    fn by_columns(self, columns: &[Cow<'_, [f64]>], length: usize, xff: f64) -> Vec<f64> {
        let mut values =
            vec![if matches!(self, Aggregation::Min | Aggregation::Max) { f64::NAN } else { 0.0 }; length];
        let mut counts = vec![0u32; length];
        for column in columns {
            for ((total, count), &value) in values.iter_mut().zip(&mut counts).zip(column.iter()) {
                if value.is_nan() {
                    continue;
                }
                *count += 1;
                match self {
                    Aggregation::Min => {
                        *total = if value < *total || total.is_nan() { value } else { *total }
                    }
                    Aggregation::Max => {
                        *total = if value > *total || total.is_nan() { value } else { *total }
                    }
                    _ => *total += value,
                }
            }
        }
        for (value, &count) in values.iter_mut().zip(&counts) {
            if !is_enough(count as usize, columns.len(), xff) {
                *value = f64::NAN;
                continue;
            }
            match self {
                Aggregation::Average => *value /= f64::from(count),
                Aggregation::Count => *value = f64::from(count),
                _ => {}
            }
        }
        values
    }
}

/// Whether so many known values of so many suffice.
pub fn is_enough(known: usize, all: usize, xff: f64) -> bool {
    known > 0 && all > 0 && known as f64 / all as f64 >= xff
}

fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.reduce(|least, value| if value < least { value } else { least }).unwrap_or(f64::NAN)
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.reduce(|most, value| if value > most { value } else { most }).unwrap_or(f64::NAN)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

fn deviation(values: impl Iterator<Item = f64> + Clone, count: usize) -> f64 {
    let average = values.clone().sum_up() / count as f64;
    let squares = values.map(|value| (value - average) * (value - average)).sum_up();
    (squares / count as f64).sqrt()
}

/// The value below which `percent` of the known ones are; NaN if there are none.
pub fn percentile(values: &[f64], percent: f64, interpolates: bool) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    if count == 0 || percent.is_nan() {
        return f64::NAN;
    }
    let place = percent / 100.0 * (count as f64 + 1.0);
    let whole = place.trunc();
    let fraction = place - whole;
    let rank = whole + if interpolates { 0.0 } else { fraction.ceil() };
    let rank = rank.clamp(0.0, count as f64 + 1.0) as usize;
    let value = match rank {
        0 => sorted[0],
        rank => sorted[(rank - 1).min(count - 1)],
    };
    match sorted.get(rank) {
        Some(next) if interpolates => value + fraction * (next - value),
        _ => value,
    }
}

/// Series on common times.
pub struct Normal<'a> {
    /// Their values.
    pub columns: Vec<Cow<'a, [f64]>>,
    /// The start.
    pub start: i64,
    /// The end.
    pub end: i64,
    /// The distance of values: the least common multiple of theirs.
    pub step: i64,
}

/// The least step that all steps divide; `None` if it is beyond all times.
pub fn common_step(series: impl Iterator<Item = i64>) -> Option<i64> {
    let gcd = |mut a: i64, mut b: i64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut series = series;
    let first = series.next()?.max(1);
    series.try_fold(first, |all, step| {
        (all / gcd(all, step.max(1))).checked_mul(step.max(1)).filter(|step| *step < 1 << 40)
    })
}

/// Consolidates series to common times; `None` if there are none.
pub fn normalize<'a>(all: impl Iterator<Item = &'a Series> + Clone) -> Option<Normal<'a>> {
    let step = common_step(all.clone().map(|series| series.step))?;
    let start = all.clone().map(|series| series.start).min()?;
    let end = all.clone().map(|series| series.end).max()?;
    let columns = all
        .map(|series| match step / series.step.max(1) {
            ..=1 => Cow::Borrowed(&*series.values),
            count => Cow::Owned(series.consolidated(count as usize)),
        })
        .collect();
    Some(Normal { columns, start, end: end - (end - start) % step, step })
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: f64 = f64::NAN;

    #[test]
    fn values_become_one() {
        let values = [3.0, N, 1.0, 8.0];
        for (name, want) in [
            ("average", 4.0),
            ("avg_zero", 3.0),
            ("median", 3.0),
            ("sumSeries", 12.0),
            ("min", 1.0),
            ("max", 8.0),
            ("diff", -6.0),
            ("count", 3.0),
            ("rangeOf", 7.0),
            ("current", 8.0),
        ] {
            assert_eq!(Aggregation::from_name(name).unwrap().of(&values), want, "{name}");
        }
        assert!(Aggregation::Multiply.of(&values).is_nan());
        assert_eq!(Aggregation::StdDev.of(&[1.0, 3.0]), 1.0);
        assert_eq!(Aggregation::Count.of(&[N]), 0.0);
    }

    #[test]
    fn columns_and_rows_agree() {
        let columns = [
            Cow::Owned(vec![1.0, N, 0.1, -0.0]),
            Cow::Owned(vec![2.0, N, 0.2]),
            Cow::Owned(vec![N, N, 0.3, N]),
        ];
        for (_, function) in NAMES {
            for xff in [0.0, 0.5, 1.0] {
                let all = function.over(&columns, xff);
                for (index, value) in all.iter().enumerate() {
                    let row: Vec<f64> =
                        columns.iter().map(|column| column.get(index).copied().unwrap_or(N)).collect();
                    let known = row.iter().filter(|value| !value.is_nan()).count();
                    let want = if is_enough(known, 3, xff) { function.of(&row) } else { N };
                    assert_eq!(value.to_bits() << 1, want.to_bits() << 1, "{function:?} {index}");
                }
            }
        }
    }

    #[test]
    fn percentiles_are_values_or_between_them() {
        let values = [1.0, 2.0, N, 3.0, 4.0];
        for (percent, interpolates, want) in [
            (50.0, false, 3.0),
            (50.0, true, 2.5),
            (0.0, false, 1.0),
            (100.0, false, 4.0),
            (1000.0, true, 4.0),
        ] {
            assert_eq!(percentile(&values, percent, interpolates), want, "{percent}");
        }
    }

    #[test]
    fn steps_meet() {
        assert_eq!(common_step([10, 15, 20].into_iter()), Some(60));
        assert_eq!(common_step([1 << 39, (1 << 39) - 1].into_iter()), None);
    }
}
