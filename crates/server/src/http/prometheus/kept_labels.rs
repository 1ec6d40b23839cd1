//! Labels of the series that were asked for, so that the next query need not match their RRDs' names with all rules again, which takes as
//! long as reading hundreds of rows.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use promql::Labels;
use rrd::definition::Definition;

use super::index::Entry;
use crate::budget::{MemoryBudget, Share};

/// The most memory that they take, of that for clients: the labels of some ten thousand series.
const BYTES_MAX: u64 = 8 << 20;
/// What the table takes for a series.
const ENTRY_BYTES: u64 = 64;

/// Labels by series, as long as their RRDs have the definitions that they followed from.
pub struct KeptLabels(RwLock<Table>);

struct Table {
    labels: HashMap<Entry, (Arc<Definition>, Labels)>,
    share: Share,
}

impl KeptLabels {
    /// None yet, for clients that share `memory`.
    pub fn new(memory: &Arc<MemoryBudget>) -> KeptLabels {
        KeptLabels(RwLock::new(Table { labels: HashMap::new(), share: memory.share() }))
    }

    /// The labels of a series whose RRD has this very definition.
    pub fn find(&self, entry: Entry, definition: &Arc<Definition>) -> Option<Labels> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (of, labels) = table.labels.get(&entry)?;
        Arc::ptr_eq(of, definition).then(|| labels.clone())
    }

    /// Keeps the labels of a series, if there is room.
    pub fn keep(&self, entry: Entry, definition: &Arc<Definition>, labels: &Labels) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = table.labels.get(&entry).map_or(0, |(_, labels)| labels.bytes() + ENTRY_BYTES);
        let bytes = table.share.bytes() - before + labels.bytes() + ENTRY_BYTES;
        if bytes <= BYTES_MAX && table.share.try_resize(bytes) {
            table.labels.insert(entry, (Arc::clone(definition), labels.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rrd::definition::text::{CreateOptions, Limits, parse_create};
    use rrd::when::Step;

    fn definition() -> Arc<Definition> {
        let step = Step { units: 10, units_per_second: 1 };
        let options = CreateOptions { step, limits: Limits::STORE, file_name: b"x" };
        Arc::new(parse_create(&options, &["DS:a:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:10"]).unwrap())
    }

    fn entry(rrd: u32) -> Entry {
        Entry { rrd, ds: 0, is_counter: false }
    }

    #[test]
    fn labels_are_those_of_a_definition() {
        let memory = MemoryBudget::new(1 << 30);
        let kept = KeptLabels::new(&memory);
        let (one, other) = (definition(), definition());
        let labels = Labels::new([("a", "b")]);
        kept.keep(entry(1), &one, &labels);
        assert_eq!(kept.find(entry(1), &one), Some(labels));
        assert_eq!((kept.find(entry(1), &other), kept.find(entry(2), &one)), (None, None));
        // One whose definition has changed takes the place of the one before.
        let used = memory.used();
        kept.keep(entry(1), &other, &Labels::new([("a", "c")]));
        assert_eq!(memory.used(), used);
        assert!(used > 0 && kept.find(entry(1), &other).is_some());
        drop(kept);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn what_has_no_room_is_not_kept() {
        let large = Labels::new([("a", "b".repeat(1 << 20))]);
        let definition = definition();
        let count = |memory: u64| {
            let memory = MemoryBudget::new(memory);
            let kept = KeptLabels::new(&memory);
            (0..20).for_each(|rrd| kept.keep(entry(rrd), &definition, &large));
            (0..20).filter(|rrd| kept.find(entry(*rrd), &definition).is_some()).count()
        };
        assert_eq!((count(1 << 30), count(3 << 20)), (7, 2));
    }
}
