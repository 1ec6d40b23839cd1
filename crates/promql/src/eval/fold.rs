//! One value for each time of several columns. Times are cut into blocks, which threads may share: what is added up at a time is added in
//! the order of the columns, however many threads there are.

use crate::ast::Aggregator;
use crate::value::{ABSENT, Column, Grid, is_absent};

use super::aggregate::Group;
use super::scalar::{Mean, Sum, Variance, quantile};
use super::{Evaluator, Result};

/// Times of a block: what is kept of them while columns are added stays in the fastest cache.
const BLOCK: usize = 256;

impl Evaluator<'_> {
    /// The values of each group.
    pub(super) fn folded(
        &self,
        operator: Aggregator,
        parameter: &[f64],
        columns: &[Column],
        groups: &[Group],
        grid: Grid,
    ) -> Result<Vec<Vec<f64>>> {
        let blocks = grid.count.div_ceil(BLOCK);
        let values_of_item = columns.len() * grid.count / (groups.len() * blocks).max(1);
        let mut parts = self.of_many(groups.len() * blocks, values_of_item, |item| {
            let (group, from) = (&groups[item / blocks], item % blocks * BLOCK);
            let times = from..grid.count.min(from + BLOCK);
            let of_block = |place: &usize| &columns[*place].values[times.clone()];
            let members: Vec<&[f64]> = group.members.iter().map(of_block).collect();
            match operator {
                Aggregator::Quantile => quantiles(&members, &parameter[times]),
                _ => fold(operator, &members, times.len()),
            }
        })?;
        if blocks == 1 {
            return Ok(parts);
        }
        let whole = |parts: &mut [Vec<f64>]| parts.concat();
        Ok(parts.chunks_mut(blocks.max(1)).map(whole).collect())
    }
}

/// One value for each of `count` times.
fn fold(operator: Aggregator, members: &[&[f64]], count: usize) -> Vec<f64> {
    match operator {
        Aggregator::Sum => Sums::of(members, count).totals(),
        Aggregator::Avg => averages(members, count),
        Aggregator::Stdvar => {
            states(members, count, |all: &mut Variance, value| all.add(value), |all| all.value())
        }
        Aggregator::Stddev => {
            states(members, count, |all: &mut Variance, value| all.add(value), |all| all.value().sqrt())
        }
        Aggregator::Count => states(members, count, |count: &mut f64, _| *count += 1.0, |count| *count),
        Aggregator::Group => states(members, count, |one: &mut f64, _| *one = 1.0, |one| *one),
        Aggregator::Max => extremes(members, count, |new, old| new > old),
        _ => extremes(members, count, |new, old| new < old),
    }
}

/// [`Sum`]s of several times, and how many values they have: in columns, so that the processor adds several at once.
struct Sums {
    sums: Vec<f64>,
    lost: Vec<f64>,
    counts: Vec<u32>,
}

impl Sums {
    fn of(members: &[&[f64]], count: usize) -> Sums {
        let mut sums = Sums { sums: vec![0.0; count], lost: vec![0.0; count], counts: vec![0; count] };
        // Columns whose values are all there, which are counted together.
        let mut whole = 0;
        for values in members {
            match values.iter().filter(|value| is_absent(**value)).count() {
                0 => {
                    sums.add_whole(values);
                    whole += 1;
                }
                _ => sums.add(values),
            }
        }
        sums.counts.iter_mut().for_each(|count| *count += whole);
        sums
    }

    fn add_whole(&mut self, values: &[f64]) {
        for ((sum, lost), value) in self.sums.iter_mut().zip(&mut self.lost).zip(values) {
            // [`Sum::add`] without branches.
            let total = *sum + value;
            let (large, small) = if sum.abs() >= value.abs() { (*sum, *value) } else { (*value, *sum) };
            let more = *lost + ((large - total) + small);
            *lost = if total.abs() == f64::INFINITY { 0.0 } else { more };
            *sum = total;
        }
    }

    fn add(&mut self, values: &[f64]) {
        for (index, value) in values.iter().enumerate().filter(|(_, value)| !is_absent(**value)) {
            let mut sum = Sum { sum: self.sums[index], lost: self.lost[index] };
            sum.add(*value);
            (self.sums[index], self.lost[index]) = (sum.sum, sum.lost);
            self.counts[index] += 1;
        }
    }

    fn each(&self) -> impl Iterator<Item = (Sum, u32)> {
        let sums = self.sums.iter().zip(&self.lost).map(|(sum, lost)| Sum { sum: *sum, lost: *lost });
        sums.zip(self.counts.iter().copied())
    }

    fn totals(&self) -> Vec<f64> {
        self.each().map(|(sum, count)| if count == 0 { ABSENT } else { sum.total() }).collect()
    }
}

fn averages(members: &[&[f64]], count: usize) -> Vec<f64> {
    let average = |(index, (sum, count)): (usize, (Sum, u32))| {
        if count == 0 {
            return ABSENT;
        }
        if let Some(average) = sum.average(f64::from(count)) {
            return average;
        }
        // The sum is larger than any number, or there is something that is none.
        let mut mean = Mean::default();
        let there = members.iter().map(|values| values[index]).filter(|value| !is_absent(*value));
        there.for_each(|value| mean.add(value));
        mean.value()
    };
    Sums::of(members, count).each().enumerate().map(average).collect()
}

/// Adds all values of a time to a state, which then answers.
fn states<S: Default + Clone>(
    members: &[&[f64]],
    count: usize,
    add: impl Fn(&mut S, f64),
    answer: impl Fn(&S) -> f64,
) -> Vec<f64> {
    let mut states: Vec<Option<S>> = vec![None; count];
    for values in members {
        for (state, value) in states.iter_mut().zip(*values) {
            if !is_absent(*value) {
                add(state.get_or_insert_default(), *value);
            }
        }
    }
    states.iter().map(|state| state.as_ref().map_or(ABSENT, &answer)).collect()
}

fn extremes(members: &[&[f64]], count: usize, replaces: impl Fn(f64, f64) -> bool) -> Vec<f64> {
    let mut best = vec![ABSENT; count];
    for values in members {
        for (best, value) in best.iter_mut().zip(*values) {
            if !is_absent(*value) && (is_absent(*best) || replaces(*value, *best) || best.is_nan()) {
                *best = *value;
            }
        }
    }
    best
}

fn quantiles(members: &[&[f64]], q: &[f64]) -> Vec<f64> {
    let mut present = Vec::with_capacity(members.len());
    let at = |(index, q): (usize, &f64)| {
        present.clear();
        present.extend(members.iter().map(|values| values[index]).filter(|value| !is_absent(*value)));
        if present.is_empty() { ABSENT } else { quantile(*q, &mut present) }
    };
    q.iter().enumerate().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of several columns, some of which are missing, huge or no numbers.
    fn columns(count: usize) -> Vec<Vec<f64>> {
        let odd = [ABSENT, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, -f64::MAX, 1e-300, -0.0];
        let value = |column: usize, time: usize| {
            let hash = (column * 7_919 + time * 104_729 + 17).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            match (column % 3, hash >> 60) {
                (0, _) => (hash >> 20) as f64 / 1e7,
                (1, 0) => odd[hash >> 50 & 7],
                (2, 0..8) => ABSENT,
                _ => (hash >> 30) as f64 * -0.1,
            }
        };
        (0..9).map(|column| (0..count).map(|time| value(column, time)).collect()).collect()
    }

    #[test]
    fn sums_of_columns_are_those_of_single_values() {
        let all = columns(500);
        for members in [&all[..], &all[..1], &all[1..3], &[]] {
            let members: Vec<&[f64]> = members.iter().map(|values| &values[..]).collect();
            let sums = states(&members, 500, |sum: &mut Sum, value| sum.add(value), Sum::total);
            let means = states(&members, 500, |mean: &mut Mean, value| mean.add(value), Mean::value);
            for (operator, want) in [(Aggregator::Sum, sums), (Aggregator::Avg, means)] {
                for (got, want) in fold(operator, &members, 500).iter().zip(&want) {
                    let are_no_numbers = got.is_nan() && want.is_nan() && is_absent(*got) == is_absent(*want);
                    assert!(are_no_numbers || got.to_bits() == want.to_bits(), "{operator:?}: {got} {want}");
                }
            }
        }
    }
}
