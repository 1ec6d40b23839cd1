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
    if operator != Aggregator::Limitk {
        let value = |place: usize| columns[place].values[index];
        present.sort_by(|a, b| super::label::by_value(value(*a), value(*b), operator == Aggregator::Topk));
    }
    present.truncate(count);
    present
}

/// Whether a series is of the share that its labels' hash says: the first part of all for a positive share, the last for a negative one.
fn is_in_share(columns: &[Column], place: usize, share: f64) -> bool {
    let hash = foldhash::quality::FixedState::with_seed(1).hash_one(&columns[place].labels);
    let position = hash as f64 / u64::MAX as f64;
    if share >= 0.0 { position < share || share == 1.0 } else { position >= 1.0 + share }
}
