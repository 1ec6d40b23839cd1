//! Quantiles and fractions of classic histograms: counters of buckets with the label `le`.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::ast::{Expr, Span};
use crate::labels::{Labels, quoted};
use crate::notes::Mended;
use crate::value::{ABSENT, Column, Grid, is_absent};

use super::{Evaluator, Result, merge};

/// The label of a bucket's upper bound.
const BOUND: &str = "le";
/// Counts that differ by less than this part are equal: sums of rates are not exact.
const TOLERANCE: f64 = 1e-12;

/// The buckets of one histogram.
struct Histogram {
    labels: Labels,
    unnamed: bool,
    name: String,
    /// Upper bounds with the places of their columns.
    buckets: Vec<(f64, usize)>,
}

/// A bucket at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bucket {
    bound: f64,
    count: f64,
}

impl Evaluator<'_> {
    pub(super) fn histogram_quantile(&mut self, arguments: &[Expr], grid: Grid) -> Result<Vec<Column>> {
        let q = self.scalar(&arguments[0], grid)?;
        if let Some(wrong) = q.iter().find(|q| !(0.0..=1.0).contains(*q)) {
            self.warn_quantile(*wrong, arguments[0].span);
        }
        let columns = self.vector(&arguments[1], grid)?;
        let histograms = self.histograms(&columns, arguments[1].span);
        self.quantiles(&columns, histograms, &q, arguments[1].span, grid)
    }

    /// Several quantiles at once, each with its value as a label.
    pub(super) fn histogram_quantiles(&mut self, arguments: &[Expr], grid: Grid) -> Result<Vec<Column>> {
        let label = self.text(&arguments[1], grid)?;
        let columns = self.vector(&arguments[0], grid)?;
        let mut answer = Vec::new();
        for argument in &arguments[2..] {
            let q = self.scalar(argument, grid)?;
            if let Some(wrong) = q.iter().find(|q| !(0.0..=1.0).contains(*q)) {
                self.warn_quantile(*wrong, argument.span);
            }
            let histograms = self.histograms(&columns, arguments[0].span);
            for column in self.quantiles(&columns, histograms, &q, arguments[0].span, grid)? {
                answer.extend(by_quantile(&column, &label, &q));
            }
        }
        merge(answer)
    }

    pub(super) fn histogram_fraction(&mut self, arguments: &[Expr], grid: Grid) -> Result<Vec<Column>> {
        let (lower, upper) = (self.scalar(&arguments[0], grid)?, self.scalar(&arguments[1], grid)?);
        let columns = self.vector(&arguments[2], grid)?;
        let histograms = self.histograms(&columns, arguments[2].span);
        let mut answer = Vec::with_capacity(histograms.len());
        for histogram in histograms {
            let values = (0..grid.count)
                .map(|index| match buckets(&columns, &histogram, index) {
                    Some(mut buckets) => {
                        mend(&mut buckets);
                        fraction(lower[index], upper[index], &buckets)
                    }
                    None => ABSENT,
                })
                .collect();
            answer.push(Column { labels: histogram.labels, unnamed: histogram.unnamed, values });
        }
        Ok(answer)
    }

    /// The histograms that columns are buckets of.
    fn histograms(&mut self, columns: &[Column], span: Span) -> Vec<Histogram> {
        let mut places: HashMap<Labels, usize, FixedState> = HashMap::with_hasher(FixedState::default());
        let mut all: Vec<Histogram> = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            let text = column.labels.get(BOUND);
            let bound = crate::number::parse(text).filter(|bound| !text.is_empty() && !bound.is_nan());
            let Some(bound) = bound else {
                self.warn_bucket(column, text, span);
                continue;
            };
            let delayed = self.options.delayed_names;
            let all_labels = if delayed { column.labels.clone() } else { column.labels.without_name() };
            let labels = all_labels.filter(|name| name != BOUND);
            let at = *places.entry(labels.clone()).or_insert(all.len());
            if at == all.len() {
                // A name that is removed at once is not known to messages.
                let name = if delayed { column.name().to_owned() } else { String::new() };
                all.push(Histogram { labels, unnamed: delayed, name, buckets: Vec::new() });
            }
            all[at].buckets.push((bound, place));
        }
        all.iter_mut().for_each(|histogram| histogram.buckets.sort_by(|a, b| a.0.total_cmp(&b.0)));
        all
    }

    fn warn_bucket(&mut self, column: &Column, text: &str, span: Span) {
        let name = match column.name() {
            "" => String::new(),
            _ if !self.options.delayed_names => String::new(),
            name => format!(" for metric name {}", quoted(name)),
        };
        let text =
            format!("bucket label \"le\" is missing or has a malformed value of {}{name}", quoted(text));
        self.notes.warn(text, Some(span));
    }

    fn quantiles(
        &mut self,
        columns: &[Column],
        histograms: Vec<Histogram>,
        q: &[f64],
        span: Span,
        grid: Grid,
    ) -> Result<Vec<Column>> {
        self.reserve(histograms.len(), grid)?;
        let mut answer = Vec::with_capacity(histograms.len());
        for histogram in histograms {
            let mut values = vec![ABSENT; grid.count];
            for (index, value) in values.iter_mut().enumerate() {
                let Some(mut buckets) = buckets(columns, &histogram, index) else { continue };
                if let Some((low, high, difference)) = mend(&mut buckets) {
                    let time = grid.time(index);
                    self.notes.mend(Mended {
                        name: histogram.name.clone(),
                        span,
                        times: (time, time),
                        buckets: (low, high),
                        difference,
                        count: 1,
                    });
                }
                *value = quantile(q[index], &buckets);
            }
            answer.push(Column { labels: histogram.labels, unnamed: histogram.unnamed, values });
        }
        Ok(answer)
    }
}

/// A column for each value that the quantile has.
fn by_quantile(column: &Column, label: &str, q: &[f64]) -> Vec<Column> {
    let mut all: Vec<Column> = Vec::new();
    for (index, value) in column.values.iter().enumerate() {
        let labels = column.labels.with(label, &crate::number::open_metrics(q[index]));
        let at = all.iter().position(|known| known.labels == labels).unwrap_or_else(|| {
            all.push(Column { labels, unnamed: column.unnamed, values: vec![ABSENT; column.values.len()] });
            all.len() - 1
        });
        all[at].values[index] = *value;
    }
    all
}

/// The buckets of a histogram at a time; counts of equal bounds together.
fn buckets(columns: &[Column], histogram: &Histogram, index: usize) -> Option<Vec<Bucket>> {
    let mut all: Vec<Bucket> = Vec::with_capacity(histogram.buckets.len());
    for (bound, place) in &histogram.buckets {
        let count = columns[*place].values[index];
        if is_absent(count) {
            continue;
        }
        match all.last_mut() {
            Some(last) if last.bound == *bound => last.count += count,
            _ => all.push(Bucket { bound: *bound, count }),
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Makes counts that fall equal to the largest before; the bounds between which, and by how much, if by more than rounding.
fn mend(buckets: &mut [Bucket]) -> Option<(f64, f64, f64)> {
    let mut largest = f64::NEG_INFINITY;
    let mut found: Option<(f64, f64, f64)> = None;
    for bucket in buckets {
        if bucket.count > largest {
            largest = bucket.count;
        } else if bucket.count < largest {
            if !are_close(bucket.count, largest) {
                let difference = largest - bucket.count;
                found = Some(match found {
                    None => (bucket.bound, bucket.bound, difference),
                    Some((low, high, other)) => {
                        (low.min(bucket.bound), high.max(bucket.bound), other.max(difference))
                    }
                });
            }
            bucket.count = largest;
        }
    }
    found
}

fn are_close(a: f64, b: f64) -> bool {
    let (size, difference) = (a.abs() + b.abs(), (a - b).abs());
    a == b || difference < size.min(f64::MAX) * TOLERANCE
}

/// The value below which the part `q` of all counts lies, on a line between a bucket's bounds.
fn quantile(q: f64, buckets: &[Bucket]) -> f64 {
    let Some(last) = buckets.last() else { return f64::NAN };
    if q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    if !(last.bound.is_infinite() && last.bound > 0.0) || buckets.len() < 2 {
        return f64::NAN;
    }
    let total = last.count;
    if total == 0.0 || total.is_nan() {
        return f64::NAN;
    }
    let rank = q * total;
    let place = buckets[..buckets.len() - 1].partition_point(|bucket| bucket.count < rank);
    if place == buckets.len() - 1 {
        return buckets[buckets.len() - 2].bound;
    }
    if place == 0 && buckets[0].bound <= 0.0 {
        return buckets[0].bound;
    }
    let end = buckets[place].bound;
    let (start, before) = match place {
        0 => (0.0, 0.0),
        place => (buckets[place - 1].bound, buckets[place - 1].count),
    };
    start + (end - start) * ((rank - before) / (buckets[place].count - before))
}

/// The part of all counts between two values.
fn fraction(lower: f64, upper: f64, buckets: &[Bucket]) -> f64 {
    let Some(last) = buckets.last() else { return f64::NAN };
    if !(last.bound.is_infinite() && last.bound > 0.0) {
        return f64::NAN;
    }
    let total = last.count;
    if total == 0.0 || total.is_nan() || lower.is_nan() || upper.is_nan() {
        return f64::NAN;
    }
    if lower >= upper {
        return 0.0;
    }
    (below(upper, buckets) - below(lower, buckets)) / total
}

/// The count below a value.
fn below(value: f64, buckets: &[Bucket]) -> f64 {
    let (mut start, mut before) = (if buckets[0].bound > 0.0 { 0.0 } else { f64::NEG_INFINITY }, 0.0);
    for bucket in buckets {
        if value <= start {
            return before;
        }
        if value < bucket.bound {
            // What is in a bucket without an end is at its finite end.
            if bucket.bound.is_infinite() {
                return before;
            }
            if start.is_infinite() {
                return bucket.count;
            }
            return before + (bucket.count - before) * (value - start) / (bucket.bound - start);
        }
        (start, before) = (bucket.bound, bucket.count);
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pairs: &[(f64, f64)]) -> Vec<Bucket> {
        pairs.iter().map(|&(bound, count)| Bucket { bound, count }).collect()
    }

    #[test]
    fn quantiles_lie_on_lines() {
        let buckets = all(&[(1.0, 2.0), (2.0, 4.0), (f64::INFINITY, 4.0)]);
        assert_eq!(quantile(0.25, &buckets), 0.5);
        assert_eq!(quantile(0.75, &buckets), 1.5);
        assert_eq!(quantile(1.0, &buckets), 2.0);
        assert!(quantile(0.5, &buckets[..2]).is_nan());
        assert_eq!(fraction(0.0, 1.5, &buckets), 0.75);
        assert_eq!(fraction(f64::NEG_INFINITY, f64::INFINITY, &buckets), 1.0);
    }

    #[test]
    fn counts_that_fall_are_mended() {
        let mut buckets = all(&[(1.0, 3.0), (2.0, 2.0), (3.0, 3.0 - 1e-14)]);
        assert_eq!(mend(&mut buckets), Some((2.0, 2.0, 1.0)));
        assert_eq!(buckets, all(&[(1.0, 3.0), (2.0, 3.0), (3.0, 3.0)]));
    }
}
