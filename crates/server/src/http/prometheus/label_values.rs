//! Which values each label has over all series: what a client asks for when it offers a choice, and a million series take seconds to look
//! through.

use std::collections::HashMap;
use std::ops::Range;

use promql::{Matcher, Operator};

/// Labels that are kept: what a client has pushed with ever new ones is no list for people.
const LABELS_MAX: usize = 10_000;
/// Values of one label that are kept; a label with more is one for each RRD, and no choice.
const VALUES_MAX: usize = 100_000;
/// Bytes of all values that are kept.
const BYTES_MAX: usize = 16 << 20;
/// What a value takes beside its bytes.
const VALUE_COST: usize = 48;
/// Runs of all values that are kept, of 8 bytes each.
const RUNS_MAX: usize = 4 << 20;

/// Numbers of RRDs in order, as runs: names that follow each other often have the same value.
pub type Runs = Vec<Range<u32>>;

/// The values of labels, and which RRDs have them.
#[derive(Default)]
pub struct LabelValues {
    /// `None`: too many.
    labels: HashMap<Box<str>, Option<KnownLabel>>,
    bytes: usize,
    runs: usize,
    /// Whether there were more labels.
    is_cut: bool,
}

/// What is known of a label.
#[derive(Default)]
struct KnownLabel {
    values: HashMap<Box<str>, Runs>,
    /// So many runs its values have; `None`: too many, and none is kept.
    runs: Option<usize>,
}

impl LabelValues {
    /// Adds a value that a series of an RRD has. RRDs come in the order of their numbers.
    pub fn add(&mut self, label: &str, value: &str, rrd: u32) {
        if !self.labels.contains_key(label) {
            if self.labels.len() >= LABELS_MAX || self.bytes > BYTES_MAX {
                self.is_cut = true;
                return;
            }
            self.bytes += label.len() + VALUE_COST;
            self.labels.insert(label.into(), Some(KnownLabel { runs: Some(0), ..KnownLabel::default() }));
        }
        let Some(kept) = self.labels.get_mut(label) else { return };
        let Some(known) = kept else { return };
        if !known.values.contains_key(value) {
            self.bytes += value.len() + VALUE_COST;
            known.values.insert(value.into(), Runs::new());
            if known.values.len() > VALUES_MAX || self.bytes > BYTES_MAX {
                self.bytes -= known.values.keys().map(|value| value.len() + VALUE_COST).sum::<usize>();
                self.runs -= known.runs.unwrap_or(0);
                *kept = None;
                return;
            }
        }
        let (Some(count), Some(runs)) = (known.runs.as_mut(), known.values.get_mut(value)) else { return };
        match runs.last_mut() {
            Some(last) if last.end > rrd => {}
            Some(last) if last.end == rrd => last.end += 1,
            _ => {
                runs.push(rrd..rrd + 1);
                *count += 1;
                self.runs += 1;
            }
        }
        if self.runs > RUNS_MAX {
            self.runs -= *count;
            known.runs = None;
            known.values.values_mut().for_each(|runs| *runs = Runs::new());
        }
    }

    /// The names of all labels; `None` if there are too many to be kept.
    pub fn names(&self) -> Option<impl Iterator<Item = &str>> {
        (!self.is_cut).then(|| self.labels.keys().map(|label| &**label))
    }

    /// The values of a label, in no order; `None` if there are too many to be kept.
    pub fn of(&self, label: &str) -> Option<impl Iterator<Item = &str>> {
        let values = match self.labels.get(label) {
            Some(kept) => Some(&kept.as_ref()?.values),
            None if self.is_cut => return None,
            None => None,
        };
        Some(values.into_iter().flat_map(|values| values.keys()).map(|value| &**value))
    }

    /// The RRDs of which a series may match; `None` if that is not known.
    pub fn matching(&self, matcher: &Matcher) -> Option<Runs> {
        // A series without the label would match, too.
        if matcher.matches("") {
            return None;
        }
        let known = match self.labels.get(&*matcher.name) {
            Some(kept) => kept.as_ref().filter(|known| known.runs.is_some())?,
            None if self.is_cut => return None,
            None => return Some(Runs::new()),
        };
        if matcher.operator == Operator::Equal {
            return Some(known.values.get(&*matcher.value).cloned().unwrap_or_default());
        }
        let fitting = known.values.iter().filter(|(value, _)| matcher.matches(value));
        let mut all: Runs = fitting.flat_map(|(_, runs)| runs.iter().cloned()).collect();
        all.sort_unstable_by_key(|run| run.start);
        // Several series of an RRD may have different values.
        all.dedup_by(|next, last| {
            let touches = next.start <= last.end;
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
        Some(all)
    }

    /// The bytes of memory that they take, about.
    pub fn bytes(&self) -> u64 {
        (self.bytes + self.runs * size_of::<Range<u32>>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a run has the number.
    fn has(runs: &Runs, rrd: u32) -> bool {
        runs.iter().any(|run| run.contains(&rrd))
    }

    #[test]
    fn values_are_kept_once_and_not_without_end() {
        let mut all = LabelValues::default();
        for number in 0..=VALUES_MAX {
            all.add("rrd", &format!("{number}"), number as u32);
            all.add("job", ["node", "web"][number % 2], number as u32);
        }
        assert!(all.of("rrd").is_none());
        let mut jobs: Vec<&str> = all.of("job").unwrap().collect();
        jobs.sort_unstable();
        assert_eq!(jobs, ["node", "web"]);
        assert_eq!(all.of("none").unwrap().count(), 0);
        let mut names: Vec<&str> = all.names().unwrap().collect();
        names.sort_unstable();
        assert_eq!(names, ["job", "rrd"]);
        let runs = 8 * (VALUES_MAX as u64 + 1);
        assert!((runs..runs + 300).contains(&all.bytes()), "{}", all.bytes());
        // Few and long.
        for number in 0..17 {
            all.add("text", &format!("{number}{}", "x".repeat(1 << 20)), 0);
        }
        assert!(all.of("text").is_none() && all.bytes() < runs + 300);
        for number in 0..LABELS_MAX {
            all.add(&format!("l{number}"), "x", 0);
        }
        assert!(all.names().is_none() && all.of("none").is_none() && all.of("job").is_some());
    }

    #[test]
    fn rrds_are_found_by_their_values() {
        let matcher = |operator, value: &str| Matcher::new("host", operator, value).unwrap();
        let mut all = LabelValues::default();
        let hosts = |rrd: u32| [Some("a"), Some("b"), None][rrd as usize / 10 % 3];
        for rrd in 0..90 {
            hosts(rrd).into_iter().for_each(|host| all.add("host", host, rrd));
            // Another data source of the same RRD.
            all.add("host", "all", rrd);
        }
        let found = |operator, value: &str| {
            all.matching(&matcher(operator, value))
                .map(|runs| (0..90).filter(|rrd| has(&runs, *rrd)).collect())
        };
        let of = |host: &str| -> Option<Vec<u32>> {
            Some((0..90).filter(|rrd| hosts(*rrd) == Some(host)).collect())
        };
        assert_eq!(found(Operator::Equal, "a"), of("a"));
        assert_eq!(found(Operator::Equal, "c"), Some(vec![]));
        assert_eq!(found(Operator::Regex, "b|c"), of("b"));
        let both = found(Operator::Regex, "a|b").unwrap();
        assert_eq!(both.len(), 60);
        assert_eq!(found(Operator::Regex, "a.*"), Some((0..90).collect()));
        // Also those without the label.
        assert_eq!(found(Operator::NotEqual, "a"), None);
        assert_eq!(found(Operator::Equal, ""), None);
        assert_eq!(found(Operator::Regex, ".*"), None);
        // Other labels have nearly all runs. More are not kept; the values are.
        let others = RUNS_MAX - 1000;
        all.runs += others;
        for rrd in 0..1000 {
            all.add("side", ["left", "right"][rrd as usize % 2], rrd);
        }
        all.runs -= others;
        let side = Matcher::new("side", Operator::Equal, "left").unwrap();
        assert!(all.matching(&side).is_none() && all.of("side").unwrap().count() == 2 && all.bytes() < 1000);
    }
}
