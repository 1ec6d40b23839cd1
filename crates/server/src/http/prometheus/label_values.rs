//! Which values each label has over all series: what a client asks for when it offers a choice, and a million series take seconds to look
//! through.

use std::collections::{HashMap, HashSet};

/// Labels that are kept: what a client has pushed with ever new ones is no list for people.
const LABELS_MAX: usize = 10_000;
/// Values of one label that are kept; a label with more is one for each RRD, and no choice.
const VALUES_MAX: usize = 100_000;
/// Bytes of all values that are kept.
const BYTES_MAX: usize = 16 << 20;
/// What a value takes beside its bytes.
const VALUE_COST: usize = 24;

/// The values of labels.
#[derive(Default)]
pub struct LabelValues {
    /// `None`: too many.
    labels: HashMap<Box<str>, Option<HashSet<Box<str>>>>,
    bytes: usize,
    /// Whether there were more labels.
    is_cut: bool,
}

impl LabelValues {
    /// Adds a value that a series has.
    pub fn add(&mut self, label: &str, value: &str) {
        let Some(kept) = self.labels.get_mut(label) else {
            if self.labels.len() >= LABELS_MAX || self.bytes > BYTES_MAX {
                self.is_cut = true;
                return;
            }
            self.labels.insert(label.into(), Some(HashSet::from([value.into()])));
            self.bytes += label.len() + value.len() + 2 * VALUE_COST;
            return;
        };
        let Some(values) = kept.as_mut().filter(|values| !values.contains(value)) else { return };
        self.bytes += value.len() + VALUE_COST;
        values.insert(value.into());
        if values.len() > VALUES_MAX || self.bytes > BYTES_MAX {
            self.bytes -= values.iter().map(|value| value.len() + VALUE_COST).sum::<usize>();
            *kept = None;
        }
    }

    /// The names of all labels; `None` if there are too many to be kept.
    pub fn names(&self) -> Option<impl Iterator<Item = &str>> {
        (!self.is_cut).then(|| self.labels.keys().map(|label| &**label))
    }

    /// The values of a label, in no order; `None` if there are too many to be kept.
    pub fn of(&self, label: &str) -> Option<impl Iterator<Item = &str>> {
        let values = match self.labels.get(label) {
            Some(kept) => Some(kept.as_ref()?),
            None if self.is_cut => return None,
            None => None,
        };
        Some(values.into_iter().flatten().map(|value| &**value))
    }

    /// The bytes of memory that they take, about.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_once_and_not_without_end() {
        let mut all = LabelValues::default();
        for number in 0..=VALUES_MAX {
            all.add("rrd", &format!("{number}"));
            all.add("job", ["node", "web"][number % 2]);
        }
        assert!(all.of("rrd").is_none());
        let mut jobs: Vec<&str> = all.of("job").unwrap().collect();
        jobs.sort_unstable();
        assert_eq!(jobs, ["node", "web"]);
        assert_eq!(all.of("none").unwrap().count(), 0);
        let mut names: Vec<&str> = all.names().unwrap().collect();
        names.sort_unstable();
        assert_eq!(names, ["job", "rrd"]);
        assert!(all.bytes() < 200);
        // Few and long.
        for number in 0..17 {
            all.add("text", &format!("{number}{}", "x".repeat(1 << 20)));
        }
        assert!(all.of("text").is_none() && all.bytes() < 200);
        for number in 0..LABELS_MAX {
            all.add(&format!("l{number}"), "x");
        }
        assert!(all.names().is_none() && all.of("none").is_none() && all.of("job").is_some());
    }
}
