//! Aggregations.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::ast::{Aggregate, Aggregator, Grouping};
use crate::labels::{Labels, NAME};
use crate::value::{ABSENT, Column, Grid, is_absent};

use super::scalar::{Mean, Sum, Variance, quantile};
use super::{Evaluator, Result, refuse};

/// The columns of a group.
pub(super) struct Group {
    pub labels: Labels,
    /// Their places.
    pub members: Vec<usize>,
    unnamed: bool,
}

impl Evaluator<'_> {
    pub(super) fn aggregate(&mut self, aggregate: &Aggregate, grid: Grid) -> Result<Vec<Column>> {
        let operator = aggregate.operator;
        let columns = self.vector(&aggregate.expr, grid)?;
        let parameter = match (&aggregate.parameter, operator) {
            (Some(parameter), Aggregator::CountValues) => {
                let label = self.text(parameter, grid)?;
                return self.count_values(&label, &columns, &aggregate.grouping, grid);
            }
            (Some(parameter), _) => self.scalar(parameter, grid)?,
            (None, _) => Vec::new(),
        };
        let groups = groups(&columns, &aggregate.grouping);
        if matches!(
            operator,
            Aggregator::Topk | Aggregator::Bottomk | Aggregator::Limitk | Aggregator::LimitRatio
        ) {
            return self.pick(aggregate, parameter, columns, groups, grid);
        }
        if let (Some(parameter), Some(wrong)) =
            (&aggregate.parameter, parameter.iter().find(|q| !(0.0..=1.0).contains(*q)))
        {
            self.warn_quantile(*wrong, parameter.span);
        }
        self.reserve(groups.len(), grid)?;
        let mut answer = Vec::with_capacity(groups.len());
        for group in groups {
            let members: Vec<&[f64]> = group.members.iter().map(|place| &*columns[*place].values).collect();
            let values = match operator {
                Aggregator::Quantile => quantiles(&members, &parameter, grid),
                _ => fold(operator, &members, grid),
            };
            answer.push(Column { labels: group.labels, unnamed: group.unnamed, values });
        }
        Ok(answer)
    }

    fn count_values(
        &mut self,
        label: &str,
        columns: &[Column],
        grouping: &Grouping,
        grid: Grid,
    ) -> Result<Vec<Column>> {
        if label.is_empty() {
            return refuse(format!("invalid label name {}", crate::labels::quoted(label)));
        }
        let mut places: HashMap<Labels, usize, FixedState> = HashMap::with_hasher(FixedState::default());
        let mut answer: Vec<Column> = Vec::new();
        for group in groups(columns, grouping) {
            for place in &group.members {
                for (index, value) in columns[*place].values.iter().enumerate() {
                    if is_absent(*value) {
                        continue;
                    }
                    let labels = group.labels.with(label, &crate::number::plain(*value));
                    let at = *places.entry(labels.clone()).or_insert(answer.len());
                    if at == answer.len() {
                        self.reserve(1, grid)?;
                        let unnamed = group.unnamed && label != NAME;
                        answer.push(Column { labels, unnamed, values: vec![ABSENT; grid.count] });
                    }
                    let count = &mut answer[at].values[index];
                    *count = if is_absent(*count) { 1.0 } else { *count + 1.0 };
                }
            }
        }
        Ok(answer)
    }
}

/// The groups of columns, in the order of their first members.
pub(super) fn groups(columns: &[Column], grouping: &Grouping) -> Vec<Group> {
    let mut places: HashMap<Labels, usize, FixedState> = HashMap::with_hasher(FixedState::default());
    let mut all: Vec<Group> = Vec::new();
    let keeps_name = !grouping.without && grouping.labels.iter().any(|label| label == NAME);
    for (place, column) in columns.iter().enumerate() {
        let has = |name: &str| grouping.labels.iter().any(|label| label == name);
        let labels = match (grouping.without, grouping.labels.is_empty()) {
            (false, true) => Labels::default(),
            (false, false) => column.labels.filter(has),
            (true, _) => column.labels.without_name().filter(|name| !has(name)),
        };
        let at = *places.entry(labels.clone()).or_insert(all.len());
        match all.get_mut(at) {
            Some(group) => {
                group.members.push(place);
                group.unnamed |= keeps_name && column.unnamed;
            }
            None => all.push(Group { labels, members: vec![place], unnamed: keeps_name && column.unnamed }),
        }
    }
    all
}

/// One value for each time of several columns.
fn fold(operator: Aggregator, members: &[&[f64]], grid: Grid) -> Vec<f64> {
    match operator {
        Aggregator::Sum => sums(members, grid),
        Aggregator::Avg => {
            states(members, grid, |mean: &mut Mean, value| mean.add(value), |mean| mean.value())
        }
        Aggregator::Stdvar => {
            states(members, grid, |all: &mut Variance, value| all.add(value), |all| all.value())
        }
        Aggregator::Stddev => {
            states(members, grid, |all: &mut Variance, value| all.add(value), |all| all.value().sqrt())
        }
        Aggregator::Count => states(members, grid, |count: &mut f64, _| *count += 1.0, |count| *count),
        Aggregator::Group => states(members, grid, |one: &mut f64, _| *one = 1.0, |one| *one),
        Aggregator::Max => extremes(members, grid, |new, old| new > old),
        _ => extremes(members, grid, |new, old| new < old),
    }
}

fn sums(members: &[&[f64]], grid: Grid) -> Vec<f64> {
    states(members, grid, |sum: &mut Sum, value| sum.add(value), Sum::total)
}

/// Adds all values of a time to a state, which then answers.
fn states<S: Default + Clone>(
    members: &[&[f64]],
    grid: Grid,
    add: impl Fn(&mut S, f64),
    answer: impl Fn(&S) -> f64,
) -> Vec<f64> {
    let mut states: Vec<Option<S>> = vec![None; grid.count];
    for values in members {
        for (state, value) in states.iter_mut().zip(*values) {
            if !is_absent(*value) {
                add(state.get_or_insert_default(), *value);
            }
        }
    }
    states.iter().map(|state| state.as_ref().map_or(ABSENT, &answer)).collect()
}

fn extremes(members: &[&[f64]], grid: Grid, replaces: impl Fn(f64, f64) -> bool) -> Vec<f64> {
    let mut best = vec![ABSENT; grid.count];
    for values in members {
        for (best, value) in best.iter_mut().zip(*values) {
            if !is_absent(*value) && (is_absent(*best) || replaces(*value, *best) || best.is_nan()) {
                *best = *value;
            }
        }
    }
    best
}

fn quantiles(members: &[&[f64]], q: &[f64], grid: Grid) -> Vec<f64> {
    let mut present = Vec::with_capacity(members.len());
    let at = |index: usize| {
        present.clear();
        present.extend(members.iter().map(|values| values[index]).filter(|value| !is_absent(*value)));
        if present.is_empty() { ABSENT } else { quantile(q[index], &mut present) }
    };
    (0..grid.count).map(at).collect()
}
