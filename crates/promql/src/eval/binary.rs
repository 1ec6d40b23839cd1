//! Operators with two sides.

use crate::ast::{Binary, BinaryOperator, Cardinality, Matching};
use crate::labels::Labels;
use crate::value::{ABSENT, Column, Grid, Value, is_absent};

use super::matching::{Pairing, labels, pairings};
use super::{Evaluator, Result, merge, refuse, scalar};

impl Evaluator<'_> {
    pub(super) fn binary(&mut self, binary: &Binary, grid: Grid) -> Result<Value> {
        let left = self.value(&binary.left, grid)?;
        let right = self.value(&binary.right, grid)?;
        match (left, right) {
            (Value::Scalar(left), Value::Scalar(right)) => {
                let values = left.iter().zip(&right).map(|(a, b)| scalar::binary(binary.operator, *a, *b));
                Ok(Value::Scalar(values.collect()))
            }
            (Value::Vector(columns), Value::Scalar(numbers)) => {
                self.with_numbers(binary, columns, &numbers, true).map(Value::Vector)
            }
            (Value::Scalar(numbers), Value::Vector(columns)) => {
                self.with_numbers(binary, columns, &numbers, false).map(Value::Vector)
            }
            (Value::Vector(left), Value::Vector(right)) if binary.operator.is_set() => {
                Ok(Value::Vector(set(binary, left, right, grid)?))
            }
            (Value::Vector(left), Value::Vector(right)) => {
                self.matched(binary, &left, &right, grid).map(Value::Vector)
            }
            _ => refuse("binary expression must contain only scalar and instant vector types"),
        }
    }

    fn with_numbers(
        &mut self,
        binary: &Binary,
        mut columns: Vec<Column>,
        numbers: &[f64],
        is_left: bool,
    ) -> Result<Vec<Column>> {
        let operator = binary.operator;
        for column in &mut columns {
            for (value, number) in column.values.iter_mut().zip(numbers) {
                if is_absent(*value) {
                    continue;
                }
                let result = match is_left {
                    true => scalar::binary(operator, *value, *number),
                    false => scalar::binary(operator, *number, *value),
                };
                if !operator.is_comparison() || binary.bool {
                    *value = result;
                } else if result == 0.0 {
                    *value = ABSENT;
                }
            }
        }
        if operator.is_comparison() && !binary.bool {
            columns.retain(|column| !column.is_empty());
            return Ok(columns);
        }
        self.unname(columns)
    }

    /// An operator of series that belong together.
    fn matched(
        &mut self,
        binary: &Binary,
        left: &[Column],
        right: &[Column],
        grid: Grid,
    ) -> Result<Vec<Column>> {
        let matching = &binary.matching;
        let mut answer = Vec::new();
        let is_filled = matching.fill_left.is_some() || matching.fill_right.is_some();
        let all = if matching.cardinality == Cardinality::OneToMany { right } else { left };
        let has_many: Vec<bool> =
            (0..grid.count).map(|index| all.iter().any(|column| !is_absent(column.values[index]))).collect();
        for pairing in pairings(left, right, matching) {
            if !is_filled && (pairing.left.is_empty() || pairing.right.is_empty()) {
                let (columns, places) = match matching.cardinality {
                    Cardinality::OneToMany => (left, &pairing.left),
                    _ => (right, &pairing.right),
                };
                // Two of the side of one are wrong even where the other side has no partner for them.
                if places.len() > 1 {
                    Side::of(columns, places).only(binary, &pairing, &has_many)?;
                }
                continue;
            }
            self.reserve(pairing.left.len().max(pairing.right.len()), grid)?;
            let (many, one) = match matching.cardinality {
                Cardinality::OneToMany => (Side::of(right, &pairing.right), Side::of(left, &pairing.left)),
                _ => (Side::of(left, &pairing.left), Side::of(right, &pairing.right)),
            };
            self.paired(binary, &pairing, (&many, &one), (grid, &has_many), &mut answer)?;
        }
        // Many series may become one, as long as no two of them have a value at the same time.
        merge(answer).or_else(|_| match matching.cardinality {
            Cardinality::OneToOne => refuse(
                "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)",
            ),
            _ => refuse("multiple matches for labels: grouping labels must ensure unique matches"),
        })
    }

    /// The results of the series of one pairing.
    fn paired(
        &mut self,
        binary: &Binary,
        pairing: &Pairing,
        (many, one): (&Side<'_>, &Side<'_>),
        (grid, has_many): (Grid, &[bool]),
        answer: &mut Vec<Column>,
    ) -> Result<()> {
        let matching = &binary.matching;
        let is_swapped = matching.cardinality == Cardinality::OneToMany;
        let (fill_many, fill_one) = match is_swapped {
            true => (matching.fill_right, matching.fill_left),
            false => (matching.fill_left, matching.fill_right),
        };
        let partners = one.only(binary, pairing, has_many)?;
        if matching.cardinality == Cardinality::OneToOne {
            many.check_single(&partners)?;
        }
        let compute = |many: f64, one: f64| match is_swapped {
            true => combine(binary, one, many),
            false => combine(binary, many, one),
        };
        for column in &many.columns {
            // The partner may change over time.
            let mut results: Vec<(Option<usize>, Vec<f64>)> = Vec::new();
            for (index, (&value, &partner)) in column.values.iter().zip(&partners).enumerate() {
                if is_absent(value) {
                    continue;
                }
                let other = match partner {
                    Some(place) => one.columns[place].values[index],
                    None => match fill_one {
                        Some(fill) => fill,
                        None => continue,
                    },
                };
                let result = compute(value, other);
                if is_absent(result) {
                    continue;
                }
                // Only labels that are taken from the partner make a difference.
                let partner = partner.filter(|_| !matching.include.is_empty());
                let at = match results.iter().position(|(known, _)| *known == partner) {
                    Some(at) => at,
                    None => {
                        results.push((partner, vec![ABSENT; grid.count]));
                        results.len() - 1
                    }
                };
                results[at].1[index] = result;
            }
            for (partner, values) in results {
                let one = partner.map(|place| &one.columns[place].labels);
                answer.push(self.result(binary, column, one, values));
            }
        }
        if let Some(fill) = fill_many {
            fill_missing(binary, &pairing.key, many, one, (fill, is_swapped), grid, answer);
        }
        Ok(())
    }

    fn result(&self, binary: &Binary, many: &Column, one: Option<&Labels>, values: Vec<f64>) -> Column {
        let (operator, matching) = (binary.operator, &binary.matching);
        let is_plain_comparison = operator.is_comparison() && !binary.bool;
        // A name that goes later is still there.
        if self.options.delayed_names && !is_plain_comparison && matching.cardinality != Cardinality::OneToOne
        {
            let named = labels(&many.labels, one, BinaryOperator::Equal, false, matching);
            return Column { labels: named, unnamed: true, values };
        }
        let labels = labels(&many.labels, one, operator, binary.bool, matching);
        Column { labels, unnamed: many.unnamed && is_plain_comparison, values }
    }
}

/// A value of both, or nothing where a comparison is false.
fn combine(binary: &Binary, left: f64, right: f64) -> f64 {
    let result = scalar::binary(binary.operator, left, right);
    if !binary.operator.is_comparison() || binary.bool {
        return result;
    }
    // A comparison answers the value of its left side.
    if result == 0.0 { ABSENT } else { left }
}

/// Results for the side of one where the side of many has nothing.
fn fill_missing(
    binary: &Binary,
    key: &Labels,
    many: &Side<'_>,
    one: &Side<'_>,
    (fill, is_swapped): (f64, bool),
    grid: Grid,
    answer: &mut Vec<Column>,
) {
    for column in &one.columns {
        let values: Vec<f64> = (0..grid.count)
            .map(|index| {
                let value = column.values[index];
                if is_absent(value) || many.columns.iter().any(|other| !is_absent(other.values[index])) {
                    return ABSENT;
                }
                match is_swapped {
                    true => combine(binary, value, fill),
                    false => combine(binary, fill, value),
                }
            })
            .collect();
        let labels =
            labels(key, Some(&column.labels), binary.operator, binary.bool, &filled(&binary.matching));
        let column = Column { labels, unnamed: false, values };
        if !column.is_empty() {
            answer.push(column);
        }
    }
}

/// How labels of a filled series are made: those that count are all that there are.
fn filled(matching: &Matching) -> Matching {
    Matching { cardinality: Cardinality::ManyToOne, ..matching.clone() }
}

/// The series of one side of a pairing.
struct Side<'a> {
    columns: Vec<&'a Column>,
}

impl<'a> Side<'a> {
    fn of(columns: &'a [Column], places: &[usize]) -> Side<'a> {
        Side { columns: places.iter().map(|place| &columns[*place]).collect() }
    }

    /// Of the side of one: the place of its series at each time. Two are wrong where the side of many has anything at all.
    fn only(&self, binary: &Binary, pairing: &Pairing, has_many: &[bool]) -> Result<Vec<Option<usize>>> {
        let mut places = vec![None; has_many.len()];
        for (place, column) in self.columns.iter().enumerate() {
            for (index, value) in column.values.iter().enumerate() {
                if is_absent(*value) {
                    continue;
                }
                if let Some(other) = places[index].replace(place)
                    && has_many[index]
                {
                    return self.duplicate(binary, pairing, other, place);
                }
            }
        }
        Ok(places)
    }

    fn duplicate<T>(&self, binary: &Binary, pairing: &Pairing, other: usize, place: usize) -> Result<T> {
        let side = if binary.matching.cardinality == Cardinality::OneToMany { "left" } else { "right" };
        refuse(format!(
            "found duplicate series for the match group {} on the {side} hand-side of the operation: [{}, {}];\
             many-to-many matching not allowed: matching labels must be unique on one side",
            pairing.key, self.columns[other].labels, self.columns[place].labels
        ))
    }

    /// That there is at most one at each time where the other side has one.
    fn check_single(&self, partners: &[Option<usize>]) -> Result<()> {
        if self.columns.len() < 2 {
            return Ok(());
        }
        for (index, partner) in partners.iter().enumerate() {
            let present = self.columns.iter().filter(|column| !is_absent(column.values[index])).count();
            if present > 1 && partner.is_some() {
                return refuse(
                    "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)",
                );
            }
        }
        Ok(())
    }
}

/// `and`, `or`, `unless`.
fn set(binary: &Binary, mut left: Vec<Column>, mut right: Vec<Column>, grid: Grid) -> Result<Vec<Column>> {
    let pairings = pairings(&left, &right, &binary.matching);
    let has = |columns: &[Column], places: &[usize], index: usize| {
        places.iter().any(|place| !is_absent(columns[*place].values[index]))
    };
    for pairing in &pairings {
        for index in 0..grid.count {
            match binary.operator {
                BinaryOperator::Or => {
                    if has(&left, &pairing.left, index) {
                        pairing.right.iter().for_each(|place| right[*place].values[index] = ABSENT);
                    }
                }
                operator => {
                    if has(&right, &pairing.right, index) == (operator == BinaryOperator::Unless) {
                        pairing.left.iter().for_each(|place| left[*place].values[index] = ABSENT);
                    }
                }
            }
        }
    }
    if binary.operator == BinaryOperator::Or {
        left.extend(right);
    }
    left.retain(|column| !column.is_empty());
    // The two sides may have the same series at different times.
    merge(left)
}
