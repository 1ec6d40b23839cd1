//! Which series of two sides belong together.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::ast::{BinaryOperator, Cardinality, Matching};
use crate::labels::{Labels, NAME};
use crate::value::Column;

/// The series of both sides that have the same values of the labels that count.
pub(super) struct Pairing {
    /// These labels.
    pub key: Labels,
    /// Places on the left.
    pub left: Vec<usize>,
    /// Places on the right.
    pub right: Vec<usize>,
}

/// Labels that count.
fn key(labels: &Labels, matching: &Matching) -> Labels {
    let has = |name: &str| matching.labels.iter().any(|label| label == name);
    match matching.on {
        true => labels.filter(has),
        false => labels.without_name().filter(|name| !has(name)),
    }
}

/// All pairings, in the order of the left side, then of the right.
pub(super) fn pairings(left: &[Column], right: &[Column], matching: &Matching) -> Vec<Pairing> {
    let mut places: HashMap<Labels, usize, FixedState> = HashMap::with_hasher(FixedState::default());
    let mut all: Vec<Pairing> = Vec::new();
    for (is_left, columns) in [(true, left), (false, right)] {
        for (place, column) in columns.iter().enumerate() {
            let key = key(&column.labels, matching);
            let at = *places.entry(key.clone()).or_insert(all.len());
            if at == all.len() {
                all.push(Pairing { key, left: Vec::new(), right: Vec::new() });
            }
            if is_left { all[at].left.push(place) } else { all[at].right.push(place) }
        }
    }
    all
}

/// The labels of a result: of the side of many, without what does not count, with what is taken from the side of one.
pub(super) fn labels(
    many: &Labels,
    one: Option<&Labels>,
    operator: BinaryOperator,
    is_bool: bool,
    matching: &Matching,
) -> Labels {
    // A comparison answers the series itself.
    let keeps_name = operator.is_comparison() && !is_bool;
    let mut labels = if keeps_name { many.clone() } else { many.without_name() };
    if matching.cardinality == Cardinality::OneToOne {
        let has = |name: &str| matching.labels.iter().any(|label| label == name);
        labels =
            labels.filter(|name| (keeps_name && name == NAME && !matching.on) || has(name) == matching.on);
    }
    for name in &matching.include {
        let value = one.map_or("", |one| one.get(name));
        labels = labels.with(name, value);
    }
    labels
}
