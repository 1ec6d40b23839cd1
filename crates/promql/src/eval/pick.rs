//! Aggregations that take some of the series: `topk`, `bottomk`, `limitk`, `limit_ratio`.

use std::hash::BuildHasher;

use crate::ast::{Aggregate, Aggregator};
use crate::value::{ABSENT, Column, Grid, is_absent};

use super::aggregate::Group;
use super::{Evaluator, Result, refuse};

impl Evaluator<'_> {
    pub(super) fn pick(
        &mut self,
        aggregate: &Aggregate,
        parameter: Vec<f64>,
        columns: Vec<Column>,
        groups: Vec<Group>,
        grid: Grid,
    ) -> Result<Vec<Column>> {
        let operator = aggregate.operator;
        let span = aggregate.parameter.as_ref().map(|parameter| parameter.span);
        let parameter = self.checked(operator, parameter, span)?;
        let mut masks: Vec<Vec<bool>> = vec![Vec::new(); columns.len()];
        self.reserve(columns.len().div_ceil(8), grid)?;
        masks.iter_mut().for_each(|mask| mask.resize(grid.count, false));
        let mut order: Vec<usize> = Vec::new();
        for group in &groups {
            for index in 0..grid.count {
                let present: Vec<usize> = group
                    .members
                    .iter()
                    .copied()
                    .filter(|place| !is_absent(columns[*place].values[index]))
                    .collect();
                let chosen = choose(operator, parameter[index], present, &columns, index);
                chosen.iter().for_each(|place| masks[*place][index] = true);
                if index == 0 {
                    order.extend(&chosen);
                }
            }
        }
        let mut columns: Vec<Option<Column>> = columns.into_iter().map(Some).collect();
        let mut answer = Vec::new();
        // Where there is one time only, the order is part of the answer.
        let rest: Vec<usize> = (0..columns.len()).collect();
        let order = if grid.count == 1 { order } else { rest };
        for place in order {
            let Some(mut column) = columns[place].take() else { continue };
            for (value, chosen) in column.values.iter_mut().zip(&masks[place]) {
                if !chosen {
                    *value = ABSENT;
                }
            }
            if !column.is_empty() {
                answer.push(column);
            }
        }
        Ok(answer)
    }

    /// The parameter at each time, within its bounds.
    fn checked(
        &mut self,
        operator: Aggregator,
        mut parameter: Vec<f64>,
        span: Option<crate::ast::Span>,
    ) -> Result<Vec<f64>> {
        for value in &mut parameter {
            if operator == Aggregator::LimitRatio {
                if value.is_nan() {
                    return refuse("Ratio value is NaN");
                }
                let bounded = value.clamp(-1.0, 1.0);
                if bounded != *value {
                    let short = crate::number::short;
                    let text = format!(
                        "ratio value should be between -1 and 1, got {}, capping to {}",
                        short(*value),
                        short(bounded)
                    );
                    self.notes.warn(text, span);
                    *value = bounded;
                }
                continue;
            }
            if value.is_nan() {
                return refuse("Parameter value is NaN");
            }
            if *value < i64::MIN as f64 {
                return refuse(format!("Scalar value {} underflows int64", crate::number::text(*value)));
            }
            if *value >= i64::MAX as f64 {
                return refuse(format!("Scalar value {} overflows int64", crate::number::text(*value)));
            }
            *value = value.trunc();
        }
        Ok(parameter)
    }
}

/// Those of `present` that are taken, in their order.
fn choose(
    operator: Aggregator,
    parameter: f64,
    mut present: Vec<usize>,
    columns: &[Column],
    index: usize,
) -> Vec<usize> {
    if operator == Aggregator::LimitRatio {
        present.retain(|place| is_in_share(columns, *place, parameter));
        return present;
    }
    let count = parameter.max(0.0) as usize;
    if operator == Aggregator::Limitk {
        present.truncate(count);
        return present;
    }
    let descends = operator == Aggregator::Topk;
    let value = |place: usize| columns[place].values[index];
    let is_worse = |a: usize, b: usize| {
        let (a, b) = (value(a), value(b));
        a.is_nan() || if descends { a < b } else { a > b }
    };
    let mut best = Heap { places: Vec::new(), is_worse };
    for place in present {
        best.offer(place, count, |worst| {
            let (old, new) = (value(worst), value(place));
            (if descends { old < new } else { old > new }) || (old.is_nan() && !new.is_nan())
        });
    }
    let mut chosen = best.places;
    chosen.sort_by(|a, b| super::label::by_value(value(*a), value(*b), descends));
    chosen
}

/// The best places so far, the worst of them on top. Which of equal ones stay depends on how it is kept, and has to be as in Prometheus.
struct Heap<F> {
    places: Vec<usize>,
    is_worse: F,
}

impl<F: Fn(usize, usize) -> bool> Heap<F> {
    /// Adds a place if there is room, or in place of the worst if `replaces` says so.
    fn offer(&mut self, place: usize, count: usize, replaces: impl Fn(usize) -> bool) {
        if self.places.len() < count {
            self.places.push(place);
            self.rise(self.places.len() - 1);
        } else if self.places.first().is_some_and(|worst| replaces(*worst)) {
            self.places[0] = place;
            self.sink();
        }
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !(self.is_worse)(self.places[at], self.places[parent]) {
                return;
            }
            self.places.swap(at, parent);
            at = parent;
        }
    }

    fn sink(&mut self) {
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.places.len() {
                return;
            }
            let is_right =
                right < self.places.len() && (self.is_worse)(self.places[right], self.places[left]);
            let child = if is_right { right } else { left };
            if !(self.is_worse)(self.places[child], self.places[at]) {
                return;
            }
            self.places.swap(at, child);
            at = child;
        }
    }
}

/// Whether a series is of the share that its labels' hash says: the first part of all for a positive share, the last for a negative one.
fn is_in_share(columns: &[Column], place: usize, share: f64) -> bool {
    let hash = foldhash::quality::FixedState::with_seed(1).hash_one(&columns[place].labels);
    let position = hash as f64 / u64::MAX as f64;
    if share >= 0.0 { position < share || share == 1.0 } else { position >= 1.0 + share }
}
