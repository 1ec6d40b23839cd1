//! Aggregations.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::ast::{Aggregate, Aggregator, Grouping};
use crate::labels::{Labels, NAME};
use crate::value::{ABSENT, Column, Grid, is_absent};

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
        let folded = self.folded(operator, &parameter, &columns, &groups, grid)?;
        let column =
            |(group, values): (Group, _)| Column { labels: group.labels, unnamed: group.unnamed, values };
        Ok(groups.into_iter().zip(folded).map(column).collect())
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
    if !grouping.without && grouping.labels.is_empty() {
        let members: Vec<usize> = (0..columns.len()).collect();
        let all = Group { labels: Labels::default(), members, unnamed: false };
        return if columns.is_empty() { Vec::new() } else { vec![all] };
    }
    let keeps_name = !grouping.without && grouping.labels.iter().any(|label| label == NAME);
    for (place, column) in columns.iter().enumerate() {
        let has = |name: &str| grouping.labels.iter().any(|label| label == name);
        let labels = match grouping.without {
            false => column.labels.filter(has),
            true => column.labels.without_name().filter(|name| !has(name)),
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
